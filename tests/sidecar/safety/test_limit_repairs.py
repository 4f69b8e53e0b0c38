"""No job is killed at t_sched: the sidecar mends limits that the scheduler or its prolog left."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    JobChange,
    QueuedJob,
    QueueState,
    Reservation,
)
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.queue_json import parse_queue
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.safety.limit_repairs import (
    as_changed,
    changes_of,
    limit_changes,
    lowered_limits,
    time_min_changes,
    undone,
)
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.slurm.hook import Fields, HookReply
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Correction, Policy

from tests.support.slurm.soft_slurm import HOUR, NOTE, RAISED, START, Soft, waiting


class Halving:
    """A hook that plans every job with half of what was asked for, as rewrite-limit does."""

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        asked = int(job["time_limit"])
        note = f"foretime:treq={asked},tsched={asked // 2}"
        return HookReply(0, {"time_limit": asked // 2, "admin_comment": note}, [])

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        return HookReply(0, {}, [])


def _sidecar(slurm: MockSlurm, folder: Path) -> Sidecar:
    settings = Settings.model_validate(
        {
            "scheduler": {"history_days": 1},
            "table": {"path": str(folder / "table")},
            "hook": {"mode": "enforce", "mechanism": "rewrite-limit"},
            "queue_order": {"order": "none"},
        }
    )
    return Sidecar(settings, SlurmCommands(slurm.run, 0), Store(folder / "store"))


@pytest.mark.parametrize(
    ("prolog_works", "looks", "state"),
    [
        (False, False, "TIMEOUT"),
        (False, True, "COMPLETED"),
        (True, True, "COMPLETED"),
    ],
)
def test_a_look_saves_jobs_from_a_failed_prolog(
    prolog_works: bool, looks: bool, state: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = SlurmSetup(8, Mechanism.REWRITE_LIMIT, prolog_works=prolog_works)
    slurm = MockSlurm(setup, Policy(correction=Correction.SLURM), Halving(), START)
    slurm.submit(Submission("ann", "p", None, 8, HOUR, 3000))
    slurm.submit(Submission("bob", "p", None, 8, HOUR, 3000))
    slurm.advance(START + 60)
    sidecar = _sidecar(slurm, tmp_path)
    for now in range(START + 60, START + 3 * HOUR, 60):
        slurm.advance(now)
        if looks:
            with caplog.at_level(logging.WARNING, "foretime"):
                sidecar.look(now)
            sidecar.poll(now)
    records, _ = SlurmCommands(slurm.run, 0).finished_since(Cursor())
    assert [record.state for record in records] == [state, state]
    repaired = 2 if looks and not prolog_works else 0
    assert caplog.text.count("that PrologSlurmctld left with a lowered limit") == repaired
    sidecar.store.close()


@pytest.mark.parametrize(
    ("comment", "limit_min", "state", "expected_min"),
    [
        ("foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
        ("site foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
        ("foretime:treq=60,tsched=30 foretime:treq=99,tsched=30", 30, QueueState.RUNNING, 60),
        ("foretime:treq=60,tsched=30", 45, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30", 60, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30", 30, QueueState.PENDING, None),
        ("foretime:treq=20,tsched=30", 30, QueueState.RUNNING, None),
        ("xforetime:treq=60,tsched=30", 30, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30x", 30, QueueState.RUNNING, None),
        ("", 30, QueueState.RUNNING, None),
    ],
)
def test_only_a_limit_that_still_is_t_sched_is_raised(
    comment: str, limit_min: int, state: QueueState, expected_min: int | None
) -> None:
    job = QueuedJob(
        JobRequest("7_1", "ann", "p", 8, limit_min * 60, START), state, admin_comment=comment
    )
    expected = [] if expected_min is None else [JobChange("7_1", time_limit=expected_min * 60)]
    for soft_limit in (True, False):
        assert changes_of(lowered_limits([job], soft_limit, {})) == expected


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.SUSPENDED])
def test_a_suspended_job_gets_its_limit_back_before_it_goes_on(state: QueueState) -> None:
    note = "foretime:treq=60,tsched=30"
    job = QueuedJob(JobRequest("7", "ann", "p", 8, 1800, START), state, admin_comment=note)
    assert changes_of(lowered_limits([job], True, {})) == [JobChange("7", time_limit=HOUR)]


@pytest.mark.parametrize("soft_limit", [True, False])
def test_what_is_set_on_a_running_task_stays(soft_limit: bool) -> None:
    """While other tasks of its array wait with more; but not what Slurm lowered at its start."""
    request = JobRequest("7_1", "ann", "p", 8, 600, START, "main", "7")
    note = "foretime:treq=60,tmin=10,generation=1"
    task = QueuedJob(request, QueueState.RUNNING, time_min=600, admin_comment=note)
    raised = [JobChange("7_1", time_limit=HOUR)]
    assert changes_of(lowered_limits([task], soft_limit, {"7": HOUR})) == raised
    by_its_user = lowered_limits([task], True, {"7": HOUR}, frozenset({"7_1"}))
    assert changes_of(by_its_user) == []


def test_a_look_remembers_what_had_started(tmp_path: Path) -> None:
    request = JobRequest("7_1", "ann", "p", 8, HOUR, START, "main", "7")
    parent = waiting("7", request=replace(request, job_id="7"), tasks=2, pending_tasks="2-3")
    task = waiting("7_1", request=request, state=QueueState.RUNNING)
    client = Soft([parent, task])
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    client.jobs[1] = replace(task, request=replace(request, requested_time=600))
    sidecar.look(START + 60)
    assert client.changes == [], "its user lowered it to what happens to be t_sched"


def test_of_an_array_the_waiting_tasks_alone_are_changed() -> None:
    """By the array's number scontrol changes the running ones, too (seen on 22.05 and 26.05)."""
    request = JobRequest("7", "ann", "p", 8, 600, START, "main", "7")
    note = "foretime:treq=60,tsched=10,generation=1"
    parent = QueuedJob(request, QueueState.PENDING, 3, "2-3,7", admin_comment=note, deadline=True)
    expected = [JobChange("7_[2-3,7]", time_limit=HOUR)]
    assert changes_of(undone([parent], "why")) == expected
    assert changes_of(limit_changes([parent], Exclusions(), START, 0)) == expected
    untold = replace(parent, pending_tasks="")
    assert changes_of(undone([untold], "why")) == [JobChange("7", time_limit=HOUR)]


