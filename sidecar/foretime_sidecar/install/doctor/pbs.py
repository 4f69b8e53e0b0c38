"""Checks of a PBS server and of the hook in it."""

from __future__ import annotations

import ast
import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import StateError
from foretime_sim.logs.pbs_accounting import FILE_NAME
from foretime_sim.mocks.plugin_files import plugin_file
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.clients.pbs.server import (
    CONFIGURATION,
    HOOK,
    SCRIPT,
    HookRegistration,
    PbsServer,
    RememberedServer,
)
from foretime_sidecar.clients.pbs.start_rank import RESOURCE_DIRECTIVE, TYPE_DIRECTIVE
from foretime_sidecar.install.doctor.checkup import Check, Finding, ok, problem, warning
from foretime_sidecar.install.pbs_install import HIGHEST_ORDER, registration
from foretime_sidecar.install.pbs_ranks import formula_of, resource_type
from foretime_sidecar.install.pbs_scheduler import PbsScheduler, pbs_home
from foretime_sidecar.settings.settings import Settings

_COMMANDS = ("qmgr", "qstat", "qselect", "qalter")
_OLDEST_RELEASE = 20  # the first whose hooks run on Python 3
_CLOCK_WARNING_S, _CLOCK_PROBLEM_S = 60, 3600
_LEAST_ALARM_S = 3
_INSTALL = "foretime install pbs --yes"
_RIGHTS = "give it the rights that contrib/systemd/foretime.service.d/pbs.conf names"
DAEMON_USER = "foretime"
"""Whom the systemd unit runs the daemon as."""


def pbs_checks(
    settings: Settings, server: PbsServer, now: int, commands_dir: str = ""
) -> list[tuple[str, Check]]:
    """Give the checks of a PBS site, in an order in which the first that fails is the cause."""
    server = RememberedServer(server)
    return [
        ("commands", lambda: commands(commands_dir)),
        ("PBS release", lambda: release(server)),
        ("clock", lambda: clock(server, now)),
        ("hook", lambda: registered(server.hooks())),
        ("hook's events", lambda: events(server.hooks())),
        ("hook's alarm", lambda: alarm(server.hooks())),
        ("hook's order", lambda: order(server.hooks())),
        ("hook's script", lambda: script(server)),
        ("hook's configuration", lambda: configuration(server, settings)),
        ("disable file", lambda: disable_file(server)),
        ("other hooks", lambda: other_hooks(server)),
        ("default soft_walltime", lambda: defaults(server)),
        ("job classes", lambda: job_classes(PbsScheduler(pbs_home()))),
        *(
            [("jobs started at once", lambda: starts(server))]
            if settings.queue_order.starts_now
            else []
        ),
        ("primetime", lambda: primetime(pbs_home())),
        ("accounting logs", lambda: accounting(settings.scheduler.pbs_accounting_dir)),
        ("dedicated time", lambda: dedicated_time(settings.scheduler.pbs_dedicated_time_file)),
    ]


def commands(commands_dir: str) -> Finding:
    """Look for PBS' commands."""
    missing = [name for name in _COMMANDS if not shutil.which(name, path=commands_dir or None)]
    if missing:
        return problem(
            f"not found: {', '.join(missing)}",
            "run this on the PBS server's host, or name their folder with --commands-dir",
        )
    return ok(", ".join(_COMMANDS))


def release(server: PbsServer) -> Finding:
    """Look for a release whose hooks run on Python 3."""
    version = str(server.status("-B", "-f").get("pbs_version", ""))
    number = re.match(r"\d+", version)
    if number is None:
        return warning(f"qstat names no release ({version!r})", "OpenPBS 20 or newer is needed")
    if int(number[0]) < _OLDEST_RELEASE:
        return problem(f"PBS {version}: its hooks run on Python 2", "OpenPBS 20 or newer is needed")
    return ok(f"PBS {version}")


def clock(server: PbsServer, now: int) -> Finding:
    """Look whether the server's clock is this host's."""
    told = server.status("-B", "-f").get("timestamp")
    if not isinstance(told, int | float):
        return warning("qstat does not tell the server's time", "compare the hosts' clocks")
    apart = abs(int(told) - now)
    if apart > _CLOCK_PROBLEM_S:
        return problem(
            f"the server's clock is {apart} s from this host's: tables look old or from the future",
            "set the clocks",
        )
    if apart > _CLOCK_WARNING_S:
        return warning(f"the server's clock is {apart} s from this host's", "set the clocks")
    return ok(f"the server's clock is {apart} s from this host's")


def _ours(hooks: Mapping[str, HookRegistration]) -> HookRegistration:
    try:
        return hooks[HOOK]
    except KeyError:
        raise StateError(f"there is no hook {HOOK}; {_INSTALL}") from None


def registered(hooks: Mapping[str, HookRegistration]) -> Finding:
    """Look whether the hook is there and enabled."""
    if not _ours(hooks).enabled:
        return problem(
            "the hook is disabled: users can't lower a planned job's walltime below soft_walltime",
            f"qmgr -c 'set hook {HOOK} enabled = true', or foretime uninstall pbs --yes",
        )
    return ok(f"hook {HOOK} is registered and enabled")


