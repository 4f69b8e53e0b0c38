"""Registers the hook in a PBS server, and takes it out again: the whole of it or nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
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
from foretime_sidecar.install.pbs_scheduler import Outcome
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


def install(server: PbsServer, settings: Settings) -> Outcome:
    """Register the hook, or bring the one that is there up to date.

    If a step fails, those before are undone.

    Raises
    ------
    SchedulerError
        If PBS refuses, or has no commands here; the message says whether anything is left.
    """
    outcome = Outcome()
    hooks = server.hooks()
    attributes = registration()
    attributes["order"] = str(_order(attributes, hooks))
    script, config = plugin_file("pbs/foretime_hook.py"), configuration(settings)
    before = hooks.get(HOOK)
    with tempfile.TemporaryDirectory(prefix="foretime-") as folder:
        config_file = Path(folder) / "foretime_hook.CF"
        config_file.write_text(config, encoding="utf-8")
        directives = install_directives(str(script), str(config_file), attributes)
        if before is None:
            undo = [f"delete hook {HOOK}"]
        else:
            del directives[0]
            undo = _restore(server, before, Path(folder))
            if _is_current(server, before, attributes, script.read_text(encoding="utf-8"), config):
                outcome.notes.append("the hook is there as it should be: nothing to do")
                return outcome
        _run_all(server, directives, undo, outcome, created=before is None)
    return outcome


def uninstall(server: PbsServer) -> Outcome:
    """Take the hook out, and their soft_walltime from waiting and running jobs.

    Raises
    ------
    SchedulerError
        If PBS refuses; the hook then stays, planning no job, and this can be run again.
    """
    outcome = Outcome()
    if HOOK not in server.hooks():
        outcome.notes.append("the hook is not there: nothing to do")
        return outcome
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
    return outcome


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


def _order(attributes: Mapping[str, str], hooks: Mapping[str, HookRegistration]) -> int:
    """Give a place after the site's own hooks."""
    ours = int(attributes["order"])
    others = [hook.number("order") or 1 for name, hook in hooks.items() if name != HOOK]
    return ours if all(other < ours for other in others) else HIGHEST_ORDER


def _is_current(
    server: PbsServer,
    before: HookRegistration,
    attributes: Mapping[str, str],
    script: str,
    config: str,
) -> bool:
    return (
        before.enabled
        and before.events == set(attributes["event"].split(","))
        and all(before.attributes.get(name) == attributes[name] for name in ("order", "alarm"))
        and server.hook_content(HOOK, SCRIPT).strip() == script.strip()
        and server.hook_content(HOOK, CONFIGURATION).strip() == config.strip()
    )


def _restore(server: PbsServer, before: HookRegistration, folder: Path) -> list[str]:
    """Give the directives that bring back a hook as it is now."""
    directives = [set_directive("enabled", "false")]
    for kind, name in ((SCRIPT, "before.PY"), (CONFIGURATION, "before.CF")):
        content = server.hook_content(HOOK, kind)
        if content:
            (folder / name).write_text(content, encoding="utf-8")
            directives.append(import_directive(kind, str(folder / name)))
    had = {name: before.attributes.get(name) for name in ("event", "order", "alarm", "enabled")}
    return [*directives, *(set_directive(name, value) for name, value in had.items() if value)]


def _run_all(
    server: PbsServer, directives: list[str], undo: list[str], outcome: Outcome, *, created: bool
) -> None:
    for number, directive in enumerate(directives):
        try:
            server.qmgr(directive)
        except SchedulerError as error:
            # What got no answer may have been done nonetheless.
            untouched = created and number == 0 and isinstance(error, CommandFailedError)
            left = "" if untouched else _undo(server, undo)
            raise SchedulerError(f"{error}. {left or 'Everything is as it was before.'}") from error
        outcome.done.append(f"qmgr -c '{directive}'")


def _undo(server: PbsServer, undo: list[str]) -> str:
    """Undo as much as PBS allows; say what is left, "" if nothing."""
    for at, directive in enumerate(undo):
        try:
            server.qmgr(directive)
        except ForetimeError as error:
            rest = "; ".join(f"qmgr -c '{left}'" for left in undo[at:])
            return f"Undoing it failed, too ({error}): once PBS answers, run {rest}"
    return ""
