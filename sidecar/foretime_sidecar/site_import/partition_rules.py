"""What of slurm_partitions is not about their nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.site import PartitionRules
from foretime_sim.sites.slurm.tres_text import parse_weights

from foretime_sidecar.site_import.columns import nothing
from foretime_sidecar.site_import.quality_of_service import names_of
from foretime_sidecar.site_import.scheduler_settings import Settings, preempt_words, seconds, whole
from foretime_sidecar.site_import.site_output import SiteOutput


def rules_of(
    output: SiteOutput,
    settings: Settings,
    partitions: Sequence[Mapping[str, str]],
    machine: Machine,
    qos: Mapping[str, Qos],
    associations: Sequence[Association],
) -> dict[str, PartitionRules]:
    """Read the rules of the machine's slurm_partitions; those that are all defaults are left out.

    Raises
    ------
    InputError
        If a value can't be read; names the partition.
    """
    known = {part.name for part in machine.slurm_partitions}
    accounts = {each.account for each in associations}
    rules = {}
    for given in partitions:
        name = given["PartitionName"]
        if name not in known:
            continue
        values = _with_memory(given, settings)
        try:
            made = _partition_rules(name, values, settings, qos, accounts)
        except (ValueError, InputError) as error:
            raise output.fault("partitions", f"partition {name}: {error}") from None
        # slurmctld drops a DefaultTime above MaxTime; slurm.conf may have one.
        longest_s = machine.slurm_partitions[machine.partition_index(name)].max_time_s
        if longest_s is not None and (made.default_time_s or 0) > longest_s:
            made = replace(made, default_time_s=None)
        if longest := made.max_memory_per_cpu_mib or made.max_memory_per_node_mib:
            word = "MaxMemPerCPU" if made.max_memory_per_cpu_mib else "MaxMemPerNode"
            settings.note(f"Partition {name}: {word}={longest}: jobs may ask for more memory here.")
        rules[name] = made
    return {name: each for name, each in rules.items() if each != PartitionRules()}


def _with_memory(given: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Give the fields with the cluster's memory limits where there are none of its own."""
    values = dict(given)
    for pair in (("MaxMemPerCPU", "MaxMemPerNode"), ("DefMemPerCPU", "DefMemPerNode")):
        if not any(values.get(name, "").isdecimal() for name in pair):
            values |= {name: settings.text(name) for name in pair if settings.text(name)}
    return values


def _partition_rules(
    name: str,
    values: Mapping[str, str],
    settings: Settings,
    qos: Mapping[str, Qos],
    accounts: set[str],
) -> PartitionRules:
    def number(key: str) -> int | None:
        text = values.get(key, "")
        return int(text) if text.isdecimal() else None

    def listed(key: str, there: Collection[str]) -> frozenset[str] | None:
        text = values.get(key, "ALL")
        if nothing(text):
            return None
        names = frozenset(names_of(text))
        gone = sorted(names - set(there)) if there else []
        if gone:
            settings.note(f"Partition {name}: {key} names {', '.join(gone)}, which are not there.")
        return names - set(gone)

    own_qos = values.get("QoS", "")
    if nothing(own_qos):
        own_qos = ""
    elif own_qos not in qos:
        settings.note(f"Partition {name}: its QOS {own_qos} is not known, and has no limits here.")
        own_qos = ""
    mode = preempt_words(values.get("PreemptMode", "") or settings.text("PreemptMode", "OFF"))
    default_time = values.get("DefaultTime", "")
    over_time = values.get("OverTimeLimit", "")
    if over_time == "UNLIMITED":
        settings.note(f"Partition {name}: OverTimeLimit=UNLIMITED: the cluster's counts.")
    factor = number("PriorityJobFactor")
    return PartitionRules(
        priority_job_factor=1 if factor is None else factor,
        qos=own_qos or None,
        allow_accounts=listed("AllowAccounts", accounts),
        deny_accounts=listed("DenyAccounts", accounts),
        allow_qos=listed("AllowQos", qos) if qos else None,
        deny_qos=listed("DenyQos", qos) if qos else None,
        min_nodes=number("MinNodes") or 0,
        max_cpus_per_node=number("MaxCPUsPerNode"),
        max_memory_per_cpu_mib=number("MaxMemPerCPU") or 0,
        max_memory_per_node_mib=number("MaxMemPerNode") or 0,
        default_memory_per_node_mib=number("DefMemPerNode") or 0,
        default_time_s=None if nothing(default_time) else seconds(default_time),
        over_time_limit_s=whole(over_time) * 60 if over_time.isdecimal() else None,
        billing_weights=parse_weights(values.get("TRESBillingWeights", "")),
        preempt_mode=None if mode == preempt_words(settings.text("PreemptMode", "OFF")) else mode,
        grace_time_s=number("GraceTime") or 0,
        state=values.get("State", "UP"),
    )