def events(hooks: Mapping[str, HookRegistration]) -> Finding:
    """Look whether it runs at every event that it is for."""
    have, want = _ours(hooks).events, registration()["event"].split(",")
    missing = [name for name in want if name not in have]
    if not missing:
        return ok(", ".join(want))
    return problem(f"it does not run at {', '.join(missing)}", _INSTALL)


def alarm(hooks: Mapping[str, HookRegistration]) -> Finding:
    """Look whether the server waits long enough: at an alarm it rejects the request."""
    seconds = _ours(hooks).number("alarm")
    if seconds is None or seconds < _LEAST_ALARM_S:
        return problem(
            f"its alarm is {seconds} s: a busy server would reject jobs",
            f"qmgr -c 'set hook {HOOK} alarm = {registration()['alarm']}'",
        )
    return ok(f"{seconds} s")


def order(hooks: Mapping[str, HookRegistration]) -> Finding:
    """Look whether it runs after the site's own hooks, which may change what it judges."""
    ours = _ours(hooks)
    place = ours.number("order") or 1
    later = [
        hook.name
        for hook in hooks.values()
        if hook.name != HOOK and hook.events & ours.events and (hook.number("order") or 1) >= place
    ]
    if later:
        return warning(
            f"{', '.join(later)} may run after it (order {place})",
            f"qmgr -c 'set hook {HOOK} order = {HIGHEST_ORDER}', and give those a lower one",
        )
    return ok(f"{place}, after every other")


def script(server: PbsServer) -> Finding:
    """Look whether the server runs the script of this release."""
    _ours(server.hooks())
    shipped = plugin_file("pbs/foretime_hook.py").read_text(encoding="utf-8")
    if server.hook_content(HOOK, SCRIPT).strip() != shipped.strip():
        return warning("it is not this release's script", _INSTALL)
    return ok("this release's")


def _settings_of(server: PbsServer) -> dict[str, Any]:
    """Give the hook's settings, defaults included."""
    _ours(server.hooks())
    values: dict[str, Any] = json.loads(
        plugin_file("pbs/foretime_hook.CF").read_text(encoding="utf-8")
    )
    text = server.hook_content(HOOK, CONFIGURATION)
    if not text.strip():
        return values
    try:
        given: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise StateError(
            f"the hook's configuration is not JSON ({error}): every job is left alone; {_INSTALL}"
        ) from error
    unknown = sorted(set(given) - set(values)) if isinstance(given, dict) else ["no object"]
    if unknown:
        raise StateError(
            f"the hook's configuration has what it does not know ({', '.join(unknown)}): every job "
            f"is left alone; {_INSTALL}"
        )
    return values | given


def configuration(server: PbsServer, settings: Settings) -> Finding:
    """Look whether the hook reads the table that the daemon writes."""
    table = _settings_of(server)["table"]
    if table != settings.table.path:
        return warning(
            f"the hook reads {table}, the daemon writes {settings.table.path}",
            f"{_INSTALL} --settings FILE, unless the table is copied there",
        )
    return ok(f"it reads {table}")


def disable_file(server: PbsServer) -> Finding:
    """Look whether planning is switched off."""
    path = _settings_of(server)["disable_file"]
    if path and os.path.lexists(path):
        return warning(f"{path} exists: no job is planned", f"rm {path}, to switch it on")
    return ok(f"{path} does not exist" if path else "none is configured")


def other_hooks(server: PbsServer) -> Finding:
    """Look for another hook that sets soft_walltime: ours leaves what it set alone."""
    others = [
        hook.name
        for hook in server.hooks().values()
        if hook.name != HOOK and hook.enabled and _sets_soft_walltime(server, hook.name)
    ]
    if others:
        return problem(
            f"{', '.join(others)} deals with soft_walltime, too",
            "disable it, or leave its queues and users alone (hook.leave_queues)",
        )
    return ok("none deals with soft_walltime")


def _sets_soft_walltime(server: PbsServer, name: str) -> bool:
    """Whether a script has soft_walltime in its code; in comments alone it does not count."""
    text = server.hook_content(name, SCRIPT)
    if "soft_walltime" not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return True
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    names = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return any(text == "soft_walltime" for text in (*constants, *names))


def defaults(server: PbsServer) -> Finding:
    """Look for a default soft_walltime: jobs that ours leaves alone would get it."""
    holders = {
        **_entries(server.status("-B", "-f"), "Server"),
        **_entries(server.status("-Q", "-f"), "Queue"),
    }
    having = [
        name
        for name, attributes in holders.items()
        if "soft_walltime" in (attributes.get("resources_default") or {})
    ]
    if having:
        return warning(
            f"{', '.join(having)}: resources_default.soft_walltime is set, also for jobs that the "
            "hook leaves alone; a shorter walltime is refused with it",
            "unset it by qmgr",
        )
    return ok("none")


