"""Lines on how old everything is, how well it predicts, and what is refused or fails."""

from __future__ import annotations

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import FEWEST_SCORED, watch_limits
from foretime_sidecar.daemon.watch_metrics import sign_of_life_s
from foretime_sidecar.safety.hook_record import HookFigures
from foretime_sidecar.scoreboard.estimator_switches import better
from foretime_sidecar.web.api.verdicts import Line, Verdict, against
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.waits import spoken_wait

_LOG = "Look at the daemon's log."
_AT_95 = 0.95
_NOT_OURS = (500, 503)
"""HTTP statuses that are no fault of whoever asked."""


def age_lines(
    sidecar: Sidecar, health: Health, figures: HookFigures | None, now: int
) -> list[Line]:
    """Say how old everything is."""
    lines = [
        _poll(sidecar, health, now),
        _table(sidecar, health, now),
        _forecasts_age(sidecar, health, now),
        _sign_of_life(sidecar),
    ]
    if figures is not None:
        lines.append(_event(sidecar, figures, now))
    return lines


def _poll(sidecar: Sidecar, health: Health, now: int) -> Line:
    title, progress, pause = "Last poll", sidecar.progress, sidecar.pause
    limit = watch_limits(sidecar)["poll_age_seconds"]
    seen_at = health.started_at if progress.polled_at is None else progress.polled_at
    age_s = max(now - seen_at, 0)
    failed = health.last_error
    if progress.polled_at is None and not failed and age_s <= limit:
        return Line("poll", title, Verdict.EARLY, "The first one is under way.")
    text = f"{_ago(age_s)} ago" if progress.polled_at is not None else "None since the daemon began"
    text += f"; the pause between two is {pause.seconds} s"
    text += f", because {pause.reason}." if pause.reason else "."
    if age_s > limit or (failed and progress.polled_at is None):
        why = failed or f"None has gone through for over {spoken_wait(limit)}."
        return Line("poll", title, Verdict.ACT, f"{text} {_sentence(why)}", _LOG)
    if failed:
        return Line("poll", title, Verdict.LOOK, f"{text} The last one failed: {failed}.", _LOG)
    return Line("poll", title, Verdict.WELL, text)


def _table(sidecar: Sidecar, health: Health, now: int) -> Line:
    title, progress = "Table", sidecar.progress
    if progress.written_at is None or progress.valid_until is None:
        if health.last_error:
            return Line("table", title, Verdict.ACT, "None has been written.", _LOG)
        return Line("table", title, Verdict.EARLY, "The first poll writes it.")
    age_s, valid_s = max(now - progress.written_at, 0), progress.valid_until - now
    text = f"{counted(progress.table_rows, 'row')}, written {_ago(age_s)} ago"
    if valid_s < 0:
        text += ". It has run out, so the hook leaves all jobs alone."
        return Line("table", title, Verdict.ACT, text, _LOG)
    text += f"; the hook uses it for {spoken_wait(valid_s)} more."
    limit = watch_limits(sidecar)["table_age_seconds"]
    if age_s > limit:
        text += f" It should have been written anew after {spoken_wait(limit)}."
        return Line("table", title, Verdict.LOOK, text, _LOG)
    return Line("table", title, Verdict.WELL, text)


def _forecasts_age(sidecar: Sidecar, health: Health, now: int) -> Line:
    title, forecasting = "Last forecasts", sidecar.forecasting
    if forecasting is None:
        return Line("forecasts_age", title, Verdict.OFF, "No waits are forecast here.")
    limit, failed = watch_limits(sidecar)["forecasts_age_seconds"], forecasting.last_failure
    if (board := forecasting.board) is None:
        if failed:
            return Line("forecasts_age", title, Verdict.ACT, _sentence(failed), _LOG)
        if now - health.started_at <= limit:
            return Line("forecasts_age", title, Verdict.EARLY, "The first are being made.")
        return Line("forecasts_age", title, Verdict.LOOK, "None since the daemon began.", _LOG)
    age_s = max(now - board.made_at, 0)
    pending = sum(row.job.tasks for row in board.rows if row.waits is not None)
    text = f"Of the queue {_ago(age_s)} ago, for {counted(pending, 'waiting job')}."
    if failed:
        text += f" The last try failed: {failed}."
    if age_s > limit or failed:
        return Line("forecasts_age", title, Verdict.LOOK, text, _LOG)
    return Line("forecasts_age", title, Verdict.WELL, text)


