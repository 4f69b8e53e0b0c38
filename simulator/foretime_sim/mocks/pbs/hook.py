"""Runs a hook file, the shipped one by default, as pbs_server would: under a fake ``pbs``."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.mocks.pbs.module import (
    EVENT_CODES,
    Entity,
    Event,
    LogLine,
    ServerFace,
    make_module,
)
from foretime_sim.mocks.pbs.values import RESOURCES, Converter, Duration, Fields, Guard, Held
from foretime_sim.mocks.plugin_files import plugin_file

_UNKNOWN_TO_SHRINK = ("min_walltime", "max_walltime")


@dataclass(frozen=True, slots=True)
class PbsSite:
    """What a hook can see of the server besides the job.

    Attributes
    ----------
    queues
        Attributes by queue: ``queue_type`` (``Execution``, ``Route``), ``resources_default``,
        ``resources_max``, ``default_chunk``.
    server
        The same of the server, and ``default_queue``.
    jobs
        Attributes by job id: what ``pbs.server().job(id)`` shows.
    resources
        Types of the resources that the site added, by name.
    home
        ``PBS_HOME``; ``None``: this PBS does not tell it.
    without
        Names that its ``pbs`` module does not have, as in older releases.
    """

    queues: Mapping[str, Fields] = field(
        default_factory=lambda: {"workq": {"queue_type": "Execution"}}
    )
    server: Fields = field(default_factory=lambda: {"name": "pbs", "default_queue": "workq"})
    jobs: Mapping[str, Fields] = field(default_factory=dict)
    resources: Mapping[str, Converter] = field(default_factory=dict)
    home: str | None = None
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PbsReply:
    """What a run of the hook came to.

    Attributes
    ----------
    accepted
        Whether the request goes on; ``False`` after ``reject``, an exception or an alarm.
    message
        What the user would be told of a rejected request.
    changes
        What the hook set, by attribute, ``Resource_List.soft_walltime`` for a resource: durations
        in seconds, others as text; ``None`` where it was unset.
    log
        Lines that it wrote.
    """

    accepted: bool
    message: str
    changes: dict[str, int | str | None]
    log: list[LogLine]


class PbsHook:
    """A hook script, compiled once and run anew for each event, as pbs_server does.

    Parameters
    ----------
    script
        The hook; the shipped one by default.
    config
        Its configuration file; ``None``: ``pbs.hook_config_filename`` is ``None``.
    site
        The server that it runs in.

    Raises
    ------
    InputError
        If the script can't be read or compiled; from a run, if it sets what pbs_sched would die of.

    Examples
    --------
    >>> from foretime_sim.mocks.pbs.hook import PbsHook
    >>> job = {"Job_Owner": "ann", "Resource_List": {"walltime": 3600, "ncpus": 8}}
    >>> PbsHook().queuejob(job, requestor="ann", now=0).accepted
    True
    """

    def __init__(
        self,
        script: Path | None = None,
        *,
        config: Path | None = None,
        site: PbsSite | None = None,
    ) -> None:
        self.script = script or plugin_file("pbs/foretime_hook.py")
        self.config = config
        try:
            self._code: CodeType = compile(self.script.read_bytes(), str(self.script), "exec")
        except (OSError, SyntaxError, ValueError) as error:
            raise InputError(f"{self.script}: can't load the hook: {error}") from error
        self.use_site(site or PbsSite())

    def use_site(self, site: PbsSite) -> None:
        """Run in this server from now on."""
        self.site = site
        self._resources = {**RESOURCES, **site.resources}
        self._queues = {
            name: Entity("queue", {"name": name, **fields}, self._resources)
            for name, fields in site.queues.items()
        }
        server = dict(site.server)
        default = server.get("default_queue")
        server["default_queue"] = self._queues.get(str(default), default)
        self._server = Entity("server", server, self._resources)

    def queuejob(self, job: Fields, requestor: str, now: float) -> PbsReply:
        """Run at a submission.

        Parameters
        ----------
        job
            Attributes by PBS' names; ``Resource_List`` a mapping; durations as seconds or
            ``HH:MM:SS``. A job that another server sent has its ``id``, ``Job_Owner`` and
            ``hop_count``; a new one has none of them.
        requestor
            Who asks.
        now
            The server's clock, epoch seconds.
        """
        return self._run("QUEUEJOB", {"job": job}, requestor, now)

    def modifyjob(self, request: Fields, job: Fields, requestor: str, now: float) -> PbsReply:
        """Run at a ``qalter``: what it asks for ("": to be taken away), and the job as it is."""
        variables = job.get("Variable_List") or {}
        asked = {"id": job.get("id"), "Variable_List": variables, **request}
        return self._run("MODIFYJOB", {"job": asked, "job_o": job}, requestor, now)

    def runjob(self, job: Fields, now: float, requestor: str = "Scheduler") -> PbsReply:
        """Run when the scheduler starts a job."""
        return self._run("RUNJOB", {"job": job}, requestor, now)

    def _run(self, kind: str, jobs: Mapping[str, Fields], requestor: str, now: float) -> PbsReply:
        guard = Guard()
        parameters = {
            name: Entity(
                "job", self._with_queue(job), self._resources, None if name == "job_o" else guard
            )
            for name, job in jobs.items()
        }
        attributes = {
            "type": EVENT_CODES[kind],
            "requestor": requestor,
            "requestor_host": "submit",
            "hook_name": "foretime",
            "hook_type": "site",
        }
        event = Event(attributes, parameters, guard)
        log: list[LogLine] = []
        module = make_module(
            event,
            ServerFace(self._server, self._queues, self._job),
            log,
            hook_config_filename=None if self.config is None else str(self.config),
            pbs_home=self.site.home,
            without=self.site.without,
        )
        return self._outcome(event, module, log, now)

    def _job(self, name: str) -> Entity | None:
        fields = self.site.jobs.get(name)
        if fields is None:
            return None
        return Entity("job", self._with_queue({"id": name, **fields}), self._resources)

    def _with_queue(self, job: Fields) -> Fields:
        queue = job.get("queue")
        if isinstance(queue, str):
            known = self._queues.get(queue)
            return {**job, "queue": known or Entity("queue", {"name": queue}, self._resources)}
        return job

    def _outcome(
        self, event: Event, module: SimpleNamespace, log: list[LogLine], now: float
    ) -> PbsReply:
        clock = SimpleNamespace(
            **{name: getattr(time, name) for name in ("mktime", "monotonic", "localtime")},
            time=lambda: float(now),
        )
        namespace = {"__builtins__": _builtins({"pbs": module, "time": clock}), "__name__": "hook"}
        try:
            exec(self._code, namespace)  # noqa: S102 - to run this file is what the class is for
            accepted, message = True, ""
        except SystemExit:
            accepted, message = event.verdict or (True, "")
        except KeyboardInterrupt:
            accepted, message = False, "request rejected as hook exceeded its alarm"
        except Exception as error:  # noqa: BLE001 - whatever a hook raises, the server goes on
            accepted = False
            message = f"request rejected as filter hook encountered an exception: {error!r}"
        changes: dict[str, int | str | None] = {}
        if accepted:
            for name, value in event.job.changes().items():
                plain = int(value) if isinstance(value, Duration) else value
                changes[name] = plain if plain is None or isinstance(plain, int) else str(plain)
        if why := fatal({"soft_walltime": changes.get("Resource_List.soft_walltime")}):
            raise InputError(f"{self.script}: {why}")
        return PbsReply(accepted, message, changes, log)


def _builtins(modules: Mapping[str, object]) -> dict[str, Any]:
    real: Callable[..., Any] = builtins.__import__

    def given(name: str, *arguments: Held, **keywords: Held) -> Held:
        return modules[name] if name in modules else real(name, *arguments, **keywords)

    return {**vars(builtins), "__import__": given}


def refusal(resources: Mapping[str, Any]) -> str | None:
    """Give the error with which pbs_server refuses a job's resources; ``None`` if it takes them.

    A soft_walltime above the walltime, or with shrink-to-fit bounds, is refused (errors 15014 and
    15180; the words are OpenPBS 23.06.06's).
    """
    soft = resources.get("soft_walltime")
    if soft is None:
        return None
    if any(resources.get(name) is not None for name in _UNKNOWN_TO_SHRINK):
        return "soft_walltime is not supported with Shrink to Fit jobs"
    walltime = resources.get("walltime")
    if walltime is not None and Duration(soft) > Duration(walltime):
        return "Illegal attribute or resource value"
    return None


def fatal(resources: Mapping[str, Any]) -> str | None:
    """Give what pbs_sched dies of at a cycle in which a job with these resources runs, or ``None``.

    pbs_server takes a soft_walltime of 0, by which pbs_sched divides (OpenPBS 23.06.06,
    ``extend_soft_walltime``), and again after each start, as long as the job runs.
    """
    soft = resources.get("soft_walltime")
    if soft is None or Duration(soft) >= 1:
        return None
    return "a soft_walltime of 0 s, by which pbs_sched divides: it would die"
