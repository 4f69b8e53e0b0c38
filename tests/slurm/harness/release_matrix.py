"""The page that says what was tested on which Slurm release, of the results of live tests.

``python -m tests.slurm.harness.release_matrix RESULTS...`` writes docs/slurm_releases.md from files
that pytest writes with ``--junitxml``. Where two of them have the same test, the newer one counts.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PAGE = Path(__file__).resolve().parents[3] / "docs/slurm_releases.md"
SUBJECTS = {
    "Clients: commands, slurmrestd, pyslurm": ("clients", "pyslurm", "lost_clusters"),
    "Install and administration": (
        "install", "install_guide", "site_install", "administration", "operator_rights",
        "accounting_doctor", "identity",
    ),
    "Hook: limits and exclusions": (
        "time_limits", "time_changes", "native_exclusions", "invariant", "batch_scripts",
        "slurm_cluster", "soft_limit_lost", "reservations", "rewrite_limit", "learned",
    ),
    "Start now and queue order": ("start_now", "start_now_kinds", "queue_order", "live_study"),
    "Forecasts": ("waits", "served_forecasts", "own_plan", "daemon_site"),
    "Site import": ("site_import", "live_machine"),
    "Faults": (
        "faults", "sidecar_faults", "planned_faults", "raised_faults", "guard_and_breaker",
    ),
    "Model of Slurm": (
        "limits", "backfill", "model_decisions", "priorities", "used_minutes", "log_slice",
        "max_cpus_per_node",
    ),
}  # fmt: skip
HEAD = """# Slurm releases that were tested

`make slurm-matrix` runs every live test on each release and writes this page
(`python -m tests.slurm.harness.release_matrix RESULTS...`, of what `pytest --junitxml` writes).
[What the tests do](real_slurm.md) stands there. A cell has the number of tests that passed, then
those that failed or were skipped if there are any, and the day of the newest of them. Skipped tests
ask for what the release or the machine does not have. [What fails](real_slurm.md#what-is-not) is
told, too. On 24.11 and 25.11 `make test-slurm` runs a selection. No other release was tested.
"""
_RELEASE = re.compile(r"\[(\d\d\.\d\d)\b")


@dataclass(frozen=True)
class Result:
    """What came of one test on one release.

    Attributes
    ----------
    test
        Its module, without ``test_``, and its id.
    release
        The release that its id names.
    outcome
        ``passed``, ``failed`` or ``skipped``.
    at
        When its session began, ISO 8601.
    """

    test: tuple[str, str]
    release: str
    outcome: str
    at: str


def results_of(path: Path) -> Iterable[Result]:
    """Read one file of pytest's; tests that name no release are left out."""
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = case.get("name", "")
            module = case.get("classname", "").rpartition(".")[2].removeprefix("test_")
            if found := _RELEASE.search(name):
                tags = {child.tag for child in case}
                failed = tags & {"failure", "error"}
                outcome = "failed" if failed else "skipped" if "skipped" in tags else "passed"
                yield Result((module, name), found[1], outcome, suite.get("timestamp", ""))


def page_of(results: Iterable[Result]) -> str:
    """Give the page.

    Raises
    ------
    ValueError
        If a module has no place in `SUBJECTS`.
    """
    newest: dict[tuple[str, str], Result] = {}
    for result in sorted(results, key=lambda each: each.at):
        newest[result.test] = result
    subject_of = {module: name for name, modules in SUBJECTS.items() for module in modules}
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in newest.values():
        if result.test[0] not in subject_of:
            raise ValueError(f"test_{result.test[0]}.py has no subject: add it to SUBJECTS")
        cells[subject_of[result.test[0]], result.release].append(result)
    releases = sorted({release for _, release in cells})
    lines = [
        f"| subject | {' | '.join(releases)} |",
        f"|---{'|---' * len(releases)}|",
        *(
            f"| {subject} | {' | '.join(_cell(cells[subject, each]) for each in releases)} |"
            for subject in SUBJECTS
        ),
    ]
    return "\n".join([HEAD, *lines, ""])


def _cell(results: list[Result]) -> str:
    if not results:
        return "–"
    counts = Counter(result.outcome for result in results)
    told = [f"{counts['passed']} passed"]
    told += [f"{counts[name]} {name}" for name in ("failed", "skipped") if counts[name]]
    day = max(result.at for result in results)[:10]
    return f"{', '.join(told)} ({day})"


if __name__ == "__main__":
    PAGE.write_text(page_of(each for path in sys.argv[1:] for each in results_of(Path(path))))
