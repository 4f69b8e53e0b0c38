"""Backfilling families, each a dataclass of its own settings.

`Backfill` has each with its defaults. Who adds one adds it there: names on the command line, in
campaigns and in settings follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self, TypeVar

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.backfilling import Backfilling, CoreSetting, Place
from foretime_sim.policies.choices import NamedChoice, unknown_name
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.policies.python_policy import PythonBackfill
from foretime_sim.policies.slack import Overruns, SlackSettings


@dataclass(frozen=True, slots=True)
class NoBackfilling(Backfilling):
    """Nothing starts before the head job."""

    @property
    def name(self) -> str:
        """Without settings."""
        return "none"

    @property
    def head_only(self) -> bool:
        """Nobody else is planned."""
        return True

    @property
    def on_blue_genes(self) -> bool:
        """It needs no plan."""
        return True

    def guarded(self, guard: Guard | None) -> Self:
        """Give itself: nothing can go before the head job, so the guard has nothing to do."""
        del guard
        return self


class Candidates(NamedChoice):
    """Candidates: the order in which those that may start before the head job are gone through."""

    QUEUE = "queue"
    """That of the queue."""
    SJBF = "sjbf"
    """Smallest t_sched(backfill) first, ties in log order."""
    WSPT = "wspt"
    """Smallest t_sched(queue) first, ties in log order: what orders jobs may differ from what must
    fit before the head job. By Smith's rule (1956, weighted shortest processing time) mean slowdown
    is least if the smallest E[runtime] / E[1 / runtime] goes first: a job's slowdown grows by
    E[1 / runtime] for each second that it waits, and it keeps its processors from others for
    E[runtime]. t_sched(queue) is the square root of that ratio."""


@dataclass(frozen=True, slots=True)
class Easy(Backfilling):
    """In some order, whatever does not delay the planned start of the first jobs that have to wait.

    Attributes
    ----------
    candidates
        See `Candidates`.
    depth
        How many jobs hold a reservation at once, at least 1 (PBS's ``backfill_depth``; Slurm's
        ``bf_max_job_test`` bounds the same from above). In queue order jobs start or get a
        reservation, anew in every pass; behind the last reservation only such jobs start as delay
        none of them.
    guard
        Starvation guard; with a depth of 1 only, as elsewhere more than the head job is protected.
    ageing_s
        Of candidates with an order of their own: the time that orders one counts as
        time / (1 + wait / ageing_s), at least 1 second, so that those that have waited for long are
        not passed over by shorter ones for ever; ``None``: the time alone. With a depth of 1, on a
        flat pool without advance reservations.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.policies.families import Easy
    >>> Policy(backfill=Easy(depth=4)).backfill.depth
    4
    """

    candidates: Candidates = Candidates.QUEUE
    depth: int = 1
    guard: Guard | None = None
    ageing_s: int | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError(
                f"depth is {self.depth}: give 1 or more; without reservations it is first-fit"
            )
        if self.depth > 1 and self.guard is not None:
            Backfilling.guarded(self, self.guard)
        if self.ageing_s is None:
            return
        given = f"ageing_s is {self.ageing_s}:"
        if self.ageing_s < 1:
            raise InputError(f"{given} give 1 s or more")
        if not self.sorts_candidates or self.depth > 1:
            raise InputError(f"{given} {_ONLY['ageing_s']}, not those of {self.described}")

    @property
    def sorts_candidates(self) -> bool:
        """Whether candidates have an order of their own."""
        return self.candidates is not Candidates.QUEUE

    @property
    def name(self) -> str:
        """One for each order of candidates."""
        return f"easy-{self.candidates}" if self.sorts_candidates else "easy"

    @property
    def described(self) -> str:
        """With the depth."""
        return f"{self.name} with a depth of {self.depth}" if self.depth > 1 else self.name

    @property
    def shown(self) -> dict[str, str | int]:
        """The depth."""
        return {"depth": self.depth}

    @property
    def core_settings(self) -> Mapping[str, CoreSetting | None]:
        """The depth and the ageing; candidates are in the name."""
        return {"depth": self.depth, "ageing_s": self.ageing_s}

    @property
    def head_only(self) -> bool:
        """With a depth of 1."""
        return self.depth == 1

    @property
    def starts_as_planned(self) -> bool:
        """With a greater depth."""
        return self.depth > 1

    @property
    def on_blue_genes(self) -> bool:
        """Draining for the head job; candidates in queue order."""
        return self.name == "easy" and self.depth == 1

    def refusal(self, place: Place) -> str | None:
        """Say where no plain EASY can run beside, and where no candidates age."""
        flat = place not in (Place.NODES, Place.RESERVATIONS)
        if self.guard is not None and self.guard.runs_beside and (place.knows_no_past or not flat):
            return f"guard_by is {self.guard.by}: there is none {place}; take requested-plan"
        if self.ageing_s is not None and not flat:
            return f"ageing_s is {self.ageing_s}: nothing ages {place}; leave it out"
        return None

    def guarded(self, guard: Guard | None) -> Self:
        """Give the same with this guard."""
        return replace(self, guard=guard)


@dataclass(frozen=True, slots=True)
class FirstFit(Backfilling):
    """Nobody holds a reservation: in queue order whatever fits now starts; wide jobs may starve."""

    @property
    def name(self) -> str:
        """Without settings."""
        return "first-fit"


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


@dataclass(frozen=True, slots=True)
class Conservative(Backfilling):
    """Every job holds a reservation, made at its submission and kept (Mu'alem and Feitelson).

    See Talby and Feitelson 1999, section 3.2, too. The queue order only decides among jobs that
    arrive together.

    Examples
    --------
    >>> from foretime_sim.policies.families import Conservative
    >>> str(Conservative())
    'conservative'
    """

    compression: Compression = Compression.RESERVATION_ORDER

    plans_every_job: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The same for every compression."""
        return "conservative"

    @property
    def shown(self) -> dict[str, str | int]:
        """The compression."""
        return {"compression": str(self.compression)}

    @property
    def core_settings(self) -> Mapping[str, CoreSetting | None]:
        """The compression."""
        return {"compression": self.compression}


@dataclass(frozen=True, slots=True)
class Planning(Backfilling):
    """Every job is planned, in queue order and anew in every pass (Streit 2002, section 3).

    Attributes
    ----------
    switching
        Between which queue orders it switches (`foretime_sim.policies.policy_switching`), beginning
        with the policy's; ``None``: that is the order for good. On a flat pool.
    """

    switching: PolicySwitching | None = None

    plans_every_job: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The same for every switching."""
        return "planning"

    def refusal(self, place: Place) -> str | None:
        """Say where orders can't be switched, and where not in one list."""
        if self.switching is None:
            return None
        if place is Place.NODES:
            return f"{self.switching}: no switching between orders {place}"
        if self.switching.one_list and place in (Place.STEPS, Place.FORWARD):
            return f"{self.switching}: no one-list {place}, only in whole runs"
        return None


@dataclass(frozen=True, slots=True)
class Slack(Backfilling):
    """Every job holds a reservation and a slack, by which it may be delayed for others at a price.

    Talby and Feitelson 1999, section 4; see `foretime_sim.policies.slack`. The queue order only
    decides among jobs that arrive together.
    """

    settings: SlackSettings = field(default_factory=SlackSettings)

    plans_every_job: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The same for all settings."""
        return "slack"

    @property
    def shown(self) -> dict[str, str | int]:
        """All settings."""
        return {"slack": str(self.settings)}

    @property
    def core_settings(self) -> Mapping[str, CoreSetting | None]:
        """All settings, each by its name."""
        return {each.name: getattr(self.settings, each.name) for each in fields(self.settings)}

    def refusal(self, place: Place) -> str | None:
        """Say where nobody knows what has been promised, and where no job outruns its request."""
        if place is Place.NODES or place.knows_no_past:
            return (
                f"backfilling is slack: there is none {place}; take conservative, which promises"
                " starts without slack"
            )
        held = place in (Place.RESERVATIONS, Place.TIME_LIMITS, Place.STEPS)
        if held and self.settings.overruns is not Overruns.KILL:
            return f"overruns is {self.settings.overruns}: jobs can't overrun {place}; take kill"
        return None


class Backfill:
    """The families with their defaults, as in ``Policy(backfill=Backfill.EASY_SJBF)``.

    ``Easy(depth=4)`` and its like give them settings.

    Examples
    --------
    >>> from foretime_sim import Backfill, Policy
    >>> str(Backfill.EASY_SJBF), str(Backfill.CONSERVATIVE)
    ('easy-sjbf', 'conservative')
    >>> Policy(backfill=Backfill.CONSERVATIVE).guard is None
    True
    """

    NONE: Final = NoBackfilling()
    EASY: Final = Easy()
    EASY_SJBF: Final = Easy(Candidates.SJBF)
    EASY_WSPT: Final = Easy(Candidates.WSPT)
    CONSERVATIVE: Final = Conservative()
    PLANNING: Final = Planning()
    SLACK: Final = Slack()
    FIRST_FIT: Final = FirstFit()


FAMILIES: Final[dict[str, Backfilling]] = {
    family.name: family for family in vars(Backfill).values() if isinstance(family, Backfilling)
}
"""By name."""
_Family = TypeVar("_Family", bound=Backfilling)
_ONLY = {
    "depth": "only the kinds of easy have a depth",
    "ageing_s": "only candidates of easy-sjbf and easy-wspt with a depth of 1 age",
    "compression": "only conservative backfilling compresses",
    "switching": "orders are switched only under the backfilling planning",
    "settings": "only slack backfilling has a slack",
}
"""Whose setting it is, for those who write settings of all families down side by side."""
_UNSAID = {"depth": 1, "compression": Compression.RESERVATION_ORDER}
"""What options are at where nothing was said."""


def family_named(name: str) -> Backfilling:
    """Find a family by its name: in any case, with ``-`` or ``_``.

    Raises
    ------
    InputError
        If there is none of that name; it says what there is.
    """
    folded = name.strip().lower().replace("_", "-")
    if folded not in FAMILIES:
        raise InputError(unknown_name("backfilling", name, tuple(FAMILIES)))
    return FAMILIES[folded]


def parse_backfill(text: str) -> Backfilling:
    """Read a backfilling family: one by name, or ``module:attribute`` of the user's own.

    Raises
    ------
    InputError
        If there is none of that name, or it can't be loaded; it says what there is.
    """
    if ":" in text:
        return PythonBackfill.load(text)
    try:
        return family_named(text)
    except InputError as error:
        raise InputError(f"{error}, or module:attribute of your own") from None


def has_setting(family: Backfilling, setting: str) -> bool:
    """Say whether a family has a setting of that name."""
    return setting in {each.name for each in fields(family)}


def with_settings(family: _Family, *, guard: Guard | None = None, **given: object) -> _Family:
    """Give a family with settings as they were written down, each beside all others.

    Parameters
    ----------
    guard
        Starvation guard.
    given
        Settings of any family; ``None``, a depth of 1 and the default compression say nothing.

    Raises
    ------
    InputError
        If a setting is of another family, or two of them exclude each other.
    """
    said = {name: value for name, value in given.items() if value is not None}
    for name, value in said.items():
        if not has_setting(family, name) and value != _UNSAID.get(name):
            said_of = "slack" if name == "settings" else name
            raise InputError(f"{said_of} is {value}: {_ONLY[name]}, not {family}: leave it out")
    own: dict[str, Any] = {name: value for name, value in said.items() if has_setting(family, name)}
    settled = replace(family, **own)
    return settled if guard is None else settled.guarded(guard)
