"""One truth for what is left alone: both hooks and the daemon judge each case of a file alike.

The hooks read the table that the daemon writes for the site of the case. The daemon judges the job
as its clients read it from what the scheduler then shows of it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.clients.client import (
    Holder,
    QueuedJob,
    Reservation,
    SiteLimits,
    SlurmPartition,
)
from foretime_sidecar.clients.pbs.json import parse_queue as parse_qstat
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.pyslurm_client import PySlurm
from foretime_sidecar.clients.slurm.queue_json import parse_queue as parse_squeue
from foretime_sidecar.clients.slurm.site import expand_nodes
from foretime_sidecar.learning.exclusions import Exclusions, Why, exclusions_of, why_plain
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.name_kinds import KINDS
from foretime_sidecar.table.table import (
    Mechanism,
    Mode,
    Table,
    TableRow,
    TableSettings,
    write_table,
)
from foretime_sim.mocks.pbs.hook import PbsHook, PbsSite
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, LuaHook

from tests.support.slurm.pyslurm_module import RecordedCommands, pyslurm_of

NOW = 2_000
ASSETS = Path(__file__).parents[1] / "assets"
FILE = tomllib.loads(Path(__file__).with_name("exclusion_cases.toml").read_text())
SITE: dict[str, Any] = FILE["site"]
CASES: list[dict[str, Any]] = FILE["case"]

HOLDERS: tuple[Holder, ...] = ("user", "account", "qos")
JOB_DESC = {"time_limit": 600, "user_name": "alice", "account": "phys", "partition": "main"}
ATTRIBUTES = {"Job_Owner": "alice", "Account_Name": "phys", "queue": "main"}
RESOURCES = {"walltime": 36_000, "ncpus": 1}
# What squeue calls the fields of job_submit that have another name there, or none.
SHOWN = {
    "begin_time": "eligible_time",
    "reservation": "resv_name",
    "default_account": "account",
    "default_qos": "qos",
}
NOT_SHOWN = ("script", "het_job_offset")


@dataclass(frozen=True)
class World:
    """The site of a case on one scheduler, with its table."""

    case: dict[str, Any]
    folder: Path
    exclusions: Exclusions

    @property
    def table(self) -> Path:
        return self.folder / "table"


def world_of(case: dict[str, Any], folder: Path, *, pbs: bool) -> World:
    hook = {"mechanism": "pbs-soft-walltime"} if pbs else {}
    settings = Settings.model_validate({"hook": {**hook, **case.get("settings", {})}})
    exclusions = exclusions_of(
        settings,
        SiteLimits() if pbs else slurm_limits(case.get("limits", {})),
        [reservation(number, pbs=pbs, **each) for number, each in enumerate(reservations(case))],
        NOW,
    )
    rewrites = settings.hook.mechanism == "rewrite-limit"
    table = Table(
        generation=1,
        written_at=1_000,
        valid_until=100_000,
        settings=TableSettings(
            mode=Mode.ENFORCE,
            mechanism=Mechanism.REWRITE_LIMIT if rewrites else Mechanism.TIME_MIN,
            minimum_scheduled_time_s=60,
        ),
        left_alone=exclusions.left_alone,
        longest=exclusions.longest,
        reservations=exclusions.reservations,
        rows=(TableRow("user", "alice", 0, 300_000), TableRow("project", "phys", 0, 300_000)),
    )
    write_table(folder / "table", table)
    return World(case, folder, exclusions)


def reservations(case: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = case.get("reservations", [])
    return found


def reservation(
    number: int,
    *,
    pbs: bool,
    start: int,
    end: int,
    nodes: str | None = None,
    flags: tuple[str, ...] = (),
) -> Reservation:
    named = None if pbs or nodes is None else expand_nodes(nodes)
    return Reservation(f"r{number}", start, end, flags=frozenset(flags), nodes=named)


def slurm_limits(limits: Mapping[str, Any]) -> SiteLimits:
    return SiteLimits(
        tuple(
            SlurmPartition(
                name,
                minutes * 60 if minutes else None,
                SITE["qos"].get(name),
                expand_nodes(SITE["nodes"][name]),
            )
            for name, minutes in SITE["max_time"].items()
        ),
        frozenset((kind, name) for kind in HOLDERS for name in limits.get(kind, ())),
        {
            (kind, name): seconds
            for kind, each in limits.get("max_wall", {}).items()
            for name, seconds in each.items()
        },
    )


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that are asked for; "" takes one of any job's away."""
    return {name: value for name, value in fields.items() if value != ""}


def judged_by_lua(world: World, version: str) -> bool:
    hook = LuaHook(
        lua_version=version, table=world.table, disable_file=world.table.with_name("off")
    )
    records = {
        name: {
            "max_time": minutes or 4_294_967_295,
            "flag_default": int(name == "main"),
            "total_nodes": 4,
            "total_cpus": 16,
            "qos": SITE["qos"].get(name, ""),
        }
        for name, minutes in SITE["max_time"].items()
    }
    job = given({**JOB_DESC, **world.case["slurm"]})
    reply = hook.submit(job, records, 1000, NOW)
    assert reply.code == 0
    return not reply.changes


def judged_by_pbs(world: World) -> str:
    """Why the hook leaves the job alone, "-" if it plans it."""
    home = world.folder / "home"
    (home / "sched_priv").mkdir(parents=True)
    (home / "sched_priv" / "dedicated_time").write_text(world.case.get("pbs_dedicated_time", ""))
    config = world.folder / "foretime_hook.CF"
    config.write_text(json.dumps({"table": str(world.table), "disable_file": f"{home}/off"}))
    site = PbsSite(
        queues={name: {"queue_type": "Execution"} for name in SITE["queues"]},
        server={"name": "pbs", "default_queue": "main"},
        home=str(home),
    )
    asked = given({**ATTRIBUTES, **world.case["pbs"]})
    asked["Resource_List"] = given({**RESOURCES, **asked.get("Resource_List", {})})
    reply = PbsHook(config=config, site=site).queuejob(asked, asked.pop("Job_Owner"), NOW)
    assert reply.accepted
    reason = reply.log[-1].text.partition("reason=")[2].partition(" ")[0]
    assert (reason == "-") == bool(reply.changes)
    return reason


