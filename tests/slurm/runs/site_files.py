"""A site as Slurm's own files and commands have it: slurm.conf, and sacctmgr's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.switches import Switch

_DEFAULT = SlurmParameters()
_VALUES = (
    *("batch_sched_delay", "sched_interval", "default_queue_depth", "partition_job_depth"),
    *("max_sched_time", "sched_max_job_start", "max_rpc_cnt", "bf_interval", "bf_resolution"),
    *("bf_max_time", "bf_max_job_test", "bf_max_job_user", "bf_max_job_part"),
    *("bf_max_job_user_part", "bf_max_job_assoc", "bf_max_job_start", "bf_max_job_array_resv"),
    *("bf_job_part_count_reserve", "bf_min_prio_reserve", "bf_min_age_reserve"),
)
_WORDS = (
    *("defer", "assoc_limit_stop", "bf_continue", "bf_one_resv_per_job", "bf_running_job_reserve"),
    *("bf_licenses", "time_min_as_soft_limit"),
)


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """What a cluster is set up with.

    Attributes
    ----------
    values
        Of slurm.conf, by key, from the cluster's first start on.
    accounting_values
        Of slurm.conf, that need slurmdbd.
    scheduler_parameters
        By name; ``None`` for words without a value.
    node_settings, slurm_partitions
        Of each node, and of each partition, what stands after its name, or from its name on.
    gres_conf, topology_conf
        The files; empty: none.
    sacctmgr
        Commands in order; empty: no accounting.
    """

    values: Mapping[str, str]
    accounting_values: Mapping[str, str]
    scheduler_parameters: Mapping[str, str | None]
    node_settings: list[str]
    slurm_partitions: list[str]
    gres_conf: str = ""
    topology_conf: str = ""
    sacctmgr: list[list[str]] = field(default_factory=list)


def files_of(site: SlurmSite) -> SiteFiles:
    """Give what a live cluster needs to be this site."""
    machine = site.machine
    values = {
        "SelectTypeParameters": _SELECTIONS[machine.selection.value],
        "EnforcePartLimits": site.enforce_part_limits,
        "KillWait": str(site.parameters.kill_wait_s),
        "PriorityType": "priority/basic",
    }
    if site.parameters.over_time_limit_s:
        values["OverTimeLimit"] = str(site.parameters.over_time_limit_s // 60)
    if site.parameters.complete_wait_s:
        values["CompleteWait"] = str(site.parameters.complete_wait_s)
    if site.priority.multifactor:
        values |= priority_values(site.priority)
    if site.switches:
        values["TopologyPlugin"] = "topology/tree"
    groups = [group for group in machine.node_groups for _ in range(group.nodes)]
    with_gpus = [number for number, group in enumerate(groups, 1) if group.gpus]
    if with_gpus:
        values["GresTypes"] = "gpu"
    nodes = []
    for group in groups:
        words = [f"CPUs={group.cpus}", f"RealMemory={group.memory_mib or 1000}"]
        words += [f"Feature={','.join(group.features)}"] if group.features else []
        words += [f"Gres=gpu:{group.gpus}"] if group.gpus else []
        words += [f"Weight={group.weight}"] if group.weight != 1 else []
        nodes.append(" ".join(words))
    # Terminals stand for GPUs: slurmd only looks whether the files are there.
    gres = "".join(
        f"NodeName=n{number} Name=gpu File=/dev/tty[1-{groups[number - 1].gpus}]\n"
        for number in with_gpus
    )
    accounting = {}
    if site.enforced:
        accounting["AccountingStorageEnforce"] = ",".join(sorted(site.enforced))
    return SiteFiles(
        values=values,
        accounting_values=accounting,
        scheduler_parameters=scheduler_parameters(site.parameters),
        node_settings=nodes,
        slurm_partitions=[_partition(site, number) for number in range(_partitions(machine))],
        gres_conf=gres if with_gpus else "",
        topology_conf="".join(_switch(site, switch) for switch in site.switches),
        sacctmgr=_sacctmgr(site),
    )


_SELECTIONS = {"CR_CPU_Memory": "CR_Core_Memory", "CR_CPU": "CR_Core"}


def _partitions(machine: Machine) -> int:
    return len(machine.slurm_partitions)


def scheduler_parameters(parameters: SlurmParameters) -> dict[str, str | None]:
    """Give SchedulerParameters, without those that are Slurm's defaults."""
    given: dict[str, str | None] = {}
    for name in _VALUES:
        value = getattr(parameters, name)
        if value != getattr(_DEFAULT, name):
            given[name] = str(value)
    if parameters.bf_window != _DEFAULT.bf_window:
        given["bf_window"] = str(parameters.bf_window // 60)
    for name in ("sched_min_interval", "bf_yield_interval", "bf_yield_sleep"):
        value = getattr(parameters, f"{name}_us")
        if value != getattr(_DEFAULT, f"{name}_us"):
            given[name] = str(value)
    return given | {name: None for name in _WORDS if getattr(parameters, name)}


def priority_values(priority: SlurmPriority) -> dict[str, str]:
    """Give what slurm.conf says of a multifactor priority."""
    values = {
        "PriorityType": "priority/multifactor",
        "PriorityMaxAge": _duration(priority.max_age_s),
        "PriorityDecayHalfLife": _duration(priority.decay_half_life_s),
        "PriorityCalcPeriod": _duration(priority.calc_period_s),
        "PriorityUsageResetPeriod": priority.usage_reset_period,
        "PriorityFavorSmall": "YES" if priority.favor_small else "NO",
        "FairShareDampeningFactor": str(priority.dampening_factor),
    }
    for name, weight in (
        ("Age", priority.weight_age),
        ("Assoc", priority.weight_assoc),
        ("Fairshare", priority.weight_fair_share),
        ("JobSize", priority.weight_job_size),
        ("Partition", priority.weight_partition),
        ("QOS", priority.weight_qos),
    ):
        if weight:
            values[f"PriorityWeight{name}"] = str(weight)
    if priority.weight_tres:
        values["PriorityWeightTRES"] = _tres(priority.weight_tres)
    if priority.flags:
        values["PriorityFlags"] = ",".join(sorted(priority.flags))
    return values


def _partition(site: SlurmSite, number: int) -> str:
    part = site.machine.slurm_partitions[number]
    rules = site.rules_of(part.name)
    words = [part.name, f"Nodes={_nodes_of(site.machine, part.node_groups)}"]
    words.append(f"Default={'YES' if number == site.machine.default_partition else 'NO'}")
    words.append(f"MaxTime={part.max_time_s // 60 if part.max_time_s else 'INFINITE'}")
    if rules.default_time_s is not None:
        words.append(f"DefaultTime={rules.default_time_s // 60}")
    if part.priority_tier != 1:
        words.append(f"PriorityTier={part.priority_tier}")
    if rules.priority_job_factor != 1:
        words.append(f"PriorityJobFactor={rules.priority_job_factor}")
    if part.default_memory_per_cpu_mib:
        words.append(f"DefMemPerCPU={part.default_memory_per_cpu_mib}")
    if part.max_nodes is not None:
        words.append(f"MaxNodes={part.max_nodes}")
    if part.exclusive:
        words.append("OverSubscribe=EXCLUSIVE")
    if rules.qos is not None:
        words.append(f"QOS={rules.qos}")
    if rules.billing_weights:
        words.append(f'TRESBillingWeights="{_tres(rules.billing_weights)}"')
    return " ".join(words)


def _nodes_of(machine: Machine, names: Iterable[str]) -> str:
    """Write the nodes of groups, in the machine's order."""
    wanted = set(names)
    spans = []
    for first, group in zip(machine.first_nodes, machine.node_groups, strict=True):
        if group.name in wanted:
            last = first + group.nodes
            spans.append(str(last) if group.nodes == 1 else f"{first + 1}-{last}")
    return f"n[{','.join(spans)}]"


def _switch(site: SlurmSite, switch: Switch) -> str:
    below = f"Switches={','.join(switch.switches)}"
    nodes = f"Nodes={_nodes_of(site.machine, switch.node_groups)}"
    return f"SwitchName={switch.name} {below if switch.switches else nodes}\n"


def _sacctmgr(site: SlurmSite) -> list[list[str]]:
    commands = []
    for qos in site.qos.values():
        settings = _qos_settings(qos)
        if qos.name == "normal":  # slurmdbd makes it
            commands += [["modify", "qos", "normal", "set", *settings]] if settings else []
        else:
            commands.append(["add", "qos", qos.name, *settings])
    for association in _parents_first(site.associations):
        settings = [f"fairshare={'parent' if association.shares is None else association.shares}"]
        settings += _limit_words(association.limits, {})
        if association.qos:
            settings.append(f"qos={','.join(association.qos)}")
        if association.default_qos:
            settings.append(f"defaultqos={association.default_qos}")
        if association.account == "root":  # slurmdbd makes it, with a user root
            continue
        if association.user is None:
            parent = [f"parent={association.parent}"] if association.parent else []
            commands.append(["add", "account", association.account, *parent, *settings])
        else:
            account = [f"account={association.account}"]
            commands.append(["add", "user", association.user, *account, *settings])
    return commands


def _parents_first(associations: Iterable[Association]) -> list[Association]:
    return sorted(associations, key=lambda each: each.user is not None)


def _qos_settings(qos: Qos) -> list[str]:
    settings = [f"priority={qos.priority}"] if qos.priority else []
    if qos.flags:
        settings.append(f"flags={','.join(sorted(qos.flags))}")
    if qos.usage_factor != 1.0:
        settings.append(f"usagefactor={qos.usage_factor}")
    return settings + _limit_words(
        qos.limits, {"max_jobs": "MaxJobsPerUser", "max_submit_jobs": "MaxSubmitJobsPerUser"}
    )


_LIMIT_NAMES = {
    "grp_jobs": "GrpJobs",
    "grp_submit_jobs": "GrpSubmitJobs",
    "grp_tres": "GrpTRES",
    "grp_tres_mins": "GrpTRESMins",
    "grp_tres_run_mins": "GrpTRESRunMins",
    "grp_wall_s": "GrpWall",
    "max_jobs": "MaxJobs",
    "max_submit_jobs": "MaxSubmitJobs",
    "max_jobs_per_account": "MaxJobsPerAccount",
    "max_submit_jobs_per_account": "MaxSubmitJobsPerAccount",
    "max_tres_per_job": "MaxTRESPerJob",
    "max_tres_per_node": "MaxTRESPerNode",
    "max_tres_mins_per_job": "MaxTRESMinsPerJob",
    "max_tres_per_user": "MaxTRESPerUser",
    "max_tres_per_account": "MaxTRESPerAccount",
    "max_tres_run_mins_per_user": "MaxTRESRunMinsPerUser",
    "max_tres_run_mins_per_account": "MaxTRESRunMinsPerAccount",
    "max_wall_s": "MaxWall",
    "min_tres_per_job": "MinTRESPerJob",
}


def _limit_words(limits: Limits, other_names: Mapping[str, str]) -> list[str]:
    words = []
    for field_name, slurm_name in _LIMIT_NAMES.items():
        value = getattr(limits, field_name)
        if value is None or value == {}:
            continue
        if isinstance(value, Mapping):
            text = _tres(value)
        elif field_name.endswith("_s"):
            text = str(value // 60)
        else:
            text = str(value)
        words.append(f"{other_names.get(field_name, slurm_name)}={text}")
    return words


def _tres(counts: Mapping[str, float]) -> str:
    return ",".join(f"{kind}={count}" for kind, count in counts.items())


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:{rest:02}"
