"""Which users and sizes of jobs a replay makes wait longer, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sim.scores.comparison import Comparison
from foretime_sim.scores.job_classes import SIZES, JobClasses
from foretime_sim.scores.user_waits import FEWEST_JOBS, WORSE, WorseOff, worse_off
from rich.text import Text

from foretime_sidecar.wording.durations import format_duration

_NAMED = 3
_LONGER = f"over {WORSE - 1:.0%} longer on average"


def worse_off_lines(comparison: Comparison) -> list[Text]:
    """Name who waits over 5% longer on average; nobody is named who has 50 jobs or fewer."""
    users = comparison.by_user()
    by_class = comparison.by_class("wait_mean_s")
    sizes = by_class.query("length_class == 'all' != size_class").droplevel("length_class")
    judged = int((users["jobs"] >= FEWEST_JOBS).sum())
    worse = worse_off(users)
    text = f"{len(worse)} of {judged} users with over {FEWEST_JOBS - 1} scored jobs wait {_LONGER}"
    lines = [] if users.empty else [Text(f"{text}{_named(worse)}.")]
    shares = _shares(comparison.classes)
    worse = [each._replace(name=shares[each.name]) for each in worse_off(sizes)]
    those = "Jobs of these shares of the machine" if worse else "No size of jobs"
    waits = "wait" if worse else "waits"
    return [*lines, Text(f"{those} {waits} {_LONGER}{_named(worse)}.")]


def _shares(classes: JobClasses) -> dict[str, str]:
    """Give the shares of the machine that classes of sizes stand for."""
    bounds = [f"{bound:.3g}" for bound in classes.size_shares]
    return dict(
        zip(SIZES, (*(f"up to {bound}" for bound in bounds), f"over {bounds[-1]}"), strict=True)
    )


def _named(worse: Sequence[WorseOff]) -> str:
    """Give the worst, with their mean waits without and with Foretime."""
    if not worse:
        return ""
    named = [
        f"{each.name} ({format_duration(round(each.baseline_s))}, "
        f"now {format_duration(round(each.adjusted_s))})"
        for each in worse[:_NAMED]
    ]
    more = f" and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
    return f": {', '.join(named)}{more}"
