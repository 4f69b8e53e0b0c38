"""Settings of slurm.conf, as ``scontrol show config`` prints them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.scheduler_words import FLAGS, NUMBERS, with_defaults
from foretime_sim.sites.slurm.site_tables import (
    ENFORCED,
    PREEMPT_PARAMETERS,
    PREEMPT_TYPES,
    PREEMPT_WORDS,
    PRIORITY_FLAGS,
    RESET_PERIODS,
    preempt_parameter,
)
from foretime_sim.sites.slurm.tres_text import parse_weights

from foretime_sidecar.clients.slurm.control_texts import parse_parameters
from foretime_sidecar.wording.durations import parse_duration

_OTHER_WORDS = {"max_rpc_count": "max_rpc_cnt"}
_WITHOUT_EFFECT = frozenset(
    {
        "disable_hetero_steps", "disable_hetjob_steps", "disable_job_shrink", "enable_hetjob_steps",
        "enable_job_state_cache", "enable_user_top", "ignore_numa", "max_array_tasks",
        "max_script_size", "max_submit_line_size", "no_backup_scheduling",
        "nohold_on_prolog_fail", "salloc_wait_nodes", "sbatch_wait_nodes", "step_retry_count",
        "step_retry_time", "bf_node_space_size", "build_queue_timeout", "bf_yield_rpc_cnt",
    }
)  # fmt: skip
"""Words that change neither who starts nor when, where nothing is amiss."""
_OF_LOOP_TIME = ("bf_max_time", "bf_yield_interval", "bf_yield_sleep", "max_sched_time")
"""Words that count only where a loop's own time passes."""
_OF_PREEMPTION = {f"preempt_{word}": word for word in PREEMPT_PARAMETERS}
"""Words of PreemptParameters as SchedulerParameters has them, too."""
_PREEMPTION_LEFT_OUT = frozenset(
    {"reorder_count", "send_user_signal", "strict_order", "suspend_grace_time"}
)
_EPILOG = re.compile(r"Epilog(\[\d+\])?", re.ASCII)  # newer ones number several
_CONTAINING = frozenset({"contain", "runinjob", "x11"})
"""PrologFlags that are, or stand for, Contain (``prolog_str2flags`` in read_config.c)."""


Value = TypeVar("Value")


@dataclass(slots=True)
class Settings:
    """Settings, and what of them is not modelled.

    Attributes
    ----------
    values
        As ``scontrol show config`` names them, "" for none.
    where
        Where they come from, for errors.
    not_modelled
        Sentences, in the order in which they were found.
    """

    values: Mapping[str, str]
    where: str
    not_modelled: list[str] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        """Give a value; the default where there is none."""
        return self.values.get(name, "") or default

    def read(self, name: str, how: Callable[[str], Value], default: Value) -> Value:
        """Read a value; the default where there is none.

        Raises
        ------
        InputError
            If it can't be read: names it, and where it stands.
        """
        text = self.text(name)
        if not text:
            return default
        try:
            return how(text)
        except (ValueError, InputError) as error:
            raise InputError(
                f"{self.where}: {name} = {text}: {error}; is the output whole?"
            ) from None

    def note(self, sentence: str) -> None:
        """Note what is not modelled."""
        if sentence not in self.not_modelled:
            self.not_modelled.append(sentence)


def whole(text: str) -> int:
    """Read ``20 sec`` or ``20``."""
    found = re.fullmatch(r"(\d{1,18})(?: [a-z]+)?", text.strip(), re.ASCII)
    if found is None:
        raise ValueError("is no whole number")
    return int(found[1])


def seconds(text: str) -> int:
    """Read a time of Slurm's, such as ``7-00:00:00``; a bare number counts minutes."""
    return parse_duration(text, "time", zero=True)


