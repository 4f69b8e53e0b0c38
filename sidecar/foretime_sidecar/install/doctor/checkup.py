"""Looks whether an installation is sound: small checks, each with what to do about it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from foretime_estimators.jobs.errors import ForetimeError


class Health(enum.StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes
    ----------
    health
        How it came out; a problem means that jobs are not planned as they should be.
    message
        What is so.
    remedy
        What to do about it; "" if nothing.
    """

    health: Health
    message: str
    remedy: str = ""


Check: TypeAlias = Callable[[], Finding]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A check's name and what it found."""

    name: str
    finding: Finding


def ok(message: str) -> Finding:
    """Say that all is well."""
    return Finding(Health.OK, message)


def warning(message: str, remedy: str) -> Finding:
    """Say what may be wrong, or will be."""
    return Finding(Health.WARNING, message, remedy)


def problem(message: str, remedy: str) -> Finding:
    """Say what is wrong."""
    return Finding(Health.PROBLEM, message, remedy)


def examine(checks: Iterable[tuple[str, Check]]) -> list[Diagnosis]:
    """Run checks in their order; one that raises one of our errors has found a problem.

    One that finds the very problem of one before, such as a server that does not answer, is not
    told of again.
    """
    found: list[Diagnosis] = []
    for name, check in checks:
        try:
            finding = check()
        except ForetimeError as error:
            message, _, remedy = str(error).rpartition("; ")
            finding = problem(message or remedy, remedy if message else "")
        again = any(before.finding == finding for before in found)
        if finding.health is Health.OK or not again:
            found.append(Diagnosis(name, finding))
    return found


def exit_code(diagnoses: Iterable[Diagnosis]) -> int:
    """Give 1 if any check found a problem, else 0."""
    return int(any(diagnosis.finding.health is Health.PROBLEM for diagnosis in diagnoses))
