"""The priority scheduler of Talby and Feitelson 1999, section 4, in plain Python.

Part of the specification, `foretime_sim.reference.flat`. Every waiting job holds a reservation and
a slack, by which it may be delayed for the sake of others. A new job is tried at every slot of the
plan; each try has a price, and the cheapest is taken. When a running job ends early, the waiting
ones are planned anew in the same way. No job is ever moved beyond its latest start, which is its
first planned start plus its initial slack.

**Where the paper leaves a choice, or can't be followed to the letter, and why it is made so:**

Times and doubles
    Slack is in whole seconds, rounded down: times are whole seconds, so that a fraction never lets
    anybody start later, and latest starts are exact. A job's slack is what is left from its planned
    to its latest start: the paper's bookkeeping (less x when delayed by x, more x when moved up by
    x) says the same. Priorities and prices are doubles; every formula below is evaluated from left
    to right as written, with the power function of the C library, and the costs of the jobs that
    move are added to the new job's own price in the order in which they are put back.
Average wait
    Learned online it is the sum of the waits of all jobs that have started so far over their
    number. While it is 0, everything above it counts as longer than twice the average: SP is 0 for
    a job that is planned for now and else 1, and nobody has slack.
Slots
    Now, and every moment to come at which a claim of a running or waiting job or of an advance
    reservation starts or ends. At a slot, waiting jobs that are planned for it or later are taken
    out; those before it stay (section 4.5). The new job goes to the slot itself: if it doesn't fit
    there beside what stays, the slot is passed over. The others are put back in the insertion
    order, each at the earliest place that is left, from now on.
What conservative backfilling would do
    It is a candidate of its own. The paper remarks that there is always a schedule of finite price,
    namely this one. That holds of all permutations, and of ascending scheduled time. Of the single
    permutation that each of the other four heuristics tries it does not: put back in another order
    somebody may exceed his slack, and the first slot that has a price may be one at which the new
    job is later than it would have to be, in the end the last. So nobody being moved is always
    possible, at an end as well.
Ties
    Between schedules of one price: the fewest moved jobs, then the earliest slot. A job that comes
    back to where it was has not been moved. In an insertion order: who arrived first.
A new job that starts at once
    It starts before the next of the same second is looked at, as arrivals are apart in the paper.
    So nobody who arrives later in that second takes its place.
Priority of minus infinity
    The paper's "absolute zero". Such a job delays nobody, whatever the weights: a new one is put
    where conservative backfilling would put it, and among those that are put back it comes last.
    For the cost of moving it its priority counts as 0, the limit: with a priority weight above 0 it
    costs nothing to delay it, with a weight of 0 it costs as much as others (0^0 = 1). Its slack is
    infinite and never used up, so the factor of fairness is 1.
Priority 0
    A new job never has it: with SP = 1/2 its priority is at least 1/6. A moved one costs nothing to
    delay. (Both 0: the ratio is 1; the new one only: infinite. It can't come about.)
Slack 0
    Of a job that has used up none of its slack (0 of 0, infinite of infinite) the factor of
    fairness is 1. Of one that has used up all of it (or more, below) the factor would be infinite
    and hide all other prices when it is moved up: it counts as 1 second.
Moves up
    A power of a negative time: the sign is kept, so a move up gains what a move down by as much
    costs. With a time weight of 0 every move costs alike, however far.
After the choice
    If somebody has been moved, and after every end, the plan is compressed as in conservative
    backfilling: in order of planned start each job is moved to the earliest place that is left, and
    nobody becomes later. Without it processors could stay idle beside jobs that fit: moving up a
    job of priority 0 or without any initial slack gains nothing, so the cheapest schedule with the
    fewest moves leaves it where it is; and a move at one slot may make room before it.
Priority and slack, once more
    SP, priority and slack of a new job are worked out again after that, from its planned start. It
    happens before anybody can delay it, and SP is at most 1, so that slack is never negative: the
    new values can't break a promise that has been made.
Ends
    Removal is for what the plan didn't know. A job that ends on time changes nothing in it, and
    nobody is moved; nor is there anything to gain. Whenever else the claim of a running job changes
    (an early end, another estimate) the dummy job is inserted, once for all of a second. Its
    priority is a factor of every cost alike and so decides nothing: it is 1. Removal may delay
    somebody for the gain of others, within his slack; under ascending scheduled time it delays
    nobody but jobs of priority minus infinity.
Jobs whose requested time is up (section 4.7)
    Under ``kill-blocking`` they go on, planned to end now at every moment, until a job is due that
    fits only without them; then as few are killed as must be, those first that are over for
    longest. Under ``extend`` each is looked at when its time is up, in order of start, after other
    ends of that second have been used (else what these gain would count for the extension): a job
    of a tenth of its requested time (rounded up) and its own processors is inserted at now and
    nowhere else. Its priority is that of a new job of its user (SP = 1/2): the job's own is 0 if it
    started at once, and with that every delay of others would cost infinitely much. If the price is
    below processors^alpha_u x requested time^alpha_t, it is done, else the job is killed; when the
    extension is over, likewise. Nobody's promise is broken by either.
Jobs that outlive their estimates
    Their claims grow, and the plan may not be possible any more. Then all are planned anew in order
    of planned start, each at its earliest place: a promise may be broken by that, and only by that.
    What is left of the slack is then negative: such a job may be moved up, but not delayed. One
    that has outlived every estimate is planned to end now, as in `foretime_sim.reference.plans`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from foretime_sim.policies.slack import INFINITE_SLACK, InsertionOrder, SlackSettings
from foretime_sim.policies.slack_rules import DUMMY_PRIORITY
from foretime_sim.reference.profile import Profile

# Priority and slack (section 4.3)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A waiting job as the plan has it; times in seconds.

    Attributes
    ----------
    rank
        Its place in the order of arrival: its name here.
    processors, time
        What it takes, and for how long.
    priority
        p; minus infinity if a quota is exceeded.
    start
        t_e, its planned start; not yet of any meaning for a job to be inserted.
    initial_slack
        s_0; `INFINITE_SLACK` if it has no bound.
    slack
        s, which is latest start - planned start; negative if that promise has been broken.
    """

    rank: int
    processors: int
    time: int
    priority: float
    start: int
    initial_slack: int
    slack: int

    @property
    def quota_exceeded(self) -> bool:
        """Whether it may delay nobody."""
        return self.priority == -math.inf


