"""Switching between queue orders while a scheduler plans: dynP (Streit 2002, sections 2, 3 and 6).

The specification; `foretime_sim.reference.dynp` is the same in plain Python.

**When.** In each scheduling pass with somebody waiting, before anything is planned, a decider may
be asked; then every waiting job is planned, in the order that is current now, as under
`Backfill.PLANNING`, and those start whose time has come. To be asked is a *try*:

- ``simple`` and ``advanced``: when at least 2 jobs wait, those that have just arrived included.
  ("Self-tuning only makes sense when more than one job is in the schedule and not yet running",
  section 5.2: with one job waiting at a submission there would be 10,000 tries or more in table 5,
  where SDSC_syn has 509 with 6.36 jobs waiting at them.)
- ``basic``: when at least 5 wait and one of them arrived since the last pass (it has no planned
  start yet).
- ``voting``: when anybody waits.

`PolicySwitching.least_waiting` sets another number. A pass follows every event, or under
`EventOrder.PER_TIMESTEP` all those of one second (the paper's simulator reschedules at each).

**basic** (section 3.1). With AERT the mean t_sched(queue) of the waiting jobs: SJF if it is at most
``lower_bound_s``, else FCFS if it is at most ``upper_bound_s``, else LJF. (t_sched is at least 1,
so AERT is never 0.) The comparison is exact.

**voting** (Ramme and Gehring's implicit voting system, section 2; FFIH is SJF, FFDH is LJF). The
system is saturated if its running and waiting jobs ask for more than ``saturation`` times its
processors, in double precision, processors that are claimed from outside now counting as asked for.
If it is not: FCFS. Else SJF if more of the waiting jobs are interactive, with a t_sched(queue) of
at most ``interactive_s``, LJF if more are not, and if as many, the current order stays. (The paper
has no bounds and says "in the system"; a running job has nothing to vote for any more.)

**Self-tuning** (section 3.2). The waiting jobs are planned in each of ``orders``, as they would be
if it were current, and each schedule has a quality (`Quality`), the lower the better. The best are
those with the lowest, found exactly, in whole numbers.

- ``simple``: the first of the best in the order of ``orders``. With (FCFS, SJF, LJF) that is the
  paper's.
- ``advanced``: the current order if it is among the best, else the first of them. With (FCFS, SJF,
  LJF) that is each row of table 1.

**Reduced future** (section 6). A schedule's quality counts its first ``first_starts`` jobs by
planned start (ties by the place in that order's queue), or those that start within ``horizon_s``
from now. Each schedule has its own. One that starts nobody within the horizon is worse than any
that does, whatever the quality: its quality is infinite.

**Combined quality** (section 6). ``quality`` may be several with weights. Each is divided by that
of the current order's schedule, and the weighted sum counts: sum(weight * (q / q_current)), in the
order given and in double precision, with q and q_current each as double(numerator) /
double(denominator). 0 / 0 is 1, q / 0 is infinite; where nobody starts within the horizon q is
infinite, and infinite by infinite is 1.

**Slackness** (section 6). What the decider chooses only becomes current if it is better by this
share: q <= (1 - slackness) * q_current, in double precision as above (of a combined quality
q_current is the sum of the weights, added in their order). Not asked where slackness is 0. Cases
are counted by the qualities as they are.

**One list** (``one_list``; not in the paper's text, but what its tables look like). All the above
takes each order for what its name says. Here the waiting jobs are one list: who arrives is put
last, to plan in SJF or LJF sorts it (jobs with the same t_sched(queue) keep their places), to plan
in FCFS leaves it as it is, whatever it was sorted by last. At a try the schedules are made in the
order FCFS, SJF, LJF, but SJF, FCFS, LJF while LJF is current; then, as in each pass without a try,
everybody is planned in the order that is current now, which sorts once more. So FCFS mostly has the
schedule of SJF while it is compared, and that of LJF, which sorted last, when it is run.

**Counted** (`switching_counters`). The case of table 1 is counted at each self-tuning try with
three orders: the first is the table's FCFS, the second its SJF, the third its LJF. Case 5 is the
same as 4b, and counts as that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.order import Order

DYNP = "dynp"
"""What names of settings begin with, where a queue order is named."""
ORDERS_OF_DYNP = (Order.FCFS, Order.SJF, Order.LJF)

TABLE_1_CASES = (
    *("1", "2", "3", "4a", "4b", "4c", "6a", "6b", "6c"),
    *("7", "8a", "8b", "8c", "9", "10a", "10b", "10c"),
)
"""The cases of table 1. Its case 5 is 4b; where it also gives 7 or 9, which are special cases of 2
and 3, that is what is counted: 2 and 3 are those that are left."""


class Decider(NamedChoice):
    """Decider: what chooses the queue order that becomes current."""

    BASIC = "basic"
    """By two bounds on the mean estimated runtime of the waiting jobs."""
    VOTING = "voting"
    """By whether more short or more long jobs wait (the implicit voting system)."""
    SIMPLE = "simple"
    """Self-tuning: the first of those orders with the best schedule."""
    ADVANCED = "advanced"
    """Self-tuning: the same, but the current order stays if it is among the best."""


class Quality(NamedChoice):
    """Quality: of a planned schedule, lower is better; an exact fraction of whole numbers.

    Over the waiting jobs that count, with start and end as planned now (end = start + t_sched in
    its backfill role, or + the time limit beside advance reservations). Running jobs end at the
    same time in every schedule; means leave them out, the makespan does not. w is a job's
    processors.
    """

    MAKESPAN = "makespan"
    """From now until the last of these and of the running jobs has ended, as expected."""
    ART = "art"
    """Average response time: sum(end - submit) / jobs."""
    ARTWW = "artww"
    """The same weighted by width: sum(w * (end - submit)) / sum(w)."""
    WAIT = "wait"
    """sum(start - submit) / jobs."""
    WAITWW = "waitww"
    """sum(w * (start - submit)) / sum(w)."""
    SLOWDOWN = "slowdown"
    """sum(s) / jobs, with s = max(end - submit, bound) / max(end - start, bound) in millionths,
    rounded down, so that sums are exact; the bound is ``slowdown_bound_s``."""
    SLDWW = "sldww"
    """sum(w * s) / sum(w)."""

    @classmethod
    def parse_weighted(cls, text: str) -> Quality | tuple[tuple[Quality, float], ...]:
        """Read ``artww``, or several with weights: ``2*artww+makespan``.

        Raises
        ------
        InputError
            If there is no such quality, or a weight is no number above 0.
        """
        weighted = []
        for part in text.split("+"):
            weight, times, name = part.rpartition("*")
            try:
                weighted.append((cls.parse(name), float(weight) if times else 1.0))
            except ValueError:
                raise InputError(
                    f"quality {text!r}: the weight {weight!r} of {name} is no number; write"
                    " 2*artww+makespan"
                ) from None
        for quality, share in weighted:
            _check_weight(quality, share)
        return weighted[0][0] if len(weighted) == 1 else tuple(weighted)


def is_switched(text: str) -> bool:
    """Say whether the name of a queue order is one for `PolicySwitching.parse`."""
    name = text.strip().lower()
    return name.startswith(DYNP) and ":" not in name


SELF_TUNING = (Decider.SIMPLE, Decider.ADVANCED)
_NUMBERS: dict[str, type[int] | type[float]] = {
    "lower_bound_s": int,
    "upper_bound_s": int,
    "least_waiting": int,
    "slackness": float,
    "first_starts": int,
    "horizon_s": int,
    "slowdown_bound_s": int,
    "interactive_s": int,
    "saturation": float,
}
_LEAST_WAITING = {Decider.BASIC: 5, Decider.VOTING: 1, Decider.SIMPLE: 2, Decider.ADVANCED: 2}


@dataclass(frozen=True, slots=True)
class PolicySwitching:
    """How a scheduler switches between queue orders; see the module.

    Attributes
    ----------
    decider
        What chooses.
    orders
        Between which; at least two. ``basic`` and ``voting`` know FCFS, SJF and LJF alone.
        `Policy.order` is the one to begin with, and must be one of them.
    quality
        Of self-tuning, or several with their weights, each above 0.
    lower_bound_s, upper_bound_s
        Of ``basic``, seconds (Streit 2001).
    least_waiting
        Fewest jobs waiting at which the decider is asked; ``None`` for its own: 5 for ``basic``, 1
        for ``voting``, 2 for self-tuning.
    slackness
        By what share a new order must be better, from 0 to below 1.
    first_starts, horizon_s
        Reduced future: only so many jobs, or those that start within so many seconds, count. At
        most one of them.
    slowdown_bound_s
        Bound of the slowdown, seconds, at least 1.
    interactive_s, saturation
        Of ``voting``: the longest t_sched(queue) of an interactive job, seconds; the share of the
        machine that more must be asked for than.
    one_list
        Whether the queue is one list, which FCFS does not sort. Of self-tuning between FCFS, SJF
        and LJF, in whole runs.

    Examples
    --------
    >>> from foretime_sim.policies.policy_switching import PolicySwitching
    >>> switching = PolicySwitching.parse("dynp-simple/slackness=0.05")
    >>> switching.slackness, str(switching)
    (0.05, 'dynp-simple-artww/slackness=0.05')
    """

    decider: Decider = Decider.ADVANCED
    orders: tuple[Order, ...] = ORDERS_OF_DYNP
    quality: Quality | tuple[tuple[Quality, float], ...] = Quality.ARTWW
    lower_bound_s: int = 7200
    upper_bound_s: int = 9000
    least_waiting: int | None = None
    slackness: float = 0.0
    first_starts: int | None = None
    horizon_s: int | None = None
    slowdown_bound_s: int = 60
    interactive_s: int = 3600
    saturation: float = 1.0
    one_list: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name, as `str` gives it: ``dynp-DECIDER-QUALITY/setting=value/...``.

        All but ``dynp`` may be left out; ``basic`` and ``voting`` have no quality. Several
        qualities are ``2*artww+makespan``, several orders ``orders=fcfs+sjf+xf``; the other
        settings have the names of the attributes, with ``-``: ``dynp-simple/slackness=0.05``.

        Raises
        ------
        InputError
            If a part is unknown or impossible.
        """
        name, *given = text.strip().lower().split("/")
        try:
            return cls(**cls._settings(name, given))
        except InputError as error:
            raise InputError(f"{text!r}: {error}") from None

    @staticmethod
    def _settings(name: str, given: list[str]) -> dict[str, Any]:
        beginning, *parts = name.split("-", 2)
        if beginning != DYNP:
            raise InputError(f"no {DYNP}; write {DYNP}-DECIDER-QUALITY/setting=value")
        settings: dict[str, Any] = {}
        if parts:
            settings["decider"] = Decider.parse(parts[0])
        if len(parts) == 2:
            if settings["decider"] not in SELF_TUNING:
                raise InputError(f"the decider {parts[0]} looks at no quality; leave it out")
            settings["quality"] = Quality.parse_weighted(parts[1])
        for setting in given:
            key, equals, value = setting.partition("=")
            field = key.strip().replace("-", "_")
            if field == "orders":
                settings[field] = tuple(Order.parse(order) for order in value.split("+"))
            elif field == "one_list":
                if equals:
                    raise InputError(f"{setting}: write {key} without a value")
                settings[field] = True
            elif field in _NUMBERS:
                settings[field] = _number(key, value, _NUMBERS[field])
            else:
                names = ", ".join(
                    name.replace("_", "-") for name in ("orders", *_NUMBERS, "one_list")
                )
                raise InputError(f"unknown setting {key!r}; there are {names}")
        return settings

    def __str__(self) -> str:
        name = f"{DYNP}-{self.decider}"
        if self.tunes_itself:
            weighted = (
                f"{weight:g}*{quality}" if weight != 1 else str(quality)
                for quality, weight in self.weighted_qualities
            )
            name += f"-{'+'.join(weighted)}"
        defaults = PolicySwitching()
        if self.orders != defaults.orders:
            name += f"/orders={'+'.join(str(order) for order in self.orders)}"
        for field in _NUMBERS:
            if (value := getattr(self, field)) != getattr(defaults, field):
                name += f"/{field.replace('_', '-')}={value:g}"
        return f"{name}/one-list" if self.one_list else name

    @property
    def first_order(self) -> Order:
        """The order to begin with, where nobody says: FCFS, or the first where that is not one."""
        return Order.FCFS if Order.FCFS in self.orders else self.orders[0]

    @property
    def tunes_itself(self) -> bool:
        """Whether schedules are compared."""
        return self.decider in SELF_TUNING

    @property
    def weighted_qualities(self) -> tuple[tuple[Quality, float], ...]:
        """The qualities with their weights, in order."""
        if isinstance(self.quality, Quality):
            return ((self.quality, 1.0),)
        return self.quality

    @property
    def asked_from(self) -> int:
        """Fewest jobs waiting at which the decider is asked."""
        return _LEAST_WAITING[self.decider] if self.least_waiting is None else self.least_waiting

    def __post_init__(self) -> None:
        self._check_orders()
        self._check_bounds()
        self._check_quality()

    def _check_orders(self) -> None:
        names = ", ".join(str(order) for order in self.orders)
        if any(not isinstance(order, Order) for order in self.orders):
            raise InputError(f"orders are {names}: only built-in queue orders can be switched")
        if len(self.orders) < 2 or len(set(self.orders)) < len(self.orders):
            raise InputError(f"orders are {names or 'none'}: give two or more, each once")
        if not self.tunes_itself and set(self.orders) != set(ORDERS_OF_DYNP):
            raise InputError(
                f"orders are {names}: the decider {self.decider} switches between fcfs, sjf and"
                " ljf; take simple or advanced for others"
            )
        if self.one_list and not (self.tunes_itself and self.orders == ORDERS_OF_DYNP):
            raise InputError(
                "one_list: only of the deciders simple and advanced, with fcfs, sjf and ljf in this"
                " order"
            )

    def _check_bounds(self) -> None:
        for name in ("lower_bound_s", "slowdown_bound_s", "interactive_s"):
            if (value := getattr(self, name)) < 1:
                raise InputError(f"{name} is {value}: give 1 s or more")
        if self.upper_bound_s < self.lower_bound_s:
            raise InputError(
                f"upper_bound_s is {self.upper_bound_s}, below lower_bound_s,"
                f" {self.lower_bound_s}: give at least that"
            )
        if self.least_waiting is not None and self.least_waiting < 1:
            raise InputError(f"least_waiting is {self.least_waiting}: give 1 job or more")
        if not 0 <= self.saturation < math.inf:
            raise InputError(f"saturation is {self.saturation}: give a share of 0 or more")

    def _check_quality(self) -> None:
        weighted = self.weighted_qualities
        if not weighted or len({quality for quality, _ in weighted}) < len(weighted):
            raise InputError("quality: give one, or several with weights, each once")
        for quality, weight in weighted:
            _check_weight(quality, weight)
        if not 0 <= self.slackness < 1:
            raise InputError(
                f"slackness is {self.slackness}: give a share from 0 to below 1, such as 0.05"
            )
        if self.first_starts is not None and self.horizon_s is not None:
            raise InputError("first_starts and horizon_s: give one of them, or neither")
        if self.first_starts is not None and self.first_starts < 1:
            raise InputError(f"first_starts is {self.first_starts}: give 1 job or more")
        if self.horizon_s is not None and self.horizon_s < 0:
            raise InputError(f"horizon_s is {self.horizon_s}: give 0 s or more")


def _check_weight(quality: Quality, weight: float) -> None:
    if not 0 < weight < math.inf:
        raise InputError(f"quality: the weight of {quality} is {weight}: give one above 0")


def _number(key: str, value: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(value)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{key}={value}: give {what}") from None
