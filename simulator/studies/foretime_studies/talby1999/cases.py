"""What is simulated for the study of Talby & Feitelson 1999: every case of sections 3.3 and 5."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from foretime_sim.policies.families import Backfill, Compression, Conservative, Slack
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackSettings

from foretime_studies.talby1999.paper import AVERAGE_WAIT_S, REAL_PROCESSORS

FIFTH = 5
"""Every fifth job of a month is at high priority (section 5.3)."""


class AverageWait(enum.Enum):
    """Where a job's AWT comes from; all but the first two are means under conservative."""

    GIVEN = "given"
    """The setting's number, or learned online where it has none."""
    LOG = "log"
    """The log's mean: for logs that the paper does not have."""
    MONTH = "month"
    """Its own month's mean (section 5.2, "adjusted for each month"): known afterwards only."""
    MONTH_BEFORE = "month before"
    """The mean of the month before; in the first month its own."""
    LENGTH = "length"
    """The mean of jobs in the same class of requested times (section 4.3, "not tested")."""


class Estimates(enum.Enum):
    """What `Case.estimate_factor` multiplies into the time that a job is planned with."""

    REQUESTS = "requests"
    """What its user requested."""
    RUNTIMES = "runtimes"
    """How long it really runs."""


class MonthsBy(enum.Enum):
    """By what a job belongs to a month."""

    SUBMISSION = "months by submission"
    UTC = "months by submission, UTC"
    START = "months by logged start"
    END = "months by logged end"
    WHOLE = "not cut into months"


@dataclass(frozen=True, slots=True)
class Case:
    """One way to schedule a log's months."""

    name: str
    policy: Policy  # what the scheduler does
    average_wait: AverageWait = AverageWait.GIVEN  # of slack-based backfilling
    # By how much user and political priority together are higher for every fifth job than for the
    # others, 0 to 2, halves of it each.
    gap: float = 0.0
    everyone: tuple[float, float] = (0.0, 0.0)  # user priority and political priority of all others
    # estimates, estimate_factor: what jobs are planned with; they end at the users' requests all
    # the same
    estimates: Estimates = Estimates.REQUESTS
    estimate_factor: float = 1.0
    # Of `Workload.with_interarrival_factor`: below 1 the load grows.
    interarrival_factor: float = 1.0
    # Whether a job that reaches its request is killed by the log's own rule; otherwise its policy
    # decides, or it runs to its end.
    killed: bool = True
    slot_s: int = 1  # submissions, runtimes and requests are rounded up to so many seconds
    processors: int | None = None  # another machine than the log's
    months_by: MonthsBy = MonthsBy.SUBMISSION  # how the log is cut
    repeated: bool = True  # whether it runs on the jittered copies, too


def slack(settings: SlackSettings) -> Policy:
    """Give the priority scheduler's policy."""
    return Policy(backfill=Slack(settings))


EASY = Case("EASY", Policy())
CONSERVATIVE = Case("conservative", Policy(backfill=Backfill.CONSERVATIVE))
COMPRESSIONS = tuple(
    Case(f"conservative, {how}", Policy(backfill=Conservative(how)))
    for how in (Compression.SUBMISSION_ORDER, Compression.ONE_BY_ONE)
)
SLACK = Case("priority", slack(SlackSettings(average_wait_s=AVERAGE_WAIT_S)))
"""The setting of section 5.2: SF = 3, AWT = 2401 s, all weights 1, AST."""
PLAIN = (EASY, CONSERVATIVE, SLACK)
"""The three schedulers of sections 3.3 and 5."""
SLACK_FACTORS = (0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 9.0, 18.0)
AWT_FACTORS = (0.01, 0.1, 0.5, 2.0, 10.0, 100.0)
"""Too small and too large an AWT (section 5.2), times the paper's."""
GAPS = tuple(step / 4 for step in range(9))
"""Of user plus political priority (figure of section 5.3)."""
EVERYONE = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
WEIGHTS = (
    ("all 1", (1.0, 1.0, 1.0, 1.0)),
    ("priority 1, others 0.2", (0.2, 0.2, 1.0, 0.2)),
    ("priority 1, others 0.5", (0.5, 0.5, 1.0, 0.5)),
    ("utilization 0.2", (0.2, 1.0, 1.0, 1.0)),
    ("time 0.2", (1.0, 0.2, 1.0, 1.0)),
    ("priority 0.2", (1.0, 1.0, 0.2, 1.0)),
    ("fairness 0.2", (1.0, 1.0, 1.0, 0.2)),
    ("utilization and time 0.2", (0.2, 0.2, 1.0, 1.0)),
    ("priority 0, so fairness, too", (1.0, 1.0, 0.0, 1.0)),
)
"""Utilization, time, priority, fairness (section 5.3)."""
ESTIMATE_FACTORS = (1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0)
_REPEATED = 2.0
"""Larger ones are not run on the copies."""
LOADS = (1.0, 0.9, 0.8, 0.75, 0.7, 0.65)
"""Interarrival factors."""