def squeue_job(case: dict[str, Any], release: str) -> dict[str, Any]:
    """A job of a case, as `squeue --json` of a release prints it."""
    recorded = json.loads((ASSETS / f"slurm/{release}/squeue.json").read_text())["jobs"]
    any_job = next(job for job in recorded if job["state_reason"] == "Priority")
    shown = {**any_job, "submit_time": NOW, "eligible_time": NOW, "deadline": 0, **JOB_DESC}
    for name, value in case["slurm"].items():
        if name not in NOT_SHOWN:
            shown[SHOWN.get(name, name)] = value
    shown.update(case.get("squeue", {}))
    return {name: None if value == "" else value for name, value in shown.items()}


def shown_by_squeue(case: dict[str, Any]) -> QueuedJob:
    (job,) = parse_squeue({"errors": [], "jobs": [squeue_job(case, "22.05")]})
    return job


def shown_by_pyslurm(case: dict[str, Any]) -> QueuedJob:
    commands = SlurmCommands(RecordedCommands(ASSETS / "slurm/26.05"), 0)
    (job,) = PySlurm(pyslurm_of([squeue_job(case, "26.05")]), commands).queue().jobs
    return job


def shown_by_qstat(case: dict[str, Any]) -> QueuedJob:
    recorded = json.loads((ASSETS / "pbs/openpbs/qstat.json").read_text())
    any_job = next(job for job in recorded["Jobs"].values() if job["job_state"] == "Q")
    shown = {**any_job, "ctime": NOW, "qtime": NOW, "etime": NOW}
    shown |= {"project": "_pbs_project_default", **ATTRIBUTES, **case["pbs"]}
    shown["euser"] = shown["Job_Owner"]
    shown["Resource_List"] = given({**RESOURCES, **case["pbs"].get("Resource_List", {})})
    shown["job_state"] = "W" if shown.get("Execution_Time", NOW) > NOW else "Q"
    reply = {**recorded, "timestamp": NOW, "Jobs": {"1.pbs": given(shown)}}
    (job,) = parse_qstat(json.dumps(reply))
    return job


def judged_by_daemon(world: World, shown: Callable[[dict[str, Any]], QueuedJob]) -> str:
    why = why_plain(shown(world.case), world.exclusions, NOW)
    return "-" if why is None else why.value


JUDGES: dict[str, Callable[[World], bool | str]] = {
    **{f"lua-{version}": partial(judged_by_lua, version=version) for version in LUA_VERSIONS},
    "squeue": partial(judged_by_daemon, shown=shown_by_squeue),
    "pyslurm": partial(judged_by_daemon, shown=shown_by_pyslurm),
    "pbs": judged_by_pbs,
    "qstat": partial(judged_by_daemon, shown=shown_by_qstat),
}


def scheduler_of(judge: str) -> str:
    return "pbs" if judge in ("pbs", "qstat") else "slurm"


def judges(case: dict[str, Any], judge: str) -> bool:
    said = case.get("except", {})
    by = "squeue" if judge == "pyslurm" else judge.partition("-")[0]  # it shows the same of a job
    return not {by, f"on_{scheduler_of(judge)}"} & said.keys()


@pytest.mark.parametrize(
    ("case", "judge"),
    [
        pytest.param(case, judge, id=f"{case['name']}-{judge}")
        for case in CASES
        for judge in JUDGES
        if judges(case, judge)
    ],
)
def test_both_hooks_and_the_daemon_judge_a_case_alike(
    case: dict[str, Any], judge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    expected: bool | str = case.get("left_alone", "-")
    if judge == "pbs":
        expected = case.get("pbs_reason", expected)
    elif judge.startswith("lua"):  # which gives no reason
        expected = expected != "-"
    assert JUDGES[judge](world_of(case, tmp_path, pbs=scheduler_of(judge) == "pbs")) == expected


def test_every_case_is_whole() -> None:
    keys = {"name", "settings", "limits", "reservations", "slurm", "squeue", "pbs"}
    keys |= {"pbs_dedicated_time", "left_alone", "pbs_reason", "except"}
    excepted = {"lua", "squeue", "pbs", "qstat", "on_slurm", "on_pbs"}
    for case in CASES:
        assert case.keys() <= keys, case
        assert case.get("except", {}).keys() <= excepted, case
        assert all(isinstance(why, str) and why for why in case.get("except", {}).values()), case
        for scheduler in ("slurm", "pbs"):
            judged = any(judges(case, one) for one in JUDGES if scheduler_of(one) == scheduler)
            assert (scheduler in case) == judged, (case, scheduler)
    assert len({case["name"] for case in CASES}) == len(CASES)


def test_every_reason_and_every_kind_has_a_case() -> None:
    left = [case for case in CASES if "left_alone" in case]
    assert {why.value for why in Why} <= {case["left_alone"] for case in left}
    chosen = [case.get("settings", {}) for case in left if case["left_alone"] == "settings"]
    planned = [case.get("settings", {}) for case in CASES if "left_alone" not in case]
    for kind in KINDS.values():
        setting = f"leave_{kind.plural}"
        assert any(setting in settings for settings in chosen), kind
        assert any(setting in settings for settings in planned), kind
