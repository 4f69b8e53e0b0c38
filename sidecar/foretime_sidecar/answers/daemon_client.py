"""Asks the daemon as our own commands do: the client, with the errors and words of commands.

A person waits for the answer, so this imports little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_estimators.jobs.errors import ForetimeError, InputError

from foretime_sidecar.answers.api_client import (
    ForetimeApiError,
    ForetimeClient,
    NoAnswerError,
    NoDaemonError,
    RefusedQuestionError,
)
from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN, parse_listen

_ELSEWHERE = "give --settings or --socket, to say where it is"


class DaemonError(ForetimeError):
    """The daemon did not answer, or could not; the administrator must look."""

    exit_code = 3


class RefusedError(InputError):
    """The daemon refused the question.

    Parameters
    ----------
    said
        What is wrong, and what to do.
    status
        Of HTTP: 404 for what it does not know, 429 for too many questions.
    """

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


class SiteDaemon(ForetimeClient):
    """The daemon of this machine; every method raises `RefusedError` or `DaemonError`.

    Parameters
    ----------
    listen
        Where it is, as in ``api.listen``.

    Raises
    ------
    InputError
        If that is no address of a daemon.
    """

    def __init__(self, listen: str) -> None:
        parse_listen(listen)
        try:
            super().__init__(listen)
        except ValueError as error:
            raise InputError(str(error)) from error

    def ask(
        self, path: str, question: Mapping[str, Any] | None = None, method: str = "GET"
    ) -> dict[str, Any]:
        """Ask for what has no method here; for what changes anything, ask for a token first."""
        try:
            return super().ask(path, question, method)
        except RefusedQuestionError as error:
            raise RefusedError(str(error), error.status or 400) from error
        except NoDaemonError as error:
            raise DaemonError(f"{error.what}; {_ELSEWHERE}") from error
        except NoAnswerError as error:
            absent = isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)
            if self.address != DEFAULT_LISTEN or not absent:
                raise DaemonError(str(error)) from error
            # Nobody has named a place, as on a login node without settings.
            raise DaemonError(
                f"{error.what}; start it, or name its socket with --socket"
            ) from error
        except ForetimeApiError as error:
            raise DaemonError(str(error)) from error
