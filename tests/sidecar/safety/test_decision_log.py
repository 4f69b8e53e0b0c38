"""The audit says what became of each job, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.learning.enforced_part import in_share
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.decision_log import DecisionLog
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.settings.settings import HookSettings, Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import (
    Mode,
    Reservation,
    Table,
    TableRow,
    TableSettings,
)
from foretime_sidecar.table.table import write_table as put_table
from foretime_sim.mocks.slurm.hook import LuaHook
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

NOW = 1_000_000
HOUR = 3600
REQUEST = JobRequest("7", "alice", "phys", 4, 10 * HOUR, NOW - 60, "main")
PENDING = QueuedJob(REQUEST, QueueState.PENDING)
NOTE = "foretime:treq=600,tmin=60,generation=3"


def learner() -> Learner:
    """Alice uses a tenth of what she asks for."""
    made = Learner(Settings.model_validate({"accuracy": {"threshold": 5}}))
    for number in range(20):
        request = replace(REQUEST, job_id=str(number), submit_time=number)
        job = FinishedJob(request, 1000 * number, 1000 * number + HOUR, HOUR, Ending.COMPLETED)
        made.learn_one(job)
    return made


class Site:
    """A log over a store in memory, with a table of this mode."""

    def __init__(self, mode: str = "enforce", **hook: Any) -> None:
        self.store = Store(":memory:")
        generation = self.store.begin_generation(NOW - 100, NOW + 10_000, mode, 1)
        self.store.mark_published(generation)
        self.hook = HookSettings(**hook)
        self.learner = learner()
        self.log = DecisionLog(self.hook, self.store)
        self.exclusions = Exclusions()

    def note(self, *jobs: QueuedJob, now: int = NOW) -> list[tuple[str, int | None, str]]:
        found = self.log.note(jobs, self.learner, self.exclusions, now)
        return [(one.action, one.scheduled_time_s, one.reason) for one in found]


SHORT = replace(PENDING, time_min=HOUR, admin_comment=NOTE)


@pytest.mark.parametrize(
    ("job", "mode", "hook", "expected"),
    [
        (SHORT, "enforce", {}, ("planned", HOUR, "-")),
        (replace(SHORT, time_min=None), "enforce", {}, ("cleared", 10 * HOUR, "modified")),
        (
            replace(SHORT, time_min=None, state=QueueState.RUNNING),
            "enforce",
            {},
            ("left", None, "started"),
        ),
        (replace(SHORT, time_min=None, deadline=True), "enforce", {}, ("left", None, "deadline")),
        (
            replace(PENDING, admin_comment="foretime:treq=600,tsched=70"),
            "enforce",
            {},
            ("cleared", 10 * HOUR, "modified"),
        ),
        (
            replace(
                PENDING,
                request=replace(REQUEST, requested_time=4200),
                admin_comment="foretime:treq=600,tsched=70",
            ),
            "enforce",
            {},
            ("planned", 4200, "-"),
        ),
        (replace(PENDING, time_min=HOUR), "enforce", {}, ("left", HOUR, "own-time-min")),
        (
            replace(PENDING, time_min=HOUR),
            "enforce",
            {"mechanism": "pbs-soft-walltime"},
            ("planned", HOUR, "-"),
        ),
        (PENDING, "observe", {}, ("observed", HOUR, "observe")),
        (PENDING, "advise", {}, ("advised", HOUR, "advise")),
        (PENDING, "off", {}, ("left", None, "off")),
        (PENDING, "enforce", {}, ("unplanned", HOUR, "hook")),
        (PENDING, "enforce", {"enforce_share_percent": 0}, ("observed", HOUR, "share")),
        (PENDING, "enforce", {"enforce_only_accounts": ["PHYS"]}, ("unplanned", HOUR, "hook")),
        (
            PENDING,
            "enforce",
            {"enforce_only_accounts": ["chem"]},
            ("observed", HOUR, "only-accounts"),
        ),
        (
            PENDING,
            "enforce",
            {"enforce_only_slurm_partitions": ["long"]},
            ("observed", HOUR, "only-slurm_partitions"),
        ),
        (PENDING, "enforce", {"enforce_only_queues": ["q"]}, ("observed", HOUR, "only-queues")),
        (replace(PENDING, opted_out=True), "enforce", {}, ("left", None, "opt-out")),
        (replace(PENDING, shrinks_to_fit=True), "enforce", {}, ("left", None, "shrink-to-fit")),
        (replace(PENDING, heterogeneous=True), "enforce", {}, ("left", None, "heterogeneous")),
        (replace(PENDING, reservation="r"), "enforce", {}, ("left", None, "reservation-job")),
        (
            replace(PENDING, request=replace(REQUEST, user="eve", project="none")),
            "enforce",
            {},
            ("left", None, "no-row"),
        ),
        (
            replace(PENDING, request=replace(REQUEST, requested_time=365 * 86_400)),
            "enforce",
            {},
            ("left", None, "no-limit"),
        ),
        (
            replace(PENDING, request=replace(REQUEST, submit_time=NOW + 20_000)),
            "enforce",
            {},
            ("left", None, "table"),
        ),
    ],
)
def test_each_job_has_its_reason(
    job: QueuedJob, mode: str, hook: dict[str, Any], expected: tuple[str, int | None, str]
) -> None:
    site = Site(mode, **hook)
    assert site.note(job) == [expected]
    assert expected[2] in REASONS


LIMIT = REQUEST.requested_time
IN_PBS = {"mechanism": "pbs-soft-walltime"}
SAID_BY_THE_PBS_HOOK = [
    (None, "queuejob", "left", "-", "opt-out", ("left", None, "opt-out")),
    (None, "queuejob", "left", "-", "too-slow", ("left", None, "too-slow")),
    (HOUR, "queuejob", "left", "-", "site", ("left", HOUR, "site")),
    (None, "queuejob", "observed", "1200", "-", ("observed", 1200, "observe")),
    (HOUR, "queuejob", "planned", "3600", "-", ("planned", HOUR, "-")),
    (None, "queuejob", "planned", "3600", "-", ("cleared", LIMIT, "modified")),
    (None, "modifyjob", "cleared", "-", "reservation", ("cleared", LIMIT, "reservation")),
]


@pytest.mark.parametrize(
    ("soft", "event", "decision", "t_sched", "reason", "expected"), SAID_BY_THE_PBS_HOOK
)
def test_in_pbs_the_hooks_own_reason_counts(
    soft: int | None,
    event: str,
    decision: str,
    t_sched: str,
    reason: str,
    expected: tuple[str, int | None, str],
) -> None:
    said = f"event={event} job=7.pbs t_sched={t_sched} decision={decision} reason={reason}"
    site = Site("observe" if decision == "observed" else "enforce", **IN_PBS)
    assert site.note(replace(PENDING, time_min=soft, admin_comment=said)) == [expected]
    assert expected[2] in REASONS


def test_in_pbs_a_plan_that_the_hook_took_back_has_the_hooks_reason() -> None:
    site = Site("enforce", **IN_PBS)
    site.note(replace(PENDING, time_min=HOUR))
    said = "event=modifyjob job=7.pbs t_sched=- decision=cleared reason=opt-out"
    later = replace(PENDING, admin_comment=said)
    assert site.note(later, now=NOW + 60) == [("cleared", LIMIT, "opt-out")]


def test_the_audit_names_the_exclusion_that_counted() -> None:
    site = Site()
    site.exclusions = Exclusions(
        chosen=frozenset({("user", "alice")}), reservations=(Reservation(NOW, NOW + 9),)
    )
    assert site.note(PENDING) == [("left", None, "reservation")]
    site.exclusions = Exclusions(chosen=frozenset({("account", "Phys")}))
    other = replace(PENDING, request=replace(REQUEST, job_id="8"))
    assert site.note(other) == [("left", None, "settings")]


def test_each_change_is_recorded_once_and_survives_a_restart() -> None:
    site = Site()
    assert site.note(SHORT) == [("planned", HOUR, "-")]
    assert site.note(SHORT) == []
    site.log = DecisionLog(site.hook, site.store)  # the daemon starts anew
    assert site.note(SHORT, now=NOW + 5) == []
    assert site.note(replace(SHORT, time_min=None), now=NOW + 10) == [
        ("cleared", 10 * HOUR, "modified")
    ]
    assert site.note(replace(SHORT, time_min=None)) == []
    assert site.note(SHORT, now=NOW + 20) == [("changed", HOUR, "-")]
    assert site.note(replace(SHORT, time_min=2 * HOUR)) == [("changed", 2 * HOUR, "modified")]
    dangerous = replace(SHORT, time_min=None, deadline=True)
    assert site.note(dangerous) == [("cleared", 10 * HOUR, "deadline")]
    assert site.note(replace(SHORT, state=QueueState.RUNNING)) == []
    found = site.log.find(job_id="7")
    assert [one.action for one in found] == [
        "planned",
        "cleared",
        "changed",
        "changed",
        "cleared",
    ]
    assert {one.generation for one in found} == {3}  # the note's


def with_limit(job: QueuedJob, requested_time: int) -> QueuedJob:
    return replace(job, request=replace(job.request, requested_time=requested_time))


@pytest.mark.parametrize(
    ("mode", "action", "reasons"),
    [
        ("observe", "observed", ("observe", "observe")),
        ("advise", "advised", ("advise", "advise")),
        ("enforce", "unplanned", ("hook", "modified")),
    ],
)
def test_a_limit_that_is_another_now_is_judged_anew(
    mode: str, action: str, reasons: tuple[str, str]
) -> None:
    site = Site(mode)
    assert site.note(with_limit(PENDING, 9 * HOUR)) == [(action, 9 * HOUR // 10, reasons[0])]
    assert site.note(PENDING, now=NOW + 60) == [(action, HOUR, reasons[1])]
    assert site.note(PENDING, now=NOW + 120) == []
    assert [one.requested_time_s for one in site.log.find()] == [9 * HOUR, 10 * HOUR]


def test_what_is_left_alone_no_more_is_judged_anew_while_nothing_is_planned() -> None:
    site = Site("observe")
    site.exclusions = Exclusions(reservations=(Reservation(NOW, NOW + 9),))
    assert site.note(PENDING) == [("left", None, "reservation")]
    site.exclusions = Exclusions()
    assert site.note(PENDING, now=NOW + 60) == [("observed", HOUR, "observe")]
    assert site.note(PENDING, now=NOW + 120) == []
    # Under enforce the hook had its say at the submission.
    site = Site("enforce")
    site.exclusions = Exclusions(reservations=(Reservation(NOW, NOW + 9),))
    site.note(PENDING)
    site.exclusions = Exclusions()
    assert site.note(PENDING, now=NOW + 60) == []


def test_an_array_is_one_job() -> None:
    site = Site("observe")
    tasks = [
        replace(PENDING, request=replace(REQUEST, job_id=f"7_{number}", array_id="7"))
        for number in range(3)
    ]
    assert len(site.note(*tasks)) == 1
    assert [one.job_id for one in site.log.find(job_id="7_2")] == ["7"]


def test_the_table_counts_that_was_in_place_when_a_job_was_submitted() -> None:
    """Even if the clock was set back between two tables; an unpublished one does not count."""
    site = Site()
    written, begun = {1: NOW - 100}, [(-80, True), (-40, True), (-60, True), (-50, False)]
    for place, (when, published) in enumerate(begun):
        generation = site.store.begin_generation(NOW + when, NOW + 10_000, "enforce", 1)
        assert generation == place + 2
        if published:
            site.store.mark_published(generation)
            written[generation] = NOW + when
    times = [NOW + after for after in range(-110, 0, 5)]
    for submitted in (times[::2], times[1::2][::-1]):
        jobs = [
            replace(PENDING, request=replace(REQUEST, job_id=f"s{time}", submit_time=time))
            for time in submitted
        ]
        found = site.log.note(jobs, site.learner, site.exclusions, NOW)
        assert [one.generation for one in found] == [
            max((number for number, when in written.items() if when <= time), default=None)
            for time in submitted
        ]


def test_decisions_are_found_by_job_user_and_time() -> None:
    site = Site("observe")
    site.note(PENDING)
    site.note(
        PENDING, replace(PENDING, request=replace(REQUEST, job_id="9", user="bob")), now=NOW + 9
    )
    assert [one.job_id for one in site.log.find()] == ["7", "9"]
    assert [one.job_id for one in site.log.find(user="bob")] == ["9"]
    assert [one.job_id for one in site.log.find(since=NOW + 9)] == ["9"]
    assert [one.job_id for one in site.log.find(limit=1)] == ["9"]
    assert site.log.find(job_id="8") == []


@hypothesis_settings(max_examples=60)
@given(st.text(min_size=1, max_size=12).filter(lambda name: "\0" not in name), st.integers(0, 100))
def test_the_share_is_the_hooks(
    tmp_path_factory: pytest.TempPathFactory, user: str, share: int
) -> None:
    """Python and Lua put the same users into a share, whatever their names."""
    try:
        user.encode()
    except UnicodeEncodeError:
        return
    folder: Path = tmp_path_factory.mktemp("share")
    settings = TableSettings(mode=Mode.ENFORCE, enforce_share_percent=share)
    put_table(
        folder / "table",
        Table(1, NOW, NOW + 9, settings, rows=(TableRow("user", user, 0, 100_000),)),
    )
    hook = LuaHook(lua_version="5.1", table=folder / "table")
    job: dict[str, Any] = {"user_name": user, "time_limit": 600, "min_cpus": 1}
    parts = {"main": {"max_time": 4294967295, "flag_default": 1}}
    reply = hook.submit(job, parts, 1000, NOW)
    assert bool(reply.changes) is in_share(user, share)
