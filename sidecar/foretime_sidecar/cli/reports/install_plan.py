"""What ``foretime install`` would change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from foretime_sidecar.install.host_plan import HostPlan
from foretime_sidecar.install.installed_files import FileChange
from foretime_sidecar.install.slurm_install import Plan, SlurmSite

NOTHING_TO_DO = "everything is as it should be: nothing to do"
_MOST_LINES = 40  # of a file's differences


def plan_json(host: HostPlan | None, plan: Plan) -> dict[str, Any]:
    """Give what an installation would change for JSON."""
    steps, notes = host_json(host)
    return {
        "host": steps,
        "packages": plan.packages,
        "slurm_conf": plan.lines,
        "files": [
            {"path": str(change.path), "new": change.before is None}
            for change in (*plan.soft_limit, *plan.hook)
        ],
        "script_line": plan.script_line,
        "links": {str(link): target for link, target in plan.links.items()},
        "notes": [*notes, *plan.notes],
    }


def host_json(plan: HostPlan | None) -> tuple[list[str], list[str]]:
    """Give what would be done on the host, and its notes; nothing where there is no plan."""
    return ([], []) if plan is None else ([step.shown for step in plan.steps], plan.notes)


def host_lines(plan: HostPlan | None) -> Iterator[str]:
    """Say what would be done on the host, step by step; nothing where there is no plan."""
    if plan is None or not plan.steps:
        return
    yield "\n# First the host:"
    for step in plan.steps:
        change = plan.changes.get(step.shown)
        if change is None:
            yield step.shown
        else:
            yield from _differences([change])
    yield from (f"note: {note}" for note in plan.notes)


def plan_lines(site: SlurmSite, host: HostPlan | None, plan: Plan) -> Iterator[str]:
    """Say in words what an installation would change, file by file, as differences."""
    if plan.empty and (host is None or not host.steps):
        yield f"Slurm {site.version}, {site.conf_path}: {NOTHING_TO_DO}"
        return
    yield f"# Slurm {site.version}. As root on slurmctld's host; with --yes this is done at once."
    yield from host_lines(host)
    for missing in plan.packages:
        yield f"missing: {missing}"
    if plan.soft_limit:
        yield "\n# Slurm's soft limit:"
        yield from _differences(plan.soft_limit)
        yield "scontrol reconfigure"
    if plan.links or plan.hook:
        yield "\n# Slurm's hook:"
    for link, target in plan.links.items():
        yield f"ln -s {target} {link}"
    yield from _differences(plan.hook)
    if plan.script_line:
        yield f"# The line in the site's own job_submit.lua:\n{plan.script_line}"
    if plan.hook:
        yield "scontrol reconfigure"
    if plan.notes:
        yield ""
    yield from (f"note: {note}" for note in plan.notes)


def _differences(changes: Iterable[FileChange]) -> Iterator[str]:
    for change in changes:
        after = (change.after or b"").decode("utf-8", "replace")
        if change.before is None:
            count = after.count("\n")
            yield f"new file {change.path} ({count} lines, mode {change.mode:04o})"
            continue
        lines = difflib.unified_diff(
            change.before.decode("utf-8", "replace").splitlines(),
            after.splitlines(),
            str(change.path),
            str(change.path),
            n=0,
            lineterm="",
        )
        yield from list(lines)[:_MOST_LINES]
