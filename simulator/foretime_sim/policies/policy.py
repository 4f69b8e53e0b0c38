"""What a scheduler does: queue order, backfilling, corrections, roles, guard, event order."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.policies.slack import Overruns, SlackJobs, SlackSettings
from foretime_sim.workloads.workload import Workload


class Backfill(NamedChoice):
    """Backfilling: which waiting jobs hold a reservation, and what may start before them."""

    NONE = "none"
    """Nothing starts before the head job."""
    EASY = "easy"
    """In queue order, whatever does not delay the planned start of the head job; with a `depth` of
    k, of the first k jobs that have to wait. These are planned anew in every pass."""
    EASY_SJBF = "easy-sjbf"
    """The same with candidates by smallest t_sched(backfill) first, ties in log order."""
    EASY_WSPT = "easy-wspt"
    """The same with candidates by smallest t_sched(queue) first, ties in log order: what orders
    jobs may differ from what must fit before the head job. By Smith's rule (1956, weighted shortest
    processing time) mean slowdown is least if the smallest E[runtime] / E[1 / runtime] goes first:
    a job's slowdown grows by E[1 / runtime] for each second that it waits, and it keeps its
    processors from others for E[runtime]. t_sched(queue) is the square root of that ratio."""
    CONSERVATIVE = "conservative"
    """Every job holds a reservation, made at its submission and kept (Mu'alem and Feitelson; Talby
    and Feitelson 1999, section 3.2); see `Compression`. The queue order only decides among jobs
    that arrive together."""
    PLANNING = "planning"
    """Every job is planned, in queue order and anew in every pass (Streit 2002, section 3)."""
    SLACK = "slack"
    """Every job holds a reservation and a slack, by which it may be delayed for others at a price
    (Talby and Feitelson 1999, section 4); see `foretime_sim.policies.slack`. The queue order only
    decides among jobs that arrive together."""
    FIRST_FIT = "first-fit"
    """Nobody holds a reservation: in queue order whatever fits now starts; wide jobs may starve."""


EASY = (Backfill.EASY, Backfill.EASY_SJBF, Backfill.EASY_WSPT)


class Compression(NamedChoice):
    """Compression: how conservative backfilling moves reservations forward when a job ends early.

    What breaks reservations (a running job that gets a longer estimate, a changed job) makes all
    of them anew: by submission under ``submission-order``, else by planned start.
    """

    RESERVATION_ORDER = "reservation-order"
    """All removed, and reinserted by planned start. None becomes later."""
    SUBMISSION_ORDER = "submission-order"
    """All removed, and reinserted by submission. A job may become later than it was promised."""
    ONE_BY_ONE = "one-by-one"
    """By submission, each removed alone and reinserted. None becomes later."""


class Correction(NamedChoice):
    """Correction: the new estimate of a job that still runs when its estimate expires.

    Estimates count from the start of the job, are whole seconds, always at least one second
    ahead, and never beyond the requested time t_req.
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


class GuardBy(NamedChoice):
    """Guard by: what tells the starvation guard that a head job waits for too long."""

    REQUESTED_PLAN = "requested-plan"
    """Its start as planned on t_req when it was first seen blocked at the head of the queue."""
    PLAIN_EASY = "plain-easy"
    """Its start in a plain EASY on t_req that runs beside, with the same jobs in the same queue
    order: what would have happened without predictions. There a job ends after its actual runtime
    from the moment on at which it has ended here; until then it is taken to end after its
    t_sched(backfill), unless it runs here, too, and began no later than there. Of a flat pool
    without advance reservations, from its first job on."""
    PLAIN_EASY_GRADUAL = "plain-easy-gradual"
    """The same EASY, from the moment on at which it began to keep processors for the job: when it
    was first blocked at the head of the queue there, or started if it never was. The guard eases
    in: the later the head job is, the more of their t_req do candidates need to fit."""
    PLAIN_EASY_LONGEST = "plain-easy-longest"
    """The same; and a job may not be later than the longest wait that has ended there so far."""