# Price (sections 4.2 and 4.4)


def own_price(settings: SlackSettings, wait_s: int, processors: int) -> float:
    """Give the price of a new job that is to wait for this long, or of killing one that ran so."""
    return math.pow(wait_s, settings.time_weight) * math.pow(
        processors, settings.utilization_weight
    )


def cost(settings: SlackSettings, job: PlannedJob, moved_by_s: int, for_priority: float) -> float:
    """Give the cost of moving a job by this much for a new one of some priority.

    Positive if it is delayed, infinite if it may not be, negative if it is moved up.
    """
    if moved_by_s == 0:
        return 0.0
    if moved_by_s > max(job.slack, 0) or (moved_by_s > 0 and for_priority == -math.inf):
        return math.inf
    size = math.pow(job.processors, settings.utilization_weight)
    size *= math.pow(abs(moved_by_s), settings.time_weight)
    size *= math.pow(_relative_priority(job.priority, for_priority), settings.priority_weight)
    size *= math.pow(_used_up(job), settings.priority_weight * settings.fairness_weight)
    return math.copysign(size, moved_by_s)


def _relative_priority(moved: float, new: float) -> float:
    """Give j_i.p / j.p."""
    moved, new = max(moved, 0.0), max(new, 0.0)
    if new == 0:
        return 1.0 if moved == 0 else math.inf
    return moved / new


def _used_up(job: PlannedJob) -> float:
    """Give j_i.s_0 / j_i.s."""
    if job.slack == job.initial_slack or job.initial_slack == INFINITE_SLACK:
        return 1.0
    return job.initial_slack / max(job.slack, 1)


@dataclass(frozen=True, slots=True)
class PricedSchedule:
    """A way to plan the waiting jobs; the smallest ``(price, moved, slot)`` is taken.

    Attributes
    ----------
    price
        Finite.
    moved
        How many jobs are not where they were.
    slot
        Where the new job is, or from where on jobs were taken out.
    starts
        Planned start by rank: of all waiting jobs, and of the new one.
    """

    price: float
    moved: int
    slot: int
    starts: dict[int, int]

    @property
    def place(self) -> tuple[float, int, int]:
        """Smallest first."""
        return self.price, self.moved, self.slot


# The plan (sections 4.2, 4.5 and 4.6)