def parameters_of(settings: Settings) -> SlurmParameters:
    """Read how the two loops are set up."""
    kind = settings.text("SchedulerType", "sched/backfill")
    if kind not in ("sched/backfill", "sched/builtin"):
        settings.note(f"SchedulerType is {kind}: taken as sched/backfill.")
    given_words = settings.text("SchedulerParameters").split(",")
    words = parse_parameters(given_words)
    named = Counter(word.partition("=")[0].strip().lower() for word in given_words)
    if twice := sorted(name for name, count in named.items() if name and count > 1):
        settings.note(f"SchedulerParameters: {', '.join(twice)} is there twice: the first counts.")
    values: dict[str, Any] = {}
    unknown = []
    for given, text in words.items():
        name = _OTHER_WORDS.get(given, given)
        if name in FLAGS:
            values[name] = True
            if text:
                settings.note(f"SchedulerParameters: {given}={text}: Slurm takes it as set.")
        elif name in NUMBERS:
            values |= _number(settings, name, text)
        elif name not in _WITHOUT_EFFECT and name not in _OF_PREEMPTION:
            unknown.append(name or f"={text}")
    if unknown:
        settings.note(f"SchedulerParameters that are not modelled: {', '.join(sorted(unknown))}.")
    if settings.text("OverTimeLimit").startswith(("UNLIMITED", "65535")):
        settings.note("OverTimeLimit is UNLIMITED: jobs are ended at their limit here.")
        over_time_limit_s = 0
    else:
        over_time_limit_s = settings.read("OverTimeLimit", whole, 0) * 60
    complete_wait_s = settings.read("CompleteWait", whole, 0)
    if complete_wait_s:
        settings.note(f"CompleteWait = {complete_wait_s}: nodes complete at once, and none waits.")
    if values.get("max_rpc_cnt"):
        settings.note("SchedulerParameters max_rpc_cnt: no loop stops for many requests.")
    if of_time := [name for name in _OF_LOOP_TIME if name in words]:
        settings.note(
            f"SchedulerParameters {', '.join(of_time)}: loops take no time; where sdiag shows that"
            " they are cut short, they go as deep as it shows."
        )
    return SlurmParameters(
        **with_defaults(values),
        backfill=kind != "sched/builtin",
        over_time_limit_s=over_time_limit_s,
        kill_wait_s=settings.read("KillWait", whole, 30),
        complete_wait_s=complete_wait_s,
        epilog=_has_epilog(settings),
    )


def _has_epilog(settings: Settings) -> bool:
    """Say whether jobs leave something to do on their nodes when they end."""
    flags = set(settings.text("PrologFlags").lower().split(","))
    return not flags.isdisjoint(_CONTAINING) or any(
        text and _EPILOG.fullmatch(name) for name, text in settings.values.items()
    )


def _number(settings: Settings, name: str, text: str) -> dict[str, int]:
    """Read a word's number as Slurm does, which goes by its default where it takes it not."""
    word = NUMBERS[name]
    found = re.match(r"\s*(-?\d+)", text)
    number = int(found[1]) if found else 0
    if number == -1 and name in ("bf_interval", "sched_interval"):
        loop = "backfill" if name == "bf_interval" else "main"
        settings.note(f"SchedulerParameters: {name}=-1 switches the {loop} loop off; here it runs.")
        return {}
    if found is None or not word.least <= number <= word.most:
        settings.note(
            f"SchedulerParameters: {name}={text} is out of range: Slurm's default counts."
        )
        return {}
    if found[0] != text:
        settings.note(f"SchedulerParameters: {name}={text}: Slurm reads {number}.")
    return {word.attribute: number * word.seconds}


def priority_of(settings: Settings) -> SlurmPriority:
    """Read what priorities are made of."""
    kind = settings.text("PriorityType", "priority/multifactor")
    if kind not in ("priority/basic", "priority/multifactor"):
        settings.note(f"PriorityType is {kind}: taken as priority/multifactor.")
    flags = frozenset(re.split(r"[,\s]+", settings.text("PriorityFlags").upper())) - {""}
    if unknown := sorted(flags - set(PRIORITY_FLAGS)):
        settings.note(f"PriorityFlags that are not modelled: {', '.join(unknown)}.")
    plugin = settings.text("PrioritySiteFactorPlugin")
    plugin = "" if plugin == "site_factor/none" else plugin
    if plugin:
        settings.note(f"PrioritySiteFactorPlugin {plugin}: what it adds to priorities.")
    if settings.text("PriorityParameters"):
        settings.note(f"PriorityParameters = {settings.text('PriorityParameters')}.")
    period = settings.text("PriorityUsageResetPeriod", "NONE").upper()
    if period not in RESET_PERIODS:
        settings.note(f"PriorityUsageResetPeriod is {period}: usage is not reset here.")
        period = "NONE"

    def weight(name: str) -> int:
        return settings.read(f"PriorityWeight{name}", whole, 0)

    return SlurmPriority(
        multifactor=kind != "priority/basic",
        weight_age=weight("Age"),
        weight_assoc=weight("Assoc"),
        weight_fair_share=weight("FairShare"),
        weight_job_size=weight("JobSize"),
        weight_partition=weight("Partition"),
        weight_qos=weight("QOS"),
        weight_tres=settings.read("PriorityWeightTRES", parse_weights, {}),
        max_age_s=settings.read("PriorityMaxAge", seconds, 604_800),
        decay_half_life_s=settings.read("PriorityDecayHalfLife", seconds, 604_800),
        usage_reset_period=period,
        calc_period_s=settings.read("PriorityCalcPeriod", _period, 300),
        dampening_factor=max(settings.read("FairShareDampeningFactor", whole, 1), 1),
        favor_small=settings.read("PriorityFavorSmall", _yes, False),
        flags=flags & set(PRIORITY_FLAGS),
        site_factor=plugin or None,
    )