def _sign_of_life(sidecar: Sidecar) -> Line:
    title, silent_s = "Sign of life for the watchdog", sign_of_life_s(sidecar)
    limit = watch_limits(sidecar)["sign_of_life_age_seconds"]
    if silent_s is None:
        if sidecar.progress.polled_at is None:
            return Line("sign_of_life", title, Verdict.EARLY, "The first look gives it.")
        return Line(
            "sign_of_life",
            title,
            Verdict.LOOK,
            "There is none that can be seen, or it is from the future.",
            "Look at the folder of the table, and at the machine's clock.",
        )
    text = f"{_ago(silent_s)} ago; after {spoken_wait(limit)} the watchdog withdraws the table."
    verdict = against(silent_s, limit)
    return Line("sign_of_life", title, verdict, text, "" if verdict is Verdict.WELL else _LOG)


def _event(sidecar: Sidecar, figures: HookFigures, now: int) -> Line:
    title = "Last event"
    known = [
        (at, what)
        for at, what in ((figures.latest_end, "ended"), (figures.latest(), "was judged"))
        if at is not None
    ]
    if not known:
        return Line("event", title, Verdict.EARLY, "No job has come or ended yet.")
    at, what = max(known)
    text = f"{_ago(max(now - at, 0))} ago a job {what}."
    busy = sidecar.snapshot is not None and bool(sidecar.snapshot.queue.jobs)
    if busy and now - at > DAY_S:
        remedy = "If jobs did end, look at whether the daemon may read the accounting."
        return Line("event", title, Verdict.LOOK, text, remedy)
    return Line("event", title, Verdict.WELL, text)


# -- how well it predicts --------------------------------------------------------------------------


def prediction_lines(sidecar: Sidecar) -> list[Line]:
    """Say how well forecasts and estimates have done."""
    return [_within(sidecar), _kept(sidecar), _estimators(sidecar)]


def _within(sidecar: Sidecar) -> Line:
    title, forecasting = "95% bounds that held", sidecar.forecasting
    if forecasting is None:
        return Line("forecasts", title, Verdict.OFF, "No waits are forecast here.")
    done = forecasting.reliability
    share = None
    if done is not None and done.scored:
        share = dict(zip(done.levels, done.share_within, strict=True))[_AT_95]
    if done is None or share is None:
        said = "Too few forecasts have been scored: each is, once its job has started."
        return Line("forecasts", title, Verdict.EARLY, said)
    text = f"{share:.1%} of {counted(done.scored, 'forecast')} in {done.days} days"
    if done.median_error_s is not None:
        text += f"; the typical error of a likely wait is {_ago(done.median_error_s)}"
    if done.scored < FEWEST_SCORED:
        return Line("forecasts", title, Verdict.EARLY, f"{text}.")
    if share >= watch_limits(sidecar)["forecast_within_share"]:
        return Line("forecasts", title, Verdict.WELL, f"{text}.")
    remedy = "See foretime status: do forecasts go by this site's own rules?"
    return Line("forecasts", title, Verdict.LOOK, f"{text}.", remedy)


def _kept(sidecar: Sidecar) -> Line:
    title = "Bounds set at first that held"
    kept = None if sidecar.forecasting is None else sidecar.forecasting.kept_bounds
    if kept is None or kept.kept_share is None:
        return Line("start_bounds", title, Verdict.EARLY, "Too few bounds have been judged yet.")
    text = f"{kept.kept_share:.1%} of {counted(kept.judged, 'bound')} in {kept.days} days."
    if kept.judged < FEWEST_SCORED:
        return Line("start_bounds", title, Verdict.EARLY, text)
    if kept.kept_share >= watch_limits(sidecar)["forecast_within_share"]:
        return Line("start_bounds", title, Verdict.WELL, text)
    remedy = "Raise forecast.slack_factor, or set queue_order.keep_promises."
    return Line("start_bounds", title, Verdict.LOOK, text, remedy)