def _looking(client: Soft, folder: Path, **hook: str) -> Sidecar:
    settings = Settings.model_validate(
        {
            "scheduler": {"poll_interval_s": 60},
            "table": {"path": str(folder / "table")},
            "hook": {"mode": "enforce", "disable_file": str(folder / "off")} | hook,
            "queue_order": {"order": "none"},
        }
    )
    return Sidecar(settings, client, Store(":memory:"))


JOBS = [
    waiting("1"),
    waiting("2", deadline=True),
    waiting("3", heterogeneous=True),
    waiting("4", None, deadline=True),
    waiting("5", HOUR, deadline=True),
    waiting("6", state=QueueState.RUNNING, deadline=True),
    waiting("7", admin_comment=""),
    waiting("8", admin_comment="", deadline=True),
]


@pytest.mark.parametrize(
    ("starts_in_s", "cleared"),
    [
        (None, ["2", "3", "8"]),
        (-60, ["2", "3", "8"]),
        (0, ["2", "3", "8"]),
        (1, ["1", "2", "3", "7", "8"]),
        (HOUR, ["1", "2", "3", "7", "8"]),
        (HOUR + 119, ["1", "2", "3", "7", "8"]),
        (HOUR + 120, ["2", "3", "8"]),
    ],
)
def test_jobs_that_would_run_into_something_lose_time_min(
    starts_in_s: int | None, cleared: list[str], tmp_path: Path
) -> None:
    client = Soft(JOBS)
    if starts_in_s is not None:
        client.ahead = [
            Reservation("far", START + 90 * HOUR, START + 91 * HOUR),
            Reservation(
                "r", START + starts_in_s, START + starts_in_s + HOUR, slurm_partition="other"
            ),
        ]
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == [JobChange(job_id, time_min=0) for job_id in cleared]
    sidecar.look(START)
    assert len(client.changes) == len(cleared), "what was cleared is not cleared again"
    client.ahead = []
    sidecar.look(START + 1)
    back = [JobChange("1", time_min=600)] if "1" in cleared else []
    assert client.changes[len(cleared) :] == back, "only what the hook planned is given back"


