"""Orders and backfilling that a user writes in Python, found by name: ``module:attribute``.

What they are given and what they give back is in docs/policies.md;
`foretime_sim.policies.policy_views` has the arrays, and `foretime_sim.policies.policy_calls` asks
them at each pass.
"""

from __future__ import annotations

import difflib
import importlib
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.guard import Guard


@dataclass(frozen=True)
class PythonPolicy:
    """A part of a policy that is written in Python; hashable, and pickled by its name.

    Attributes
    ----------
    function
        What is called at each pass. A class is called once for each run without arguments, so
        that what it remembers never goes from one run into another; what it gives is called then.
    name
        ``module:attribute``, as reports show it; that of the function if empty.
    folder
        Folder on the import path while its module was loaded, ``None`` for a function that was
        given as it is. A process that has not loaded the module looks there, too.
    """

    function: Callable[..., Any]
    name: str = ""
    folder: str | None = field(default=None, compare=False)

    kind: ClassVar[str]
    arguments: ClassVar[str]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"{self.kind} {self.name or repr(self.function)} is of type"
                f" {type(self.function).__name__}, which can't be called: give a function or class"
            )
        if not self.name:
            named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
            name = f"{named.__module__}:{named.__qualname__}"
            object.__setattr__(self, "name", name)

    @classmethod
    def load(cls, name: str, folder: str | Path | None = None) -> Self:
        """Import ``module:attribute``, looking in a folder first.

        Parameters
        ----------
        name
            A module, dotted if it is in a package, and what in it is to be called.
        folder
            Folder where modules are looked for first; the current one if ``None``.

        Raises
        ------
        InputError
            If the module is not found or fails while it is imported, has no such attribute, or
            this can't be called; it says what is there.
        """
        module_name, _, attribute = (part.strip() for part in name.partition(":"))
        parts = [*module_name.split("."), *attribute.split(".")]
        if not all(part.isidentifier() for part in parts):
            raise InputError(
                f"{cls.kind} {name!r}: give a built-in one by its name alone, or your own as"
                f" module:attribute, such as my_module:my_{cls.kind}"
            )
        where = str(Path.cwd() if folder is None else folder)
        with _first_on_path(where):
            module = _imported(module_name, where, f"{cls.kind} {name!r}")
        function: Any = module
        for part in attribute.split("."):
            if not hasattr(function, part):
                raise InputError(f"{cls.kind} {name!r}: {_missing(module, function, part)}")
            function = getattr(function, part)
        return cls(function, f"{module_name}:{attribute}", where)

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is None:
            return type(self), (self.function, self.name)
        return type(self).load, (self.name, self.folder)


@dataclass(frozen=True)
class PythonOrder(PythonPolicy):
    """A queue order: ``order(queue, now)`` gives a score for each waiting job, larger first.

    It is asked at every pass in which a job may start, so it may depend on time. Ties are resolved
    by submission, then by place in the log.
    """

    kind: ClassVar[str] = "order"
    arguments: ClassVar[str] = "(queue, now)"


@dataclass(frozen=True)
class PythonBackfill(PythonPolicy, Backfilling):
    """Backfilling: ``backfill(queue, machine, now)`` gives the places in the queue to start now.

    It is asked when the job at the head of the queue (place 0) does not fit, and another does.

    Attributes
    ----------
    guard
        Starvation guard, by requested plan.
    """

    guard: Guard | None = None

    kind: ClassVar[str] = "backfill"
    arguments: ClassVar[str] = "(queue, machine, now)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guard is not None and self.guard.runs_beside:
            raise InputError(
                f"guard_by is {self.guard.by}: only for the kinds of easy, not for {self}"
            )

    @property
    def head_only(self) -> bool:
        """It is told of the head job's plan, and of no other."""
        return True

    def refusal(self, place: Place) -> str | None:
        """Say where it does not see what it decides on."""
        if place is Place.RESERVATIONS:
            return (
                f"backfill {self} decides itself which jobs start, and would not keep an advance"
                " reservation free: take a built-in backfilling"
            )
        return None

    def guarded(self, guard: Guard | None) -> Self:
        """Give the same with this guard."""
        return replace(self, guard=guard)

    def __reduce__(self) -> tuple[Any, ...]:
        made, given = super().__reduce__()
        return _made_and_guarded, (made, given, self.guard)


def _made_and_guarded(
    made: Callable[..., PythonBackfill], given: tuple[Any, ...], guard: Guard | None
) -> PythonBackfill:
    """Unpickle."""
    return made(*given).guarded(guard)


def user_line(
    error: BaseException, folder: str | None, function: Callable[..., Any] | None = None
) -> str:
    """Say where an exception came from: file, line and its text without a final colon.

    Parameters
    ----------
    error
        A caught exception.
    folder
        Where the user's own files are: of the lines on the exception's way, the last one there is
        told. ``None`` if they are nowhere.
    function
        The user's function: told where it begins if no line of the user's was reached.
    """
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}: {(error.text or '').strip()}"
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [
        (file, line)
        for file, line in frames
        if folder and Path(file).is_relative_to(folder) and "site-packages" not in file
    ]
    called = vars(function).get("__init__") if isinstance(function, type) else function
    code = getattr(called, "__code__", None)
    if not own and code is not None:
        own = [(code.co_filename, code.co_firstlineno)]
    file, line = (own or frames)[-1]
    return f"{file}:{line}: {linecache.getline(file, line).strip().removesuffix(':')}"


@contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)


def _imported(name: str, folder: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"{what}: {_no_module(error.name, folder)}") from error
        raise InputError(_failed(what, name, folder, error)) from error
    except Exception as error:
        raise InputError(_failed(what, name, folder, error)) from error


def _failed(what: str, name: str, folder: str, error: Exception) -> str:
    line = user_line(error, folder)
    return f"{what}: {name} can't be imported: {line}: {type(error).__name__}: {error}"


def _no_module(name: str, folder: str) -> str:
    there = sorted(path.stem for path in Path(folder).glob("*.py"))
    near = difflib.get_close_matches(name, there, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no module {name!r} in {folder} or among the installed ones{hint}"


def _missing(module: ModuleType, owner: object, attribute: str) -> str:
    callables = {
        name: value
        for name, value in vars(owner).items()
        if callable(value) and not name.startswith("_")
    }
    near = difflib.get_close_matches(attribute, callables, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    own = [
        name
        for name, value in callables.items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    has = f" It has {', '.join(own)}" if own else ""
    file = getattr(module, "__file__", None) or "built in"
    return f"{module.__name__} ({file}) has no {attribute!r}{hint}{has}"