def site_settings(settings: Settings) -> dict[str, Any]:
    """Read what accounting enforces and what is preempted: fields of `SlurmSite`."""
    given = settings.text("AccountingStorageEnforce", "none").lower()
    words = frozenset(given.split(",")) - {"none", "", "0"}
    if "all" in words:
        words |= {"associations", "limits", "qos", "safe"}
    if "safe" in words:
        words |= {"limits"}
    if words & {"limits", "qos", "safe", "wckeys"}:
        words |= {"associations"}
    if "wckeys" in words:
        settings.note("AccountingStorageEnforce: wckeys are not checked.")
    if unknown := sorted(words - {*ENFORCED, *_ENFORCED_OTHERWISE}):
        settings.note(f"AccountingStorageEnforce: not known: {', '.join(unknown)}.")
    part_limits = settings.read("EnforcePartLimits", _part_limits, "NO")
    preempt_type = settings.text("PreemptType", "preempt/none")
    if preempt_type not in PREEMPT_TYPES:
        settings.note(f"PreemptType is {preempt_type}: nobody is preempted here.")
        preempt_type = "preempt/none"
    return {
        "enforced": words & set(ENFORCED),
        "enforce_part_limits": part_limits,
        "preempt_type": preempt_type,
        "preempt_mode": settings.read("PreemptMode", preempt_words, "OFF"),
        "preempt_exempt_time_s": settings.read("PreemptExemptTime", _exempt_time, 0),
        "preempt_parameters": _preempt_parameters(settings),
    }


def _period(text: str) -> int:
    if not (found := seconds(text)):
        raise ValueError("is no time above 0")
    return found


_ENFORCED_OTHERWISE = ("all", "wckeys", "nojobs", "nosteps")


def _part_limits(text: str) -> str:
    """Read EnforcePartLimits; "Yes" stands for ANY (parse_part_enforce_type in read_config.c)."""
    words = {"YES": "ANY", **{word: word for word in ("NO", "ANY", "ALL")}}
    if text.upper() not in words:
        raise ValueError(f"is none of {', '.join(words)}")
    return words[text.upper()]


def _yes(text: str) -> bool:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text.lower() not in words:
        raise ValueError("is neither yes nor no")
    return words[text.lower()]


def _exempt_time(text: str) -> int:
    return 0 if text.upper() in ("NONE", "INFINITE", "UNLIMITED", "-1") else seconds(text)


def _preempt_parameters(settings: Settings) -> tuple[str, ...]:
    """Read PreemptParameters, and those of SchedulerParameters that say the same."""
    given = [part.strip() for part in settings.text("PreemptParameters").split(",")]
    for part in settings.text("SchedulerParameters").split(","):
        word, equals, number = part.strip().partition("=")
        if word.lower() in _OF_PREEMPTION:
            given.append(f"{_OF_PREEMPTION[word.lower()]}{equals}{number}")
    found: dict[str, str] = {}
    for text in filter(None, given):
        try:
            words = preempt_parameter(text)
        except ValueError as error:
            settings.note(f"PreemptParameters: {error}; here it is left out.")
            continue
        found.setdefault(words.partition("=")[0], words)
    if left_out := sorted(found.keys() & _PREEMPTION_LEFT_OUT):
        settings.note(f"PreemptParameters that are not modelled: {', '.join(left_out)}.")
    return tuple(found.values())


def preempt_words(text: str) -> str:
    """Give a PreemptMode in upper case, in the order of Slurm's manual; ValueError if unknown."""
    words = set(text.upper().replace(" ", "").split(",")) - {""}
    if unknown := words - set(PREEMPT_WORDS):
        raise ValueError(f"{min(unknown)} is no PreemptMode")
    return ",".join(word for word in PREEMPT_WORDS if word in words) or "OFF"