def test_a_job_gets_its_time_min_at_the_look(tmp_path: Path) -> None:
    client = Soft(
        [
            waiting("1", None),
            waiting("2", 300, admin_comment=RAISED),
            waiting("3", 300, admin_comment=""),
            waiting("4", 420, admin_comment=RAISED),
            waiting("5", None, opted_out=True),
            waiting("6", None, state=QueueState.RUNNING),
            waiting("7", None, request=JobRequest("7", "ann", "p", 8, 540, START)),
        ]
    )
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == [JobChange("1", time_min=600), JobChange("2", time_min=600)]


@pytest.mark.parametrize("how", ["observe", "rewrite-limit", "disabled", "no parameter", "builtin"])
def test_what_the_hook_gave_is_taken_back(how: str, tmp_path: Path) -> None:
    lowered = replace(
        waiting("4", None, admin_comment="foretime:treq=90,tsched=60,generation=1"),
    )
    client = Soft(
        [
            waiting("1"),
            waiting("2", admin_comment=RAISED),
            waiting("3", admin_comment=""),
            lowered,
        ]
    )
    hook: dict[str, str] = {}
    if how == "observe":
        hook = {"mode": "observe"}
    elif how == "rewrite-limit":
        hook = {"mechanism": "rewrite-limit"}
        client.prolog = "/etc/slurm/prolog_slurmctld"
    elif how == "disabled":
        (tmp_path / "off").touch()
    elif how == "no parameter":
        client.parameters = {}
    else:
        client.scheduler_type = "sched/builtin"
    _looking(client, tmp_path, **hook).look(START)
    taken = [JobChange("1", time_min=0), JobChange("2", time_min=300)]
    raised = [] if how == "rewrite-limit" else [JobChange("4", time_limit=5400)]
    assert client.changes == taken + raised


@pytest.mark.parametrize("how", ["observe", "no parameter", "opted out"])
def test_what_users_have_set_since_stays(how: str, tmp_path: Path) -> None:
    """A time_min or limit that is not the hook's, of jobs that it has planned once."""
    under_longer = "foretime:treq=60,tmin=10,generation=1,own=30"
    shorter = JobRequest("5", "ann", "p", 8, 1200, START, "main")
    client = Soft(
        [
            waiting("1", 900),
            waiting("2", 300, admin_comment=RAISED),
            waiting("3", None),
            waiting("4", 600, admin_comment=NOTE + ",learned=1"),
            waiting("5", 600, admin_comment=under_longer, request=shorter),
            waiting("6", 300, admin_comment=RAISED + ",learned=1"),
        ]
    )
    if how == "opted out":
        client.jobs = [replace(job, opted_out=True) for job in client.jobs]
    if how == "no parameter":
        client.parameters = {}
    sidecar = _looking(client, tmp_path, **({"mode": "observe"} if how == "observe" else {}))
    sidecar.look(START)
    # Its user's own 30 minutes are more than Slurm takes by now.
    assert client.changes == [JobChange("4", time_min=0), JobChange("5", time_min=1200)]
    client.changes.clear()
    lowered = JobRequest("3", "ann", "p", 8, 900, START, "main")
    client.jobs = [
        waiting("1", 900, state=QueueState.RUNNING, request=replace(lowered, job_id="1")),
        waiting("3", None, state=QueueState.RUNNING, request=lowered),
    ]
    sidecar.look(START + 60)
    assert client.changes == [], "its user lowered the limit just before it started"


def test_a_limit_that_slurm_lowered_is_raised(tmp_path: Path) -> None:
    client = Soft([waiting("1"), waiting("2"), waiting("5_[3-9]"), waiting("4")])
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == []

    def started(job_id: str, limit: int, array_id: str | None = None) -> QueuedJob:
        request = JobRequest(job_id, "ann", "p", 8, limit, START, "main", array_id)
        return QueuedJob(request, QueueState.RUNNING, time_min=600, admin_comment=NOTE)

    client.jobs = [
        started("1", 600),  # to time_min: Slurm's doing, parameter or not
        started("2", 1200),  # above it: only without the parameter
        started("5_3", 900, "5_[3-9]"),
        started("9", 600),  # never seen to wait
        started("8", 900),
    ]
    client.parameters = {}
    sidecar.look(START + 60)
    raised = [JobChange(job_id, time_limit=HOUR) for job_id in ("1", "2", "5_3", "9")]
    assert client.changes == raised
    client.changes.clear()
    client.jobs = [started("2", 1200)]
    sidecar.look(START + 120)
    assert client.changes == [], "somebody lowered it since"


