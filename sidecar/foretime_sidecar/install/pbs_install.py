"""Registers the hook in a PBS server, and takes it out again: the whole of it or nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from foretime_estimators.jobs.errors import ForetimeError, SchedulerError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.clients.pbs.server import (
    CONFIGURATION,
    HOOK,
    SCRIPT,
    CommandFailedError,
    HookRegistration,
    PbsServer,
)
from foretime_sidecar.install.steps import Outcome, Undo
from foretime_sidecar.settings.settings import Settings

HIGHEST_ORDER = 1000
WAITING = "QHWB"
"""States of jobs that wait, and of arrays that have begun."""

RUNNING = "RSU"
_MOST_NAMED = 5


def _unplan(states: str) -> str:
    return f"qselect -s {states} -l soft_walltime.ge.0 | xargs -r -n 1 qalter -l soft_walltime="


def registration() -> dict[str, str]:
    """Give the hook's attributes as the shipped registration file (``.HK``) has them."""
    lines = plugin_file("pbs/foretime_hook.HK").read_text(encoding="utf-8").split()
    pairs = (line.partition("=") for line in lines)
    return {name: value for name, _, value in pairs if name not in ("type", "enabled")}


def configuration(settings: Settings) -> str:
    """Give the hook's configuration (``.CF``): where the daemon's table and its switch are."""
    values = json.loads(plugin_file("pbs/foretime_hook.CF").read_text(encoding="utf-8"))
    values |= {"table": settings.table.path, "disable_file": settings.hook.disable_file}
    return json.dumps(values, indent=4) + "\n"


def import_directive(kind: str, path: str) -> str:
    """Give the directive that imports a script or configuration."""
    return f"import hook {HOOK} {kind} default {path}"


def set_directive(name: str, value: str) -> str:
    """Give the directive that sets an attribute of the hook."""
    shown = f'"{value}"' if "," in value else value
    return f"set hook {HOOK} {name} = {shown}"


def install_directives(script: str, config: str, attributes: Mapping[str, str]) -> list[str]:
    """Give qmgr's directives for a new hook; it is enabled last, when all else is right."""
    return [
        f"create hook {HOOK}",
        set_directive("enabled", "false"),
        import_directive(SCRIPT, script),
        import_directive(CONFIGURATION, config),
        *(set_directive(name, value) for name, value in attributes.items()),
        set_directive("enabled", "true"),
    ]


def uninstall_lines() -> list[str]:
    """Give the commands that take the hook out, in their order.

    First it plans no more but still lets users lower their walltime; then jobs lose their
    soft_walltime (unset, as without the hook one as long as the walltime would have PBS refuse a
    lower walltime), those that run as far as PBS lets them; then it goes.
    """
    return [
        f"qmgr -c '{set_directive('event', 'modifyjob')}'",
        _unplan(WAITING),
        f"{_unplan(RUNNING)} || true",
        f"qmgr -c 'delete hook {HOOK}'",
    ]


def install(server: PbsServer, settings: Settings, outcome: Outcome, undo: Undo) -> None:
    """Register the hook, or bring the one that is there up to date.

    Parameters
    ----------
    server, settings
        The server, and the daemon's settings.
    outcome
        Told what was done.
    undo
        Told how to undo it.

    Raises
    ------
    SchedulerError
        If PBS refuses, or has no commands here.
    """
    hooks = server.hooks()
    before, attributes = hooks.get(HOOK), _attributes(hooks)
    if _is_current(server, before, attributes, settings):
        return
    with tempfile.TemporaryDirectory(prefix="foretime-") as folder:
        config_file = Path(folder) / "foretime_hook.CF"
        config_file.write_text(configuration(settings), encoding="utf-8")
        script = plugin_file("pbs/foretime_hook.py")
        directives = install_directives(str(script), str(config_file), attributes)
        if before is not None:
            del directives[0]
        back = _restoring(server, before)
        undo.steps.append(back)
        for directive in directives:
            try:
                server.qmgr(directive)
            except CommandFailedError:
                # What got no answer may have been done nonetheless.
                if before is None and directive == directives[0]:
                    undo.steps.remove(back)
                raise
            outcome.done.append(f"qmgr -c '{directive}'")


def is_installed(server: PbsServer, settings: Settings) -> bool:
    """Whether the hook is there as it should be.

    Raises
    ------
    SchedulerError
        If PBS refuses, or has no commands here.
    """
    hooks = server.hooks()
    return _is_current(server, hooks.get(HOOK), _attributes(hooks), settings)


