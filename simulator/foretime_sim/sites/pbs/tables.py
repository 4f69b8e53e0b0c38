"""The tables of a PBS site's file, key by key, in PBS's own words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from foretime_sim.files.pbs_durations import format_pbs_duration, parse_pbs_duration
from foretime_sim.files.toml_keys import (
    MOMENT,
    NAMES,
    NUMBER,
    TEXT,
    YES_OR_NO,
    Key,
    Kind,
    quoted,
    table_name,
    whole_number,
)
from foretime_sim.sites.pbs.amounts import MOST, format_amount, parse_amount
from foretime_sim.sites.pbs.limit_text import format_entity_limits, parse_entity_limits
from foretime_sim.sites.pbs.scheduler import SortKeys

COUNT = whole_number(0)
PRIORITY = whole_number(-MOST)
_SECONDS_OF_WORD = {"off": 1, "low": 60, "med": 600, "high": 3600}


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("give a number")
    return float(value)


def _part(value: object) -> float:
    number: float = NUMBER.read(value)
    if number > 1:
        raise ValueError("give 0 to 1")
    return number


def _time(value: object) -> int:
    if not isinstance(value, str) or ":" not in value:
        raise TypeError('give a time as text, HH:MM:SS, like "24:00:00"')
    return parse_pbs_duration(value)


def _period(value: object) -> int:
    seconds = _time(value)
    if seconds < 1:
        raise ValueError("give a time above 0")
    return seconds


def _fuzzy(value: object) -> int:
    if isinstance(value, str) and value in _SECONDS_OF_WORD:
        return _SECONDS_OF_WORD[value]
    try:
        seconds: int = whole_number(1).read(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"give one of {', '.join(_SECONDS_OF_WORD)}, or seconds of 1 or more"
        ) from None
    return seconds


def _written_fuzzy(seconds: int) -> str:
    words = {known: word for word, known in _SECONDS_OF_WORD.items()}
    return quoted(words[seconds]) if seconds in words else str(seconds)


def _sort_keys(value: object) -> SortKeys:
    found = []
    for text in NAMES.read(value):
        match = re.fullmatch(r"(\S(?:.*\S)?)\s+(HIGH|LOW)", text, re.DOTALL)
        if match is None:
            raise ValueError(f'{text!r}: give a resource and HIGH or LOW, like "ncpus HIGH"')
        found.append((match[1], match[2] == "HIGH"))
    return tuple(found)


def _amount(value: object) -> int:
    if isinstance(value, str):
        return parse_amount(value)
    count: int = COUNT.read(value)
    return count


def _written_amount(resource: str, amount: int) -> str:
    written = format_amount(resource, amount)
    return quoted(written) if isinstance(written, str) else str(written)


def _limits(value: object) -> dict[str, int]:
    return parse_entity_limits(TEXT.read(value))


def _by_name(read: Callable[[object], Any], write: Callable[[str, Any], str], example: str) -> Kind:
    """Give the kind of tables of values by name, such as those of resources."""

    def read_all(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise TypeError(f"give a table like {example}")
        found = {}
        for name, each in value.items():
            try:
                found[name] = read(each)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from None
        return found

    def write_all(values: Mapping[str, Any]) -> str:
        said = (f"{table_name(name)} = {write(name, each)}" for name, each in values.items())
        return f"{{ {', '.join(said)} }}" if values else "{}"

    return Kind(read_all, write_all)


def _spans(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or not all(
        isinstance(span, list) and len(span) == 2 for span in value
    ):
        raise TypeError("give a list of spans, like [[2026-11-22T22:00:00Z, 2026-11-23T02:00:00Z]]")
    return tuple((MOMENT.read(begins), MOMENT.read(ends)) for begins, ends in value)


def _written_spans(spans: tuple[tuple[int, int], ...]) -> str:
    said = (f"[{MOMENT.write(begins)}, {MOMENT.write(ends)}]" for begins, ends in spans)
    return f"[{', '.join(said)}]"


ANY_NUMBER = Kind(_number, repr)
PERIOD = Kind(_period, lambda seconds: quoted(format_pbs_duration(seconds)))
TIME = Kind(_time, lambda seconds: quoted(format_pbs_duration(seconds)))
SORT_KEYS = Kind(
    _sort_keys,
    lambda keys: NAMES.write([f"{name} {'HIGH' if high else 'LOW'}" for name, high in keys]),
)
AMOUNTS = _by_name(_amount, _written_amount, '{ ncpus = 8, mem = "16gb", walltime = "01:00:00" }')
LIMITS = Kind(_limits, lambda limits: quoted(format_entity_limits(limits)))
LIMITS_OF_RESOURCES = _by_name(
    _limits,
    lambda resource, limits: quoted(format_entity_limits(limits, resource)),
    '{ ncpus = "[u:PBS_GENERIC=64]" }',
)
LABELS = _by_name(TEXT.read, lambda _, text: quoted(text), '{ arch = "linux" }')

FIRST_KEYS = {
    "version": Key("version", TEXT, "release"),
    "usage_at": Key("usage_at", MOMENT, "when usage was as it is below"),
    "decayed_at": Key("decayed_at", MOMENT, "when usage was last decayed"),
    "usage_lag": Key("usage_lag_s", TIME, "how late usage of running jobs is known"),
    "dedicated_time": Key("dedicated_time", Kind(_spans, _written_spans), "spans"),
}
"""Keys above the tables, besides scheduler and not_modelled."""

_RESOURCES = {
    f"resources_{kind}": Key(f"resources_{kind}", AMOUNTS, "amounts by resource")
    for kind in ("available", "min", "max", "default")
}
LIMIT_KEYS = {
    name: Key(name, LIMITS_OF_RESOURCES if name.endswith("_res") else LIMITS, "limits")
    for name in (
        "max_run", "max_run_res", "max_queued", "max_queued_res", "queued_jobs_threshold",
        "queued_jobs_threshold_res",
    )
}  # fmt: skip
"""Limits in ``[server]`` and ``[queues.NAME]``."""
SERVER_KEYS = {
    "default_queue": Key("default_queue", TEXT, "of jobs that name none"),
    "backfill_depth": Key("backfill_depth", COUNT, "most top jobs"),
    "job_sort_formula": Key("job_sort_formula", TEXT, "formula"),
    "job_sort_formula_threshold": Key("job_sort_formula_threshold", ANY_NUMBER, "least value"),
    "eligible_time_enable": Key("eligible_time_enable", YES_OR_NO, "whether it is counted"),
    "scheduler_iteration": Key("scheduler_iteration_s", whole_number(1), "seconds"),
    **_RESOURCES,
}
"""Keys of ``[server]`` besides limits."""
QUEUE_KEYS = {
    "Priority": Key("priority", PRIORITY, "queues of a higher one go first"),
    "enabled": Key("enabled", YES_OR_NO, "whether it takes jobs"),
    "started": Key("started", YES_OR_NO, "whether its jobs start"),
    "backfill_depth": Key("backfill_depth", COUNT, "most top jobs of its own"),
    **_RESOURCES,
}
"""Keys of ``[queues.NAME]`` besides limits."""
RUN_KEYS = {
    "name": Key("name", TEXT, "name of the host, or of the first of several that are alike"),
    "last": Key("last", TEXT, "name of the last of them"),
}
HOST_KEYS = {
    "resources_available": Key("resources", AMOUNTS, "what is counted"),
    "labels": Key("labels", LABELS, "what is compared"),
    "Priority": Key("priority", PRIORITY, "for sort_priority"),
    "queue": Key("queue", TEXT, "the only queue whose jobs it takes"),
}
"""Keys of ``[[hosts]]`` besides names."""
SCHED_CONFIG_KEYS = {
    "by_queue": Key("by_queue", YES_OR_NO, "queue by queue"),
    "round_robin": Key("round_robin", YES_OR_NO, "one of each queue in turn"),
    "strict_ordering": Key("strict_ordering", YES_OR_NO, "whether there are top jobs"),
    "job_sort_key": Key("job_sort_key", SORT_KEYS, "order of jobs"),
    "resources": Key("resources", NAMES, "resources that jobs are judged by"),
    "node_sort_key": Key("node_sort_key", SORT_KEYS, "order of hosts"),
    "smp_cluster_dist": Key("smp_cluster_dist", TEXT, "pack or round_robin"),
    "fair_share": Key("fair_share", YES_OR_NO, "whether it holds"),
    "fairshare_usage_res": Key("fairshare_usage_res", TEXT, "what is charged"),
    "fairshare_entity": Key("fairshare_entity", TEXT, "who is charged"),
    "fairshare_decay_time": Key("fairshare_decay_time_s", PERIOD, "time above 0"),
    "fairshare_decay_factor": Key("fairshare_decay_factor", Kind(_part, repr), "0 to 1"),
    "fairshare_enforce_no_shares": Key("fairshare_enforce_no_shares", YES_OR_NO, "or not"),
    "unknown_shares": Key("unknown_shares", COUNT, "shares of all who are not in the tree"),
    "dedicated_prefix": Key("dedicated_prefix", TEXT, "of queues of dedicated time"),
    "backfill_prime": Key("backfill_prime", YES_OR_NO, "primetime"),
    "prime_exempt_anytime_queues": Key("prime_exempt_anytime_queues", YES_OR_NO, "primetime"),
    "prime_spill": Key("prime_spill_s", TIME, "primetime"),
    "primetime_prefix": Key("primetime_prefix", TEXT, "of queues of primetime"),
    "nonprimetime_prefix": Key("nonprimetime_prefix", TEXT, "of queues of other times"),
    "preemptive_sched": Key("preemptive_sched", YES_OR_NO, "whether jobs preempt others"),
}
"""Keys of ``[sched_config]``."""
SCHED_KEYS = {
    "preempt_queue_prio": Key("preempt_queue_prio", PRIORITY, "of express queues"),
    "opt_backfill_fuzzy": Key(
        "opt_backfill_fuzzy_s", Kind(_fuzzy, _written_fuzzy), "word or seconds"
    ),
}
"""Keys of ``[sched]``, the attributes of the scheduler in qmgr."""
GROUP_KEYS = {
    "parent": Key("parent", TEXT, "group above; root if left out"),
    "shares": Key("shares", COUNT, "beside those with the same parent"),
    "usage": Key("usage", NUMBER, "what was used so far, with all below"),
}
"""Keys of ``[resource_group]``'s entries."""
RESERVATION_KEYS = {
    "start": Key("start", MOMENT, "when it begins"),
    "end": Key("end", MOMENT, "when it ends"),
    "hosts": Key("hosts", _by_name(AMOUNTS.read, lambda _, each: AMOUNTS.write(each), ""), "hosts"),
}
"""Keys of ``[reservations.NAME]``."""