class EventOrder(NamedChoice):
    """Event order: what comes first at one and the same second.

    Ties are resolved by place in the log.
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
    """Which uses of a runtime go by t_sched; the others go by t_req (Tang 2010, table II)."""

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
    """Everything that decides how a scheduler on a flat pool of processors behaves.

    Attributes
    ----------
    order, backfill, correction, roles, event_order
        See their own types. Order and backfilling may be the user's own, in Python.
    guard_s
        Starvation guard, seconds; ``None`` for none. When a job is first seen blocked at the head
        of the queue, its start as planned on t_req is noted and kept with the job. If it is still
        blocked at the head at a pass more than ``guard_s`` after that, then from that pass on,
        until it has started, plans and backfilling go by t_req alone. The deadline is no event of
        its own: it takes effect at the first pass after it, which an arrival, a completion or an
        expiry brings about. (Planning on t_req moves the shadow time later, so a pass at the
        deadline itself could let a job in that waits for the next event; a real scheduler, too,
        notices at its next pass.) Only for `EASY` with a depth of 1 and backfilling in
        Python (``none`` takes and ignores it): elsewhere more than the head job is protected, or
        nobody.
    guard_by, guard_share
        What the guard goes by. With ``plain-easy`` a job that is blocked at the head is late when
        it started there more than ``guard_s - guard_share * (its wait there)`` ago, or at all if
        that is negative (``guard_share`` from 0 on); then candidates go in queue order, too: until
        the job has started all is as in a plain EASY. With ``plain-easy-gradual`` the same goes for
        the time since processors are kept for it there, and its wait until then; and candidates fit
        by t_sched + (t_req - t_sched) * lateness / bound (whole seconds, rounded down) as long as
        the job is late by less than the bound. With ``plain-easy-longest`` the longest wait there
        takes the place of ``guard_s`` while it is less. For `EASY` with a depth of 1 only.
    depth
        Of `EASY`: how many jobs hold a reservation at once, at least 1 (PBS's
        ``backfill_depth``; Slurm's ``bf_max_job_test`` bounds the same from above). In queue order
        jobs start or get a reservation; behind the last reservation only such jobs start as delay
        none of them.
    compression
        Of conservative backfilling, see `Compression`.
    ageing_s
        Of easy-sjbf and easy-wspt: the time that orders a candidate counts as
        time / (1 + wait / ageing_s), at least 1 second, so that those that have waited for long are
        not passed over by shorter ones for ever; ``None``: the time alone. With a depth of 1, on a
        flat pool without advance reservations.
    scheduling_interval_s
        ``None``: a scheduling pass follows every event. Otherwise, as in schedulers that look at
        the queue every so many seconds (10 in Cobalt), passes come at the multiples of this on the
        clock, at each as long as somebody waits. Not where more than the head job is planned, nor
        under the event order ``per-event``.
    slack
        Of slack-based backfilling; ``None``: the settings' defaults.
    switching
        Of planning: between which queue orders it switches
        (`foretime_sim.policies.policy_switching`), beginning with ``order``; ``None``: that is the
        order for good. On a flat pool.
    correction_steps
        Of incremental correction and doubling: a job that has been corrected so often, at least
        once, and still outlives its estimate is planned with t_req; ``None``: it goes on in steps.
    """

    order: Order | PythonOrder = Order.FCFS
    backfill: Backfill | PythonBackfill = Backfill.EASY
    correction: Correction = Correction.REQUESTED
    guard_s: int | None = None
    guard_by: GuardBy = GuardBy.REQUESTED_PLAN
    guard_share: float = 0.0
    roles: Roles = field(default_factory=Roles)
    event_order: EventOrder = EventOrder.PER_TIMESTEP
    depth: int = 1
    compression: Compression = Compression.RESERVATION_ORDER
    scheduling_interval_s: int | None = None
    ageing_s: int | None = None
    slack: SlackSettings | None = None
    switching: PolicySwitching | None = None
    correction_steps: int | None = None

    @property
    def may_guard(self) -> bool:
        """Whether a starvation guard has a meaning: where at most the head job is protected."""
        if isinstance(self.backfill, PythonBackfill):
            return True
        return self.backfill is Backfill.NONE or (self.backfill in EASY and self.depth == 1)

    @property
    def plans_every_job(self) -> bool:
        """Whether each job has a planned start from its first pass on."""
        return self.backfill in (Backfill.CONSERVATIVE, Backfill.PLANNING, Backfill.SLACK)

    @property
    def slack_settings(self) -> SlackSettings:
        """Those given for slack-based backfilling, or the defaults."""
        return self.slack or SlackSettings()

    @property
    def overruns(self) -> Overruns:
        """What becomes of a job that still runs at the end of its requested time."""
        return self.slack.overruns if self.slack else Overruns.KILL

    def __post_init__(self) -> None:
        if self.guard_s is not None and self.guard_s < 0:
            raise InputError(f"guard_s is {self.guard_s}: give a bound of 0 seconds or more")
        if self.depth < 1:
            raise InputError(
                f"depth is {self.depth}: give 1 or more; without reservations it is first-fit"
            )
        if self.depth > 1 and self.backfill not in EASY:
            raise InputError(
                f"depth is {self.depth}: only easy, easy-sjbf and easy-wspt have a depth, not"
                f" {self.backfill}"
            )
        if (
            self.compression is not Compression.RESERVATION_ORDER
            and self.backfill is not Backfill.CONSERVATIVE
        ):
            raise InputError(
                f"compression is {self.compression}: only conservative backfilling compresses, not"
                f" {self.backfill}"
            )
        if self.guard_s is not None and not self.may_guard:
            depth = f" with a depth of {self.depth}" if self.depth > 1 else ""
            raise InputError(
                f"guard_s is {self.guard_s}: the starvation guard is for easy, easy-sjbf and"
                f" easy-wspt with a depth of 1, not for {self.backfill}{depth}: leave it out"
            )
        self._check_guard_by()
        if self.correction_steps is not None:
            self._check_correction_steps(self.correction_steps)
        if self.slack is not None and self.backfill is not Backfill.SLACK:
            raise InputError(
                "slack settings are given: only slack backfilling has a slack, not"
                f" {self.backfill}: leave them out"
            )
        if self.overruns is not Overruns.KILL:
            given = f"overruns is {self.overruns}:"
            if self.event_order is EventOrder.PER_EVENT:
                raise InputError(f"{given} under per-event no pass follows when a time is up")
            if self.correction is not Correction.REQUESTED:
                raise InputError(f"{given} estimates are corrected to the requested time first")
        if self.ageing_s is not None:
            self._check_ageing(self.ageing_s)
        if self.scheduling_interval_s is not None:
            self._check_interval(self.scheduling_interval_s)
        if self.switching is not None:
            self._check_switching(self.switching)

    @property
    def runs_beside(self) -> bool:
        """Whether a plain EASY runs beside, for the guard."""
        return self.guard_s is not None and self.guard_by is not GuardBy.REQUESTED_PLAN

    @property
    def eases_in(self) -> bool:
        """Whether the guard eases in, from predictions to requested times."""
        gradual = (GuardBy.PLAIN_EASY_GRADUAL, GuardBy.PLAIN_EASY_LONGEST)
        return self.guard_s is not None and self.guard_by in gradual

    def check_slack_jobs(self, slack_jobs: SlackJobs | None, workload: Workload) -> None:
        """Check what slack-based backfilling is told of the jobs, and refuse it elsewhere.

        Raises
        ------
        InputError
            Naming the job, the field and the value, or the backfilling.
        """
        if slack_jobs is None:
            return
        if self.backfill is not Backfill.SLACK:
            raise InputError(
                f"slack_jobs are given: only slack backfilling looks at them, not {self.backfill}:"
                " leave them out"
            )
        slack_jobs.check(workload.name, workload.job_id)

    def check_overruns(self, *, limited: bool, reserved: bool) -> None:
        """Refuse to let jobs run beyond their requested times where something hangs on these.

        Parameters
        ----------
        limited
            Whether jobs are killed at other limits than their requested times.
        reserved
            Whether there are advance reservations.

        Raises
        ------
        InputError
            Saying which of these it is.
        """
        if self.overruns is not Overruns.KILL and (limited or reserved):
            where = "beside advance reservations" if reserved else "with time limits of their own"
            raise InputError(f"overruns is {self.overruns}: jobs can't overrun {where}; take kill")

    def refuse_slack(self, where: str) -> None:
        """Refuse slack-based backfilling where nobody knows what has been promised.

        Raises
        ------
        InputError
            If that is the backfilling; ``where`` says in words where that can't be.
        """
        if self.backfill is Backfill.SLACK:
            raise InputError(
                f"backfilling is slack: there is none {where}; take conservative, which promises"
                " starts without slack"
            )

    def refuse_ageing(self, where: str) -> None:
        """Refuse ageing candidates where there are none.

        Raises
        ------
        InputError
            If they are to age; ``where`` says in words where that can't be.
        """
        if self.ageing_s is not None:
            raise InputError(f"ageing_s is {self.ageing_s}: nothing ages {where}; leave it out")

    def refuse_plain_easy(self, where: str) -> None:
        """Refuse a guard by plain EASY where none can run beside.

        Raises
        ------
        InputError
            If there is one; ``where`` says in words where that can't be.
        """
        if self.runs_beside:
            raise InputError(
                f"guard_by is {self.guard_by}: there is none {where}; take requested-plan"
            )

    @property
    def order_name(self) -> str:
        """What the queue order is called: that of the switching where there is one."""
        return str(self.order if self.switching is None else self.switching)

    def in_order(self, order: Order | PythonOrder | PolicySwitching) -> Self:
        """Give the same policy in another queue order, or switching between several."""
        if isinstance(order, Order | PythonOrder):
            return replace(self, order=order, switching=None)
        return replace(self, order=order.first_order, switching=order)

    def refuse_switching(self, where: str) -> None:
        """Refuse to switch between queue orders where that can't be.

        Raises
        ------
        InputError
            If they are to be switched; ``where`` says in words where that can't be.
        """
        if self.switching is not None:
            raise InputError(f"{self.switching}: no switching between orders {where}")

    def refuse_one_list(self, where: str) -> None:
        """Refuse a queue that is one list where its order would have to be known.

        Raises
        ------
        InputError
            If the policy has one.
        """
        if self.switching is not None and self.switching.one_list:
            raise InputError(f"{self.switching}: no one-list {where}, only in whole runs")

    def _check_switching(self, switching: PolicySwitching) -> None:
        if self.backfill is not Backfill.PLANNING:
            raise InputError(
                f"{switching}: only under the backfilling planning, not {self.backfill}; give "
                "planning, or one order"
            )
        if self.order not in switching.orders:
            names = ", ".join(str(order) for order in switching.orders)
            raise InputError(
                f"order is {self.order}: begin with one of those that are switched: {names}"
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

    def _check_ageing(self, ageing_s: int) -> None:
        given = f"ageing_s is {ageing_s}:"
        if ageing_s < 1:
            raise InputError(f"{given} give 1 s or more")
        if self.backfill not in (Backfill.EASY_SJBF, Backfill.EASY_WSPT) or self.depth > 1:
            raise InputError(
                f"{given} only candidates of easy-sjbf and easy-wspt with a depth of 1 age, not"
                f" those of {self.backfill}: leave it out"
            )

    def _check_guard_by(self) -> None:
        if not 0 <= self.guard_share < math.inf:
            raise InputError(f"guard_share is {self.guard_share}: give a share of 0 or more")
        if self.guard_by is GuardBy.REQUESTED_PLAN:
            if self.guard_share:
                raise InputError(
                    f"guard_share is {self.guard_share}: only a guard by a plain EASY knows how"
                    " long a job waited there"
                )
            return
        if self.guard_s is None:
            raise InputError(
                f"guard_by is {self.guard_by}, but there is no guard: give guard_s as well"
            )
        if self.backfill not in EASY or isinstance(self.order, PythonOrder):
            raise InputError(
                f"guard_by is {self.guard_by}: only for easy, easy-sjbf and easy-wspt in a built-in"
                f" queue order, not for {self.backfill} with {self.order}"
            )

    def _check_interval(self, interval_s: int) -> None:
        given = f"scheduling_interval_s is {interval_s}:"
        if interval_s < 1:
            raise InputError(f"{given} give 1 s or more")
        if self.event_order is EventOrder.PER_EVENT:
            raise InputError(f"{given} under the event order per-event every event has its pass")
        if not self.may_guard and self.backfill is not Backfill.FIRST_FIT:
            depth = f" with a depth of {self.depth}" if self.depth > 1 else ""
            raise InputError(
                f"{given} {self.backfill}{depth} plans more than the head job, and starts jobs at"
                " the very second they are planned for: leave it out"
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
    return _built_in(Order, text, unlisted=(Order.PRIORITY,))


def parse_backfill(text: str) -> Backfill | PythonBackfill:
    """Read a backfilling policy: one of `Backfill` by name, or ``module:attribute``.

    Raises
    ------
    InputError
        If there is none of that name, or it can't be loaded; it says what there is.
    """
    if ":" in text:
        return PythonBackfill.load(text)
    return _built_in(Backfill, text)


_Choice = TypeVar("_Choice", bound=NamedChoice)


def _built_in(choices: type[_Choice], text: str, unlisted: Collection[_Choice] = ()) -> _Choice:
    try:
        return choices.parse(text, unlisted=unlisted)
    except InputError as error:
        raise InputError(f"{error}, or module:attribute of your own") from None