class SlackPlan:
    """The plan of the waiting jobs at one moment.

    Parameters
    ----------
    settings
        Weights and insertion order.
    now
        CT.
    profile_of_claims
        Makes a profile of all that can't be moved: running jobs and advance reservations.
    claim_times
        When such a claim starts or ends.
    waiting
        Jobs with a planned start.
    """

    def __init__(
        self,
        settings: SlackSettings,
        now: int,
        profile_of_claims: Callable[[], Profile],
        claim_times: Iterable[int],
        waiting: Sequence[PlannedJob],
    ) -> None:
        self.settings = settings
        self.now = now
        self.profile_of_claims = profile_of_claims
        self.claim_times = list(claim_times)
        self.waiting = list(waiting)

    def insert(self, new: PlannedJob) -> dict[int, int]:
        """Give the planned starts by rank that are best with a new job, its own among them."""
        best = min(self.schedules_with(new), key=lambda schedule: schedule.place)
        return self.compressed(best.starts, new) if best.moved else best.starts

    def extend(self, job: PlannedJob, worth: float) -> dict[int, int] | None:
        """Give the planned starts that let a running job go on now, if it is worth their price.

        Section 4.7: the job is a new one that can start now only. ``None`` if that costs as much as
        it is worth, or more.
        """
        at_once = [s for s in self.schedules_with(job) if s.starts[job.rank] == self.now]
        best = min(at_once, key=lambda schedule: schedule.place, default=None)
        if best is None or best.price >= worth:
            return None
        return self.compressed(best.starts, job) if best.moved else best.starts

    def remove(self) -> dict[int, int]:
        """Give the planned starts by rank that are best after an unexpected end."""
        best = min(self.schedules_without(), key=lambda schedule: schedule.place)
        return self.compressed(best.starts)

    def remade(self) -> dict[int, int]:
        """Give planned starts when the present ones are not possible any more."""
        order = sorted(self.waiting, key=lambda job: (job.quota_exceeded, job.start, job.rank))
        return self.put_back(order, self.profile_of_claims())

    def schedules_with(self, new: PlannedJob) -> Iterator[PricedSchedule]:
        """Go through the schedules that have a price when a job comes."""
        everything = self.profile_with(self.waiting)
        start = self.earliest(everything, new)
        starts = {job.rank: job.start for job in self.waiting} | {new.rank: start}
        price = own_price(self.settings, start - self.now, new.processors)
        yield PricedSchedule(price, 0, start, starts)
        if new.quota_exceeded:
            return
        for slot in self.slots():
            profile = self.profile_with(self.before(slot))
            if profile.earliest_fit(slot, new.time, new.processors) != slot:
                continue
            profile.reserve(slot, new.time, new.processors)
            price = own_price(self.settings, slot - self.now, new.processors)
            schedule = self.priced(slot, profile, price, new.priority)
            if schedule is not None:
                schedule.starts[new.rank] = slot
                yield schedule

    def schedules_without(self) -> Iterator[PricedSchedule]:
        """Go through the schedules that have a price when a job has ended early."""
        starts = {job.rank: job.start for job in self.waiting}
        yield PricedSchedule(0.0, 0, self.now, starts)
        for slot in self.slots():
            profile = self.profile_with(self.before(slot))
            schedule = self.priced(slot, profile, 0.0, DUMMY_PRIORITY)
            if schedule is not None:
                yield schedule

    def slots(self) -> list[int]:
        """Give the moments at which a new job is tried."""
        times = {self.now, *self.claim_times}
        for job in self.waiting:
            times |= {job.start, job.start + job.time}
        return sorted(time for time in times if time >= self.now)

    def before(self, slot: int) -> list[PlannedJob]:
        """Give the jobs that stay when one is tried at a slot."""
        return [job for job in self.waiting if job.start < slot]

    def order(self, slot: int, for_priority: float) -> list[PlannedJob]:
        """Give the other jobs in the order in which they are put back."""
        out = [job for job in self.waiting if job.start >= slot]

        def place(job: PlannedJob) -> tuple[float, ...]:
            match self.settings.insertion_order:
                case InsertionOrder.AST:
                    return job.quota_exceeded, job.start, job.rank
                case InsertionOrder.AAT:
                    return job.quota_exceeded, job.rank
                case InsertionOrder.DU:
                    return job.quota_exceeded, -job.processors * job.time, job.rank
                case InsertionOrder.DC:
                    second = cost(self.settings, job, 1, for_priority)
                    return job.quota_exceeded, -second, job.rank
                case InsertionOrder.DP:
                    return job.quota_exceeded, -job.priority, job.rank

        return sorted(out, key=place)

    def priced(
        self, slot: int, profile: Profile, price: float, for_priority: float
    ) -> PricedSchedule | None:
        """Put jobs back and give the price of what comes of it; ``None`` if it is infinite."""
        order = self.order(slot, for_priority)
        put_back = self.put_back(order, profile)
        for job in order:
            price += cost(self.settings, job, put_back[job.rank] - job.start, for_priority)
        if price == math.inf:
            return None
        starts = {job.rank: job.start for job in self.waiting} | put_back
        moved = sum(starts[job.rank] != job.start for job in order)
        return PricedSchedule(price, moved, slot, starts)

    def put_back(self, order: Iterable[PlannedJob], profile: Profile) -> dict[int, int]:
        """Give each job in turn the earliest place that is left."""
        starts = {}
        for job in order:
            starts[job.rank] = start = self.earliest(profile, job)
            profile.reserve(start, job.time, job.processors)
        return starts

    def compressed(self, starts: dict[int, int], new: PlannedJob | None = None) -> dict[int, int]:
        """Move jobs up as far as they go, in order of planned start; nobody becomes later."""
        jobs = [*self.waiting, new] if new else self.waiting
        order = sorted(jobs, key=lambda job: (starts[job.rank], job.rank))
        return self.put_back(order, self.profile_of_claims())

    def profile_with(self, jobs: Iterable[PlannedJob]) -> Profile:
        """Give what is claimed when these jobs are where they are planned."""
        profile = self.profile_of_claims()
        for job in jobs:
            profile.reserve(job.start, job.time, job.processors)
        return profile

    def earliest(self, profile: Profile, job: PlannedJob) -> int:
        """Find the earliest place for a job."""
        start = profile.earliest_fit(self.now, job.time, job.processors)
        if start is None:
            raise ValueError(f"job {job.rank} never fits, though every claim ends")
        return start
