"""Why a job does not run yet: the scheduler's word, and the same in words for its user."""

from __future__ import annotations

import re

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.forecasts.forecast_board import JobForecast, Waits
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.waits import needs

_LIMITED = re.compile(r"(?:Assoc|QOS)(?:Grp|Max)?\w*", re.ASCII)
_OF_PBS = ("Not Running", "Can Never Run")
BEGINS_LATER = "waits for its begin time"
WAITS_FOR_JOBS = "waits for other jobs that it depends on"
_WORDS = {
    "JobHeldUser": "held by its user; scontrol release lets it go",
    "JobHeldAdmin": "held by an administrator",
    "JobHoldMaxRequeue": "held, as it was requeued too often",
    "Dependency": WAITS_FOR_JOBS,
    "DependencyNeverSatisfied": "depends on a job that can't end as it must; it will never start",
    "BeginTime": BEGINS_LATER,
    "JobArrayTaskLimit": "as many tasks of its array run as its user allowed at once",
    "Licenses": "waits for licenses",
    "ReqNodeNotAvail": "waits for nodes that are down, drained or reserved",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "PartitionNodeLimit": "asks for more nodes than its partition has",
    "BadConstraints": "asks for what no node has",
    "Reservation": "waits for its reservation",
}


def wait_reason(forecast: JobForecast) -> dict[str, str]:
    """Give ``code``, the scheduler's word, and ``text``.

    PBS has a comment for people in the place of a word; then the code says as Slurm's whether the
    job is the first that waits for room.
    """
    job = forecast.job
    code = re.split(r"[\s,(]", job.reason, maxsplit=1)[0]
    if job.reason.startswith(_OF_PBS):
        code = "Priority" if forecast.ahead else "Resources"
    return {"code": code or "None", "text": _text(job, code, forecast)}


def _text(job: QueuedJob, code: str, forecast: JobForecast) -> str:
    if code in _WORDS:
        return _WORDS[code]
    if job.held:
        return "held"
    if _LIMITED.fullmatch(code):
        return f"at a limit of its account or QOS ({code})"
    if forecast.kept_back is not None:
        return forecast.kept_back
    return turn_text(job.request.processors, forecast.ahead or 0, forecast.waits)


def turn_text(processors: int, ahead: int, waits: Waits | None) -> str:
    """Say what a job waits for that only needs its turn and room.

    Parameters
    ----------
    processors
        That it asks for.
    ahead
        Jobs before it in the queue's order.
    waits
        Its forecast, which the words agree with.
    """
    if waits is not None and waits.likely_now:
        if not ahead:
            return "can start at once"
        leave = "leaves" if ahead == 1 else "leave"
        return f"can start at once; {_jobs_ahead(ahead)} {leave} room for it"
    if waits is not None and waits.room_now:
        said = "there is room for it now, but jobs like it have started later than that"
        return f"{said}; {_jobs_ahead(ahead)}"
    return f"{needs(processors)}; {_jobs_ahead(ahead)}"


def _jobs_ahead(ahead: int) -> str:
    """Say how many jobs stand before it; smaller ones may start before these all the same."""
    return f"{counted(ahead, 'job') if ahead else 'no job'} ahead in the queue"