def ordered(order: InsertionOrder, gap: float = 0.0) -> Case:
    """Give the case of an insertion order, with every fifth job raised by a gap."""
    if order is InsertionOrder.AST:
        return with_gap(SLACK, gap)
    settings = SlackSettings(average_wait_s=AVERAGE_WAIT_S, insertion_order=order)
    return with_gap(replace(SLACK, name=f"priority, {order}", policy=slack(settings)), gap)


def with_gap(case: Case, gap: float) -> Case:
    """Raise every fifth job's priority."""
    return replace(case, name=f"{case.name}, gap {gap:g}", gap=gap) if gap else case


UNEQUAL = with_gap(SLACK, GAPS[-1])
"""Every fifth job at high priority, as far as that goes."""


def with_slack_factor(factor: float) -> Case:
    """Give the case of section 5.2 with another SF."""
    if factor == SlackSettings().slack_factor:
        return SLACK
    settings = SlackSettings(slack_factor=factor, average_wait_s=AVERAGE_WAIT_S)
    return replace(SLACK, name=f"priority, SF {factor:g}", policy=slack(settings))


def with_awt(factor: float) -> Case:
    """Give the case of section 5.2 with so many times its AWT."""
    settings = SlackSettings(average_wait_s=AVERAGE_WAIT_S * factor)
    return replace(SLACK, name=f"priority, AWT x {factor:g}", policy=slack(settings))


def with_average_wait(average_wait: AverageWait) -> Case:
    """Give the case of section 5.2 with AWT from elsewhere; `GIVEN` is learned online."""
    name = "learned" if average_wait is AverageWait.GIVEN else str(average_wait.value)
    return Case(f"priority, AWT {name}", slack(SlackSettings()), average_wait)


def with_weights(name: str, weights: tuple[float, float, float, float]) -> Case:
    """Give the case of section 5.3, every fifth job at high priority, with other weights."""
    utilization, time, priority, fairness = weights
    if min(weights) == 1:
        return with_gap(SLACK, GAPS[-1])
    settings = SlackSettings(
        average_wait_s=AVERAGE_WAIT_S,
        utilization_weight=utilization,
        time_weight=time,
        priority_weight=priority,
        fairness_weight=fairness,
    )
    return with_gap(replace(SLACK, name=f"priority, {name}", policy=slack(settings)), GAPS[-1])


def for_everyone(priorities: tuple[float, float]) -> Case:
    """Give the case of section 5.2 with other, still equal priorities."""
    user, political = priorities
    if not any(priorities):
        return SLACK
    name = f"priority, UP {user:g}, PP {political:g} for all"
    return replace(SLACK, name=name, everyone=priorities)


