"""Puts the hook into a Slurm: all of it or nothing, in the safe order.

First the soft limit, then the hook, for a time_min without the soft limit is what a job is killed
at (docs/left_alone.md: V2). `foretime_sidecar.install.slurm_uninstall` takes it out again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.clients.client import SchedulerConfiguration
from foretime_sidecar.clients.slurm.controller import SlurmController, slurm_conf_path
from foretime_sidecar.clients.slurm.release import SOFT_LIMIT_SINCE, slurm_release
from foretime_sidecar.install.installed_files import (
    FileChange,
    InstallRecord,
    digest,
    file_step,
    put_file,
    read_file,
)
from foretime_sidecar.install.lua_trial import lua_library, lua_version, missing_package, plugin_of
from foretime_sidecar.install.slurm_conf import SlurmConf, octets
from foretime_sidecar.install.slurm_script import (
    attach_line,
    calls_the_hook,
    check_script,
    ready_made,
    with_line,
    without_line,
)
from foretime_sidecar.install.steps import Outcome, Undo, do_all
from foretime_sidecar.ordering.start_way import why_none_raised
from foretime_sidecar.safety.enforce_warning import INSTEAD, MEASURED
from foretime_sidecar.safety.planning_switch import switch_off
from foretime_sidecar.settings.settings import Settings

RECORD = "foretime.installed"
"""Beside slurm.conf: what was installed, and what was there before."""

SOFT_LIMIT = ("SchedulerParameters", "time_min_as_soft_limit")
LUA = ("JobSubmitPlugins", "lua")
PROLOG = "PrologSlurmctld"


@dataclass(slots=True)
class Plan:
    """What an installation will do, in its order.

    Attributes
    ----------
    soft_limit
        Changes of slurm.conf that set the soft limit; empty if it is set or not wanted.
    hook
        Files of the hook, then slurm.conf.
    lines
        What is changed in slurm.conf, as one reads it there.
    script_line
        The line that is put into the site's own job_submit.lua, "" if none is.
    links
        Symbolic links to make, and where they point.
    packages
        What must be installed first.
    notes
        What is worth knowing besides.
    first_prolog
        Whether PrologSlurmctld is the first one, which slurmctld must be restarted for.
    record
        What will stand in the record.
    """

    soft_limit: list[FileChange] = field(default_factory=list)
    hook: list[FileChange] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    script_line: str = ""
    links: dict[Path, str] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first_prolog: bool = False
    record: InstallRecord = field(default_factory=InstallRecord)

    @property
    def empty(self) -> bool:
        """Whether all is as it should be."""
        return not (self.soft_limit or self.hook or self.links or self.packages)


class SlurmSite:
    """A Slurm as seen from slurmctld's host.

    Parameters
    ----------
    controller
        slurmctld.
    settings
        The daemon's settings.
    conf
        slurm.conf; where slurmctld says it is if ``None``.
    """

    def __init__(
        self, controller: SlurmController, settings: Settings, conf: Path | None = None
    ) -> None:
        if settings.scheduler.kind != "slurm":
            raise InputError(
                'the settings are for PBS (scheduler.kind = "pbs"): foretime install pbs'
            )
        self.controller = controller
        self.settings = settings
        self.configuration = controller.configuration()
        self.conf_path = conf or slurm_conf_path(self.configuration)
        self.folder = self.conf_path.parent
        self.record_path = self.folder / RECORD

    @property
    def version(self) -> str:
        """Slurm's release."""
        return self.configuration["SLURM_VERSION"]

    @property
    def as_the_daemon_reads_it(self) -> SchedulerConfiguration:
        """The configuration as the daemon goes by it."""
        return self.controller.client.configuration()

    @property
    def has_soft_limit(self) -> bool:
        """Whether this release knows the soft limit."""
        return slurm_release(self.version) >= SOFT_LIMIT_SINCE


def make_plan(site: SlurmSite) -> Plan:
    """Say what an installation would change; nothing is changed.

    Raises
    ------
    InputError
        If the site is such that it can't be done; the message says what to do.
    """
    plan = Plan(record=InstallRecord.read(site.record_path) or InstallRecord())
    missing = missing_package(site.configuration.get("PluginDir", ""))
    if missing:
        plan.packages.append(missing)
    conf = SlurmConf(site.conf_path)
    had = dict(conf.texts)
    _plan_soft_limit(site, conf, had, plan)
    before_hook = dict(conf.texts)
    _plan_scripts(site, conf, plan)
    _plan_prolog(site, conf, plan)
    _add_word(conf, LUA, plan)
    plan.hook += _conf_changes(conf, before_hook)
    return plan


def _add_word(conf: SlurmConf, setting: tuple[str, str], plan: Plan) -> None:
    key, word = setting
    if word in (one.lower() for one in conf.words(key)):
        return
    conf.add(key, word)
    plan.record.words.append(setting)
    plan.lines.append(f"{key}={conf.value(key)}")


def _conf_changes(conf: SlurmConf, before: dict[Path, str]) -> list[FileChange]:
    return [
        FileChange(path, octets(before[path]), octets(text))
        for path, text in conf.texts.items()
        if text != before[path]
    ]


