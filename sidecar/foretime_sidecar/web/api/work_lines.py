"""Lines on what Foretime does to jobs, and on what it has brought."""

from __future__ import annotations

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import MOST_MISSED, NEAR, watch_limits
from foretime_sidecar.daemon.watch_metrics import is_set_to_work
from foretime_sidecar.plain_beside.account import Account, Brought
from foretime_sidecar.safety.ab_report import AbReport
from foretime_sidecar.safety.hook_record import PLANNED, HookFigures
from foretime_sidecar.web.api.verdicts import Line, Verdict, against
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.waits import spoken_wait

_ENABLE = "Look into it, then say foretime enable."
FEWEST_RAISED = 50
"""Jobs from which on the share that did not start is judged."""


def work_lines(sidecar: Sidecar, figures: HookFigures | None, now: int) -> list[Line]:
    """Say what Foretime does to jobs; ``figures`` are ``None`` before they could be counted."""
    lines = [_mode(sidecar), _breaker(sidecar, now)]
    if figures is not None:
        lines += [_planned(sidecar, figures, now), _head_slip(sidecar, figures)]
        lines.append(_hook(sidecar, figures, now))
    if (starts := _starts(sidecar)) is not None:
        lines.append(starts)
    return lines


def _mode(sidecar: Sidecar) -> Line:
    def line(verdict: Verdict, text: str, remedy: str = "") -> Line:
        return Line("mode", "Mode", verdict, text, remedy)

    settings, progress = sidecar.settings, sidecar.progress
    if sidecar.oversight.disabled():
        why = f"{settings.hook.disable_file} exists: foretime disable was said."
        return line(Verdict.LOOK, why, "When all is well again, say foretime enable.")
    if progress.mode is None:
        return line(Verdict.EARLY, "No table has been written since the daemon began.")
    if not is_set_to_work(settings):
        return line(
            Verdict.OFF, f"{settings.hook.mode}: as was set, Foretime changes no job's start."
        )
    if not sidecar.works_now:
        why = progress.mode_reason or sidecar.order_refused or "the table says so"
        return line(
            Verdict.LOOK,
            f"Foretime changes nothing now, though it is set to: {why}.",
            "Mend that, or set hook.mode to observe.",
        )
    if settings.starts_jobs:
        return line(Verdict.WELL, "enforce: jobs that should start at once are raised.")
    if progress.mode == "enforce":
        return line(Verdict.WELL, "enforce: the table tells the hook to plan jobs with t_sched.")
    return line(Verdict.WELL, f"The queue is kept in the order {settings.queue_order.order}.")


def _breaker(sidecar: Sidecar, now: int) -> Line:
    title, trip = "Circuit breaker", sidecar.oversight.record.trip
    if trip is not None:
        since = spoken_clock(trip.tripped_at, now)
        return Line("breaker", title, Verdict.ACT, f"Open since {since}: {trip.reason}.", _ENABLE)
    if not is_set_to_work(sidecar.settings):
        return Line("breaker", title, Verdict.OFF, "Closed; it judges only what changes jobs.")
    return Line("breaker", title, Verdict.WELL, "Closed.")


def _planned(sidecar: Sidecar, figures: HookFigures, now: int) -> Line:
    title, judged = "Jobs planned with t_sched", figures.judged
    planned, seen = figures.jobs(PLANNED), figures.all_jobs
    if not seen:
        return Line("planned", title, Verdict.EARLY, "No job has been seen yet.")
    share = (
        f"{_percent(100 * planned / seen)} of {counted(seen, 'job')} seen since "
        f"{spoken_clock(figures.since, now)} were planned with t_sched"
    )
    if not planned and not judged.planned_jobs:
        verdict = Verdict.EARLY if sidecar.progress.mode == "enforce" else Verdict.OFF
        return Line("planned", title, verdict, f"{share}.")
    if judged.outliving_percent is None:
        least = sidecar.settings.breaker.least_jobs
        return Line(
            "planned",
            title,
            Verdict.EARLY,
            f"{share}. {counted(judged.planned_jobs, 'planned job')} ended. From {least:,} on it "
            "is judged how many ran longer than t_sched.",
        )
    limit = watch_limits(sidecar).get("outliving_percent")
    said = "no limit is set" if limit is None else f"the breaker opens above {limit:g}%"
    return Line(
        "planned",
        title,
        verdict := against(judged.outliving_percent, limit, NEAR),
        f"{share}. Of {counted(judged.planned_jobs, 'planned job')} that ended "
        f"{_percent(judged.outliving_percent)} ran longer than t_sched; {said}.",
        "" if verdict is Verdict.WELL else "Look at foretime estimators, or lower the share.",
    )


def _head_slip(sidecar: Sidecar, figures: HookFigures) -> Line:
    slip_s, limits = figures.judged.head_slip_s, watch_limits(sidecar)
    limit = limits.get("head_slip_seconds")
    said = "no limit is set" if limit is None else f"the breaker opens above {spoken_wait(limit)}"
    title = "Slip of the head job"
    if not figures.all_jobs:
        return Line("head_slip", title, Verdict.EARLY, "No job has been seen yet.")
    if not slip_s:
        return Line("head_slip", title, Verdict.WELL, f"No head job was delayed; {said}.")
    verdict = against(slip_s, limit, NEAR)
    return Line(
        "head_slip",
        title,
        verdict,
        f"The head job that was delayed most started {spoken_wait(slip_s)} after its first "
        f"planned start, or waits so long; {said}.",
        "" if verdict is Verdict.WELL else "Look at the job that heads the queue: squeue --start.",
    )


