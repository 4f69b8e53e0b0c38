"""A stand-in for the ``pbs`` module that OpenPBS gives to its server hooks.

The hook file that runs in a real pbs_server runs under this, unchanged (`pbs_hook.PbsHook`).

Checked against the documented interface (PBS Professional Hooks Guide) and the Python part of
OpenPBS 20 to 23 (``src/modules/python/pbs/v1``): ``pbs.duration`` is an int whose text is what it
was made from; a job's state is one of ``pbs.JOB_STATE_...``; resources and attributes that are
unset read ``None``, unknown ones raise ``AttributeError`` when read and ``UnsetResourceNameError``
or ``UnsetAttributeNameError`` when set; names of resources are found without regard to case when
set; a value is converted to its resource's type; ``None`` unsets; ``accept`` and ``reject`` raise
``SystemExit`` and end the right to change anything; an event's parameters can't be replaced, one
that the event has not raises ``EventIncompatibleError``; an existing job, a queue and the server
are read-only. That ``runjob`` may set resources stands in the server's own source
(``src/server/hook_func.c``).

Seen on a running server (OpenPBS 23.06.06): ``pbs.duration`` rounds half a second up; a resource
that a request takes away (``qalter -l walltime=``) reads ``""``; at ``modifyjob`` the request has
the job's ``Variable_List``, also where it does not name it.

Assumed: that ``get_local_nodename`` is the host that ``User_List`` is matched with; the exact class
of the error for a value that can't be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Never

from foretime_sim.mocks.pbs.values import (
    BadAttributeValueError,
    BadAttributeValueTypeError,
    BadResourceValueError,
    BadResourceValueTypeError,
    Converter,
    Duration,
    Environment,
    EventIncompatibleError,
    Fields,
    Guard,
    Held,
    ResourceList,
    Size,
    Text,
    UnsetAttributeNameError,
    UnsetResourceNameError,
    boolean,
    none_if_unset,
)

EVENT_CODES = {
    "QUEUEJOB": 0x01,
    "MODIFYJOB": 0x02,
    "RESVSUB": 0x04,
    "MOVEJOB": 0x08,
    "RUNJOB": 0x10,
}
LOG_CLASSES = {
    "EVENT_ERROR": 0x0001,
    "EVENT_SYSTEM": 0x0002,
    "EVENT_ADMIN": 0x0004,
    "EVENT_JOB": 0x0008,
    "EVENT_JOB_USAGE": 0x0010,
    "EVENT_SECURITY": 0x0020,
    "EVENT_SCHED": 0x0040,
    "EVENT_DEBUG": 0x0080,
    "EVENT_DEBUG2": 0x0100,
    "EVENT_RESV": 0x0200,
    "EVENT_DEBUG3": 0x0400,
    "EVENT_DEBUG4": 0x0800,
    "EVENT_FORCE": 0x8000,
}
LOG_LEVELS = {
    "LOG_EMERG": 0,
    "LOG_ALERT": 1,
    "LOG_CRIT": 2,
    "LOG_ERR": 3,
    "LOG_WARNING": 4,
    "LOG_NOTICE": 5,
    "LOG_INFO": 6,
    "LOG_DEBUG": 7,
}
JOB_STATE_LETTERS = {
    "T": "TRANSIT",
    "Q": "QUEUED",
    "H": "HELD",
    "W": "WAITING",
    "R": "RUNNING",
    "E": "EXITING",
    "X": "EXPIRED",
    "B": "BEGUN",
    "M": "MOVED",
    "F": "FINISHED",
    "S": "SUSPEND",
    "U": "SUSPEND_USERACTIVE",
}
JOB_STATES = {f"JOB_STATE_{name}": code for code, name in enumerate(JOB_STATE_LETTERS.values())}
QUEUE_TYPES = {"QTYPE_UNSET": 0, "QTYPE_EXECUTION": 1, "QTYPE_ROUTE": 2}


JOB_ATTRIBUTES: dict[str, Converter] = {
    "id": str,
    "Account_Name": str,
    "array": boolean,
    "array_id": str,
    "array_index": int,
    "array_indices_submitted": Text,
    "block": boolean,
    "Checkpoint": Text,
    "comment": str,
    "ctime": int,
    "depend": Text,
    "egroup": str,
    "eligible_time": Duration,
    "Error_Path": Text,
    "etime": int,
    "euser": str,
    "Execution_Time": int,
    "group_list": Text,
    "Hold_Types": Text,
    "hop_count": int,
    "interactive": boolean,
    "Job_Name": Text,
    "Job_Owner": str,
    "job_state": lambda value: JOB_STATES[f"JOB_STATE_{JOB_STATE_LETTERS[value]}"],
    "Join_Path": Text,
    "Keep_Files": Text,
    "Mail_Points": Text,
    "Mail_Users": Text,
    "mtime": int,
    "Output_Path": Text,
    "Priority": int,
    "project": Text,
    "qtime": int,
    "queue": lambda value: value,
    "Rerunable": boolean,
    "reserve_ID": str,
    "resv": lambda value: value,
    "run_count": int,
    "run_version": int,
    "server": str,
    "Shell_Path_List": Text,
    "stagein": Text,
    "stageout": Text,
    "stime": int,
    "substate": int,
    "User_List": Text,
    "Variable_List": Environment,
}
QUEUE_ATTRIBUTES: dict[str, Converter] = {
    "name": str,
    "enabled": boolean,
    "started": boolean,
    "Priority": int,
    "queue_type": lambda value: QUEUE_TYPES[f"QTYPE_{str(value).upper()}"],
}
SERVER_ATTRIBUTES: dict[str, Converter] = {
    "name": str,
    "default_queue": lambda value: value,
    "managers": Text,
    "operators": Text,
    "pbs_version": str,
    "scheduling": boolean,
}
_RESOURCE_LISTS = {
    "job": ("Resource_List", "resources_used"),
    "queue": ("resources_default", "resources_max", "resources_min", "default_chunk"),
    "server": ("resources_default", "resources_max", "default_chunk"),
}


class Entity:
    """A job, queue or server as a hook sees it."""

    _own: ClassVar[frozenset[str]] = frozenset({"_kind", "_types", "_values", "_guard", "_changed"})
    _attributes: ClassVar[dict[str, dict[str, Converter]]] = {
        "job": JOB_ATTRIBUTES,
        "queue": QUEUE_ATTRIBUTES,
        "server": SERVER_ATTRIBUTES,
    }

    def __init__(
        self,
        kind: str,
        values: Fields,
        resources: Mapping[str, Converter],
        guard: Guard | None = None,
    ) -> None:
        self._kind = kind
        self._types = Entity._attributes[kind]
        self._guard = guard
        self._changed: dict[str, None] = {}
        self._values: dict[str, Any] = {
            name: ResourceList(resources, values.get(name) or {}, guard)
            for name in _RESOURCE_LISTS[kind]
        }
        for name, value in values.items():
            if name not in _RESOURCE_LISTS[kind]:
                if name not in self._types:
                    raise UnsetAttributeNameError(f"{kind} attribute '{name}' not found")
                self._values[name] = None if value is None else self._types[name](value)

    def __getattr__(self, name: str) -> Held:
        if name in Entity._own or (name not in self._types and name not in self._values):
            raise AttributeError(name)
        return self._values.get(name)

    def __setattr__(self, name: str, value: Held) -> None:
        if name in Entity._own:
            super().__setattr__(name, value)
            return
        if name not in self._types and name not in self._values:
            raise UnsetAttributeNameError(f"{self._kind} attribute '{name}' not found")
        if self._guard is None or not self._guard.open:
            raise BadAttributeValueError(f"{self._kind} attribute '{name}' is readonly")
        self._values[name] = "" if value is None or value == "" else self._types[name](value)
        self._changed[name] = None

    def __str__(self) -> str:
        return str(self._values.get("id" if self._kind == "job" else "name"))

    def changes(self) -> dict[str, Any]:
        """Give what a hook set, by name, ``Resource_List.NAME`` for a resource; ``None``: unset."""
        found = {name: none_if_unset(self._values[name]) for name in self._changed}
        for of in _RESOURCE_LISTS[self._kind]:
            resources: ResourceList = self._values[of]
            found |= {f"{of}.{name}": value for name, value in resources.changes().items()}
        return found


class Event:
    """``pbs.event()``: what happens, to which job, asked by whom."""

    _own: ClassVar[frozenset[str]] = frozenset({"_parameters", "_attributes", "_guard", "verdict"})

    def __init__(self, attributes: Fields, parameters: Fields, guard: Guard) -> None:
        self._attributes = attributes
        self._parameters = parameters
        self._guard = guard
        self.verdict: tuple[bool, str] | None = None

    def __getattr__(self, name: str) -> Held:
        if name in Event._own:
            raise AttributeError(name)
        if name in self._attributes:
            return self._attributes[name]
        if name in self._parameters:
            return self._parameters[name]
        raise EventIncompatibleError(name)

    def __setattr__(self, name: str, value: Held) -> None:
        if name in Event._own:
            super().__setattr__(name, value)
        elif name in self._parameters or name in self._attributes:
            raise BadAttributeValueError(f"event attribute '{name}' is readonly")
        else:
            raise UnsetAttributeNameError(f"event attribute '{name}' not found")

    def _end(self, accepted: bool, message: str, code: int) -> Never:
        self.verdict = (accepted, message)
        self._guard.open = False
        raise SystemExit(str(code))

    def accept(self, ecode: int = 0) -> Never:
        """Let the request go through, with what the hook changed; ends the hook."""
        self._end(True, "", ecode)

    def reject(self, emsg: str = "", ecode: int = 255) -> Never:
        """Refuse the request; ends the hook."""
        self._end(False, emsg, ecode)


class ServerFace:
    """``pbs.server()``: read-only; its jobs and queues by name."""

    def __init__(
        self,
        entity: Entity,
        queues: Mapping[str, Entity],
        job: Callable[[str], Entity | None],
    ) -> None:
        object.__setattr__(self, "_parts", (entity, queues, job))

    def __getattr__(self, name: str) -> Held:
        return getattr(object.__getattribute__(self, "_parts")[0], name)

    def __setattr__(self, name: str, value: Held) -> None:
        setattr(object.__getattribute__(self, "_parts")[0], name, value)

    def queue(self, name: str) -> Entity | None:
        """Give the queue of this name; ``None`` if there is none."""
        if "@" in name:
            raise AssertionError(f"Got '{name}', please specify a queue name only (no @)")
        found: Entity | None = object.__getattribute__(self, "_parts")[1].get(name)
        return found

    def queues(self) -> Iterator[Entity]:
        """Go through the queues."""
        return iter(object.__getattribute__(self, "_parts")[1].values())

    def job(self, name: str) -> Entity | None:
        """Give the job of this id; ``None`` if there is none."""
        found: Entity | None = object.__getattribute__(self, "_parts")[2](name)
        return found

    def __str__(self) -> str:
        return str(object.__getattribute__(self, "_parts")[0])


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a hook wrote into the server's log.

    Attributes
    ----------
    event_class
        Class or severity that it gave, e.g. ``EVENT_JOB`` (8).
    text
        The message.
    job_id
        Of the job that it is about (``pbs.logjobmsg``); ``None`` for ``pbs.logmsg``.
    """

    event_class: int
    text: str
    job_id: str | None = None


