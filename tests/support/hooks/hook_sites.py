"""Both hooks behind one face, tables written by hand, and what can be done to a table."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from foretime_sim.mocks.pbs.hook import PbsHook, PbsSite
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, LuaHook

NOW = 2_000
SETTINGS = {
    "mode": "enforce",
    "enforce_share_percent": "100",
    "scheme": "combined",
    "mechanism": "time-min",
    "user_time_min": "raise",
    "minimum_adjustment": "0.100000",
    "minimum_scheduled_time_s": "600",
    "rounding_s": "60",
    "requested_time_bounds_s": "-",
}
ROWS = (
    "project a%7Cb%0Ac%20%C3%A9%23 0 0.100000 -",
    "project phys 0 0.500001 -",
    "user alice 0 0.300000 -",
    "user bob 0 1.000000 -",
    "user left 0 0.100000 -",
    "user small 0 0.100000 144000",
)


def summed(text: str) -> str:
    """Sum up as TABLE.md says, here as the digits of one number in base 65599."""
    octets, modulus = text.encode("latin-1"), 4294967291
    total = pow(65599, len(octets), modulus)
    for at, octet in enumerate(reversed(octets)):
        total += octet * pow(65599, at, modulus)
    return f"{total % modulus:010d}"


def table_text(
    rows: tuple[str, ...] = ROWS,
    *,
    lines: tuple[str, ...] = (),
    header: dict[str, int] | None = None,
    version: str = "1",
    without: str = "",
    **settings: str,
) -> str:
    """Write a table of one bucket, with valid sums whatever it says."""
    numbers = {"generation": 1, "written": 1_000, "valid": 100_000, "buckets": 1, **(header or {})}
    body = "".join(
        f"{key} {value}\n" for key, value in {**SETTINGS, **settings}.items() if key != without
    )
    body += "".join(f"{line}\n" for line in lines)
    written = "\n" + "".join(f"{row}\n" for row in rows)
    bucket = f"#000000 {summed(written + '#000000 ' + str(numbers['generation']))}{written}"

    def first(length: int, head: int) -> str:
        return (
            f"foretime-table {version} generation={numbers['generation']} length={length:09d}"
            f" head={head:09d} written={numbers['written']} valid={numbers['valid']}"
            f" buckets={numbers['buckets']}\n"
        )

    head = len(first(0, 0)) + len(body)
    last = f"end generation={numbers['generation']} length="
    length = head + len("check 0123456789\n") + len(bucket) + len(last) + len("012345678\n")
    top = first(length, head) + body
    return f"{top}check {summed(top)}\n{bucket}{last}{length:09d}\n"


@dataclass(frozen=True)
class Job:
    """A request, in words that both schedulers have."""

    walltime_s: int | None = 36_000
    user: str = "alice"
    project: str | None = "phys"
    processors: int = 4
    queue: str = "main"
    opted_out: bool = False
    begin_time: int | None = None


class Site(Protocol):
    """A scheduler with a hook and its table."""

    table: Path
    off: Path

    def submit(self, job: Job, now: int = NOW) -> int | None: ...

    def modify(self, request: Job, job: Job, planned_s: int, now: int = NOW) -> int | None:
        """What t_sched becomes of a planned job's: the same, another, or ``None`` (it has none)."""

    def forget(self) -> None: ...


