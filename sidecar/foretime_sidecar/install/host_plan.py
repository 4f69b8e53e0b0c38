"""What a host needs before the hook, as a plan: only what is missing is in it."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.install.contrib_files import contrib_file
from foretime_sidecar.install.host import USER, Host, own_program
from foretime_sidecar.install.installed_files import (
    FileChange,
    InstallRecord,
    digest,
    file_step,
    put_file,
    read_file,
)
from foretime_sidecar.install.steps import Step
from foretime_sidecar.settings.daemon_address import parse_listen
from foretime_sidecar.settings.settings import Settings

RECORD = "foretime.installed"
"""Beside the settings: what of the host `foretime uninstall` undoes."""

DAEMON = "foretime.service"
UNITS = (DAEMON, "foretime-watchdog.service", "foretime-watchdog.timer")
ENABLED = (DAEMON, "foretime-watchdog.timer")
_UNIT_FOLDER = "/etc/systemd/system"
_HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user")))  # ProtectHome of the units


@dataclass(slots=True)
class HostPlan:
    """Steps on a host, in their order.

    Attributes
    ----------
    host
        The host.
    settings_file
        The daemon's settings.
    steps
        What is to be done.
    changes
        Files among it that are written, to be shown as differences.
    notes
        What is worth knowing besides.
    record
        What `foretime uninstall` will undo.
    """

    host: Host
    settings_file: Path
    steps: list[Step] = field(default_factory=list)
    changes: dict[str, FileChange] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    record: InstallRecord = field(default_factory=InstallRecord)

    @classmethod
    def begin(cls, host: Host, settings_file: Path) -> HostPlan:
        """Begin a plan with what is recorded already."""
        record = InstallRecord.read(_record_path(host, settings_file))
        return cls(host, settings_file, record=record or InstallRecord())

    def command(
        self, *argv: str, undo: tuple[str, ...] = (), stays: bool = False, then: str = ""
    ) -> None:
        """Plan a command.

        Parameters
        ----------
        argv, undo
            The command, and the one that undoes it if a later step fails.
        stays
            Whether `foretime uninstall` leaves what it did.
        then
            Words behind it, where it is shown.
        """
        back = (lambda: self.host.run(*undo)) if undo else None
        shown = shlex.join(argv) + (f"  # {then}" if then else "")
        self.steps.append(Step(shown, lambda: self.host.run(*argv), back))
        if undo and not stays:
            self.record.commands.append(list(undo))

    def file(self, change: FileChange, *, stays: bool = False) -> None:
        """Plan a file."""
        step = file_step(change)
        self.steps.append(step)
        self.changes[step.shown] = change
        if not stays:
            self.record.note(change)

    def remember(self, at: int) -> None:
        """Plan the record as the step ``at``, unless it is in place or has nothing to tell."""
        path = _record_path(self.host, self.settings_file)
        before, after = read_file(path), self.record.as_bytes()
        if after != (before or InstallRecord().as_bytes()):
            change = FileChange(path, before, after, 0o600)
            self.steps.insert(at, file_step(change))
            self.changes[self.steps[at].shown] = change


def _record_path(host: Host, settings_file: Path) -> Path:
    return host.path(settings_file.with_name(RECORD))


def plan_user(plan: HostPlan) -> None:
    """Plan the daemon's user (contrib/systemd/foretime.sysusers), unless there is one."""
    if plan.host.has_user(USER):
        return
    plan.command(
        *("useradd", "--system", "--user-group", "--comment", "Foretime"),
        *("--home-dir", "/var/lib/foretime", "--no-create-home"),
        *("--shell", "/usr/sbin/nologin", USER),
        undo=("userdel", USER),
        stays=True,
    )


def plan_folders(plan: HostPlan, settings: Settings) -> None:
    """Plan the folders that are missing (contrib/systemd/foretime.tmpfiles)."""
    state = {
        Path(settings.store.path).parent: "0750",
        Path(settings.table.path).parent: "0750",
    }
    socket = parse_listen(settings.api.listen)
    if isinstance(socket, Path) and not plan.host.runs_systemd:
        state[socket.parent] = "0755"  # else the unit's RuntimeDirectory
    for folder in dict.fromkeys(
        (plan.settings_file.parent, Path(settings.hook.disable_file).parent)
    ):
        _plan_folder(plan, folder, "0755", "root")
    for folder, mode in state.items():
        _plan_folder(plan, folder, mode, USER)


def plan_host(
    host: Host,
    settings: Settings,
    settings_file: Path,
    text: str,
    rights: Callable[[HostPlan], None],
    drop_in: str = "",
) -> HostPlan:
    """Give all that a host needs before the hook.

    Parameters
    ----------
    host
        The host.
    settings, settings_file, text
        The daemon's settings, where they are, and what to write there if there is no file.
    rights
        Plans what the scheduler must let the daemon's user do, and the scheduler's user the daemon.
    drop_in
        As of `plan_units`.

    Raises
    ------
    InputError
        If it can't be done as things are.
    SchedulerError, StateError
        If it can't be told how things are.
    """
    if not host.is_root:
        raise InputError("be root: much that an installation looks at and changes is root's alone")
    plan = HostPlan.begin(host, settings_file)
    plan_user(plan)
    plan_folders(plan, settings)
    recorded_at = len(plan.steps)
    plan_settings(plan, text)
    rights(plan)
    plan_units(plan, drop_in)
    plan.remember(recorded_at)
    return plan


