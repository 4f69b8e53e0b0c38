"""Running one cell of a campaign: read the log, vary it, simulate, score."""

from __future__ import annotations

import datetime
import socket
import time
import traceback
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from foretime_estimators.jobs.errors import ForetimeError, StateError

from foretime_sim.campaigns.campaign import LogSource, Scoring
from foretime_sim.campaigns.cells import FORMAT, Cell, foretime_version
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.engine.schedule import why_never
from foretime_sim.logs.filters import Filters, MissingRequest, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models.workload_models import generate, with_estimates
from foretime_sim.policies import policy_table
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.said_to_sites import with_known_qos
from foretime_sim.policies.site_machine import (
    on_machine_of,
    on_one_pool,
    that_fit_on_all,
)
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.scores.metrics import ScoredSpan, score, scored_span
from foretime_sim.scores.repeats import Repeats
from foretime_sim.sites.site_file import Site
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload

Record = dict[str, Any]
"""What is kept of a cell; JSON can hold it.

``format``, ``id``, ``status`` (``done`` or ``failed``), ``axes``, ``host``, ``foretime``,
``finished_at``, ``wall_clock_s``; of a cell that is done ``metrics`` and ``run``; of one that
failed ``error`` and ``traceback`` (``None`` for an error of ours, which says it all).
"""

REPEATS_SEED = 1
"""Default of ``foretime simulate --seed``, of whose repeats a campaign's seeds 1, 2, ... are the
first, the second, ..."""


@dataclass(frozen=True)
class UsedLog:
    """A log, and what a campaign makes of its jobs.

    Attributes
    ----------
    source, scoring
        As declared.
    sites
        On each of which a job must be able to run.
    unknown_users
        What becomes of the users whom one of them does not name.
    """

    source: LogSource
    scoring: Scoring
    sites: tuple[Site, ...] = ()
    unknown_users: UnknownUsersChoice = field(default_factory=lambda: UnknownUsersChoice("error"))


@dataclass(frozen=True)
class _Read:
    """A log as read: what is simulated, the history before it, and the sites with all its users."""

    workload: Workload
    history: Workload | None
    span: ScoredSpan
    sites: tuple[Site, ...]


# A worker runs the cells of one log, load and seed one after the other.
@lru_cache(maxsize=2)
def _read(log: UsedLog) -> _Read:
    source, scoring = log.source, log.scoring
    if source.path is None:
        workload = generate(
            source.generate or "lublin2003",
            jobs=source.jobs,
            processors=source.processors,
            seed=source.seed,
            load=source.load,
            estimates=source.estimates,
            longest_estimate_s=source.longest_estimate_s,
        )
    else:
        read = read_log(
            source.path,
            lenient=source.lenient,
            format=source.format,
            columns=source.columns,
            time_zone=source.time_zone,
        )
        filters = Filters(
            overruns=source.overruns,
            missing_request=cast(MissingRequest, source.missing_request),
            occupied=source.occupied,
        )
        if source.estimates is not None:
            filters = filters.without_requests()
        workload, _ = workload_of_log(read, processors=source.processors, filters=filters)
        if source.estimates is not None:
            workload = with_estimates(
                workload, source.estimates, longest_s=source.longest_estimate_s, seed=source.seed
            )
    workload = that_fit_on_all(log.sites, workload)
    history = None
    if source.split is not None:
        history, workload = workload.split(_split_time(source, workload))
    if source.head is not None:
        workload = workload.head(source.head)
    workload, sites = _with_all_users(log, workload)
    span = scored_span(
        workload,
        warm_up_s=scoring.warm_up_s,
        warm_up_share=scoring.warm_up_share,
        cool_down_s=scoring.cool_down_s,
        cool_down_share=scoring.cool_down_share,
    )
    return _Read(workload, history, span, sites)


def _with_all_users(log: UsedLog, workload: Workload) -> tuple[Workload, tuple[Site, ...]]:
    """Give the jobs, and the sites, with the users whom these do not name as asked for."""
    if any(isinstance(site, SlurmSite) for site in log.sites):
        workload = log.unknown_users.named(workload)
    notes, sites = dict.fromkeys(workload.notes), []
    for site in log.sites:
        note = None
        if isinstance(site, SlurmSite):
            site, note = log.unknown_users.of_site(site, workload)
        notes |= {note: None} if note else {}
        sites.append(site)
    workload, without_qos = with_known_qos(workload, sites)
    notes |= dict.fromkeys(without_qos)
    return replace(workload, notes=tuple(notes)), tuple(sites)


def _split_time(source: LogSource, workload: Workload) -> int:
    split = source.split
    if isinstance(split, datetime.date):
        if not isinstance(split, datetime.datetime):
            split = datetime.datetime.combine(split, datetime.time(), datetime.UTC)
        return workload.seconds_at(split)
    return round((split or 0.0) * 86_400)


@lru_cache(maxsize=2)
def _varied(log: UsedLog, factor: float, seed: int) -> tuple[Workload, Workload | None, ScoredSpan]:
    """Give the jobs of a cell, their history, and which of them are scored."""
    read = _read(log)
    workload, span = read.workload, read.span
    if factor != 1:
        ends = np.array([span.start_time or 0, span.end_time or 0], dtype=np.int64)
        start, end = workload.shrunk_time(ends, factor).tolist()
        span = ScoredSpan(
            None if span.start_time is None else start, None if span.end_time is None else end
        )
        workload = workload.with_interarrival_factor(factor)
    if seed:
        # Any count above 1 means copies that vary.
        repeats = Repeats(count=2, seed=REPEATS_SEED, jitter_s=log.scoring.jitter_s)
        workload = repeats.varied(workload, seed - 1)
    return workload, read.history, span


