"""How deep Slurm's loops look, where ``sdiag`` shows that they are cut short by time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from foretime_sim.sites.slurm.parameters import SlurmParameters

from foretime_sidecar.site_import.scheduler_settings import Settings

_OFTEN = 0.1
"""Cycles are taken to be cut short if this share of them is."""
_NEARLY = 0.9
"""Of bf_max_time: a mean cycle that takes so much of it is cut short (22.05 counts none)."""


def as_deep_as_seen(parameters: SlurmParameters, sdiag: str, settings: Settings) -> SlurmParameters:
    """Give the parameters with the depths that loops reach, where time cuts them short.

    The simulator's loops take no time, so bf_max_time and max_sched_time never end them.
    """
    main, _, backfill = sdiag.partition("Backfilling stats")
    if depth := _cut_depth(main, "Mean depth cycle", "Timeout (max_sched_time)", None):
        parameters = _told(parameters, "default_queue_depth", depth, "main", settings)
    longest_s = parameters.bf_max_time
    if depth := _cut_depth(backfill, "Depth Mean", "Timeout (bf_max_time)", longest_s):
        parameters = _told(parameters, "bf_max_job_test", depth, "backfill", settings)
    return parameters


def _cut_depth(text: str, depth: str, timeout: str, longest_s: int | None) -> int | None:
    """Give how many jobs cycles reach on average, if time often ends them."""
    cycles, reached = _figure(text, "Total cycles"), _figure(text, depth)
    if not cycles or not reached:
        return None
    ended = _figure(text, timeout)
    if ended is not None:
        return reached if ended >= _OFTEN * cycles else None
    mean_us = _figure(text, "Mean cycle") or 0
    often = longest_s is not None and mean_us >= _NEARLY * longest_s * 1_000_000
    return reached if often else None


def _told(
    parameters: SlurmParameters,
    word: Literal["default_queue_depth", "bf_max_job_test"],
    depth: int,
    loop: str,
    settings: Settings,
) -> SlurmParameters:
    """Give the parameters with this depth, and note it; as they are where they go less deep."""
    given = getattr(parameters, word)
    if depth >= given:
        return parameters
    settings.note(
        f"sdiag: time often ends the {loop} loop's cycles, after {depth} jobs on average:"
        f" {word} is {depth} here, and {given} on the site."
    )
    changes: dict[str, Any] = {word: depth}
    return replace(parameters, **changes)


def _figure(text: str, name: str) -> int | None:
    found = re.search(rf"^\s*{re.escape(name)}:\s*(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None
