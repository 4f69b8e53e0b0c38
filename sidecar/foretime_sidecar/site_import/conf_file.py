"""A site's slurm.conf and topology.conf, in the place of what ``scontrol show`` prints of them.

What slurm.conf does not say has Slurm's default. Accounts, QOS and usage are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import read_text

from foretime_sidecar.clients.slurm.site import expand_nodes
from foretime_sidecar.queue.alike_nodes import by_number
from foretime_sidecar.site_import.site_output import SiteOutput

_VERSION = "26.05.0"
"""Release whose defaults are taken, as slurm.conf names none."""
_NAMES = {
    name.lower(): name
    for name in (
        "AccountingStorageEnforce", "BurstBufferType", "ClusterName", "CompleteWait",
        "DefMemPerCPU", "DefMemPerNode", "EnforcePartLimits", "Epilog",
        "FairShareDampeningFactor",
        "FederationParameters", "JobDefaults", "JobSubmitPlugins", "KillWait", "Licenses",
        "MaxMemPerCPU", "MaxMemPerNode", "MCSPlugin", "NodeFeaturesPlugins", "OverTimeLimit",
        "PreemptExemptTime", "PreemptMode", "PreemptParameters", "PreemptType",
        "PriorityCalcPeriod", "PriorityDecayHalfLife", "PriorityFavorSmall", "PriorityFlags",
        "PriorityMaxAge", "PriorityParameters", "PrioritySiteFactorPlugin", "PriorityType",
        "PriorityUsageResetPeriod", "PriorityWeightAge", "PriorityWeightAssoc",
        "PriorityWeightFairShare", "PriorityWeightJobSize", "PriorityWeightPartition",
        "PriorityWeightQOS", "PriorityWeightTRES", "PrologFlags", "SchedulerParameters",
        "SchedulerType",
        "SelectType", "SelectTypeParameters", "SuspendProgram", "SuspendTime", "TopologyParam",
        "TopologyPlugin",
    )
}  # fmt: skip
"""Settings that are read; case does not matter in slurm.conf."""
_PARTITION_NAMES = {"allowqos": "AllowQos", "denyqos": "DenyQos", "qos": "QoS"}
_CPU_COUNTS = ("sockets", "corespersocket", "threadspercore")


def is_conf(text: str) -> bool:
    """Say whether a text is a slurm.conf."""
    plain = re.sub(r"#.*", "", text)
    return bool(
        re.search(r"^\s*(?:ClusterName|NodeName|PartitionName)\s*=", plain, re.M | re.I)
        and re.search(
            r"^\s*(?:SlurmctldHost|ControlMachine|SlurmUser|SelectType)\s*=", plain, re.M | re.I
        )
    )


def from_conf(text: str, source: str, output: SiteOutput) -> None:
    """Add what scontrol would print of a slurm.conf to outputs.

    Raises
    ------
    InputError
        If a line can't be read, or a file that it includes.
    """
    settings: dict[str, str] = {}
    nodes: dict[str, dict[str, str]] = {}
    partitions: dict[str, dict[str, str]] = {}
    sets: dict[str, list[str]] = {}
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for line, where in _lines(text, source):
        key, given, value = (part.strip() for part in line.partition("="))
        if not given:
            raise InputError(f"{where}: {line[:80]!r} is no setting: write KEY=VALUE")
        kind = key.lower()
        if kind == "nodename" or kind == "partitionname":
            words = _words(line, where)
            name = words.pop(kind)
            if name.upper() == "DEFAULT":
                defaults[kind] |= words
            elif kind == "nodename":
                nodes |= {each: {**defaults[kind], **words} for each in _in_order(name)}
            else:
                partitions[name] = {**defaults[kind], **words}
        elif kind == "nodeset":
            words = _words(line, where)
            sets[words.pop("nodeset")] = [words.get("feature", ""), words.get("nodes", "")]
        elif kind in _NAMES:
            settings[_NAMES[kind]] = value
    for what, found in (("NodeName", nodes), ("PartitionName", partitions)):
        if not found:
            raise InputError(f"{source}: it has no line {what}=; is it cut off? Save it again")
    # slurmctld has them by name, whatever their order in the file.
    nodes = {name: nodes[name] for name in sorted(nodes, key=by_number)}
    for name, words in partitions.items():
        words["nodes"] = ",".join(_members(name, words, nodes, sets, source))
    output.texts.update(
        {
            "config": _configuration(settings),
            "nodes": "".join(_node(name, words) for name, words in nodes.items()),
            "partitions": "".join(_partition(*each) for each in partitions.items()),
        }
    )
    output.sources.update(dict.fromkeys(("config", "nodes", "partitions"), source))
    output.remedies.update(dict.fromkeys(("config", "nodes", "partitions"), "mend it there"))


def is_topology(text: str) -> bool:
    """Say whether a text is a topology.conf: nothing but switches."""
    said = [line.strip() for line in re.sub(r"#.*", "", text).splitlines()]
    said = [line for line in said if line]
    return bool(said) and bool(re.match(r"SwitchName\s*=", said[0], re.IGNORECASE))


def switches_in(text: str, source: str) -> str:
    """Give what scontrol would print of a topology.conf.

    Raises
    ------
    InputError
        If a line can't be read, or names no switch.
    """
    found = []
    for line, where in _lines(text, source):
        words = _words(line, where)
        if "switchname" not in words:
            raise InputError(f"{where}: {line[:80]!r} names no switch: write SwitchName=NAME")
        said = [f"SwitchName={words['switchname']}"]
        said += [f"{name}={words[key]}" for key, name in _OF_SWITCHES.items() if key in words]
        found.append(" ".join(said))
    return "\n".join(found)


_OF_SWITCHES = {"nodes": "Nodes", "switches": "Switches"}


def _lines(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Give the settings' lines with those of included files, and where each is."""
    whole, first = "", 1
    for number, raw in enumerate(text.splitlines(), 1):
        whole = whole or ""
        first = first if whole else number
        part = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        if part.endswith("\\"):
            whole += part[:-1] + " "
            continue
        line, whole = (whole + part).strip(), ""
        if found := re.fullmatch(r"include\s+(\S+)", line, re.IGNORECASE):
            path = Path(source).parent / Path(found[1]).name
            yield from _lines(read_text(path, what="file that slurm.conf includes"), str(path))
        elif line:
            yield line, f"{source}:{first}"


