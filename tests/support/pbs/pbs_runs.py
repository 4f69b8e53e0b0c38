"""Recorded live runs of OpenPBS (tests/assets/pbs/runs) beside the model of it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any

from foretime_sidecar.site_import.pbs_site import import_pbs_site
from foretime_sidecar.site_import.site_output import SiteOutput
from foretime_sim.reference.pbs.cycle import PbsCycles, Running
from foretime_sim.reference.pbs.fair_share import LEAST_USAGE, Entity, FairShare
from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.reference.pbs.run import PbsRun, run_pbs
from foretime_sim.sites.pbs.site import PbsReservation, PbsSite

TESTS = Path(__file__).parents[2]
RUNS = TESTS / "assets/pbs/runs"
# MoM looks each three seconds or so what jobs have used, and tells two later.
_USAGE_LAG_S = 4
NEVER = 2**40
"""When a job started that never did."""
INSTALLED_CONFIG = RUNS / "sched_config"


@dataclass(frozen=True)
class LiveRun:
    """A recorded run: what was asked for, and when each job started and ended, epoch seconds."""

    name: str
    site: PbsSite
    jobs: tuple[PbsJob, ...]
    started: tuple[int, ...]
    placements: tuple[dict[str, dict[str, int]], ...]
    start_order: tuple[int, ...]
    happened: tuple[tuple[str, int], ...]
    """Submissions (Q) and ends (E) of jobs in their order."""
    start_cycles: tuple[int, ...]
    """After which of these each of the start order started; -1: unknown."""
    top_jobs: tuple[tuple[int, int, int], ...]
    """What pbs_sched said of top jobs: when, of whom, and for when each was planned."""
    charged: tuple[tuple[float, dict[str, float]], ...]
    """What pbs_sched had charged to each user, and from when on; not known of all runs."""

    @classmethod
    def read(cls, path: Path) -> LiveRun:
        """Read a file of tests/assets/pbs/runs."""
        return cls.of(path.stem, json.loads(path.read_text()))

    @classmethod
    def of(cls, name: str, record: dict[str, Any]) -> LiveRun:
        """Read what tests/pbs/site_runs.py recorded."""
        site = site_of(record)
        begin = record["begin"]
        jobs = tuple(_job(number, record, site) for number in range(len(record["jobs"])))
        started = tuple(NEVER if at is None else begin + at for at in record["started"])
        happened = tuple((event[0], int(event[1:])) for event in record["happened"])
        said = tuple((when + begin, job, at + begin) for when, job, at in record["top_jobs"])
        return cls(
            name,
            site,
            jobs,
            started,
            tuple(_placement(text) for text in record["hosts"]),
            tuple(record["start_order"]),
            happened,
            tuple(record["start_cycles"]),
            said,
            tuple((begin + since, used) for since, used in record.get("charged", ())),
        )


def site_of(record: dict[str, Any]) -> PbsSite:
    """Give the site that a run was recorded on."""
    configuration = tomllib.loads((TESTS / "pbs/site_configurations.toml").read_text())
    told = configuration[record["configuration"]]
    lines = INSTALLED_CONFIG.read_text()
    for name, value in told.get("sched_config", {}).items():
        kept = [line for line in lines.splitlines() if line.split(":")[0].strip() != name]
        lines = "\n".join([*kept, f"{name}: {value}", ""])
    texts = {
        "server": record["server"],
        "sched": record["sched"],
        "hosts": json.dumps(record["nodes"]),
        "sched_config": lines,
        "resource_group": told.get("resource_group", ""),
    }
    site = import_pbs_site(SiteOutput(texts), UTC, UTC)
    record["soft_walltimes"] = told.get("soft_walltimes", False)
    return replace(
        site,
        decayed_at=record["decayed_at"],
        usage_lag_s=_USAGE_LAG_S,
        dedicated_time=tuple((begin, end) for begin, end in record.get("dedicated_time", ())),
        reservations=tuple(_reservation(each) for each in record.get("reservations", ())),
    )


def _reservation(told: dict[str, Any]) -> PbsReservation:
    begins, ends = told["span"]
    return PbsReservation(told["name"], begins, ends, _placement(told["nodes"]))


def _placement(text: str) -> dict[str, dict[str, int]]:
    """Read PBS's words of hosts, such as (vn0:ncpus=3)+(vn1:ncpus=3)."""
    found: dict[str, dict[str, int]] = {}
    for name, cpus in re.findall(r"(\w+):ncpus=(\d+)", text):
        has = found.setdefault(name, {"ncpus": 0})
        has["ncpus"] += int(cpus)
    return found


def _job(number: int, record: dict[str, Any], site: PbsSite) -> PbsJob:
    told = record["jobs"][number]
    begin = record["begin"]
    queue = told["queue"] if any(q.name == told["queue"] for q in site.queues) else "workq"
    soft = site.server.resources_default.get("soft_walltime")
    if record["soft_walltimes"]:
        soft = told["soft_walltime_s"]
    # It runs as long as it did, with what starting and ending it took; if ever.
    ran = record["started"][number] is not None
    held = record["ended"][number] - record["started"][number] if ran else told["runtime_s"]
    return PbsJob(
        number,
        begin + record["submitted"][number],
        held,
        (Chunk(told["chunks"], {"ncpus": told["ncpus"]}),),
        user=told["user"],
        group=told["user"],
        queue=queue,
        walltime_s=told["walltime_s"],
        soft_walltime_s=soft,
        kill_delay_s=max(0, held - told["walltime_s"]),
    )


