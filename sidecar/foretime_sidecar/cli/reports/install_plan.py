"""What ``foretime install slurm`` would change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from foretime_sidecar.install.installed_files import FileChange
from foretime_sidecar.install.slurm_install import Plan, SlurmSite

_MOST_LINES = 40  # of a file's differences


def plan_json(plan: Plan) -> dict[str, Any]:
    """Give what an installation would change for JSON."""
    return {
        "packages": plan.packages,
        "slurm_conf": plan.lines,
        "files": [
            {"path": str(change.path), "new": change.before is None}
            for change in (*plan.soft_limit, *plan.hook)
        ],
        "script_line": plan.script_line,
        "links": {str(link): target for link, target in plan.links.items()},
        "notes": plan.notes,
    }


def plan_lines(site: SlurmSite, plan: Plan) -> Iterator[str]:
    """Say in words what an installation would change, file by file, as differences."""
    if plan.empty:
        yield f"Slurm {site.version}, {site.conf_path}: everything is as it should be."
        return
    yield f"# Slurm {site.version}. As root on slurmctld's host; with --yes this is done at once."
    for missing in plan.packages:
        yield f"missing: {missing}"
    if plan.soft_limit:
        yield "\n# First the soft limit:"
        yield from _differences(plan.soft_limit)
        yield "scontrol reconfigure"
    if plan.links or plan.hook:
        yield "\n# Then the hook:"
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