def _estimators(sidecar: Sidecar) -> Line:
    title, scoreboard = "Estimator of runtimes", sidecar.scoreboard
    if scoreboard is None:
        return Line("estimators", title, Verdict.OFF, "Estimators do not run in the shadow.")
    if scoreboard.last_failure:
        return Line("estimators", title, Verdict.LOOK, _sentence(scoreboard.last_failure), _LOG)
    board = scoreboard.board
    used = None if board is None else next((row for row in board.rows if row.in_use), None)
    if board is None or used is None or used.accuracy is None or used.under_predicted is None:
        return Line("estimators", title, Verdict.EARLY, "No job has been scored yet.")
    text = (
        f"{used.name} is in use: accuracy {used.accuracy:.3f}, "
        f"{used.under_predicted:.0%} of {counted(used.jobs, 'job')} ran longer than predicted"
    )
    if not board.complete:
        said = f"{text}. Not all that is stored has been gone through."
        return Line("estimators", title, Verdict.EARLY, said)
    best = better(board)
    remedy = "See foretime estimators, and --replay for what it would do to waits."
    if best is not None:
        text += f". {best.name} predicts better, beyond chance."
        return Line("estimators", title, Verdict.LOOK, text, remedy)
    if not used.eligible:
        text += ", which is too often."
        return Line("estimators", title, Verdict.LOOK, text, remedy)
    return Line("estimators", title, Verdict.WELL, f"{text}. None is better beyond chance.")


# -- what is refused, and what fails ---------------------------------------------------------------


def refusal_lines(sidecar: Sidecar, health: Health) -> list[Line]:
    """Say what is refused to whom, and what of the daemon's fails."""
    lines = [_requests(health)]
    for part, title in (("scheduler", "Questions to the scheduler"), ("state", "Store and table")):
        lines.append(_errors(part, title, sidecar, health))
    for name, title, work in (
        ("forecasting", "Forecasting", sidecar.forecasting),
        ("beside", "The plain scheduler beside", sidecar.beside),
    ):
        if work is not None:
            lines.append(_work(name, title, work.failures, work.last_failure))
    if sidecar.order_refused:
        said = _sentence(sidecar.order_refused)
        lines.append(Line("order", "Order of the queue", Verdict.LOOK, said, _LOG))
    if sidecar.site is not None and (why := sidecar.site.standing.why_not):
        remedy = "See foretime site show."
        lines.append(Line("site", "The site's own rules", Verdict.LOOK, _sentence(why), remedy))
    return lines


def _requests(health: Health) -> Line:
    title, refused = "Requests over HTTP", {k: v for k, v in health.refused.items() if v}
    if not refused:
        said = "None was refused since the daemon began."
        return Line("requests", title, Verdict.WELL, said)
    text = ", ".join(f"{count:,} with {status}" for status, count in sorted(refused.items()))
    text = f"Refused since the daemon began: {text}."
    if refused.get(_NOT_OURS[0]):
        remedy = "500 is a mistake of the daemon's: report what its log says."
        return Line("requests", title, Verdict.LOOK, text, remedy)
    return Line("requests", title, Verdict.WELL, text)


def _errors(part: str, title: str, sidecar: Sidecar, health: Health) -> Line:
    failed = health.errors[part]
    if not failed:
        verdict = Verdict.EARLY if sidecar.progress.polled_at is None else Verdict.WELL
        return Line(part, title, verdict, "None has failed since the daemon began.")
    text = f"{counted(failed, 'poll')} failed since the daemon began."
    if not health.last_error:
        return Line(part, title, Verdict.WELL, f"{text} The last one went through.")
    return Line(part, title, Verdict.LOOK, f"{text} The last: {health.last_error}.", _LOG)


def _work(name: str, title: str, failures: int, failed: str) -> Line:
    if failed:
        return Line(name, title, Verdict.LOOK, _sentence(failed), _LOG)
    if failures:
        times = counted(failures, "time")
        said = f"Failed {times} since the daemon began; the last went through."
        return Line(name, title, Verdict.WELL, said)
    return Line(name, title, Verdict.WELL, "Has not failed since the daemon began.")


def _ago(seconds: float) -> str:
    """Say an age, which is told exactly where it is short."""
    return f"{seconds:.0f} s" if seconds < 60 else spoken_wait(seconds)


def _sentence(text: str) -> str:
    stripped = text.strip().rstrip(".")
    return f"{stripped[:1].upper()}{stripped[1:]}."