def _plan_soft_limit(site: SlurmSite, conf: SlurmConf, before: dict[Path, str], plan: Plan) -> None:
    if site.settings.starts_now:
        why_not = why_none_raised(site.as_the_daemon_reads_it)
        if why_not:
            plan.notes.append(f"as things are, enforce will start no job at once: {why_not}")
        return
    if site.settings.hook.mechanism != "slurm-soft-limit":
        return
    if not site.has_soft_limit:
        plan.notes.append(
            f"Slurm {site.version} has no soft limit (23.11 has): the hook will observe or advise, "
            'but not enforce, unless hook.mechanism = "rewrite-limit"'
        )
        return
    plan.notes.append(f"{MEASURED}: {INSTEAD}")
    _add_word(conf, SOFT_LIMIT, plan)
    plan.soft_limit = _conf_changes(conf, before)
    if plan.soft_limit:
        plan.notes.append(
            "from then on a user's own --time-min is a soft limit, too: such a job keeps its whole "
            "--time (foretime doctor names these jobs)"
        )


def _plan_scripts(site: SlurmSite, conf: SlurmConf, plan: Plan) -> None:
    folder, hook = site.folder, site.settings.hook
    module = plugin_file("slurm/foretime.lua").read_text(encoding="utf-8")
    table = site.settings.table.path
    script_path = folder / "job_submit.lua"
    there = read_file(script_path)
    known = plan.record.files.get(str(script_path))
    ours = known is not None and known.before is None and digest(there) == known.written
    if there is None or ours:
        script = ready_made(folder, table, hook.disable_file)
    else:
        text = there.decode("utf-8", "surrogateescape")
        if LUA[1] not in (word.lower() for word in conf.words(LUA[0])):
            raise InputError(
                f"{script_path} is there but not in use ({LUA[0]} lacks lua), and would come to "
                f"life with the hook; move it away, or put lua into {LUA[0]} first"
            )
        line = attach_line(folder / "foretime.lua", table, hook.disable_file)
        script = text
        if not calls_the_hook(without_line(text)):
            script = with_line(text, line)
            if script != text:
                plan.script_line = line
    plugin = plugin_of(site.configuration.get("PluginDir", ""))
    if plugin is not None and not plan.packages:
        check_script(lua_library(plugin), script, module, folder)
        plan.notes.append(
            f"job_submit.lua and foretime.lua load in Lua {lua_version(lua_library(plugin))}, "
            "which Slurm is built with"
        )
    # The module first: the script looks for it.
    for path, text in ((folder / "foretime.lua", module), (script_path, script)):
        before = read_file(path)
        if before != octets(text):
            plan.hook.append(FileChange(path, before, octets(text)))


def _plan_prolog(site: SlurmSite, conf: SlurmConf, plan: Plan) -> None:
    if site.settings.hook.mechanism != "rewrite-limit":
        return
    ours = site.folder / "prolog_slurmctld"
    found = conf.find(PROLOG)
    if len(found) > 1:
        raise InputError(
            f"{site.conf_path}: {PROLOG} is there {len(found)} times: begin with one script that "
            "calls the others"
        )
    theirs = found[0].value if found else ""
    if theirs != str(ours):
        if theirs:
            link = ours.with_name("prolog_slurmctld.site")
            if link.is_symlink() or link.exists():
                raise InputError(f"{link} is there already: move it away")
            plan.links[link] = theirs
            plan.notes.append(f"{theirs} runs after it, and its exit code counts")
        if read_file(ours) is not None and str(ours) not in plan.record.files:
            raise InputError(f"{ours} is there and not Foretime's: move it away")
        if not theirs:
            plan.first_prolog = True
            plan.notes.append(
                f"restart slurmctld, then foretime enable: Slurm 22.05 shows a first {PROLOG} at "
                "once, but runs it only from its next start on, and until then a lowered limit is "
                f"not raised; {site.settings.hook.disable_file} keeps the hook off so long"
            )
        plan.record.values.setdefault(PROLOG, theirs)
        conf.set(PROLOG, str(ours))
        plan.lines.append(f"{PROLOG}={ours}")
    content = plugin_file("slurm/prolog_slurmctld").read_bytes()
    before = read_file(ours)
    if before != content:
        plan.hook.append(FileChange(ours, before, content, 0o755))


def install(site: SlurmSite, plan: Plan, outcome: Outcome, undo: Undo) -> None:
    """Do what a plan says.

    Parameters
    ----------
    site, plan
        The site, and what `make_plan` says of it.
    outcome
        Told what was done.
    undo
        Told how to undo each step.

    Raises
    ------
    SchedulerError, StateError
        If a step fails.
    """
    record_before = read_file(site.record_path)
    for change in (*plan.soft_limit, *plan.hook):
        plan.record.note(change)
    plan.record.links += [str(link) for link in plan.links]
    undo.steps.append(site.controller.reread)  # the last that is done of it
    plan.record.write(site.record_path)
    undo.steps.append(lambda: put_file(site.record_path, record_before, 0o600))
    if plan.soft_limit:
        _put_all(plan.soft_limit, outcome, undo)
        site.controller.reconfigure(*SOFT_LIMIT, there=True)
        outcome.done.append("scontrol reconfigure")
    for link, target in plan.links.items():
        link.symlink_to(target)
        undo.steps.append(link.unlink)
        outcome.done.append(f"ln -s {target} {link}")
    switch = Path(site.settings.hook.disable_file)
    if plan.first_prolog and switch_off(switch):
        undo.steps.append(lambda: switch.unlink(missing_ok=True))
        outcome.done.append(f"touch {switch}")
    if plan.hook:
        _put_all(plan.hook, outcome, undo)
        # slurmctld loads the module with the script, whose time it looks at.
        os.utime(site.folder / "job_submit.lua")
        site.controller.reconfigure(*LUA, there=True)
        outcome.done.append("scontrol reconfigure")


def _put_all(changes: list[FileChange], outcome: Outcome, undo: Undo) -> None:
    do_all((file_step(change) for change in changes), outcome, undo)
