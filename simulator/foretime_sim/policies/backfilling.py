"""What every backfilling family is asked: what it can do, and where it can't be."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.guard import Guard

CoreSetting = bool | int | float | str | NamedChoice
"""What a setting of a family can be in the native core; a choice goes over as its name."""


class Place(enum.Enum):
    """Where not every family can be, nor every setting of one; the value is how a message says it.

    The last three are of runs that do not know all of what has been before them.
    """

    NODES = "on a machine of nodes or partitions of a Blue Gene"
    RESERVATIONS = "beside advance reservations"
    TIME_LIMITS = "with time limits of their own"
    STEPS = "step by step"
    FORWARD = "in forward runs"
    PENDING_BEFORE = "with jobs that came before the engine"
    RUNNING_BEFORE = "with jobs that began before the engine"

    def __str__(self) -> str:
        return self.value

    @property
    def knows_no_past(self) -> bool:
        """Whether jobs may have been there before that nothing is known of."""
        return self in (Place.FORWARD, Place.PENDING_BEFORE, Place.RUNNING_BEFORE)


@dataclass(frozen=True, slots=True)
class Backfilling:
    """Backfilling: which waiting jobs hold a reservation, and what may start before them.

    A family is a dataclass of its own settings; what it can do is asked of it.

    Attributes
    ----------
    plans_every_job
        Whether each job has a planned start from its first pass on.
    """

    plans_every_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """As it is called on the command line, in files and by the core."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name

    @property
    def described(self) -> str:
        """The name, with what else tells what it is."""
        return self.name

    @property
    def shown(self) -> dict[str, str | int]:
        """The settings that reports show, by their titles."""
        return {}

    @property
    def core_settings(self) -> Mapping[str, CoreSetting | None]:
        """What the native core is told besides the name; ``None``: nothing of that setting."""
        return {}

    @property
    def head_only(self) -> bool:
        """Whether at most the head job is protected: there a starvation guard has a meaning."""
        return False

    @property
    def starts_as_planned(self) -> bool:
        """Whether planned starts are events: jobs start at the very second they are planned for."""
        return self.plans_every_job

    @property
    def on_blue_genes(self) -> bool:
        """Whether it is there on a Blue Gene."""
        return False

    def refusal(self, place: Place) -> str | None:
        """Say why it can't be somewhere; ``None`` if it can."""
        del place
        return None

    @property
    def guard(self) -> Guard | None:
        """The starvation guard."""
        return None

    def guarded(self, guard: Guard | None) -> Self:
        """Give the same family with this starvation guard, or without one.

        Raises
        ------
        InputError
            If there can be none.
        """
        if guard is not None:
            raise InputError(
                f"guard_s is {guard.bound_s}: the starvation guard is for the kinds of easy with a"
                f" depth of 1, not for {self.described}: leave it out"
            )
        return self
