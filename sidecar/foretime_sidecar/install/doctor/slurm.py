"""Checks of a Slurm and of the hook in it."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from pathlib import Path

from foretime_estimators.jobs.errors import ForetimeError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.clients.slurm.release import SOFT_LIMIT_SINCE
from foretime_sidecar.install.doctor.accounting import accounting
from foretime_sidecar.install.doctor.checkup import Check, Finding, ok, problem, warning
from foretime_sidecar.install.doctor.site_factors import (
    backfill_goes_on,
    may_raise,
    request_limit,
)
from foretime_sidecar.install.doctor.slurm_facts import SlurmFacts
from foretime_sidecar.install.doctor.table import local_file_system
from foretime_sidecar.install.installed_files import read_file
from foretime_sidecar.install.lua_trial import lua_library, missing_package, plugin_of
from foretime_sidecar.install.slurm_host import running_groups
from foretime_sidecar.install.slurm_install import LUA, PROLOG, SOFT_LIMIT
from foretime_sidecar.install.slurm_script import calls_the_hook, check_script
from foretime_sidecar.safety.enforce_warning import INSTEAD, MEASURED, lengthens_waits
from foretime_sidecar.settings.settings import Settings

_COMMANDS = ("scontrol", "squeue", "sacct", "sinfo")
_OLDEST, _RECOMMENDED = (22, 5), (25, 5, 4)
_CLOCK_WARNING_S, _CLOCK_PROBLEM_S = 60, 3600
_RECENT_S = 86_400
_MOST_NAMED = 5
_INSTALL = "foretime install slurm --yes"
_LEAST_FREE_BYTES = 200 * 1024 * 1024


def slurm_checks(
    settings: Settings,
    controller: SlurmController,
    now: int,
    commands_dir: str = "",
    conf: Path | None = None,
) -> list[tuple[str, Check]]:
    """Give the checks of a Slurm site, in an order in which the first that fails is the cause."""
    facts = SlurmFacts(settings, controller, conf)
    return [
        ("commands", lambda: commands(commands_dir)),
        ("Slurm release", lambda: release(facts)),
        ("clock", lambda: clock(facts, now)),
        ("scheduler", lambda: scheduler(facts)),
        ("soft limit", lambda: soft_limit(facts)),
        ("waits", lambda: waits(facts)),
        ("jobs raised", lambda: may_raise(facts)),
        ("backfill after updates", lambda: backfill_goes_on(facts)),
        ("limit of requests", lambda: request_limit(facts)),
        ("job_submit/lua", lambda: lua_plugin(facts)),
        ("job_submit.lua", lambda: script(facts)),
        ("foretime.lua", lambda: module(facts)),
        ("PrologSlurmctld", lambda: prolog(facts)),
        ("table for slurmctld", lambda: readable_for_slurmctld(facts)),
        (
            "accounting",
            lambda: accounting(facts.configuration, controller, facts.folder, facts.release),
        ),
        ("disable file", lambda: disable_file(Path(settings.hook.disable_file))),
        ("store", lambda: store(Path(settings.store.path))),
        ("hook reached", lambda: hook_reached(settings, now)),
        ("users' own --time-min", lambda: users_time_min(facts)),
    ]


def commands(commands_dir: str) -> Finding:
    """Look for Slurm's commands."""
    missing = [name for name in _COMMANDS if not shutil.which(name, path=commands_dir or None)]
    if missing:
        return problem(
            f"not found: {', '.join(missing)}",
            "run this on slurmctld's host, or name their folder with --commands-dir",
        )
    return ok(", ".join(_COMMANDS))


def release(facts: SlurmFacts) -> Finding:
    """Look for a release that does what is asked of it."""
    version, native = facts.configuration["SLURM_VERSION"], facts.settings.hook.mechanism
    if facts.release < _OLDEST:
        return problem(f"Slurm {version} is too old", "22.05 or newer is needed")
    settings = facts.settings
    if native != "slurm-soft-limit" or settings.hook.mode != "enforce" or settings.starts_now:
        return ok(f"Slurm {version}")
    if facts.release < SOFT_LIMIT_SINCE:
        return problem(
            f"Slurm {version} has no soft limit: no job is planned",
            'upgrade Slurm to 25.05.4 or newer, or set hook.mechanism = "rewrite-limit"',
        )
    if facts.release < _RECOMMENDED:
        return warning(
            f"Slurm {version} plans the head of the queue by time limits still",
            "25.05.4 and newer do not",
        )
    return ok(f"Slurm {version}")


def clock(facts: SlurmFacts, now: int) -> Finding:
    """Look whether slurmctld's clock is this host's."""
    try:
        apart = abs(facts.controller.clock() - now)
    except ValueError:
        return warning("scontrol does not tell slurmctld's time", "compare the hosts' clocks")
    told = f"slurmctld's clock is {apart} s from this host's"
    if apart > _CLOCK_PROBLEM_S:
        return problem(f"{told}: tables look old or from the future", "set the clocks")
    return warning(told, "set the clocks") if apart > _CLOCK_WARNING_S else ok(told)