def overrunning() -> tuple[Case, ...]:
    """Give the cases in which a job that reaches its request is not simply killed."""
    settings = SlackSettings(average_wait_s=AVERAGE_WAIT_S)
    blocking = slack(replace(settings, overruns=Overruns.KILL_BLOCKING))
    extended = slack(replace(settings, overruns=Overruns.EXTEND))
    return (
        replace(CONSERVATIVE, name="conservative, not killed", killed=False),
        replace(SLACK, name="priority, kill-blocking", policy=blocking, killed=False),
        replace(SLACK, name="priority, extend", policy=extended, killed=False),
    )


def estimated(case: Case, estimates: Estimates, factor: float) -> Case:
    """Plan with multiples of requests or of runtimes."""
    if estimates is Estimates.REQUESTS and factor == 1:
        return case
    name = f"{case.name}, {estimates.value} x {factor:g}"
    return replace(case, name=name, estimates=estimates, estimate_factor=factor)


def loaded(case: Case, factor: float) -> Case:
    """Shrink the interarrival times."""
    if factor == 1:
        return case
    name = f"{case.name}, interarrival x {factor:g}"
    return replace(case, name=name, interarrival_factor=factor)


def traced() -> tuple[Case, ...]:
    """Give what was tried to find why conservative backfilling differs from the paper's."""
    once = replace(CONSERVATIVE, repeated=False)
    per_event = Policy(backfill=Backfill.CONSERVATIVE, event_order=EventOrder.PER_EVENT)
    return (
        replace(once, name="conservative, event order per-event", policy=per_event),
        *(
            replace(once, name=f"conservative, {by.value}", months_by=by)
            for by in MonthsBy
            if by is not MonthsBy.SUBMISSION
        ),
        *(
            replace(once, name=f"conservative, {processors} processors", processors=processors)
            for processors in (REAL_PROCESSORS, 120, 124)
        ),
        *(
            replace(once, name=f"conservative, slots of {slot_s} s", slot_s=slot_s)
            for slot_s in (60, 300, 600, 900)
        ),
    )


def paper_cases() -> list[Case]:
    """Give every case on the paper's log."""
    equal_and_unequal = (ordered(order, gap) for order in InsertionOrder for gap in (0.0, GAPS[-1]))
    listed = [
        *PLAIN,
        *COMPRESSIONS,
        *traced(),
        *map(with_slack_factor, SLACK_FACTORS),
        *map(with_awt, AWT_FACTORS),
        *map(with_average_wait, AverageWait),
        *equal_and_unequal,
        *(with_gap(SLACK, gap) for gap in GAPS),
        *(with_weights(name, weights) for name, weights in WEIGHTS),
        *map(for_everyone, EVERYONE),
        *overrunning(),
        *_section_3_3(SLACK),
    ]
    return _once_each(listed)


def other_cases() -> list[Case]:
    """Give what runs on logs that the paper does not have, with the log's own mean as AWT."""
    main = replace(with_average_wait(AverageWait.LOG), name=SLACK.name)

    def of_main(name: str, settings: SlackSettings) -> Case:
        return replace(main, name=name, policy=slack(settings), repeated=False)

    by_kind = (AverageWait.MONTH, AverageWait.MONTH_BEFORE, AverageWait.LENGTH)
    return [
        EASY,
        CONSERVATIVE,
        *COMPRESSIONS,
        main,
        with_average_wait(AverageWait.GIVEN),
        *(replace(with_average_wait(kind), repeated=False) for kind in by_kind),
        of_main(with_slack_factor(9.0).name, SlackSettings(slack_factor=9.0)),
        *(
            of_main(ordered(order).name, SlackSettings(insertion_order=order))
            for order in InsertionOrder
            if order is not InsertionOrder.AST
        ),
        replace(with_gap(main, GAPS[-1]), repeated=False),
    ]


def _section_3_3(priority: Case) -> Iterator[Case]:
    for case in (EASY, CONSERVATIVE, priority):
        for estimates in Estimates:
            for factor in ESTIMATE_FACTORS:
                yield replace(estimated(case, estimates, factor), repeated=factor <= _REPEATED)
        for factor in LOADS:
            yield loaded(case, factor)


def _once_each(cases: list[Case]) -> list[Case]:
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(case.name, case)
    return list(found.values())
