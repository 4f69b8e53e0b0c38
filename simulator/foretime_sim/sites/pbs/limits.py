"""Limits of a PBS server and its queues, as ``qmgr`` names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

EntityLimits: TypeAlias = Mapping[str, int]
"""Counts by whom they hold for: ``o:PBS_ALL``, ``u:PBS_GENERIC``, ``u:alice``, ``g:...``.

A limit of somebody by name takes the place of the generic one.
"""


@dataclass(frozen=True, slots=True)
class PbsLimits:
    """What a server or a queue allows; who is missing has no limit.

    Old limits are told in the new words: ``max_user_run = 5`` is ``max_run = [u:PBS_GENERIC=5]``
    (``lim_old2new`` in limits.cpp of OpenPBS's scheduler).

    Attributes
    ----------
    max_run
        Running jobs (max_run, max_user_run, max_group_run, max_running).
    max_run_res
        What running jobs ask for together, by resource; bytes of memory, seconds of time.
    max_queued
        Jobs that wait or run (max_queued, max_queuable). More are refused at their submission.
    max_queued_res
        What they ask for together.
    queued_jobs_threshold, queued_jobs_threshold_res
        The same, of waiting jobs alone.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.limits import PbsLimits
    >>> PbsLimits(max_run={"u:PBS_GENERIC": 5, "u:alice": 10}).max_run["u:alice"]
    10
    """

    max_run: EntityLimits = field(default_factory=dict)
    max_run_res: Mapping[str, EntityLimits] = field(default_factory=dict)
    max_queued: EntityLimits = field(default_factory=dict)
    max_queued_res: Mapping[str, EntityLimits] = field(default_factory=dict)
    queued_jobs_threshold: EntityLimits = field(default_factory=dict)
    queued_jobs_threshold_res: Mapping[str, EntityLimits] = field(default_factory=dict)

    @property
    def while_running(self) -> tuple[EntityLimits, ...]:
        """Give those that the scheduler looks at."""
        return (self.max_run, *self.max_run_res.values())

    def name_any(self, kind: str) -> bool:
        """Whether a limit of running jobs is of users (``u``), groups, projects or all (``o``)."""
        return any(who.startswith(f"{kind}:") for limits in self.while_running for who in limits)