@lru_cache(maxsize=2)
def _that_all_run(log: UsedLog, factor: float, seed: int) -> ScoredSpan:
    """Give the span without the jobs that one of the campaign's sites never lets run.

    So all cells of a log are scored on the same jobs, whichever site each of them is of.
    """
    workload, _, span = _varied(log, factor, seed)
    policies = [policy_table.policy_of_site(site) for site in _read(log).sites]
    starts = [simulate(on_machine_of(each, workload), each).start_time for each in policies]
    return span.among(*starts) if starts else span


class LogFacts(NamedTuple):
    """What a log holds, as a campaign uses it."""

    simulated_jobs: int
    scored_jobs: int
    machine_processors: int
    offered_load: float | None
    workload_notes: tuple[str, ...]


def log_facts(log: UsedLog) -> LogFacts:
    """Read a log and say what it holds, of what could run on each of the sites.

    Raises
    ------
    InputError
        If it can't be read, no job is left to score, or a site does not name some users.
    """
    read = _read(log)
    scored = int(read.span.select(read.workload).sum())
    return LogFacts(
        len(read.workload),
        scored,
        read.workload.machine_processors,
        _offered_load(read.workload),
        read.workload.notes,
    )


def _offered_load(workload: Workload) -> float | None:
    """Processor-seconds of all jobs, over the machine's between first and last submission."""
    span_s = int(workload.submit_time[-1]) - int(workload.submit_time[0])
    work = float(workload.processors @ workload.actual_runtime)
    return work / (workload.machine_processors * span_s) if span_s else None


def policy_of(cell: Cell) -> Policy:
    """Give a cell's policy; what has no effect is at its default."""
    if cell.site is not None:
        return policy_table.policy_of_site(cell.site)
    values = {
        key: value
        for key, value in cell.axes.items()
        if key in policy_table.PolicyTable.model_fields and key != "site"
    }
    return policy_table.policy_of(values, Path(cell.folder))


def run_cell(cell: Cell) -> Record:
    """Simulate and score one cell; what goes wrong is raised."""
    began = time.perf_counter()
    axes = cell.axes
    if cell.foretime != foretime_version():
        raise StateError(
            f"{socket.gethostname()} has foretime {foretime_version()}, the campaign is planned "
            f"with {cell.foretime}: install that on every worker"
        )
    log = UsedLog(cell.source, cell.scoring, cell.sites, cell.unknown_users)
    workload, history, span = _varied(log, axes["interarrival_factor"], axes["seed"])
    if cell.sites:
        span = _that_all_run(log, axes["interarrival_factor"], axes["seed"])
    policy = policy_of(cell)
    if cell.site is not None:
        site = _read(log).sites[cell.sites.index(cell.site)]
        policy = policy_table.policy_of_site(site)
    if cell.site is None and cell.sites:
        workload = on_one_pool(workload)
    workload = on_machine_of(policy, workload)
    estimator = estimator_of(axes["estimator"], workload, settings=cell.accuracy, seed=axes["seed"])
    before = time.perf_counter()
    schedule = simulate_with_estimator(
        workload,
        policy,
        estimator,
        learn=axes["learn"] is not False,
        history=history,
        reservations=cell.reservations,
        check=cell.scoring.check,
    )
    simulated_s = time.perf_counter() - before
    scores = score(workload, schedule, cell.scoring.settings, span)
    return {
        **_record(cell, "done", began),
        "metrics": scores.to_dict(),
        "run": {
            "simulated_jobs": len(workload),
            "machine_processors": workload.machine_processors,
            "offered_load": _offered_load(workload),
            "guard_activations": schedule.guard_activations,
            "deepest_queue_jobs": schedule.counters.deepest_queue,
            "simulation_s": simulated_s,
            "never_ran_jobs": len(schedule.never_ran),
            "never_ran": why_never(schedule.never_ran),
            "workload_notes": list(workload.notes),
        },
    }


def attempt(cell: Cell) -> Record:
    """Run a cell; what goes wrong becomes a record that says so."""
    began = time.perf_counter()
    try:
        return run_cell(cell)
    except ForetimeError as error:
        return failure(cell, str(error), began=began)
    except Exception as error:  # noqa: BLE001 - one cell's failure must not end the others
        told = f"{type(error).__name__}: {error}"
        return failure(cell, told, began=began, trace=traceback.format_exc())


def failure(
    cell: Cell, error: str, *, began: float | None = None, trace: str | None = None
) -> Record:
    """Give the record of a cell that failed."""
    return {**_record(cell, "failed", began), "error": error, "traceback": trace}


def _record(cell: Cell, status: Literal["done", "failed"], began: float | None) -> Record:
    return {
        "format": FORMAT,
        "id": cell.id,
        "status": status,
        "axes": dict(cell.axes),
        "host": socket.gethostname(),
        "foretime": foretime_version(),
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "wall_clock_s": None if began is None else time.perf_counter() - began,
    }
