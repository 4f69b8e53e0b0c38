"""The tables of a site's file, key by key, in Slurm's own words."""

from __future__ import annotations

import re
from dataclasses import replace

from foretime_sim.files.toml_keys import (
    CLOCK,
    MOMENT,
    NAMES,
    NUMBER,
    SET_OF_NAMES,
    TEXT,
    YES_OR_NO,
    Key,
    Kind,
    one_of,
    quoted,
    whole_number,
)
from foretime_sim.machines.machine_file import PARTITION_KEYS as MACHINE_KEYS
from foretime_sim.sites.slurm.releases import release_text
from foretime_sim.sites.slurm.tres_text import (
    format_amounts,
    format_tres,
    format_weights,
    parse_amounts,
    parse_tres,
    parse_weights,
)

COUNT = whole_number(0)
WEIGHT = whole_number(0, 2**32 - 1)
PREEMPT_TYPES = ("preempt/none", "preempt/qos", "preempt/partition_prio")
PREEMPT_WORDS = ("OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "WITHIN", "PRIORITY")
PREEMPT_PARAMETERS = {
    "min_exempt_priority": True,
    "reclaim_licenses": False,
    "reorder_count": True,
    "send_user_signal": False,
    "strict_order": False,
    "suspend_grace_time": True,
    "youngest_first": False,
}
"""Words of PreemptParameters, and whether each has a number."""
STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")
RESET_PERIODS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
PRIORITY_FLAGS = (
    "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "FAIR_TREE", "NO_FAIR_TREE",
    "INCR_ONLY", "MAX_TRES", "MAX_TRES_GRES", "NO_NORMAL_ALL", "NO_NORMAL_ASSOC",
    "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME",
)  # fmt: skip
QOS_FLAGS = (
    "DenyOnLimit", "EnforceUsageThreshold", "NoDecay", "NoReserve", "OverPartQOS",
    "PartitionMaxNodes", "PartitionMinNodes", "PartitionTimeLimit", "Relative",
    "RequiresReservation", "UsageFactorSafe",
)  # fmt: skip
ENFORCED = ("associations", "limits", "qos", "safe")


def _tres(value: object) -> dict[str, int]:
    if not isinstance(value, str):
        raise TypeError('give a text like "cpu=512,mem=4T,gres/gpu=8"')
    return parse_tres(value)


def _weights(value: object) -> dict[str, float]:
    if not isinstance(value, str):
        raise TypeError('give a text like "cpu=1.0,mem=0.25G,gres/gpu=8"')
    return parse_weights(value)


def _amounts(value: object) -> dict[str, float]:
    if not isinstance(value, str):
        raise TypeError('give a text like "cpu=7200,mem=1048576,billing=7200"')
    return parse_amounts(value)


def _some_of(*words: str) -> Kind:
    """Give the kind of a set of words, each of them one that is known."""

    def read(value: object) -> frozenset[str]:
        names: frozenset[str] = SET_OF_NAMES.read(value)
        if unknown := sorted(names - set(words)):
            raise ValueError(f"{unknown[0]} is unknown: give any of {', '.join(words)}")
        return names

    return Kind(read, SET_OF_NAMES.write)


def preempt_mode(value: object) -> str:
    """Read a PreemptMode, such as ``REQUEUE`` or ``SUSPEND,GANG``."""
    if not isinstance(value, str) or not set(value.split(",")) <= set(PREEMPT_WORDS):
        raise ValueError(f"give any of {', '.join(PREEMPT_WORDS)}, with commas")
    return value


def preempt_parameter(text: str) -> str:
    """Read a word of PreemptParameters, such as ``min_exempt_priority=500``; in lower case.

    Raises
    ------
    ValueError
        If it is unknown, lacks its number, or has one and should not.
    """
    word, given, number = text.lower().partition("=")
    if word not in PREEMPT_PARAMETERS:
        raise ValueError(f"{word} is unknown: give any of {', '.join(PREEMPT_PARAMETERS)}")
    if not PREEMPT_PARAMETERS[word]:
        if given:
            raise ValueError(f"{word} takes no number: leave ={number} out")
        return word
    if not re.fullmatch(r"\d{1,10}", number, re.ASCII):
        raise ValueError(f"{text} lacks its number: write {word}=1")
    return f"{word}={number}"


def _preempt_parameters(value: object) -> tuple[str, ...]:
    return tuple(map(preempt_parameter, NAMES.read(value)))


def _shares(value: object) -> int | None:
    if value == "parent":
        return None
    try:
        shares: int = COUNT.read(value)
    except TypeError:
        raise TypeError('give a whole number, or "parent"') from None
    return shares


def _minutes(seconds: int) -> str:
    if seconds % 60:
        raise ValueError(f"{seconds} s are no whole minutes")
    return str(seconds // 60)


def _either(true: str, false: str) -> Kind:
    """Give the kind of one of two words."""
    words = one_of(true, false)
    return Kind(lambda value: words.read(value) == true, lambda is_so: quoted((false, true)[is_so]))


def _enforced(value: object) -> frozenset[str]:
    """Read the words, with those that they stand for (``safe``: limits, limits: associations)."""
    words: frozenset[str] = _some_of(*ENFORCED).read(value)
    if "safe" in words:
        words |= {"limits"}
    return words | {"associations"} if words else words


def _period(value: object) -> int:
    seconds: int = CLOCK.read(value)
    if seconds < 1:
        raise ValueError("give a time above 0")
    return seconds


PERIOD = Kind(_period, CLOCK.write)
ENFORCED_WORDS = Kind(_enforced, SET_OF_NAMES.write)
TRES = Kind(_tres, lambda counts: quoted(format_tres(counts)))
WEIGHTS = Kind(_weights, lambda weights: quoted(format_weights(weights)))
AMOUNTS = Kind(_amounts, lambda amounts: quoted(format_amounts(amounts)))
PREEMPT_PARAMETER_WORDS = Kind(_preempt_parameters, NAMES.write)
PREEMPT_MODE = Kind(preempt_mode, quoted)
SHARES = Kind(_shares, lambda shares: quoted("parent") if shares is None else str(shares))
MINUTES = Kind(lambda value: COUNT.read(value) * 60, _minutes)

CONF_KEYS = {
    "EnforcePartLimits": Key("enforce_part_limits", one_of("NO", "ALL", "ANY"), "at submission"),
    "AccountingStorageEnforce": Key("enforced", ENFORCED_WORDS, "what accounting enforces"),
    "PreemptType": Key("preempt_type", one_of(*PREEMPT_TYPES), "who preempts whom"),
    "PreemptMode": Key("preempt_mode", PREEMPT_MODE, "what happens to preempted jobs"),
    "PreemptExemptTime": Key("preempt_exempt_time_s", CLOCK, "before jobs may be preempted"),
    "PreemptParameters": Key("preempt_parameters", PREEMPT_PARAMETER_WORDS, "whom it takes first"),
}
"""Keys of ``[slurm]`` that are the site's."""

TIMING_KEYS = {
    "SchedulerType": Key("backfill", _either("sched/backfill", "sched/builtin"), "loops"),
    "OverTimeLimit": Key("over_time_limit_s", MINUTES, "minutes"),
    "KillWait": Key("kill_wait_s", COUNT, "seconds"),
    "CompleteWait": Key("complete_wait_s", COUNT, "seconds"),
    "Epilog": Key("epilog", YES_OR_NO, "whether jobs have one, or PrologFlags=Contain"),
}
"""Keys of ``[slurm]`` that are `SlurmParameters`'."""

PRIORITY_KEYS = {
    "PriorityType": Key("multifactor", _either("priority/multifactor", "priority/basic"), "type"),
    "PriorityWeightAge": Key("weight_age", WEIGHT, "weight"),
    "PriorityWeightAssoc": Key("weight_assoc", WEIGHT, "weight"),
    "PriorityWeightFairShare": Key("weight_fair_share", WEIGHT, "weight"),
    "PriorityWeightJobSize": Key("weight_job_size", WEIGHT, "weight"),
    "PriorityWeightPartition": Key("weight_partition", WEIGHT, "weight"),
    "PriorityWeightQOS": Key("weight_qos", WEIGHT, "weight"),
    "PriorityWeightTRES": Key("weight_tres", WEIGHTS, "weights by kind"),
    "PriorityMaxAge": Key("max_age_s", CLOCK, "time"),
    "PriorityDecayHalfLife": Key("decay_half_life_s", CLOCK, "time; 0: no decay"),
    "PriorityUsageResetPeriod": Key("usage_reset_period", one_of(*RESET_PERIODS), "period"),
    "PriorityCalcPeriod": Key("calc_period_s", PERIOD, "time above 0"),
    "FairShareDampeningFactor": Key("dampening_factor", whole_number(1), "of classic fair share"),
    "PriorityFavorSmall": Key("favor_small", YES_OR_NO, "small jobs first"),
    "PriorityFlags": Key("flags", _some_of(*PRIORITY_FLAGS), "flags"),
    "PrioritySiteFactorPlugin": Key("site_factor", TEXT, "not modelled"),
}
"""Keys of ``[priority]``."""
PRIORITY_ALWAYS = (
    "PriorityWeightAge", "PriorityWeightFairShare", "PriorityWeightJobSize",
    "PriorityWeightPartition", "PriorityWeightQOS", "PriorityMaxAge", "PriorityDecayHalfLife",
)  # fmt: skip
"""What is written in any case where priorities are multifactor."""

_MACHINE_WORDS = {
    "PriorityTier": "priority_tier",
    "MaxNodes": "max_nodes",
    "DefMemPerCPU": "default_memory_per_cpu_mib",
    "Default": "default",
    "Exclusive": "exclusive",
}
PARTITION_WORDS = {
    "node_groups": MACHINE_KEYS["node_groups"],
    **{word: MACHINE_KEYS[key] for word, key in _MACHINE_WORDS.items()},
    "MaxTime": replace(MACHINE_KEYS["max_time"], kind=CLOCK),
    "max_cpus": MACHINE_KEYS["max_cpus"],
    "max_nodes_in_use": MACHINE_KEYS["max_nodes_in_use"],
}
"""Keys of ``[partitions.NAME]`` that are of the machine, as they are written."""
PARTITION_KEYS = {**MACHINE_KEYS, **PARTITION_WORDS}
"""The same with those of ``foretime machine``'s files, which are read, too."""
RULES_KEYS = {
    "PriorityJobFactor": Key("priority_job_factor", whole_number(0, 65_533), "weighed"),
    "QOS": Key("qos", TEXT, "whose limits its jobs have"),
    "AllowAccounts": Key("allow_accounts", SET_OF_NAMES, "accounts"),
    "DenyAccounts": Key("deny_accounts", SET_OF_NAMES, "accounts"),
    "AllowQOS": Key("allow_qos", SET_OF_NAMES, "QOS"),
    "DenyQOS": Key("deny_qos", SET_OF_NAMES, "QOS"),
    "MinNodes": Key("min_nodes", COUNT, "nodes"),
    "MaxCPUsPerNode": Key("max_cpus_per_node", whole_number(1), "CPUs"),
    "MaxMemPerCPU": Key("max_memory_per_cpu_mib", COUNT, "MiB"),
    "MaxMemPerNode": Key("max_memory_per_node_mib", COUNT, "MiB"),
    "DefMemPerNode": Key("default_memory_per_node_mib", COUNT, "MiB"),
    "DefaultTime": Key("default_time_s", CLOCK, "time"),
    "OverTimeLimit": Key("over_time_limit_s", MINUTES, "minutes"),
    "TRESBillingWeights": Key("billing_weights", WEIGHTS, "weights by kind"),
    "PreemptMode": Key("preempt_mode", PREEMPT_MODE, "what happens to preempted jobs"),
    "GraceTime": Key("grace_time_s", COUNT, "seconds"),
    "State": Key("state", one_of(*STATES), "state"),
}
"""Keys of ``[partitions.NAME]`` that are `PartitionRules`'."""


def _keys(kind: Kind, meaning: str, **attributes: str) -> dict[str, Key]:
    """Give keys of one kind, each with its attribute."""
    return {name: Key(attribute, kind, meaning) for name, attribute in attributes.items()}


_GROUP_LIMITS = {
    **_keys(COUNT, "jobs", GrpJobs="grp_jobs", GrpSubmitJobs="grp_submit_jobs"),
    **_keys(TRES, "counts by kind", GrpTRES="grp_tres"),
    **_keys(TRES, "minutes by kind", GrpTRESMins="grp_tres_mins"),
    **_keys(TRES, "minutes by kind", GrpTRESRunMins="grp_tres_run_mins"),
    **_keys(CLOCK, "time", GrpWall="grp_wall_s"),
    **_keys(TRES, "counts by kind", MaxTRESPerJob="max_tres_per_job"),
    **_keys(TRES, "counts by kind", MaxTRESPerNode="max_tres_per_node"),
    **_keys(TRES, "minutes by kind", MaxTRESMinsPerJob="max_tres_mins_per_job"),
    **_keys(CLOCK, "time", MaxWall="max_wall_s"),
}
ASSOCIATION_LIMITS = {
    **_GROUP_LIMITS,
    **_keys(COUNT, "jobs", MaxJobs="max_jobs", MaxSubmitJobs="max_submit_jobs"),
}
"""Limits in ``[accounts.NAME]`` and ``[[associations]]``."""
QOS_LIMITS = {
    **_GROUP_LIMITS,
    **_keys(
        COUNT,
        "jobs",
        MaxJobsPerUser="max_jobs",
        MaxSubmitJobsPerUser="max_submit_jobs",
        MaxJobsPerAccount="max_jobs_per_account",
        MaxSubmitJobsPerAccount="max_submit_jobs_per_account",
    ),
    **_keys(
        TRES,
        "counts by kind",
        MaxTRESPerUser="max_tres_per_user",
        MaxTRESPerAccount="max_tres_per_account",
    ),
    **_keys(
        TRES,
        "minutes by kind",
        MaxTRESRunMinsPerUser="max_tres_run_mins_per_user",
        MaxTRESRunMinsPerAccount="max_tres_run_mins_per_account",
    ),
    **_keys(TRES, "counts by kind", MinTRESPerJob="min_tres_per_job"),
}
"""Limits in ``[qos.NAME]``."""

_USED = {
    "RawTRES": Key("used_tres_s", AMOUNTS, "TRES-seconds by kind"),
    "RawWall": Key("used_wall_s", NUMBER, "seconds"),
}
QOS_KEYS = {
    "Priority": Key("priority", COUNT, "weighed against the others'"),
    "Flags": Key("flags", _some_of(*QOS_FLAGS), "flags"),
    "UsageFactor": Key("usage_factor", NUMBER, "what usage is charged with"),
    "Preempt": Key("preempt", NAMES, "QOS whose jobs its jobs may preempt"),
    "PreemptMode": Key("preempt_mode", PREEMPT_MODE, "what happens to its jobs"),
    "GraceTime": Key("grace_time_s", COUNT, "seconds that its preempted jobs have"),
    "PreemptExemptTime": Key("preempt_exempt_time_s", CLOCK, "before jobs may be preempted"),
    "LimitFactor": Key("limit_factor", NUMBER, "what its associations' limits count times"),
    **_USED,
}
"""Keys of ``[qos.NAME]`` besides limits."""

_HELD = {
    "Fairshare": Key("shares", SHARES, 'shares, or "parent"'),
    "RawUsage": Key("raw_usage", NUMBER, "billing seconds"),
    **_USED,
    "QOS": Key("qos", NAMES, "QOS that jobs may have"),
    "DefaultQOS": Key("default_qos", TEXT, "QOS of jobs that name none"),
    "Priority": Key("priority", COUNT, "weighed against the others'"),
}
ACCOUNT_KEYS = {"Parent": Key("parent", TEXT, "account above it; root if left out"), **_HELD}
"""Keys of ``[accounts.NAME]`` besides limits."""
USER_KEYS = {
    "User": Key("user", TEXT, "user"),
    "Account": Key("account", TEXT, "account"),
    "Partition": Key("slurm_partition", TEXT, "partition, if only there"),
    "Default": Key("default", YES_OR_NO, "whether the user's jobs go to it that name none"),
    **_HELD,
}
"""Keys of ``[[associations]]`` besides limits."""

RESERVATION_KEYS = {
    "start": Key("start", MOMENT, "when it begins"),
    "node_groups": Key("node_groups", NAMES, "whose nodes it has"),
    "duration": Key("duration", CLOCK, "time"),
}
"""Keys of ``[reservations.NAME]``."""
SWITCH_KEYS = {
    "node_groups": Key("node_groups", NAMES, "whose nodes hang on it"),
    "Switches": Key("switches", NAMES, "those below it"),
}
"""Keys of ``[switches.NAME]``."""


def _version(value: object) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2})\.(\d{1,2})(?:\.\d+)?", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('give the release as text, like "26.05"')
    return int(found[1]), int(found[2])


FIRST_KEYS = {
    "version": Key("version", Kind(_version, lambda v: quoted(release_text(v))), "release"),
    "usage_at": Key("usage_at", MOMENT, "when usage was as it is below"),
}
"""Keys above the tables, besides scheduler, selection and not_modelled."""
