"""What a scheduler does: queue order, backfilling, corrections, roles, event order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.families import Backfill, Planning, Slack
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.slack import Overruns, SlackJobs
from foretime_sim.policies.slurm import Slurm
from foretime_sim.workloads.workload import Workload


class Correction(NamedChoice):
    """Correction: the new estimate of a job that still runs when its estimate expires.

    Estimates count from the start of the job, are whole seconds, always at least one second
    ahead, and never beyond the requested time t_req.

    Examples
    --------
    >>> from foretime_sim import Correction, Policy
    >>> Policy(correction=Correction.INCREMENTAL).correction
    <Correction.INCREMENTAL: 'incremental'>
    """

    REQUESTED = "requested"
    """t_req (Gaussier 2015, section 5.2)."""
    INCREMENTAL = "incremental"
    """t_sched plus 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h in turn, then t_req (Tsafrir 2007).

    The increments are not added up, as in the simulator behind Gaussier 2015.
    """
    DOUBLING = "doubling"
    """Twice the estimate, which at that moment is twice the elapsed runtime."""
    SLURM = "slurm"
    """now + (hard end - now) / 2, rounded down; anew at every pass and when it expires."""
    PBS = "pbs"
    """soft * (1 + floor(elapsed / soft)), soft being t_sched(drain) (OpenPBS)."""


IN_STEPS = (Correction.INCREMENTAL, Correction.DOUBLING)
"""Corrections that a job may need several of, and that can be cut short by ``correction_steps``."""


class EventOrder(NamedChoice):
    """Event order: what comes first at one and the same second.

    Ties are resolved by place in the log.

    Examples
    --------
    >>> from foretime_sim import EventOrder, Policy
    >>> Policy(event_order=EventOrder.PER_EVENT).event_order
    <EventOrder.PER_EVENT: 'per-event'>
    """

    PER_TIMESTEP = "per-timestep"
    """Completions, estimate expiries, submissions, then one scheduling pass."""
    PER_EVENT = "per-event"
    """The order of the simulators behind the published figures (pyss and its descendants).

    First, without a scheduling pass of their own, completions of jobs that were expected to end
    at this very second, and expiries; then submissions, then the other completions in the order in
    which the jobs started, with a pass after each. (A job that ends when expected has freed its
    processors for the submissions of the same second; if there are none, a pass follows.)
    """


@dataclass(frozen=True, slots=True)
class Roles:
    """Which uses of a runtime go by t_sched; the others go by t_req (Tang 2010, table II).

    Examples
    --------
    >>> from foretime_sim.policies.policy import Roles
    >>> Roles.parse("S110")
    Roles(queue=True, backfill=True, drain=False)
    """

    queue: bool = True
    backfill: bool = True
    drain: bool = True

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read three digits for queue, backfill, drain (``110`` or ``S110``), 1 being t_sched.

        Raises
        ------
        InputError
            If the name is anything else.
        """
        digits = name.strip().upper().removeprefix("S")
        if len(digits) != 3 or set(digits) - {"0", "1"}:
            raise InputError(
                f"unknown roles {name!r}: give three digits, 1 where t_sched is used and 0 where"
                " t_req is, for queue order, backfilling and draining, such as 111 or 110"
            )
        return cls(*(digit == "1" for digit in digits))

    def __str__(self) -> str:
        return "".join("1" if used else "0" for used in (self.queue, self.backfill, self.drain))


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides how a scheduler behaves.

    Attributes
    ----------
    order, correction, roles, event_order
        See their own types. The order may be the user's own, in Python.
    backfill
        One of `foretime_sim.policies.families`, with its settings, or the user's own.
    scheduling_interval_s
        ``None``: a scheduling pass follows every event. Otherwise, as in schedulers that look at
        the queue every so many seconds (10 in Cobalt), passes come at the multiples of this on the
        clock, at each as long as somebody waits. Not where jobs start at the very second they are
        planned for, nor under the event order ``per-event``.
    correction_steps
        Of incremental correction and doubling: a job that has been corrected so often, at least
        once, and still outlives its estimate is planned with t_req; ``None``: it goes on in steps.

    Examples
    --------
    >>> from foretime_sim import Backfill, Order, Policy
    >>> policy = Policy(order=Order.SJF, backfill=Backfill.CONSERVATIVE)
    >>> policy.order_name, str(policy.backfill), str(policy.roles), policy.guard
    ('sjf', 'conservative', '111', None)
    """

    order: Order | PythonOrder = Order.FCFS
    backfill: Backfilling = Backfill.EASY
    correction: Correction = Correction.REQUESTED
    roles: Roles = field(default_factory=Roles)
    event_order: EventOrder = EventOrder.PER_TIMESTEP
    scheduling_interval_s: int | None = None
    correction_steps: int | None = None

    @property
    def guard(self) -> Guard | None:
        """The starvation guard of the backfilling."""
        return self.backfill.guard

    @property
    def switching(self) -> PolicySwitching | None:
        """Between which queue orders it switches; ``None``: between none."""
        return self.backfill.switching if isinstance(self.backfill, Planning) else None

    @property
    def is_slurm(self) -> bool:
        """Whether a site's Slurm schedules."""
        return isinstance(self.backfill, Slurm)

    @property
    def is_pbs(self) -> bool:
        """Whether a site's PBS schedules."""
        return isinstance(self.backfill, Pbs)

    @property
    def order_name(self) -> str:
        """What the queue order is called: that of the switching where there is one."""
        return str(self.order if self.switching is None else self.switching)

    @property
    def overruns(self) -> Overruns:
        """What becomes of a job that still runs at the end of its requested time."""
        if isinstance(self.backfill, Slack):
            return self.backfill.settings.overruns
        return Overruns.KILL

    def guarded(self, guard: Guard | None) -> Self:
        """Give the same policy with this starvation guard, or without one.

        Raises
        ------
        InputError
            If there can be none.
        """
        return replace(self, backfill=self.backfill.guarded(guard))

    def in_order(self, order: Order | PythonOrder | PolicySwitching) -> Self:
        """Give the same policy in another queue order, or switching between several.

        Raises
        ------
        InputError
            If several are to be switched, but the backfilling is not planning.
        """
        if isinstance(order, Order | PythonOrder):
            plain = Backfill.PLANNING if isinstance(self.backfill, Planning) else self.backfill
            return replace(self, order=order, backfill=plain)
        if not isinstance(self.backfill, Planning):
            raise InputError(
                f"{order}: only under the backfilling planning, not {self.backfill}; give "
                "planning, or one order"
            )
        return replace(self, order=order.first_order, backfill=Planning(order))

    def check_in(self, place: Place) -> None:
        """Check that the backfilling can be somewhere.

        Raises
        ------
        InputError
            If it can't; it says why.
        """
        if refusal := self.backfill.refusal(place):
            raise InputError(refusal)

    def check_slack_jobs(self, slack_jobs: SlackJobs | None, workload: Workload) -> None:
        """Check what slack-based backfilling is told of the jobs, and refuse it elsewhere.

        Raises
        ------
        InputError
            Naming the job, the field and the value, or the backfilling.
        """
        if slack_jobs is None:
            return
        if not isinstance(self.backfill, Slack):
            raise InputError(
                f"slack_jobs are given: only slack backfilling looks at them, not {self.backfill}:"
                " leave them out"
            )
        slack_jobs.check(workload.name, workload.job_id)

    def __post_init__(self) -> None:
        if isinstance(self.backfill, Slurm):
            self._check_site("slurm", "site's priorities order", Correction.SLURM)
        if isinstance(self.backfill, Pbs):
            self._check_site("pbs", "site's scheduler orders", Correction.PBS)
        if (
            self.guard is not None
            and self.guard.runs_beside
            and isinstance(self.order, PythonOrder)
        ):
            raise InputError(
                f"guard_by is {self.guard.by}: only in a built-in queue order, not in {self.order}"
            )
        if self.overruns is not Overruns.KILL:
            given = f"overruns is {self.overruns}:"
            if self.event_order is EventOrder.PER_EVENT:
                raise InputError(f"{given} under per-event no pass follows when a time is up")
            if self.correction is not Correction.REQUESTED:
                raise InputError(f"{given} estimates are corrected to the requested time first")
        if self.switching is not None and self.order not in self.switching.orders:
            names = ", ".join(str(order) for order in self.switching.orders)
            raise InputError(
                f"order is {self.order}: begin with one of those that are switched: {names}"
            )
        if self.correction_steps is not None:
            self._check_correction_steps(self.correction_steps)
        if self.scheduling_interval_s is not None:
            self._check_interval(self.scheduling_interval_s)

    def _check_site(self, name: str, orders: str, correction: Correction) -> None:
        """Check that nothing is said that is for the scheduler of a site to say."""
        if self.order is not Order.FCFS:
            raise InputError(
                f"order is {self.order}: under {name} the {orders} the queue: leave it out"
            )
        if self.correction not in (Correction.REQUESTED, correction):
            raise InputError(
                f"correction is {self.correction}: under {name} running jobs are planned as the"
                " site's scheduler does: leave it out"
            )
        if self.event_order is EventOrder.PER_EVENT or self.scheduling_interval_s is not None:
            raise InputError(
                f"under {name} the site's scheduler looks at the queue when it is due: leave"
                " event_order and scheduling_interval_s out"
            )

    def _check_correction_steps(self, steps: int) -> None:
        given = f"correction_steps is {steps}:"
        if self.correction not in IN_STEPS:
            raise InputError(
                f"{given} only incremental correction and doubling go in steps, not"
                f" {self.correction}: leave it out"
            )
        if steps < 1:
            raise InputError(f"{given} give 1 or more; with none the correction is requested")

    def _check_interval(self, interval_s: int) -> None:
        given = f"scheduling_interval_s is {interval_s}:"
        if interval_s < 1:
            raise InputError(f"{given} give 1 s or more")
        if self.event_order is EventOrder.PER_EVENT:
            raise InputError(f"{given} under the event order per-event every event has its pass")
        if self.backfill.starts_as_planned:
            raise InputError(
                f"{given} under {self.backfill.described} jobs start at the very second they are"
                " planned for: leave it out"
            )


def parse_order(text: str) -> Order | PythonOrder:
    """Read a queue order: one of `Order` by name, or ``module:attribute`` of the user's own.

    Raises
    ------
    InputError
        If there is none of that name, or it can't be loaded; it says what there is, but for
        ``priority``, which logs do not have.
    """
    if ":" in text:
        return PythonOrder.load(text)
    try:
        return Order.parse(text, unlisted=(Order.PRIORITY,))
    except InputError as error:
        raise InputError(f"{error}, or module:attribute of your own") from None
