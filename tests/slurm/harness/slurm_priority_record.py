"""Records what a live cluster says of its priorities and shares over some minutes."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.support.slurm.slurm_priority_record import Record, Sample

SPRIO = "%i|%r|%Y|%S|%A|%B|%F|%J|%P|%Q|%N|%T|%a|%b|%f|%j|%p|%q|%t"
SSHARE = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS"
DEBUG = {"SlurmctldDebug": "debug2", "DebugFlags": "Priority", "LogTimeFormat": "iso8601_ms"}
_EVENTS = re.compile(
    r"Decay factor over (?P<tick>\d+) seconds"
    r"|initial priority for job (?P<first>\d+) is \d+"
    r"|priority_p_job_end: called for job (?P<ended>\d+)"
    # 26.05 does not say what backfill starts, but what a job is billed with when it starts.
    r"|BillingWeight: JobId=(?P<started>\d+) is either new"
    r"|_job_complete: JobId=(?P<done>\d+)"
)
_SAMPLES_AFTER_A_TICK = 2


def last_ran(cluster: SlurmCluster) -> int:
    """Read when the decay thread last ran (StateSaveLocation's priority_last_decay_ran)."""
    path = cluster.folder / "state/priority_last_decay_ran"
    content = path.read_bytes() if path.exists() else b""
    return int(struct.unpack(">Q", content[:8])[0]) if len(content) >= 8 else 0


def events_of(cluster: SlurmCluster, offset: int) -> list[tuple[str, int]]:
    """Read from slurmctld's log what has happened, in its order, from an offset on."""
    text = (cluster.folder / "log/slurmctld.log").read_bytes()[offset:].decode(errors="replace")
    return [
        (kind, int(number))
        for found in _EVENTS.finditer(text)
        for kind, number in found.groupdict().items()
        if number is not None
    ]


def firsts_of(cluster: SlurmCluster, offset: int) -> dict[int, int]:
    """Read when jobs got their first priorities, in epoch seconds by id."""
    text = (cluster.folder / "log/slurmctld.log").read_bytes()[offset:].decode(errors="replace")
    line = r"^\[([-\d]+T[\d:]+)\.\d+\] .*initial priority for job (\d+) is"
    found = re.findall(line, text, flags=re.MULTILINE)
    return {
        int(number): int(datetime.fromisoformat(when).astimezone().timestamp())
        for when, number in reversed(found)
    }


def record(
    cluster: SlurmCluster,
    settings: Mapping[str, str],
    jobs: Callable[[SlurmCluster], None],
    later: Sequence[Callable[[SlurmCluster], None]],
    ticks: int,
) -> Record:
    """Begin anew with these settings, submit jobs and watch for some ticks.

    ``later``: what is done after each tick, after it was looked at.
    """
    log = cluster.folder / "log/slurmctld.log"
    cluster.set_conf({**DEBUG, **settings}, restart=True)
    cluster.stop_slurmctld()
    (cluster.folder / "state/priority_last_decay_ran").unlink(missing_ok=True)
    (cluster.folder / "state/priority_last_decay_ran.old").unlink(missing_ok=True)
    offset = log.stat().st_size
    cluster.start_slurmctld()
    cluster.wait_for(lambda: last_ran(cluster), "the decay thread", 30)
    made = Record(began=last_ran(cluster))
    jobs(cluster)
    ran = made.began
    for number in range(ticks):
        _look(cluster, made, offset)
        ran = _next_tick(cluster, ran)
        time.sleep(0.5)
        for _ in range(_SAMPLES_AFTER_A_TICK):
            _look(cluster, made, offset)
            time.sleep(3)
        if number < len(later):
            later[number](cluster)
            time.sleep(1)
    _look(cluster, made, offset)
    made.events = events_of(cluster, offset)
    made.firsts = firsts_of(cluster, offset)
    made.jobs = {int(job["JobId"]): job for job in cluster.jobs()}
    return made


def _next_tick(cluster: SlurmCluster, ran: int) -> int:
    cluster.wait_for(lambda: last_ran(cluster) > ran, "a tick", 90)
    return last_ran(cluster)


def _look(cluster: SlurmCluster, made: Record, offset: int) -> None:
    before = events_of(cluster, offset)
    at = int(time.time())
    sprio = cluster.checked(["sprio", "-h", "-o", SPRIO])
    sshare = cluster.checked(["sshare", "-a", "-h", "-P", "-o", SSHARE])
    shown = cluster.jobs()
    after = events_of(cluster, offset)
    for job in shown:
        if job["JobState"] == "PENDING":
            made.waiting[int(job["JobId"])] = job
    made.samples.append(
        Sample(
            at,
            len(after) if len(before) == len(after) else -1,
            sprio.splitlines(),
            sshare.splitlines(),
            {job["JobId"]: int(job["Priority"]) for job in shown if job["JobState"] == "PENDING"},
        )
    )
