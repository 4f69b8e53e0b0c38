"""Steps of an installation: each says what it does, does it, and may be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import ForetimeError, SchedulerError


@dataclass(slots=True)
class Outcome:
    """What was done, one line each, and what is worth knowing besides."""

    done: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes
    ----------
    shown
        What an administrator reads of it before and after.
    do
        Does it, wholly or not at all.
    undo
        Undoes it if a later step fails; ``None`` if there is nothing to undo.
    """

    shown: str
    do: Callable[[], object]
    undo: Callable[[], object] | None = None


@dataclass(slots=True)
class Undo:
    """What undoes the steps done so far, the last first."""

    steps: list[Callable[[], object]] = field(default_factory=list)

    def run(self) -> str:
        """Undo as much as can be; say what is left, "" if nothing."""
        problems = []
        for step in reversed(self.steps):
            try:
                step()
            except (ForetimeError, OSError) as error:
                problems.append(str(error))
        return f"Undoing it failed, too: {'; '.join(problems)}" if problems else ""


@contextmanager
def all_or_nothing() -> Iterator[Undo]:
    """Undo what was done if one of our errors, or Ctrl-C, ends the block.

    Raises
    ------
    SchedulerError
        In its place; the message says whether anything is left.
    """
    undo = Undo()
    try:
        yield undo
    except (ForetimeError, OSError, KeyboardInterrupt) as error:
        left = undo.run()
        what = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        raise SchedulerError(f"{what}. {left or 'Everything is as it was before.'}") from error


def do_all(steps: Iterable[Step], outcome: Outcome, undo: Undo) -> None:
    """Do steps in their order."""
    for step in steps:
        step.do()
        outcome.done.append(step.shown)
        if step.undo is not None:
            undo.steps.append(step.undo)