def scheduler(facts: SlurmFacts) -> Finding:
    """Look for backfill: nothing else plans with a soft limit."""
    kind = facts.configuration.get("SchedulerType", "")
    if kind != "sched/backfill":
        return problem(f"SchedulerType={kind}: nothing plans with t_sched", "use sched/backfill")
    return ok(kind)


def soft_limit(facts: SlurmFacts) -> Finding:
    """Look whether time_min is a soft limit, where the hook needs it."""
    there = SOFT_LIMIT[1] in facts.words(SOFT_LIMIT[0])
    hook = facts.settings.hook
    if facts.settings.starts_now:
        return ok("not needed, as no job is planned short")
    if hook.mechanism != "slurm-soft-limit":
        return ok(f"not needed with hook.mechanism = {hook.mechanism}")
    if there:
        return ok(f"{SOFT_LIMIT[1]} is set")
    if facts.release < SOFT_LIMIT_SINCE:
        return warning("this release has none: the hook can only observe or advise", "upgrade")
    if hook.mode == "enforce":
        return problem(f"{SOFT_LIMIT[0]} lacks {SOFT_LIMIT[1]}: no job is planned", _INSTALL)
    return warning(f"{SOFT_LIMIT[0]} lacks {SOFT_LIMIT[1]}", f"before enforce: {_INSTALL}")


def waits(facts: SlurmFacts) -> Finding:
    """Look for the mode with which longer waits were measured."""
    if lengthens_waits(facts.settings):
        return warning(MEASURED, INSTEAD)
    return ok(f"hook.mode = {facts.settings.hook.mode}")


def lua_plugin(facts: SlurmFacts) -> Finding:
    """Look whether slurmctld runs job_submit.lua."""
    missing = missing_package(facts.configuration.get("PluginDir", ""))
    if LUA[1] not in facts.words(LUA[0]):
        return problem(f"{LUA[0]} lacks lua: the hook does not run", missing or _INSTALL)
    if missing:
        return warning(missing, "compare with slurmctld's own host")
    return ok(f"{LUA[0]}={facts.configuration[LUA[0]]}")


def script(facts: SlurmFacts) -> Finding:
    """Look whether the script calls the hook, with the daemon's table, and loads."""
    path = facts.folder / "job_submit.lua"
    text = (read_file(path) or b"").decode("utf-8", "replace")
    if not calls_the_hook(text):
        return problem(f"{path} does not call the hook", _INSTALL)
    wanted = {
        "table.path": facts.settings.table.path,
        "hook.disable_file": facts.settings.hook.disable_file,
    }
    for name, value in wanted.items():
        if f'"{value}"' not in text:
            return problem(f"{path} does not name {value} ({name})", _INSTALL)
    plugin = plugin_of(facts.configuration.get("PluginDir", ""))
    if plugin is not None:
        code = (read_file(facts.folder / "foretime.lua") or b"").decode("utf-8", "replace")
        check_script(lua_library(plugin), text, code, facts.folder)
    return ok(f"{path} calls the hook, and loads")


def module(facts: SlurmFacts) -> Finding:
    """Look whether slurmctld has the hook of this release."""
    path = facts.folder / "foretime.lua"
    content = read_file(path)
    if content is None:
        return problem(f"{path} is not there", _INSTALL)
    if content != plugin_file("slurm/foretime.lua").read_bytes():
        return warning(f"{path} is not this release's", _INSTALL)
    return ok(f"{path} is this release's")


def prolog(facts: SlurmFacts) -> Finding:
    """Look whether lowered limits are raised when jobs start."""
    if facts.settings.hook.mechanism != "rewrite-limit":
        return ok("not needed")
    ours = str(facts.folder / "prolog_slurmctld")
    found = [value for key, value in facts.configuration.items() if key.startswith(PROLOG)]
    if ours not in found:
        return problem(
            f"{PROLOG} is {', '.join(filter(None, found)) or 'not set'}: no job is planned",
            _INSTALL,
        )
    if read_file(Path(ours)) != plugin_file("slurm/prolog_slurmctld").read_bytes():
        return warning(f"{ours} is not this release's", _INSTALL)
    if not os.access(ours, os.X_OK):
        return problem(f"{ours} can't be run: jobs keep the lowered limit", f"chmod 755 {ours}")
    if _older_than(facts, Path(ours)):
        return warning(
            f"slurmctld has not started since {facts.conf} and {ours} were changed: if {PROLOG} is "
            "its first one, Slurm 22.05 does not run it yet, and jobs keep the lowered limit until "
            "the daemon raises it",
            "restart slurmctld",
        )
    return ok(ours)