def _plan_folder(plan: HostPlan, folder: Path, mode: str, owner: str) -> None:
    if plan.host.path(folder).is_dir():
        return
    plan.command(
        *("install", "--directory", f"--mode={mode}", f"--owner={owner}", f"--group={owner}"),
        str(folder),
        undo=("rm", "--recursive", "--force", str(folder)),  # it was not there before
        stays=True,
    )


def plan_settings(plan: HostPlan, text: str) -> None:
    """Plan the settings file, which stays as it is where there is one."""
    path = plan.host.path(plan.settings_file)
    before = read_file(path)
    if before is None:
        plan.file(FileChange(path, before, text.encode()), stays=True)


def plan_units(plan: HostPlan, drop_in: str = "") -> None:
    """Plan the units that no package has brought, and that the daemon runs and begins at boot.

    Parameters
    ----------
    plan
        The plan.
    drop_in
        A file of contrib/systemd/foretime.service.d that the units need besides; "" if none.

    Raises
    ------
    InputError
        If the daemon could not be run from where Foretime is installed.
    """
    host = plan.host
    program, settings = own_program(), plan.settings_file
    if not host.runs_systemd:
        plan.notes.append(
            "systemd does not run here: start the daemon as its user and keep it running, such as "
            f"by runuser -u {USER} -- {program} serve --settings {settings}"
        )
        return
    files = {f"{_UNIT_FOLDER}/{name}": f"systemd/{name}" for name in UNITS}
    files = {path: name for path, name in files.items() if not host.unit_folder(Path(path).name)}
    if files:
        _refuse_hidden(program)
    if drop_in:
        for unit in UNITS[:2]:
            files[f"{_UNIT_FOLDER}/{unit}.d/{drop_in}"] = f"systemd/foretime.service.d/{drop_in}"
    first = len(plan.steps)
    for path, name in files.items():
        text = contrib_file(name).read_text(encoding="utf-8")
        text = text.replace("/usr/bin/foretime", str(program))
        text = text.replace("/etc/foretime/foretime.toml", str(settings))
        place = host.path(path)
        before = read_file(place)
        if before == text.encode():
            continue
        known = plan.record.files.get(str(place))
        if before is not None and (known is None or known.written != digest(before)):
            plan.notes.append(f"{place} is the site's own, and stays")
            continue
        if not place.parent.is_dir():
            _plan_folder(plan, Path(path).parent, "0755", "root")
        plan.file(FileChange(place, before, text.encode()))
    changed = len(plan.steps) > first
    if changed:
        plan.steps[first] = _reloading(host, plan.steps[first])
        plan.command("systemctl", "daemon-reload")
    if not all(host.succeeds("systemctl", "is-enabled", "--quiet", unit) for unit in ENABLED):
        stop = ("systemctl", "disable", "--now", *ENABLED)
        plan.command("systemctl", "enable", *ENABLED, undo=stop)
    if changed or not all(
        host.succeeds("systemctl", "is-active", "--quiet", unit) for unit in ENABLED
    ):
        plan.command("systemctl", "restart", *ENABLED)


def _reloading(host: Host, step: Step) -> Step:
    """Give the same step, after whose undoing, the last of the units', systemd reads them anew."""

    def undo() -> None:
        if step.undo is not None:
            step.undo()
        host.run("systemctl", "daemon-reload")

    return replace(step, undo=undo)


def _refuse_hidden(program: Path) -> None:
    for place in (program, Path(sys.base_prefix)):
        if any(folder in place.resolve().parents for folder in _HIDDEN):
            raise InputError(
                f"{place} is in a folder of a user's own, where a service may not look: install "
                "foretime elsewhere, such as in /opt/foretime"
            )


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the site has something else there
        folder.rmdir()


def undo_host(host: Host, settings_file: Path) -> tuple[list[Step], Callable[[], None]]:
    """Give the steps that undo what stands in the record, and what forgets the record."""
    path = _record_path(host, settings_file)
    record = InstallRecord.read(path)
    if record is None:
        return [], lambda: None
    steps = [
        Step(shlex.join(command), partial(host.run, *command))
        for command in reversed(record.commands)
    ]
    for name, file in record.files.items():
        place = Path(name)
        if digest(read_file(place)) == file.written:
            content = file.content_before()
            shown = f"rm {name}" if content is None else f"{name}: as it was before"
            steps.append(Step(shown, partial(put_file, place, content)))
    steps += [
        Step(f"rmdir {folder}", partial(_remove_empty, folder))
        for folder in sorted({Path(name).parent for name in record.files})
        if folder.suffix == ".d"
    ]
    if record.files and host.runs_systemd:
        steps.append(
            Step("systemctl daemon-reload", lambda: host.run("systemctl", "daemon-reload"))
        )
    return steps, lambda: put_file(path, None)
