"""sched_config of PBS's scheduler, and the attributes of its sched object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.scheduler import PbsScheduler

from foretime_sidecar.clients.pbs.amounts import parse_amount, parse_whole_number

_LINE = re.compile(r"\s*(\w+)\s*:\s*(\"[^\"]*\"|\S+)\s*(\w+)?\s*(?:#.*)?")
_TIMES = ("all", "prime", "non_prime")
_YES = {"true": True, "t": True, "1": True, "yes": True}
_NO = {"false": False, "f": False, "0": False, "no": False}
_FUZZY = {"off": 1, "low": 60, "med": 600, "medium": 600, "high": 3600}


def _yes(word: str, where: str) -> bool:
    known = _YES | _NO
    if word.lower() not in known:
        raise InputError(f"{where}: {word!r} is neither True nor False")
    return known[word.lower()]


def _names(word: str, _where: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in word.split(",") if name.strip())


def _period(word: str, where: str) -> int:
    seconds = parse_amount(word, where)
    if seconds < 1:
        raise InputError(f"{where}: {word!r} is no time above 0")
    return seconds


def _part(word: str, where: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise InputError(f"{where}: {word!r} is no number from 0 to 1")
    return number


def _text(word: str, _where: str) -> str:
    return word


_KEYS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "by_queue": ("by_queue", _yes),
    "round_robin": ("round_robin", _yes),
    "strict_ordering": ("strict_ordering", _yes),
    "fair_share": ("fair_share", _yes),
    "backfill_prime": ("backfill_prime", _yes),
    "prime_exempt_anytime_queues": ("prime_exempt_anytime_queues", _yes),
    "preemptive_sched": ("preemptive_sched", _yes),
    "fairshare_enforce_no_shares": ("fairshare_enforce_no_shares", _yes),
    "prime_spill": ("prime_spill_s", parse_amount),
    "fairshare_decay_time": ("fairshare_decay_time_s", _period),
    "unknown_shares": ("unknown_shares", parse_amount),
    "fairshare_decay_factor": ("fairshare_decay_factor", _part),
    "fairshare_usage_res": ("fairshare_usage_res", _text),
    "fairshare_entity": ("fairshare_entity", _text),
    "dedicated_prefix": ("dedicated_prefix", _text),
    "primetime_prefix": ("primetime_prefix", _text),
    "nonprimetime_prefix": ("nonprimetime_prefix", _text),
    "smp_cluster_dist": ("smp_cluster_dist", _text),
    "resources": ("resources", _names),
}
_SORT_KEYS = ("job_sort_key", "node_sort_key")
_NOT_MODELLED = {
    "server_dyn_res": "resources that a program counts (server_dyn_res)",
    "mom_resources": "resources that MoM counts (mom_resources)",
    "peer_queue": "peer scheduling (peer_queue)",
    "max_job_check": "a cycle that stops after some jobs (max_job_check)",
}
_OF_NO_EFFECT = ("provision_policy", "log_filter", "sync_time")
OPTIONS = (*_KEYS, *_SORT_KEYS, *_NOT_MODELLED, *_OF_NO_EFFECT)
"""What sched_config may say."""


def parse_sched_config(
    text: str, sched: Mapping[str, str] | None = None
) -> tuple[PbsScheduler, tuple[str, ...]]:
    """Read sched_config.

    Where a line holds in PRIME only and another in NON_PRIME, the last of PRIME or ALL is taken.

    Parameters
    ----------
    text
        The file.
    sched
        Attributes of the sched object ``default`` (``qmgr -c "print sched"``).

    Returns
    -------
    tuple
        The scheduler, and sentences on what is not modelled.

    Raises
    ------
    InputError
        Naming line and value that can't be read.
    """
    # What PBS takes where the file says nothing differs from the file that it installs.
    values: dict[str, Any] = {
        "by_queue": False,
        "preemptive_sched": False,
        "resources": (),
        "node_sort_key": (),
    }
    keys: dict[str, list[tuple[str, bool]]] = {}
    other_times: dict[str, str] = {}
    left_out = []
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"line {number}"
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(f"{where}: {line.strip()[:80]!r} is no option with a value")
        option, word, when = match[1], match[2].strip('"'), (match[3] or "all").lower()
        if when not in _TIMES:
            raise InputError(f"{where}: {match[3]!r} is none of PRIME, NON_PRIME and ALL")
        if when == "non_prime":
            other_times[option] = word
            continue
        if option in _SORT_KEYS:
            keys.setdefault(option, []).append(_sort_key(word, where))
        elif option in _KEYS:
            name, read = _KEYS[option]
            if (option, when) in seen:
                left_out.append(f"sched_config: {option} is there twice: the last counts.")
            seen.add((option, when))
            values[name] = read(word, f"{where}: {option}")
        elif option in _NOT_MODELLED:
            left_out.append(f"sched_config: {_NOT_MODELLED[option]}.")
        elif option not in _OF_NO_EFFECT:
            left_out.append(f"sched_config: {option} is unknown to Foretime.")
    left_out += _of_other_times(other_times, values)
    values |= {name: tuple(found) for name, found in keys.items()}
    values |= _of_sched_object(sched or {})
    return PbsScheduler(**values), tuple(left_out)


def _sort_key(word: str, where: str) -> tuple[str, bool]:
    words = word.split()
    if len(words) < 2 or words[1].upper() not in ("HIGH", "LOW"):
        raise InputError(f"{where}: {word!r} is no key: give a resource and HIGH or LOW")
    name = words[0] if len(words) == 2 else f"{words[0]} {words[2]}"
    return name, words[1].upper() == "HIGH"


def _of_other_times(other_times: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    differ = []
    for option, word in other_times.items():
        if option in _KEYS:
            name, read = _KEYS[option]
            if values.get(name, getattr(PbsScheduler(), name)) != read(word, option):
                differ.append(option)
    return [
        f"sched_config: {option} differs out of primetime; its value in primetime is taken."
        for option in differ
    ]


def _of_sched_object(sched: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "preempt_queue_prio" in sched:
        found["preempt_queue_prio"] = parse_whole_number(
            sched["preempt_queue_prio"], "preempt_queue_prio"
        )
    if "opt_backfill_fuzzy" in sched:
        word = sched["opt_backfill_fuzzy"].lower()
        fuzzy = _FUZZY.get(word)
        found["opt_backfill_fuzzy_s"] = (
            max(1, parse_amount(word, "opt_backfill_fuzzy")) if fuzzy is None else fuzzy
        )
    return found