def _hook(sidecar: Sidecar, figures: HookFigures, now: int) -> Line:
    title = "Sign of the hook"
    if sidecar.progress.mode != "enforce":
        said = "The table does not tell the hook to change jobs, so none shows it."
        return Line("hook", title, Verdict.OFF, said)
    unplanned, latest = figures.unplanned_percent(), figures.latest(PLANNED)
    if unplanned is None:
        said = "No job came yet that the table says to plan."
        return Line("hook", title, Verdict.EARLY, said)
    text = f"The hook did not plan {_percent(unplanned)} of the jobs that it should have"
    if latest is not None:
        text += f"; the latest that it did was seen {spoken_wait(max(now - latest, 0))} ago"
    limit = watch_limits(sidecar)["unplanned_percent"]
    verdict = Verdict.ACT if latest is None else against(unplanned, limit)
    remedy = "" if verdict is Verdict.WELL else "Run foretime doctor on the scheduler's host."
    return Line("hook", title, verdict, f"{text}.", remedy)


def _starts(sidecar: Sidecar) -> Line | None:
    starts, title = sidecar.scheduler.starts, "Jobs raised to start at once"
    if starts is None:
        return None
    if not starts.raised:
        verdict = Verdict.EARLY if sidecar.works_now else Verdict.OFF
        return Line("raised", title, verdict, "None since the daemon began.")
    share = starts.missed / starts.raised
    text = (
        f"{starts.raised:,} since the daemon began; {starts.missed:,} of them still fitted, and "
        "had not started by the next look."
    )
    if starts.raised < FEWEST_RAISED:
        return Line("raised", title, Verdict.EARLY, text)
    if share <= MOST_MISSED:
        return Line("raised", title, Verdict.WELL, text)
    remedy = "Look at the scheduler's log for why they could not start."
    return Line("raised", title, Verdict.LOOK, text, remedy)


# -- what it has brought ---------------------------------------------------------------------------


def brought_line(sidecar: Sidecar, account: Account | None) -> Line | None:
    """Say what the live counterfactual tells; ``None``: nothing yet."""
    beside = sidecar.beside
    if beside is None or account is None:
        return None
    title, ours, would = "Hours of waiting", account.brought, account.would_bring
    if not ours.jobs:
        if not would.jobs:
            return None
        return Line("brought", title, Verdict.OFF, f"It did nothing. {_said(would, would=True)}")
    if beside.standing.model_is_off:
        return Line(
            "brought",
            title,
            Verdict.EARLY,
            f"{_said(ours)} But the model is over a tenth off, so this tells little.",
            "See foretime brought for how far the model is from the scheduler.",
        )
    if ours.low_hours is None or ours.high_hours is None:
        return Line("brought", title, Verdict.EARLY, f"{_said(ours)} These are too few days.")
    if ours.high_hours < 0:
        remedy = "Set hook.mode to observe, and see foretime brought by size and user."
        return Line("brought", title, Verdict.ACT, _said(ours), remedy)
    if ours.low_hours > 0:
        return Line("brought", title, Verdict.WELL, _said(ours))
    text = f"{_said(ours)} So no difference is shown."
    return Line("brought", title, Verdict.LOOK, text, "Wait for more days; see foretime brought.")


def _said(row: Brought, *, would: bool = False) -> str:
    """Say what has come of jobs, or would have."""
    says = "saved" if row.saved_hours >= 0 else "cost"
    text = f"{'Would have ' if would else 'It has '}{says} {_hours(abs(row.saved_hours))}"
    if row.low_hours is not None and row.high_hours is not None:
        low, high = sorted((abs(row.low_hours), abs(row.high_hours)))
        if row.low_hours < 0 < row.high_hours:
            text += (
                f", and may have cost {_hours(-row.low_hours)} or saved {_hours(row.high_hours)}"
            )
        else:
            text += f" ({_hours(low)} to {_hours(high)})"
    return f"{text} of waiting; {counted(row.jobs, 'job')} on {counted(row.days, 'day')}."


def ab_line(report: AbReport | None) -> Line:
    """Say what planned jobs waited beside those observed; ``None``: the store can't be read."""
    title = "Planned jobs and the comparison group"
    if report is None:
        said = "The store can't be read."
        return Line("ab", title, Verdict.LOOK, said, "Look at the daemon's log.")
    wait = report.difference.wait_mean_s
    planned, others = report.planned.jobs, report.observed.jobs
    groups = f"{counted(planned, 'planned job')} and {others:,} of the comparison group"
    if wait.value is None:
        verdict = Verdict.EARLY if planned else Verdict.OFF
        return Line("ab", title, verdict, f"Nothing to compare: {groups} ended.")
    words = "longer" if wait.value > 0 else "shorter"
    text = f"Planned jobs waited {spoken_wait(abs(wait.value))} {words} in the mean ({groups})"
    if wait.low is None or wait.high is None:
        return Line("ab", title, Verdict.EARLY, f"{text}. These are too few users to be sure.")
    if wait.low > 0:
        remedy = "See foretime report ab; lower the share, or set hook.mode to observe."
        return Line("ab", title, Verdict.ACT, f"{text}, beyond chance.", remedy)
    if wait.high < 0:
        return Line("ab", title, Verdict.WELL, f"{text}, beyond chance.")
    return Line("ab", title, Verdict.LOOK, f"{text}, which may be chance.", "Wait for more jobs.")


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if abs(hours) < 10 else f"{hours:,.0f} h"


def _percent(percent: float) -> str:
    return f"{percent:.0f}%" if percent >= 10 or percent == round(percent) else f"{percent:.1f}%"