class SlurmSite:
    PARTITION: ClassVar[dict[str, Any]] = {
        "max_time": 4294967295,
        "flag_default": 0,
        "total_nodes": 10,
        "total_cpus": 40,
        "max_share": 1,
    }

    def __init__(self, folder: Path, lua_version: str) -> None:
        self.table, self.off = folder / "table", folder / "off"
        self.hook = LuaHook(lua_version=lua_version, table=self.table, disable_file=self.off)
        names = ("main", "long", "closed")
        self.partitions = {name: dict(self.PARTITION) for name in names}
        self.partitions["main"]["flag_default"] = 1

    def forget(self) -> None:
        self.hook.configure({"table": str(self.table), "disable_file": str(self.off)})

    @staticmethod
    def fields(job: Job) -> dict[str, Any]:
        fields = {
            "time_limit": None if job.walltime_s is None else job.walltime_s // 60,
            "user_name": job.user,
            "account": job.project,
            "min_cpus": job.processors,
            "partition": job.queue,
            "comment": "foretime:off" if job.opted_out else None,
            "begin_time": job.begin_time,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def submit(self, job: Job, now: int = NOW) -> int | None:
        reply = self.hook.submit(self.fields(job), self.partitions, 1000, now)
        assert reply.code == 0
        assert set(reply.changes) in (set(), {"time_min", "admin_comment"})
        minutes = reply.changes.get("time_min")
        assert minutes is None or isinstance(minutes, int)
        return None if minutes is None else minutes * 60

    def modify(self, request: Job, job: Job, planned_s: int, now: int = NOW) -> int | None:
        before = self.fields(job)
        asked = {
            name: value for name, value in self.fields(request).items() if before.get(name) != value
        }
        note = f"foretime:treq={before['time_limit']},tmin={planned_s // 60},generation=1"
        record = {**before, "time_min": planned_s // 60, "admin_comment": note}
        reply = self.hook.modify(asked, record, self.partitions, 1000, now)
        assert reply.code == 0
        minutes = reply.changes.get("time_min", planned_s // 60)
        assert isinstance(minutes, int)
        return minutes * 60 or None


class PbsScheduler:
    def __init__(self, folder: Path) -> None:
        self.table, self.off = folder / "table", folder / "off"
        config = folder / "foretime_hook.CF"
        config.write_text(json.dumps({"table": str(self.table), "disable_file": str(self.off)}))
        queues = {name: {"queue_type": "Execution"} for name in ("main", "long", "closed")}
        site = PbsSite(queues=queues, server={"name": "pbs", "default_queue": "main"})
        self.hook = PbsHook(config=config, site=site)
        self.reason = ""

    def forget(self) -> None:
        """Nothing is kept."""

    @staticmethod
    def fields(job: Job) -> dict[str, Any]:
        resources = {"walltime": job.walltime_s, "ncpus": job.processors}
        fields = {
            "Resource_List": {
                name: value for name, value in resources.items() if value is not None
            },
            "Account_Name": job.project,
            "queue": job.queue,
            "Variable_List": {"FORETIME": "off"} if job.opted_out else None,
            "Execution_Time": job.begin_time,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def submit(self, job: Job, now: int = NOW) -> int | None:
        reply = self.hook.queuejob(self.fields(job), job.user, now)
        assert reply.accepted
        assert set(reply.changes) <= {"Resource_List.soft_walltime"}
        self.reason = reply.log[-1].text.partition("reason=")[2].partition(" ")[0]
        soft = reply.changes.get("Resource_List.soft_walltime")
        assert soft is None or isinstance(soft, int)
        return soft

    def modify(self, request: Job, job: Job, planned_s: int, now: int = NOW) -> int | None:
        before = self.fields(job)
        asked = {
            name: value for name, value in self.fields(request).items() if before.get(name) != value
        }
        if "Resource_List" in asked:
            asked["Resource_List"] = {"walltime": request.walltime_s}
        record = {**before, "id": "7.pbs", "Job_Owner": f"{job.user}@login"}
        record["Resource_List"] = {**before["Resource_List"], "soft_walltime": planned_s}
        reply = self.hook.modifyjob(asked, record, job.user, now)
        assert reply.accepted
        soft = reply.changes.get("Resource_List.soft_walltime", planned_s)
        assert isinstance(soft, int)
        # Planned with all of it is what having none is here.
        return None if reply.changes and soft == request.walltime_s else soft


MAKERS: dict[str, Callable[[Path], Site]] = {
    **{f"lua-{version}": partial(SlurmSite, lua_version=version) for version in LUA_VERSIONS},
    "pbs": PbsScheduler,
}


def mutations_of(valid: bytes, previous: bytes) -> list[bytes]:
    choose = random.Random(1)
    found = [valid[:at] for at in range(len(valid))]
    found += [valid[:at] + previous[at:] for at in range(1, len(valid), 3)]
    for at in range(0, len(valid), 2):
        found.append(valid[:at] + bytes((choose.randrange(256),)) + valid[at + 1 :])
    lines = valid.splitlines(keepends=True)
    for _ in range(120):
        start, stop = sorted(choose.sample(range(len(valid)), 2))
        found.append(valid[:start] + valid[stop:])
        found.append(valid[:start] + choose.randbytes(choose.randrange(20)) + valid[start:])
        found.append(valid[:start] + valid[start:stop][::-1] + valid[stop:])
        found.append(valid[:start] + previous[start:stop] + valid[stop:])
        swapped = lines.copy()
        one, other = choose.sample(range(len(lines)), 2)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        found.append(b"".join(swapped))
    return found


def decisions(sites: list[Site], content: bytes, jobs: tuple[Job, ...]) -> list[int | None]:
    """What all hooks decide of these jobs; they must be of one mind."""
    found = []
    sites[0].table.write_bytes(content)
    for site in sites:
        site.forget()
        found.append([site.submit(job) for job in jobs])
    for maker, decided in zip(MAKERS, found, strict=True):
        assert decided == found[0], (maker, content)
    return found[0]