def _older_than(facts: SlurmFacts, script: Path) -> bool:
    """Whether slurmctld began before both slurm.conf and a script were changed.

    Newer releases begin anew at each scontrol reconfigure. Either file alone is changed for other
    reasons, too. In doubt it is not older.
    """
    try:
        began = int(facts.configuration.get("BOOT_TIME", ""))
        changed = min(path.stat().st_ctime for path in (facts.conf, script))
    except (ValueError, OSError):
        return False
    return int(changed) > began


def readable_for_slurmctld(facts: SlurmFacts) -> Finding:
    """Look whether slurmctld's account can get at the table, and open it safely."""
    path = Path(facts.settings.table.path)
    name = facts.configuration.get("SlurmUser", "").partition("(")[0]
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return warning(f"there is no user {name!r} here", "run this on slurmctld's host")
    groups = running_groups(facts.configuration) or {
        user.pw_gid,
        *(group.gr_gid for group in grp.getgrall() if name in group.gr_mem),
    }

    def may(place: Path, bit: int) -> bool:
        status = place.stat()
        if user.pw_uid == 0:
            return True
        if status.st_uid == user.pw_uid:
            return bool(status.st_mode & (bit << 6))
        if status.st_gid in groups:
            return bool(status.st_mode & (bit << 3))
        return bool(status.st_mode & bit)

    remedy = f"usermod --append --groups foretime {name}, and restart slurmctld"
    try:
        for folder in reversed(path.resolve().parents):
            if not may(folder, stat.S_IXOTH):
                return problem(f"{name} can't get through {folder}: jobs are left alone", remedy)
        if not may(path, stat.S_IROTH):
            return problem(f"{name} can't read {path}: jobs are left alone", remedy)
        if not may(path, stat.S_IWOTH):
            return warning(
                f"{name} can read {path} but not open it for writing, which guards slurmctld "
                "against a FIFO in its place",
                remedy,
            )
    except OSError as error:
        return problem(f"{path}: {error.strerror}", "start the daemon (foretime serve)")
    return ok(f"{name} can open {path}")


def disable_file(path: Path) -> Finding:
    """Look whether planning is switched off."""
    if os.path.lexists(path):
        return warning(f"{path} exists: no job is planned", "foretime enable, to switch it on")
    return ok(f"{path} does not exist")


def store(path: Path) -> Finding:
    """Look whether the store is safe where it is."""
    try:
        status, free = path.stat(), shutil.disk_usage(path.parent).free
    except OSError as error:
        return problem(f"{path}: {error.strerror}", "start the daemon, or correct store.path")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(f"others may open {path}, which tells of users", f"chmod 600 {path}")
    if free < _LEAST_FREE_BYTES:
        return warning(f"{free // 2**20} MiB are free at {path}", "make room on its file system")
    place = local_file_system(path, Path("/proc/self/mounts"))
    if place.remedy:
        return warning(place.message.split(":")[0], "put the store on a local disk")
    return ok(f"{path}, {status.st_size // 2**20} MiB")


def hook_reached(settings: Settings, now: int) -> Finding:
    """Look whether the jobs that should have been planned of late were."""
    if settings.hook.mode != "enforce":
        return ok(f"can't be told in mode {settings.hook.mode}, as nothing is changed")
    if settings.starts_now:
        return ok("not needed: jobs are raised, and the hook changes none")
    try:
        site = SiteDaemon(settings.api.listen)
        found = site.decisions(since=now - _RECENT_S, limit=10_000)["decisions"]
    except ForetimeError as error:
        return warning(f"can't be told: {str(error).partition('; ')[0]}", "start the daemon")
    missed = [one["job_id"] for one in found if one["action"] == "unplanned"]
    planned = sum(one["action"] == "planned" for one in found)
    if missed and not planned:
        return problem(
            f"{len(missed)} jobs of the last day should have been planned, and none was",
            "look at slurmctld's log for lines with foretime:",
        )
    if len(missed) > planned:
        return warning(
            f"{len(missed)} jobs of the last day should have been planned and were not, such as "
            f"{', '.join(missed[:_MOST_NAMED])}; {planned} were",
            "foretime explain JOBID tells of each",
        )
    return ok(f"{planned} jobs planned in the last day")


def users_time_min(facts: SlurmFacts) -> Finding:
    """Look for jobs that profit from the soft limit by a --time-min of their user's own."""
    if SOFT_LIMIT[1] not in facts.words(SOFT_LIMIT[0]):
        return ok("no soft limit is set, so it means what it always did")
    found = facts.users_time_min()
    if not found:
        return ok("no waiting job has one")
    named = ", ".join(found[:_MOST_NAMED]) + (" and more" if len(found) > _MOST_NAMED else "")
    return warning(
        f"{len(found)} waiting jobs: {named}; they are backfilled by it and keep their whole limit",
        'hook.user_time_min = "clear" plans those that Foretime knows by what it knows',
    )
