"""Settings of slack-based backfilling (Talby and Feitelson 1999), and what it is told of each job.

What the scheduler does with them, edge by edge, is in `foretime_sim.reference.slack`; for
administrators in docs/slack.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.choices import NamedChoice

INFINITE_SLACK = 2**62
"""A latest start (seconds) that is none: of a job whose slack is infinite."""


class InsertionOrder(NamedChoice):
    """Insertion order: in which order the jobs that made room are planned again (section 4.6).

    Ties go to whoever arrived first.
    """

    AST = "ast"
    """Ascending scheduled time: by planned start. Keeps most of the plan as it was."""
    AAT = "aat"
    """Ascending arrival time."""
    DU = "du"
    """Descending utilization: largest processors x planned runtime first."""
    DC = "dc"
    """Descending cost: those first that it costs most to delay by one second."""
    DP = "dp"
    """Descending priority."""


class Overruns(NamedChoice):
    """Overruns: what becomes of a job that still runs at the end of its requested time.

    Under ``kill-blocking`` and ``extend`` a job runs longer than it asked for, so this is for
    simulations only.
    """

    KILL = "kill"
    """It is killed, as in the simulations of the paper."""
    KILL_BLOCKING = "kill-blocking"
    """It goes on until its processors are needed for a job that is due (requirement VIII)."""
    EXTEND = "extend"
    """It gets another 10% of its requested time whenever that costs less than to kill it (section
    4.7), and is killed otherwise."""


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """How slack-based backfilling weighs one thing against another.

    Attributes
    ----------
    slack_factor
        SF: how many average waits of slack a job of priority 0 gets; 0 gives everyone the promises
        of conservative backfilling.
    average_wait_s
        AWT, seconds; ``None``: learned online, the mean wait of the jobs that have started so far
        (0 before the first). `SlackJobs.average_wait_s` goes before it.
    utilization_weight, time_weight, priority_weight, fairness_weight
        alpha_u, alpha_t, alpha_p, alpha_f, each from 0 to 1 (requirement XV).
    insertion_order
        See `InsertionOrder`.
    overruns
        See `Overruns`.

    Raises
    ------
    InputError
        Naming the setting that is out of its range.

    Examples
    --------
    >>> from foretime_sim.policies.slack import SlackSettings
    >>> print(SlackSettings(slack_factor=2.0, average_wait_s=600.0))
    factor 2, average wait 600 s, insertion order ast, weights 1,1,1,1, overruns kill
    """

    slack_factor: float = 3.0
    average_wait_s: float | None = None
    utilization_weight: float = 1.0
    time_weight: float = 1.0
    priority_weight: float = 1.0
    fairness_weight: float = 1.0
    insertion_order: InsertionOrder = InsertionOrder.AST
    overruns: Overruns = Overruns.KILL

    def __str__(self) -> str:
        """Give what is chosen, for people."""
        weights = (
            self.utilization_weight,
            self.time_weight,
            self.priority_weight,
            self.fairness_weight,
        )
        wait = "learned" if self.average_wait_s is None else f"{self.average_wait_s:g} s"
        return (
            f"factor {self.slack_factor:g}, average wait {wait},"
            f" insertion order {self.insertion_order},"
            f" weights {','.join(f'{weight:g}' for weight in weights)}, overruns {self.overruns}"
        )

    def __post_init__(self) -> None:
        if not 0 <= self.slack_factor < math.inf:
            raise InputError(
                f"slack_factor is {self.slack_factor}: give 0 or more average waits (3 in the"
                " paper; 0 is conservative backfilling)"
            )
        if self.average_wait_s is not None and not 0 <= self.average_wait_s < math.inf:
            raise InputError(
                f"average_wait_s is {self.average_wait_s}: give 0 seconds or more, or leave it out"
                " to have it learned"
            )
        for name in ("utilization", "time", "priority", "fairness"):
            weight = getattr(self, f"{name}_weight")
            if not 0 <= weight <= 1:
                raise InputError(f"{name}_weight is {weight}: give a weight from 0 to 1")


@dataclass(frozen=True, slots=True)
class SlackJobs:
    """What is known of each job beside its request; float64, shape (jobs,), in the log's order.

    Attributes
    ----------
    user_priority
        UP, from 0 to 1.
    political_priority
        PP, from 0 to 1; -infinity if a quota is exceeded: such a job delays nobody, and may be
        delayed without bound.
    average_wait_s
        AWT of each job's kind (by month, by size class), seconds; ``None``: that of the settings.
    """

    user_priority: Float64Array
    political_priority: Float64Array
    average_wait_s: Float64Array | None = None

    @classmethod
    def equal(cls, jobs: int, priority: float = 0.0) -> Self:
        """Give this many jobs the same user and political priority."""
        return cls(np.full(jobs, priority), np.full(jobs, priority))

    def check(self, name: str, job_id: Int64Array) -> None:
        """Check the columns against the jobs that they are for: whose, and their numbers.

        Raises
        ------
        InputError
            Naming the job, the field and the value.
        """
        self._check_column(name, job_id, "user_priority", "it must be from 0 to 1", 1)
        self._check_column(
            name,
            job_id,
            "political_priority",
            "it must be from 0 to 1, or -inf where a quota is exceeded",
            1,
            allowed=-math.inf,
        )
        if self.average_wait_s is not None:
            most = np.finfo(np.float64).max
            self._check_column(name, job_id, "average_wait_s", "it must be 0 s or more", most)

    def _check_column(
        self,
        name: str,
        job_id: Int64Array,
        field: str,
        rule: str,
        most: float,
        allowed: float = 0.0,
    ) -> None:
        column = np.asarray(getattr(self, field))
        if column.shape != job_id.shape or column.dtype.kind not in "fiu":
            raise InputError(
                f"{name}: {field} has shape {column.shape} and type {column.dtype}: give one number"
                f" for each of the {len(job_id)} jobs"
            )
        wrong = ~((column >= 0) & (column <= most)) & (column != allowed)
        if bool(wrong.any()):
            job = int(np.flatnonzero(wrong)[0])
            raise InputError(f"{name}: job {job_id[job]}: {field} is {column[job]}, {rule}")