def _words(line: str, where: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for word in re.findall(r'(?:[^\s"]|"[^"]*")+', re.sub(r"\s*=\s*", "=", line)):
        key, given, value = word.partition("=")
        if not given:
            raise InputError(f"{where}: {word!r} is no KEY=VALUE")
        words[key.lower()] = value.strip('"')
    return words


def _in_order(expression: str) -> list[str]:
    return sorted(expand_nodes(expression), key=by_number)


def _members(
    name: str,
    words: dict[str, str],
    nodes: dict[str, dict[str, str]],
    sets: dict[str, list[str]],
    source: str,
) -> list[str]:
    """Give the nodes of a partition, with those of node sets."""
    members: list[str] = []
    for part in _in_order(words.get("nodes", "")):
        if part.upper() == "ALL":
            members += nodes
        elif part in sets:
            feature, listed = sets[part]
            members += [
                node
                for node, says in nodes.items()
                if feature and feature in _features(says).split(",")
            ]
            members += _in_order(listed)
        elif part in nodes:
            members.append(part)
        else:
            raise InputError(f"{source}: PartitionName={name}: there is no node {part!r}")
    return list(dict.fromkeys(members))


def _features(words: dict[str, str]) -> str:
    return words.get("feature", "") or words.get("features", "")


def _configuration(settings: dict[str, str]) -> str:
    values = {
        "SLURM_VERSION": _VERSION,
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "PriorityType": "priority/multifactor",
        "SchedulerType": "sched/backfill",
        **settings,
    }
    return "".join(f"{name} = {value or '(null)'}\n" for name, value in values.items())


def _node(name: str, words: dict[str, str]) -> str:
    cpus = words.get("cpus") or words.get("procs")
    if cpus is None:
        cpus = "1"
        counts = [words.get(each, "1") for each in _CPU_COUNTS]
        boards = words.get("boards", "1") if "socketsperboard" in words else "1"
        counts.append(words.get("socketsperboard", "1"))
        counts.append(boards)
        if all(count.isdecimal() for count in counts):
            product = 1
            for count in counts:
                product *= int(count)
            cpus = str(product)
    state = words.get("state", "IDLE").upper()
    return (
        f"NodeName={name} CPUTot={cpus} RealMemory={words.get('realmemory', '1')}"
        f" MemSpecLimit={words.get('memspeclimit', '0')} ThreadsPerCore="
        f"{words.get('threadspercore', '1')} AvailableFeatures={_features(words) or '(null)'}"
        f" Gres={words.get('gres', '(null)')} Weight={words.get('weight', '1')}"
        f" State={'IDLE' if state in ('UNKNOWN', 'CLOUD') else state}\n"
    )


def _partition(name: str, words: dict[str, str]) -> str:
    # Priority sets both (slurm.conf(5)).
    both = words.pop("priority", None)
    values = {"priorityjobfactor": both or "1", "prioritytier": both or "1", **words}
    given = " ".join(
        f"{_PARTITION_NAMES.get(key, _SPELLED.get(key, key))}={_UNLIMITED.get(value, value)}"
        for key, value in values.items()
        if value
    )
    return f"PartitionName={name} {given}\n"


_UNLIMITED = {"INFINITE": "UNLIMITED", "infinite": "UNLIMITED", "unlimited": "UNLIMITED"}
_SPELLED = {
    name.lower(): name
    for name in (
        "AllowAccounts", "AllowGroups", "AllocNodes", "Default", "DefaultTime", "DefMemPerCPU",
        "DefMemPerNode", "DenyAccounts", "Exclusive", "ExclusiveUser", "GraceTime", "Hidden",
        "JobDefaults", "LLN", "MaxCPUsPerNode", "MaxCPUsPerSocket", "MaxMemPerCPU",
        "MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe",
        "OverTimeLimit", "PreemptMode", "PriorityJobFactor", "PriorityTier", "ReqResv",
        "RootOnly", "SelectTypeParameters", "State", "TRESBillingWeights",
    )
}  # fmt: skip