def make_module(
    event: Event,
    server: ServerFace,
    log: list[LogLine],
    *,
    hook_config_filename: str | None,
    pbs_home: str | None,
    without: frozenset[str] = frozenset(),
) -> SimpleNamespace:
    """Give what ``import pbs`` gives to a hook in this event.

    Parameters
    ----------
    event, server
        What ``pbs.event()`` and ``pbs.server()`` return.
    log
        Lines are added to it.
    hook_config_filename, pbs_home
        ``pbs.hook_config_filename`` and ``pbs.pbs_conf["PBS_HOME"]``; ``None``: not told.
    without
        Names that this release of PBS does not have, e.g. ``pbs_conf``.
    """

    def logmsg(level: int, message: str) -> None:
        log.append(LogLine(level, str(message)))

    def logjobmsg(job_id: str, message: str) -> None:
        log.append(LogLine(LOG_CLASSES["EVENT_JOB"], str(message), str(job_id)))

    names: dict[str, Any] = {
        **EVENT_CODES,
        **LOG_CLASSES,
        **LOG_LEVELS,
        **QUEUE_TYPES,
        **JOB_STATES,
        "get_local_nodename": lambda: str(server),
        "event": lambda: event,
        "server": lambda: server,
        "logmsg": logmsg,
        "logjobmsg": logjobmsg,
        "hook_config_filename": hook_config_filename,
        "pbs_conf": {} if pbs_home is None else {"PBS_HOME": pbs_home},
        "duration": Duration,
        "size": Size,
        "pbs_env": Environment,
        "select": Text,
        "place": Text,
        "EventIncompatibleError": EventIncompatibleError,
        "UnsetAttributeNameError": UnsetAttributeNameError,
        "BadAttributeValueTypeError": BadAttributeValueTypeError,
        "BadAttributeValueError": BadAttributeValueError,
        "UnsetResourceNameError": UnsetResourceNameError,
        "BadResourceValueTypeError": BadResourceValueTypeError,
        "BadResourceValueError": BadResourceValueError,
    }
    return SimpleNamespace(**{name: value for name, value in names.items() if name not in without})
