"""The report of forecast waits."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sim.waits.scores.moments import LOOKS_S

from foretime_studies.frame.report import StudyReport
from foretime_studies.waits.runs import LOGGED_NOW_S, WARM_UP_SHARE, WaitsSettings
from foretime_studies.waits.scores import ScoredRun
from foretime_studies.waits.tables import tables


def report(
    runs: Sequence[ScoredRun], settings: WaitsSettings, notes: Sequence[str], command: str
) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    looks = ", ".join(f"{look / 3_600:g}" for look in LOOKS_S)
    policy = settings.policy
    how = (
        f"Asked about: up to {settings.submissions:,} jobs of a log, one drawn from each of as many"
        f" stretches of equally many submissions (seed {settings.seed}), at their submission,"
        f" {looks} hours later while they wait, and each midnight of the log's clock. The first"
        f" {WARM_UP_SHARE:.0%} of a log is learned from only. {settings.samples} forward runs."
    )
    where = (
        f"Simulated: {policy.order}, {policy.backfill}, planned with the requested times. Logged:"
        " the waits of the log, the same policy being assumed of its scheduler; a start within"
        f" {LOGGED_NOW_S} s is one at once."
    )
    title = "When will my job start? Forecasts of waits on logs"
    return StudyReport("waits", title, command, (how, where, *notes), tables(runs))
