"""Changes jobs over one connection of PBS's own library, in a process of its own.

``python alter_jobs.py LIBRARY`` reads ``[[job id, {resource: value}], ...]`` from its standard
input, as one line of JSON. It writes a line for each job whose change was refused, ``{"job": id,
"error": text}``. A line without ``job`` is of all the jobs that follow in what was read: ``error``
where the server is gone, ``unusable`` where the library is not what it should be.

The library is C code that a daemon must outlive, so it never runs in the daemon. Nothing but the
standard library is imported, which starts in some 20 ms.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Mapping

_SET = 0  # the first of enum batch_op
_FIRST_OF_PBS = 15000  # smaller ones are the system's errors
# Nothing can follow on this connection: system error, credential invalid or expired, protocol
# error, no free connection, no server (pbs_error.h).
_LOST = frozenset({15010, 15019, 15020, 15031, 15033, 15034})


class _Attribute(ctypes.Structure):
    """``struct attrl`` of pbs_ifl.h, the same in all releases."""


_Attribute._fields_ = (
    ("next", ctypes.POINTER(_Attribute)),
    ("name", ctypes.c_char_p),
    ("resource", ctypes.c_char_p),
    ("value", ctypes.c_char_p),
    ("op", ctypes.c_int),
)


class _Library:
    """Libpbs; `OSError` or `AttributeError` if it can't be loaded."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.connect = library.pbs_connect
        self.connect.argtypes = [ctypes.c_char_p]
        self.disconnect = library.pbs_disconnect
        self._alter = library.pbs_alterjob
        self._alter.argtypes = [
            *(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Attribute), ctypes.c_char_p)
        ]
        self._message = library.pbs_geterrmsg
        self._message.restype = ctypes.c_char_p
        self._number = library["__pbs_errno_location"]
        self._number.restype = ctypes.POINTER(ctypes.c_int)

    def number(self) -> int:
        """Give the number of the last error."""
        return int(self._number()[0])

    def error(self, connection: int, number: int) -> str:
        """Say what went wrong."""
        if 0 < number < _FIRST_OF_PBS:
            return os.strerror(number)
        said = self._message(connection) if connection >= 0 else None
        return f"{said.decode(errors='replace') if said else 'PBS error'} ({number})"

    def alter(self, connection: int, job_id: str, resources: Mapping[str, str]) -> int:
        """Change a job; gives the number of the error, 0 if there is none."""
        first = ctypes.POINTER(_Attribute)()
        for name, value in resources.items():
            attribute = _Attribute(first, b"Resource_List", name.encode(), value.encode(), _SET)
            first = ctypes.pointer(attribute)
        failed = self._alter(connection, job_id.encode(), first, None)
        return (self.number() or int(failed)) if failed else 0


def _main() -> None:
    try:
        library = _Library(sys.argv[1])
    except (OSError, AttributeError) as error:
        _say(unusable=str(error))
        return
    changes = json.load(sys.stdin)
    connection = library.connect(None)
    if connection < 0:
        _say(error=f"can't connect: {library.error(connection, library.number())}")
        return
    for job_id, resources in changes:
        number = library.alter(connection, job_id, resources)
        if number in _LOST:
            _say(error=f"{job_id}: {library.error(connection, number)}")
            return
        if number:
            _say(job=job_id, error=library.error(connection, number))
    library.disconnect(connection)


def _say(**what: str) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    _main()