def _entries(answer: Mapping[str, Any], kind: str) -> dict[str, Mapping[str, Any]]:
    entries = answer.get(kind)
    return dict(entries) if isinstance(entries, dict) else {}


def job_classes(scheduler: PbsScheduler) -> Finding:
    """Look whether pbs_sched tells jobs apart by soft_walltime, too."""
    try:
        line = scheduler.line()
    except StateError as error:
        return warning(str(error), "run this as root on the scheduler's host")
    if line is not None and not line.missing:
        return ok("soft_walltime is in the line resources: of sched_config")
    what = "has no line resources:" if line is None else f"has no soft_walltime in {line.before!r}"
    return warning(
        f"{scheduler.config} {what}: planned jobs are not looked at once an unplanned one that "
        "asks for the same can't run",
        _INSTALL
        if line is not None
        else "add one with all resources that count, soft_walltime too",
    )


def starts(server: PbsServer) -> Finding:
    """Look whether PBS sorts jobs by the rank that raises them."""
    formula = formula_of(server)
    if formula is None:
        return problem(f"job_sort_formula is not {RANK}: no job is started at once", _INSTALL)
    if formula != RANK:
        return problem(
            f"job_sort_formula is the site's own ({formula}): no job is started at once",
            'set queue_order.order = "none"',
        )
    if (found := resource_type(server)) != "long":
        if not found:
            return problem(f"there is no resource {RANK}", f"qmgr -c '{RESOURCE_DIRECTIVE}'")
        return problem(
            f"the resource {RANK} is a {found}, which keeps no rank as it was set",
            f"qmgr -c '{TYPE_DIRECTIVE}', once PBS remembers no job that had it",
        )
    return ok(f"job_sort_formula is {RANK}")


def primetime(home: Path | None) -> Finding:
    """Look whether the scheduler keeps jobs out of primetime: then the hook plans none."""
    if home is None:
        return warning("PBS_HOME is not known here", "run this on the PBS server's host")
    path = home / "sched_priv" / "sched_config"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return warning(f"{path}: {error.strerror}", "run this as root on the scheduler's host")
    found = re.search(r"^\s*backfill_prime\s*:\s*(\S+)(?:[ \t]+(\S+))?", text, flags=re.MULTILINE)
    if found and found[1].lower() == "true":
        return warning(
            f"{path}: backfill_prime is on, so the hook leaves every job alone: the scheduler "
            "judges by soft_walltime whether a job ends before primetime",
            "nothing to do, unless primetime need not be kept free",
        )
    return ok("backfill_prime is off")


def accounting(folder: str) -> Finding:
    """Look whether the daemon's user can read the accounting logs, which PBS keeps for root."""
    if not folder:
        return ok("finished jobs come from qstat -x")
    user = _daemon_user(folder)
    if isinstance(user, Finding):
        return user
    said = _fails_as(user, "ls", "--", folder)
    if not said:
        days = sorted(path for path in Path(folder).iterdir() if FILE_NAME.fullmatch(path.name))
        if not days:
            return warning(f"{folder} has no accounting logs", "name theirs in pbs_accounting_dir")
        said = _fails_as(user, "head", "-c", "1", "--", str(days[-1]))
    if said:
        return problem(f"{DAEMON_USER} can't read the accounting logs: {said}", _RIGHTS)
    return ok(f"{DAEMON_USER} can read {folder}")


def dedicated_time(file: str) -> Finding:
    """Look whether the daemon's user can read when the scheduler has dedicated time."""
    if not file or not os.path.lexists(file):
        return ok(f"there is no {file}" if file else "there is none, by the settings")
    user = _daemon_user(file)
    if isinstance(user, Finding):
        return user
    said = _fails_as(user, "head", "-c", "1", "--", file)
    if said:
        return warning(
            f"{DAEMON_USER} can't read it: {said}; jobs keep their plans when one is announced",
            _RIGHTS,
        )
    return ok(f"{DAEMON_USER} can read {file}")


def _daemon_user(path: str) -> pwd.struct_passwd | Finding:
    """Give the daemon's user, whose rights can be tried, or why they can't be."""
    try:
        user = pwd.getpwnam(DAEMON_USER)
    except KeyError:
        return warning(
            f"there is no user {DAEMON_USER} here: whoever runs the daemon must read {path}",
            "make the user (contrib/systemd/foretime.sysusers)",
        )
    if os.geteuid() not in (0, user.pw_uid):
        return warning(f"what {DAEMON_USER} may read is not known", "run this as root")
    return user


def _fails_as(user: pwd.struct_passwd, *command: str) -> str:
    """Run a command as another user; give what it complains of, "" if of nothing."""
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        groups = os.getgrouplist(user.pw_name, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}
    done = subprocess.run(  # noqa: S603 - the command is ours, no shell is in between
        command, cwd="/", capture_output=True, text=True, check=False, timeout=60, **as_user
    )
    return "" if done.returncode == 0 else done.stderr.strip() or f"{command[0]} failed"
