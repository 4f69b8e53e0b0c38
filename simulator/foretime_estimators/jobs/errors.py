"""Errors that say what is wrong, where, and what to do; their class says who must act."""

from __future__ import annotations


class ForetimeError(Exception):
    """Root of every error that Foretime raises on purpose; its text is shown without traceback."""

    exit_code = 1


class InputError(ForetimeError):
    """Something a person gave (a file, a field, an option) can't be used; they can mend it."""

    exit_code = 2


class SchedulerError(ForetimeError):
    """The scheduler did not answer, or answered what we can't use; its administrator must look."""


class StateError(ForetimeError):
    """Our own files (store, table) are in a state that we can't go on from."""