def _noted(job_id: str, limit_min: int, **changed: Any) -> QueuedJob:
    """A job under rewrite-limit that asked for 90 minutes and is planned with 60."""
    request = JobRequest(job_id, "ann", "p", 8, limit_min * 60, START, "main")
    note = "foretime:treq=90,tsched=60,generation=1"
    return replace(QueuedJob(request, QueueState.PENDING, admin_comment=note), **changed)


def test_limits_are_lowered_at_the_look(tmp_path: Path) -> None:
    """Of waiting jobs as their users left them, and of no other."""
    client = Soft(
        [
            _noted("1", 90),
            _noted("2_[3-9]", 90),
            _noted("3", 90, deadline=True),
            _noted("4", 90, opted_out=True),
            _noted("5", 70),
            _noted("6", 30),
            _noted("7", 120),
            _noted("8", 90, state=QueueState.RUNNING),
            _noted("9", 90, time_min=600),
            _noted("10", 60, time_min=600),
            _noted("11", 60),
            _noted("12", 90, admin_comment="foretime:treq=90,tsched=95,generation=1"),
            _noted("13", 90, admin_comment="foretime:treq=90,tmin=60,generation=1"),
        ]
    )
    client.prolog = "/etc/slurm/prolog_slurmctld"
    sidecar = _looking(client, tmp_path, mechanism="rewrite-limit")
    sidecar.look(START)
    assert client.changes == [
        JobChange("1", time_limit=HOUR),
        JobChange("2_[3-9]", time_limit=HOUR),
        JobChange("10", time_limit=5400),
    ]
    client.changes.clear()
    sidecar.look(START + 1)
    assert client.changes == [], "what is as it must be is left so"
    client.prolog = ""
    sidecar.look(START + 2)
    given = {change.job_id: change.time_limit for change in client.changes}
    assert given == {"1": 5400, "2_[3-9]": 5400, "11": 5400}, "nobody would raise them"


@pytest.mark.parametrize("refused", [False, True])
def test_a_job_that_starts_as_it_is_lowered_is_raised_at_once(
    refused: bool, tmp_path: Path
) -> None:
    """Its prolog saw nothing to raise."""

    class Starting(Soft):
        def update(self, changes: Sequence[JobChange]) -> None:
            super().update(changes)
            self.jobs = [replace(job, state=QueueState.RUNNING) for job in self.jobs]
            if refused and len(self.changes) == 2:
                raise SchedulerError("a job had gone")

    client = Starting([_noted("1", 90), _noted("2", 90)])
    client.prolog = "/etc/slurm/prolog_slurmctld"
    sidecar = _looking(client, tmp_path, mechanism="rewrite-limit")
    sidecar.look(START)
    assert [job.request.requested_time for job in client.jobs] == [5400, 5400]
    assert client.changes == [
        JobChange(job_id, time_limit=limit) for limit in (HOUR, 5400) for job_id in ("1", "2")
    ]


def test_a_lowered_limit_is_given_back_before_a_danger(tmp_path: Path) -> None:
    lowered = waiting("1", None, admin_comment="foretime:treq=90,tsched=60,generation=1")
    client = Soft(
        [
            lowered,
            replace(lowered, request=replace(lowered.request, job_id="2"), deadline=True),
            replace(lowered, request=replace(lowered.request, job_id="3", requested_time=1800)),
        ]
    )
    client.prolog = "/etc/slurm/prolog_slurmctld"
    sidecar = _looking(client, tmp_path, mechanism="rewrite-limit")
    sidecar.look(START)
    assert client.changes == [JobChange("2", time_limit=5400)]
    client.changes.clear()
    client.jobs = [client.jobs[0], client.jobs[2]]
    client.ahead = [Reservation("r", START + 5500, START + 9000)]
    sidecar.look(START + 1)
    assert client.changes == [JobChange("1", time_limit=5400)], "whose limit is t_sched still"


