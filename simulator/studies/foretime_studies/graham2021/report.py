"""The report of Graham's noons, and its picture."""

from __future__ import annotations

from foretime_sim.waits.forecaster import LEVELS
from matplotlib.figure import Figure

from foretime_studies.frame.plots import curves, panels
from foretime_studies.frame.report import StudyReport
from foretime_studies.graham2021.forests import LEARNED_DAYS
from foretime_studies.graham2021.study import SETTLING_POLLS, Graham2021
from foretime_studies.graham2021.tables import reliability, tables


def report(found: Graham2021, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    polls = found.polls
    what = (
        f"{len(polls):,} jobs that were pending at {len(polls.polls)} noons; each is in one of "
        "them. Forecast is how much longer each waits."
    )
    how = (
        f"The first {SETTLING_POLLS} noons are only learned from. A forest learns from the waits "
        f"of {LEARNED_DAYS} days, those that have not ended as lower bounds."
    )
    title = "Waits at Graham, noon by noon"
    return StudyReport("graham2021", title, command, (what, how), tables(found))


def figures(found: Graham2021) -> dict[str, Figure]:
    """Draw how often quantiles hold, by the name of the file."""
    figure, (axes,) = panels(1)
    curves(axes, LEVELS, reliability(found), "level", "share of waits up to the quantile")
    return {"reliability": figure}
