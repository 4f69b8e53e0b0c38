"""Which users and sizes of jobs a replay makes wait longer, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sim.scores.comparison import Comparison
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
    lines = []
    if judged:
        worse = worse_off(users)
        text = f"{len(worse)} of {judged} users with over {FEWEST_JOBS - 1} jobs wait {_LONGER}"
        lines.append(Text(f"{text}{_named(worse)}."))
    if worse := worse_off(sizes):
        lines.append(Text(f"By size of jobs, these wait {_LONGER}{_named(worse)}."))
    return lines


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
