"""The table says what the model says: plain arithmetic on its rows gives the model's t_sched."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    FinishedRecord,
    Reservation,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.clients.slurm.control_texts import parse_configuration
from foretime_sidecar.learning.exclusions import Exclusions, exclusions_of
from foretime_sidecar.learning.learner import Learner, effective_mode
from foretime_sidecar.settings.settings import AccuracySection, HookSettings, Settings
from foretime_sidecar.table.name_kinds import KINDS
from foretime_sidecar.table.table import Mode, Table, TableRow, parse_table, table_bytes
from hypothesis import given
from hypothesis import strategies as st

Record = Callable[..., FinishedRecord]
NOW = 2_000_000
USERS = ["alice", "bob", None]
PROJECTS = ["physics", "chemistry", None]
MINUTES = [7, 60, 61, 240, 3000]


def _plain_scheduled_time(table: Table, job: JobRequest) -> int:
    """t_sched as plugin/TABLE.md, "The computation", has it, in fractions."""
    settings = table.settings
    time_class = sum(job.requested_time > bound for bound in settings.requested_time_bounds_s)

    def found(scope: str, name: str | None) -> TableRow | None:
        for row in table.rows:
            if (row.scope, row.name, row.requested_time_class) == (scope, name, time_class):
                largest = row.largest_processor_seconds
                if largest is None or largest >= job.processors * job.requested_time:
                    return row
        return None

    scopes = {"user": ["user"], "project": ["project"], "combined": ["user", "project"]}
    names = {"user": job.user, "project": job.project}
    rows = [found(scope, names[scope]) for scope in scopes[settings.scheme.value]]
    adjustments = [row.adjustment_micro for row in rows if row is not None]
    if not adjustments:
        return job.requested_time
    micro = math.ceil(Fraction(sum(adjustments), len(adjustments)))
    adjustment = max(Fraction(micro, 1_000_000), Fraction(str(settings.minimum_adjustment)))
    units = math.ceil(adjustment * job.requested_time / settings.rounding_s)
    scheduled = max(units * settings.rounding_s, settings.minimum_scheduled_time_s)
    return min(scheduled, job.requested_time)


_REQUESTS = st.builds(
    lambda number, user, project, processors, minutes: JobRequest(
        str(number), user, project, processors, minutes * 60, NOW
    ),
    st.integers(0, 10**6),
    st.sampled_from(USERS),
    st.sampled_from(PROJECTS),
    st.integers(1, 64),
    st.sampled_from(MINUTES),
)
_FINISHED = st.builds(
    lambda request, share, ending: FinishedJob(
        request,
        NOW - 10_000,
        NOW - 10_000 + int(share * request.requested_time),
        int(share * request.requested_time),
        ending,
    ),
    _REQUESTS,
    st.sampled_from([0.0, 0.01, 0.2345, 0.5, 1.0, 1.01]),
    st.sampled_from([e for e in Ending if e is not Ending.NEVER_STARTED]),
)
_ACCURACY = st.builds(
    AccuracySection,
    scheme=st.sampled_from(["user", "project", "combined"]),
    percentile=st.sampled_from([0.5, 0.8, 1.0]),
    threshold=st.integers(1, 4),
    minimum_adjustment=st.sampled_from([0.0, 0.05, 0.333333, 1.0]),
    minimum_scheduled_time_s=st.sampled_from([1, 60, 90, 600]),
    rounding_s=st.sampled_from([60, 300]),
    class_bounds_s=st.sampled_from([[], [3600], [3600, 14_400, 43_200, 86_400]]),
    weigh_by_processor_time=st.booleans(),
    imagined_job=st.booleans(),
    within_largest_job=st.booleans(),
    literal_equation_5=st.booleans(),
)


@given(
    accuracy=_ACCURACY,
    history=st.lists(_FINISHED, min_size=10, max_size=40),
    later=st.lists(_FINISHED, max_size=10),
    jobs=st.lists(_REQUESTS, min_size=1, max_size=15),
)
def test_the_table_gives_the_models_scheduled_times(
    accuracy: AccuracySection,
    history: list[FinishedJob],
    later: list[FinishedJob],
    jobs: list[JobRequest],
) -> None:
    learner = Learner(Settings(accuracy=accuracy))
    for batch in (history, later):  # the second table comes from changed rows only
        for finished in batch:
            learner.learn_one(finished)
        learner.refresh(NOW)
        table = learner.table(1, NOW, NOW + 9, Mode.OBSERVE, Exclusions())
        learner.published()
        assert learner.row_count() == len(table.rows)
        read = parse_table(table_bytes(table))
        for job in jobs:
            assert _plain_scheduled_time(read, job) == learner.scheduled_time(job)


def test_with_equation_5_as_printed_a_row_of_1_stands_for_no_data(record: Record) -> None:
    accuracy = AccuracySection(
        threshold=1, literal_equation_5=True, imagined_job=False, within_largest_job=False
    )
    learner = Learner(Settings(accuracy=accuracy))
    learner.learn_one(record(1, user="late", project="other", runtime=3600).job)
    learner.learn_one(record(2, user="other", project="early", runtime=1800).job)
    learner.refresh(NOW)
    table = learner.table(1, NOW, NOW + 9, Mode.OBSERVE, Exclusions())
    assert {row.name for row in table.rows if row.scope == "user"} == {"other"}
    job = JobRequest("3", "late", "early", 4, 3600, NOW)
    assert _plain_scheduled_time(table, job) == learner.scheduled_time(job) == 1800


def test_a_row_whose_history_has_aged_out_leaves_the_table(record: Record) -> None:
    learner = Learner(Settings(accuracy=AccuracySection(threshold=2, window_s=1000)))
    for number in range(4):
        learner.learn_one(record(number, end_time=NOW + number).job)
    assert learner.refresh(NOW + 10)
    assert learner.row_count() == 2
    learner.published()
    assert not learner.refresh(NOW + 900)
    assert learner.refresh(NOW + 2000)
    assert learner.row_count() == 0
    assert learner.table(2, NOW, NOW + 1, Mode.OBSERVE, Exclusions()).rows == ()


def test_a_change_that_was_not_published_is_still_one(record: Record) -> None:
    learner = Learner(Settings(accuracy=AccuracySection(threshold=1)))
    learner.learn_one(record(1).job)
    assert learner.refresh(NOW)
    assert learner.refresh(NOW), "the table that was to carry it was never written"
    learner.published()
    assert not learner.refresh(NOW)


def test_the_table_carries_the_settings() -> None:
    left = {kind: [kind[0]] for kind in KINDS}
    hook = HookSettings.model_validate(
        {
            "mode": "enforce",
            "mechanism": "rewrite-limit",
            "user_time_min": "clear",
            **{f"leave_{KINDS[kind].plural}": names for kind, names in left.items()},
        }
    )
    accuracy = AccuracySection(scheme="user", minimum_adjustment=0.25, class_bounds_s=[60])
    settings = Settings(hook=hook, accuracy=accuracy)
    table = Learner(settings).table(
        3, 4, 5, Mode.ENFORCE, exclusions_of(settings, SiteLimits(), [Reservation("r", 10, 20)], 5)
    )
    assert (table.generation, table.written_at, table.valid_until) == (3, 4, 5)
    assert table.left_alone == {(kind, name) for kind, names in left.items() for name in names}
    written = table.settings
    assert (written.mode.value, written.scheme.value) == ("enforce", "user")
    assert (written.mechanism.value, written.user_time_min.value) == (
        "rewrite-limit-at-look",
        "clear",
    )
    assert (written.minimum_adjustment, written.requested_time_bounds_s) == (0.25, (60,))
    assert [(r.start_time, r.end_time) for r in table.reservations] == [(10, 20)]


SOFT = {"time_min_as_soft_limit": ""}


@pytest.mark.parametrize(
    ("mode", "mechanism", "version", "parameters", "expected", "reason"),
    [
        ("observe", "slurm-soft-limit", "23.11.10", SOFT, "observe", ""),
        ("observe", "rewrite-limit", "22.05.8", {}, "observe", ""),
        ("enforce", "slurm-soft-limit", "23.11.10", SOFT, "enforce", ""),
        ("enforce", "slurm-soft-limit", "26.05.5-0rc1", SOFT, "enforce", ""),
        ("enforce", "slurm-soft-limit", "23.11.10", {}, "observe", "SchedulerParameters lacks"),
        ("enforce", "slurm-soft-limit", "23.02.7", SOFT, "observe", "23.02.7 has no soft limit"),
        ("enforce", "slurm-soft-limit", "unknown", SOFT, "observe", "unknown has no soft limit"),
        ("enforce", "slurm-soft-limit", "", SOFT, "observe", "has no soft limit"),
        ("enforce", "rewrite-limit", "22.05.8", {}, "enforce", ""),
    ],
)
def test_without_a_soft_limit_the_hook_only_observes(
    mode: str, mechanism: str, version: str, parameters: dict[str, str], expected: str, reason: str
) -> None:
    hook = {"mode": mode, "mechanism": mechanism}
    settings = Settings.model_validate({"hook": hook, "queue_order": {"order": "none"}})
    configuration = SchedulerConfiguration(
        "slurm", "c", version, "sched/backfill", parameters, prolog_slurmctld="/prolog"
    )
    given_mode, given_reason = effective_mode(settings, configuration)
    assert given_mode is Mode(expected)
    assert reason in given_reason
    assert bool(given_reason) == bool(reason)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PrologSlurmctld         = (null)", Mode.OBSERVE),
        ("PrologSlurmctld         =", Mode.OBSERVE),
        ("Prolog                  = /etc/slurm/prolog", Mode.OBSERVE),
        ("PrologSlurmctld         = /etc/slurm/prolog_slurmctld", Mode.ENFORCE),
        ("PrologSlurmctld[0]      = /etc/slurm/prolog_slurmctld", Mode.ENFORCE),
    ],
)
def test_limits_are_not_rewritten_without_a_prolog(line: str, expected: Mode) -> None:
    configuration = parse_configuration(f"SLURM_VERSION = 22.05.8\n{line}\n")
    for mechanism, mode in (("rewrite-limit", expected), ("slurm-soft-limit", Mode.OBSERVE)):
        hook = {"mode": "enforce", "mechanism": mechanism}
        settings = Settings.model_validate({"hook": hook, "queue_order": {"order": "none"}})
        given_mode, reason = effective_mode(settings, configuration)
        assert given_mode is mode
        assert ("PrologSlurmctld" in reason) == (
            mechanism == "rewrite-limit" and mode is Mode.OBSERVE
        )


DAY_S = 86_400


@pytest.mark.parametrize(
    ("ageing", "still_a_group"),
    [
        ({"window_s": 100 * DAY_S, "half_life_s": 0}, False),
        ({"window_s": 0, "half_life_s": 100 * DAY_S}, False),
        ({"window_s": 300 * DAY_S, "half_life_s": 0}, True),
        ({"window_s": 0, "half_life_s": 0}, True),
    ],
)
@pytest.mark.parametrize("by", ["a job", "the clock"])
def test_users_whose_evidence_has_aged_out_make_no_group(
    by: str, ageing: dict[str, int], still_a_group: bool, record: Record
) -> None:
    learner = Learner(Settings.model_validate({"accuracy": ageing}))
    for number, user in enumerate(["a", "b", "c", "d", "e"]):
        assert not learner.is_group("physics", 0)
        learner.learn_one(record(number, end_time=NOW, user=user, requested_time=600).job)
    time_class = learner.class_of(record(0, requested_time=600).job.request)
    assert learner.is_group("physics", time_class)
    later = NOW + 200 * DAY_S
    if by == "a job":
        learner.learn_one(record(9, end_time=later, user="a", requested_time=600).job)
    else:
        learner.refresh(later)
    assert learner.is_group("physics", time_class) is still_a_group
    for number, user in enumerate(["f", "g", "h", "i"]):
        learner.learn_one(record(number, end_time=later + 1, user=user, requested_time=600).job)
    assert learner.is_group("physics", time_class) is (still_a_group or by == "a job")
