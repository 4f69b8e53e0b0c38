"""Takes the hook out of a Slurm in the safe order, and puts back what was there before.

No new job is planned, waiting jobs get back what their users asked for, the hook goes, and the soft
limit last, for a time_min without it is what a job is killed at (docs/left_alone.md: V2).
"""

from __future__ import annotations

from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.daemon.daemon_lock import daemon_lives
from foretime_sidecar.install.installed_files import InstallRecord, digest, put_file, read_file
from foretime_sidecar.install.slurm_conf import SlurmConf, octets
from foretime_sidecar.install.slurm_install import LUA, SOFT_LIMIT, SlurmSite
from foretime_sidecar.install.slurm_script import without_line
from foretime_sidecar.install.steps import Outcome
from foretime_sidecar.safety.limit_repairs import planned_short
from foretime_sidecar.safety.planning_switch import give_back_on_slurm, switch_off, switch_on


def uninstall_steps(site: SlurmSite) -> list[str]:
    """Say what `uninstall` does, in its order; empty if nothing is installed."""
    record = InstallRecord.read(site.record_path)
    if record is None:
        return []
    out = [f"{key}: without {word}" for key, word in record.words if (key, word) != SOFT_LIMIT]
    out += [f"{key}={before}".rstrip("=") for key, before in record.values.items()]
    steps = [
        f"touch {site.settings.hook.disable_file}: no new job is planned",
        "waiting jobs get back what their users asked for (TimeMin, TimeLimit)",
        "jobs lose the site factors that the daemon has given them",
        *(f"{site.conf_path}: {change}" for change in out),
        *(
            _file_step(name, file.before is None)
            for name, file in record.files.items()
            if name.endswith((".lua", "prolog_slurmctld"))
        ),
        "scontrol reconfigure",
    ]
    if SOFT_LIMIT in record.words:
        steps += [f"{site.conf_path}: {SOFT_LIMIT[0]}: without {SOFT_LIMIT[1]}"]
        steps += ["scontrol reconfigure"]
    last = f"rm {site.settings.hook.disable_file}, if it was not there before"
    if site.settings.starts_jobs or site.settings.queue_order.keeps_order:
        last += ", and no daemon runs that would change the queue's order again"
    return [*steps, last]


def _file_step(name: str, added: bool) -> str:
    return f"rm {name}" if added else f"{name}: as it was before"


def uninstall(site: SlurmSite, outcome: Outcome) -> None:
    """Take the hook out, jobs included, and put back what was there before.

    While jobs run that were planned short, the soft limit stays, and a note says so.

    Parameters
    ----------
    site
        The site.
    outcome
        Told what was done.

    Raises
    ------
    SchedulerError
        If a step fails; the soft limit stays then, no job is planned, and this can be run again.
    """
    record = InstallRecord.read(site.record_path)
    if record is None:
        outcome.notes.append(f"there is no {site.record_path}: nothing is installed")
        return
    switch = Path(site.settings.hook.disable_file)
    made = switch_off(switch)
    if made:
        outcome.done.append(f"touch {switch}")
    _clear_jobs(site, outcome)
    conf = SlurmConf(site.conf_path)
    # Else the soft limit alone had to stay, the last time, and the file with it.
    made = made or all(Path(name) in conf.texts for name in record.files)
    # Those that nobody has changed since get the very bytes back that they had.
    untouched = [
        path
        for path, text in conf.texts.items()
        if (file := record.files.get(str(path))) and file.written == digest(octets(text))
    ]
    current = dict(conf.texts)
    for key, before in record.values.items():
        if before:
            conf.set(key, before)
        else:
            conf.unset(key)
    for key, word in record.words:
        if (key, word) != SOFT_LIMIT:
            conf.remove(key, word)
    _restore_conf(site, conf, current, record, outcome)
    if LUA in record.words:
        site.controller.reconfigure(*LUA, there=False)
    else:
        site.controller.reread()
    outcome.done.append("scontrol reconfigure")
    _restore_scripts(site, record, outcome)
    if SOFT_LIMIT in record.words:
        # Whatever was planned between the first time and the hook's end.
        _clear_jobs(site, outcome)
        running = planned_short(site.controller.jobs())
        if running:
            record.words, record.values, record.links = [SOFT_LIMIT], {}, []
            record.files = {
                name: file for name, file in record.files.items() if Path(name) in conf.texts
            }
            record.write(site.record_path)
            outcome.notes.append(
                f"{SOFT_LIMIT[1]} stays, and so does {switch}: {len(running)} jobs run with a "
                f"TimeMin, such as {running[0]}, which Slurm lets nobody clear; one that is "
                "requeued would be killed at it without the soft limit. Run this again when they "
                "have ended"
            )
            return
        current = dict(conf.texts)
        conf.remove(*SOFT_LIMIT)
        _restore_conf(site, conf, current, record, outcome)
        site.controller.reconfigure(*SOFT_LIMIT, there=False)
        outcome.done.append("scontrol reconfigure")
    for path in untouched:
        put_file(path, record.files[str(path)].content_before())
    put_file(site.record_path, None)
    settings = site.settings
    if not made:
        return
    if (settings.starts_jobs or settings.queue_order.keeps_order) and daemon_lives(settings):
        outcome.notes.append(
            f"{switch} stays: the daemon runs, and would change the queue's order again; stop it "
            "(systemctl disable --now foretime), then remove the file"
        )
        return
    switch_on(switch)
    outcome.done.append(f"rm {switch}")


def _clear_jobs(site: SlurmSite, outcome: Outcome) -> None:
    try:
        changed = give_back_on_slurm(site.controller, Path(site.settings.store.path))
    except StateError as error:  # all else was given back, and nothing else needs the store
        outcome.notes += [] if str(error) in outcome.notes else [str(error)]
        return
    if changed:
        outcome.done.append(f"gave {len(changed)} waiting jobs back what was asked for")


def _restore_conf(
    site: SlurmSite,
    conf: SlurmConf,
    before: dict[Path, str],
    record: InstallRecord,
    outcome: Outcome,
) -> None:
    """Write slurm.conf as it is in ``conf``, so that this can be gone on with after a failure."""
    for path, text in conf.texts.items():
        file = record.files.get(str(path))
        if text == before[path] or file is None:
            continue
        if file.written == digest(octets(before[path])):
            file.written = digest(octets(text))
            record.write(site.record_path)
        put_file(path, octets(text))
        outcome.done.append(f"wrote {path}")


def _restore_scripts(site: SlurmSite, record: InstallRecord, outcome: Outcome) -> None:
    for link in record.links:
        Path(link).unlink(missing_ok=True)
        outcome.done.append(f"rm {link}")
    # The script first: it looks for the module.
    for name, file in reversed(record.files.items()):
        path = Path(name)
        if path in SlurmConf(site.conf_path).texts:
            continue
        now = read_file(path)
        if now is None:
            continue
        if digest(now) == file.written:
            put_file(path, file.content_before())
            outcome.done.append(_file_step(name, file.before is None))
        elif path.name == "job_submit.lua":
            text = without_line(now.decode("utf-8", "surrogateescape"))
            put_file(path, octets(text))
            outcome.notes.append(f"{path} was changed since: only Foretime's line was taken out")
        else:
            outcome.notes.append(f"{path} was changed since, and stays: remove it by hand")