def uninstall(server: PbsServer, outcome: Outcome) -> None:
    """Take the hook out, and their soft_walltime from waiting and running jobs.

    Parameters
    ----------
    server
        The server.
    outcome
        Told what was done.

    Raises
    ------
    SchedulerError
        If PBS refuses; the hook then stays, planning no job, and this can be run again.
    """
    if HOOK not in server.hooks():
        outcome.notes.append("the hook is not there: nothing to do")
        return
    directive = set_directive("event", "modifyjob")
    server.qmgr(directive)
    outcome.done.append(f"qmgr -c '{directive}'")
    # Before their arrays lose it, as qselect goes by those.
    running = server.planned_jobs(RUNNING, subjobs=True)
    subjobs = [job_id for job_id in running if "[" in job_id]
    kept = _clear(server, WAITING, outcome)
    if kept:
        raise SchedulerError(
            f"{len(kept)} waiting jobs keep their soft_walltime: {_named(kept)}; the hook "
            "stays, so that their users can lower walltime, but plans no job: run this again"
        )
    kept = dict.fromkeys(subjobs, "PBS changes no subjob") | _clear(server, RUNNING, outcome)
    server.qmgr(f"delete hook {HOOK}")
    outcome.done.append(f"qmgr -c 'delete hook {HOOK}'")
    if kept:
        outcome.notes.append(
            f"{len(kept)} running jobs keep their soft_walltime until they end: {_named(kept)}"
        )


def _clear(server: PbsServer, states: str, outcome: Outcome) -> dict[str, str]:
    """Unset soft_walltime of all jobs in some states; give what was said of those that keep it."""
    refused: dict[str, str] = {}
    for job_id in server.planned_jobs(states):
        try:
            server.clear(job_id)
        except CommandFailedError as error:
            refused[job_id] = error.said
        else:
            outcome.done.append(f"qalter -l soft_walltime= {job_id}")
    # One that has begun or ended since then is no longer among them.
    left = set(server.planned_jobs(states)) if refused else set()
    return {job_id: said for job_id, said in refused.items() if job_id in left}


def _named(jobs: Mapping[str, str]) -> str:
    named = [f"{job_id} ({said})" for job_id, said in jobs.items()]
    return ", ".join(named[:_MOST_NAMED]) + (" and more" if named[_MOST_NAMED:] else "")


def _attributes(hooks: Mapping[str, HookRegistration]) -> dict[str, str]:
    """Give the hook's attributes, with a place after the site's own hooks."""
    attributes = registration()
    others = [hook.number("order") or 1 for name, hook in hooks.items() if name != HOOK]
    if not all(other < int(attributes["order"]) for other in others):
        attributes["order"] = str(HIGHEST_ORDER)
    return attributes


def _is_current(
    server: PbsServer,
    before: HookRegistration | None,
    attributes: Mapping[str, str],
    settings: Settings,
) -> bool:
    script = plugin_file("pbs/foretime_hook.py").read_text(encoding="utf-8")
    return (
        before is not None
        and before.enabled
        and before.events == set(attributes["event"].split(","))
        and all(before.attributes.get(name) == attributes[name] for name in ("order", "alarm"))
        and server.hook_content(HOOK, SCRIPT).strip() == script.strip()
        and server.hook_content(HOOK, CONFIGURATION).strip() == configuration(settings).strip()
    )


def _restoring(server: PbsServer, before: HookRegistration | None) -> Callable[[], None]:
    """Give what brings a hook back as it is now, be it none."""
    if before is None:
        return lambda: _undo(server, [f"delete hook {HOOK}"])
    contents = {kind: server.hook_content(HOOK, kind) for kind in (SCRIPT, CONFIGURATION)}
    had = {name: before.attributes.get(name) for name in ("event", "order", "alarm", "enabled")}

    def restore() -> None:
        with tempfile.TemporaryDirectory(prefix="foretime-") as folder:
            directives = [set_directive("enabled", "false")]
            for kind, content in contents.items():
                if content:
                    file = Path(folder) / f"before-{kind.rpartition('/')[2]}"
                    file.write_text(content, encoding="utf-8")
                    directives.append(import_directive(kind, str(file)))
            directives += [set_directive(name, value) for name, value in had.items() if value]
            _undo(server, directives)

    return restore


def _undo(server: PbsServer, directives: list[str]) -> None:
    for at, directive in enumerate(directives):
        try:
            server.qmgr(directive)
        except ForetimeError as error:
            rest = "; ".join(f"qmgr -c '{left}'" for left in directives[at:])
            raise SchedulerError(f"{error}: once PBS answers, run {rest}") from error
