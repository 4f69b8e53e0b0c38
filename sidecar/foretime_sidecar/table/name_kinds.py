"""The kinds of names by which jobs can be left alone: all that the daemon knows of each.

The table file and its checks, the settings ``hook.leave_...`` and the daemon's own judgement follow
from `KINDS`. The hooks have the same kinds: ``kinds`` in foretime.lua, ``KINDS`` in
foretime_hook.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, Protocol, TypeAlias

from foretime_estimators.jobs.jobs import JobRequest

Scheduler: TypeAlias = Literal["slurm", "pbs"]
Names: TypeAlias = frozenset[tuple[str, str]]
"""Names, each with the word of its kind."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class NamedJob(Protocol):
    """What a job's names are read from."""

    @property
    def request(self) -> JobRequest:
        """The job as submitted."""

    @property
    def qos(self) -> str | None:
        """Its QOS, several parted by commas; ``None`` if none."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of names.

    Attributes
    ----------
    word
        As the table file has it.
    plural
        As the settings have it: ``hook.leave_`` and this.
    of_job
        A job's names of this kind, empty ones among them where it has none.
    meaning
        What the setting means, for the documentation.
    only_on
        The scheduler whose jobs have such names; ``None`` for both.
    any_case
        Whether the scheduler finds such names without regard to the case of ASCII letters.
    limits_enforce
        Whether ``enforce`` can be limited to such names: ``hook.enforce_only_`` and the plural.
    """

    word: str
    plural: str
    of_job: Callable[[NamedJob], Iterable[str | None]]
    meaning: str
    only_on: Scheduler | None = None
    any_case: bool = False
    limits_enforce: bool = False


def _parted(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",")]


KINDS = {
    kind.word: kind
    for kind in (
        Kind(
            "user",
            "users",
            of_job=lambda job: [job.request.user],
            meaning="Users whose jobs are left alone.",
        ),
        Kind(
            "account",
            "accounts",
            of_job=lambda job: [job.request.project],
            meaning=(
                "Accounts whose jobs are left alone, besides those that Slurm limits by "
                "GrpTRESMins, GrpTRESRunMins, GrpWall, MaxTRESMins or MaxTRESRunMins, which the "
                "daemon finds."
            ),
            any_case=True,
            limits_enforce=True,
        ),
        Kind(
            "slurm_partition",
            "slurm_partitions",
            of_job=lambda job: _parted(job.request.queue),
            meaning="Partitions whose jobs are left alone.",
            only_on="slurm",
            limits_enforce=True,
        ),
        Kind(
            "qos",
            "qos",
            of_job=lambda job: _parted(job.qos),
            meaning="QOS whose jobs are left alone, besides those with such limits.",
            only_on="slurm",
            any_case=True,
        ),
        Kind(
            "queue",
            "queues",
            of_job=lambda job: [job.request.queue],
            meaning="PBS queues whose jobs are left alone.",
            only_on="pbs",
            limits_enforce=True,
        ),
    )
}
ENFORCE_KINDS = tuple(kind for kind in KINDS.values() if kind.limits_enforce)


def folded(names: Iterable[tuple[str, str]]) -> Names:
    """Give names so that two which the scheduler takes for one are equal."""
    return frozenset(
        (word, name.translate(_LOWER) if KINDS[word].any_case else name) for word, name in names
    )


def names_of(job: NamedJob, scheduler: Scheduler) -> Names:
    """Give every name that a job has on this scheduler, folded."""
    return folded(
        (kind.word, name)
        for kind in KINDS.values()
        if kind.only_on in (None, scheduler)
        for name in kind.of_job(job)
        if name
    )