@dataclass(frozen=True)
class Likeness:
    """How a model's run is like a live one."""

    pairs: int
    """Pairs of jobs that were pending together in both."""
    same: int
    """Of these, those started in the same order."""
    live_wait_s: float
    model_wait_s: float
    same_second: int
    """Jobs started within two seconds of when they did."""
    plans: int
    """Plans of top jobs that both made in the same cycle."""
    same_plans: int
    """Of these, those for the same moment, within two seconds."""


def compare(live: LiveRun, model: PbsRun) -> Likeness:
    """Compare a run with the model's."""
    place_live = {job: place for place, job in enumerate(live.start_order)}
    place_model = {job: place for place, job in enumerate(model.start_order)}
    pairs = same = 0
    for a in live.jobs:
        for b in live.jobs[a.index + 1 :]:
            first = min(live.started[a.index], live.started[b.index])
            last = max(live.started[a.index], live.started[b.index])
            if max(a.submit_time, b.submit_time) >= first or last == NEVER:
                continue
            pairs += 1
            order = place_live[a.index] < place_live[b.index]
            places = [place_model.get(job.index, NEVER) for job in (a, b)]
            same += order == (places[0] < places[1])
    ran = [job for job in live.jobs if live.started[job.index] != NEVER]
    start = {job.index: NEVER for job in live.jobs} | model.start
    count = len(ran)
    # The model may be a second off at a start, so the same cycle is one within two seconds.
    plans = same_plans = 0
    of_model: dict[int, list[tuple[int, int]]] = {}
    for when, job, at in model.top_jobs:
        of_model.setdefault(job, []).append((when, at))
    for when, job, at in live.top_jobs:
        near = [planned for moment, planned in of_model.get(job, []) if abs(moment - when) <= 2]
        if near:
            plans += 1
            same_plans += any(abs(planned - at) <= 2 for planned in near)
    return Likeness(
        pairs,
        same,
        sum(live.started[job.index] - job.submit_time for job in ran) / count,
        sum(start[job.index] - job.submit_time for job in ran) / count,
        sum(abs(start[job.index] - live.started[job.index]) <= 2 for job in live.jobs),
        plans,
        same_plans,
    )


def model_of(live: LiveRun) -> PbsRun:
    """Run its jobs in the specification."""
    return run_pbs(live.site, live.jobs, live.happened)


class _ToldShare(FairShare):
    """Fair share with the usage that pbs_sched had written."""

    def __init__(self, live: LiveRun) -> None:
        super().__init__(live.site.share_groups, live.site.scheduler, live.jobs[0].submit_time)
        self._charged = live.charged

    def begin_cycle(self, running: Sequence[tuple[PbsJob, int]], now: int) -> None:
        """Take the usage that was written by the cycle after the event of this second."""
        super().begin_cycle(running, now)
        told = [used for since, used in self._charged if since < now + 1]
        self._take(self.root, told[-1] if told else {})
        self._use_factors()

    def _take(self, entity: Entity, told: Mapping[str, float]) -> float:
        below = sum(self._take(child, told) for child in entity.children)
        entity.usage = below if entity.children else told.get(entity.name, LEAST_USAGE)
        entity.assumed = entity.usage
        return entity.usage


def same_cycles(live: LiveRun, *, told: bool = False) -> tuple[int, int]:
    """Say of how many live cycles that started jobs the model starts the same, and of how many.

    Each cycle is given what ran and waited on the live server, so that a difference in one does not
    make others.

    Parameters
    ----------
    told
        Fair share goes by what pbs_sched had charged, not by what the model would charge.
    """
    cycles = PbsCycles(live.site, live.jobs[0].submit_time)
    if told:
        cycles.fair_share = _ToldShare(live)
    started_in: dict[int, list[int]] = {}
    for who, number in zip(live.start_order, live.start_cycles, strict=True):
        started_in.setdefault(number, []).append(who)
    waiting: dict[int, PbsJob] = {}
    running: dict[int, Running] = {}
    same = together = 0
    for number, (kind, index) in enumerate(live.happened):
        job = live.jobs[index]
        if kind == "Q":
            now = job.submit_time
            waiting[index] = job
        else:
            now = live.started[index] + job.held_s
            del running[index]
        seen = [
            replace(each, exiting=kind == "E" and each.start + each.job.held_s == now)
            for each in running.values()
        ]
        decided = cycles.cycle(now, list(waiting.values()), seen)
        real = started_in.get(number, [])
        found = [each.index for each, _ in decided.started]
        together += bool(real or found)
        same += bool(real) and real == found
        for who in real:
            running[who] = Running(waiting.pop(who), now, live.placements[who])
    return same, together