def test_without_the_accounting_what_can_be_done_is(tmp_path: Path) -> None:
    client = Soft([waiting("1"), waiting("2", None)])
    sidecar = _looking(client, tmp_path)
    client.no_limits = True
    with pytest.raises(SchedulerError, match="slurmdbd"):
        sidecar.look(START)
    assert client.changes == [JobChange("1", time_min=0)], "who is limited is not known"
    client.no_limits = False
    sidecar.look(START + 1)
    given = [JobChange("1", time_min=600), JobChange("2", time_min=600)]
    assert client.changes[1:] == given
    client.no_limits = True
    sidecar.look(START + 10_000)
    assert client.changes[1:] == given, "what was known before counts on"


class Refusing(Soft):
    """It refuses changes of some jobs, and does the others, as one scontrol does."""

    refused: tuple[str, ...] = ()
    ends_on_refusal = False

    def update(self, changes: Sequence[JobChange]) -> None:
        super().update([change for change in changes if change.job_id not in self.refused])
        failed = [change for change in changes if change.job_id in self.refused]
        if failed and self.ends_on_refusal:
            self.jobs = [job for job in self.jobs if job.request.job_id not in self.refused]
        if failed:
            raise SchedulerError("scontrol failed with exit code 1: Invalid job id specified")


def test_a_job_that_ends_during_a_look_is_no_failure(tmp_path: Path) -> None:
    client = Refusing([waiting("1", deadline=True), waiting("2", deadline=True)])
    client.refused, client.ends_on_refusal = ("2",), True
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == [JobChange("1", time_min=0)]
    sidecar._publish(START)
    assert sidecar.progress.mode == "enforce"


def test_while_slurm_refuses_to_give_back_no_job_is_planned_short(tmp_path: Path) -> None:
    client = Refusing([waiting("1", deadline=True), waiting("2")])
    client.refused = ("1",)
    sidecar = _looking(client, tmp_path)
    with pytest.raises(SchedulerError, match="exit code 1"):
        sidecar.look(START)
    sidecar._publish(START)
    assert sidecar.progress.mode == "observe"
    assert "AdminLevel=Operator" in sidecar.progress.mode_reason
    client.refused = ()
    sidecar.look(START + 60)
    assert [job.time_min for job in client.jobs] == [None, None]
    sidecar.look(START + 120)
    assert [job.time_min for job in client.jobs] == [None, 600]


def test_one_job_that_can_not_be_planned_takes_nothing_from_the_others(tmp_path: Path) -> None:
    client = Refusing([waiting("1", None), waiting("2", None)])
    client.refused = ("1",)
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == [JobChange("2", time_min=600)]
    client.refused = ("1", "2")
    client.jobs[1] = waiting("2", None)
    with pytest.raises(SchedulerError, match="exit code 1"):
        sidecar.look(START + 60)


def test_recorded_jobs_with_a_deadline_or_of_several_parts(repository: Path) -> None:
    reply = json.loads((repository / "tests/assets/slurm/22.05/squeue.json").read_text())
    for job in reply["jobs"]:
        job["time_minimum"] = 1
    jobs = parse_queue(reply)
    cleared = {
        repair.change.job_id for repair in time_min_changes(jobs, Exclusions(), 1_795_266_000, 60)
    }
    assert len(cleared) >= 3
    assert cleared == {
        job.request.job_id
        for job in jobs
        if job.state is QueueState.PENDING
        and (job.deadline or job.heterogeneous or job.reservation)
        and job.request.requested_time > 60
    }
    assert undone(jobs, "in no case") == [], "without a note they are nobody's but their users'"


@pytest.mark.parametrize(
    ("set_to", "is_then"),
    [(HOUR // 2, HOUR // 2), (HOUR, HOUR), (0, None), (HOUR + 60, None)],
)
def test_the_queue_is_known_as_changed(set_to: int, is_then: int | None) -> None:
    """A time_min of all of the limit plans no job short, and is told as what it was set to."""
    job = QueuedJob(JobRequest("7", "ann", "p", 1, HOUR, START), QueueState.PENDING, time_min=60)
    other = QueuedJob(JobRequest("8", "ann", "p", 1, HOUR, START), QueueState.PENDING)
    changed, same = as_changed([job, other], [JobChange("7", time_min=set_to)])
    assert changed.time_min == is_then
    assert changed.is_short is (is_then == HOUR // 2)
    assert same is other
