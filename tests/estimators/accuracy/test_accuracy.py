"""The accuracy model by the paper's rule: percentile, threshold, eq. 5, endings, ageing, state."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracySettings, Scheme
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from hypothesis import given
from hypothesis import strategies as st

Finished = Callable[..., FinishedJob]
PLAIN = AccuracySettings.tang2010()
SMALL = replace(PLAIN, threshold=1)
DAY_S = 86_400


def model_of(settings: AccuracySettings, *jobs: FinishedJob) -> AccuracyModel:
    model = AccuracyModel(settings)
    for job in jobs:
        model.learn_one(job)
    return model


def request(
    requested_time: int = 1_000, user: str | None = "u", project: str | None = "p"
) -> JobRequest:
    return JobRequest("next", user, project, 1, requested_time, 2_000_000_000)


# Percentile and threshold


@given(st.lists(st.integers(0, 1_200), min_size=1, max_size=60), st.integers(1, 100))
def test_adjustment_is_the_nearest_rank_percentile(runtimes: list[int], percent: int) -> None:
    settings = replace(SMALL, percentile=percent / 100)
    model = AccuracyModel(settings)
    for number, runtime in enumerate(runtimes):
        job = replace(request(), job_id=str(number))
        model.learn_one(FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED))
    rank = math.ceil(percent * len(runtimes) / 100)
    expected = min(1_000, sorted(runtimes)[rank - 1]) / 1_000
    assert model.adjustment(request(), Scheme.USER) == pytest.approx(expected, abs=1e-6)


def test_a_is_what_eighty_percent_of_fifty_jobs_kept_to(finished: Finished) -> None:
    jobs = [finished(10 * number, 1_000) for number in range(1, 51)]
    assert model_of(PLAIN, *jobs).adjustment(request()) == 0.4
    assert model_of(PLAIN, *jobs[:49]).adjustment(request()) is None
    assert model_of(PLAIN, *jobs[:49]).scheduled_time(request()) == 1_000


def test_unknown_users_and_projects_are_skipped(finished: Finished) -> None:
    model = model_of(SMALL, finished(500, 1_000, user=None), finished(100, 1_000, project=None))
    assert model.adjustment(request(), Scheme.PROJECT) == 0.5
    assert model.adjustment(request(), Scheme.USER) == 0.1
    assert model.adjustment(request(user=None, project=None)) is None
    assert [(row.scope, row.name) for row in model.rows()] == [("project", "p"), ("user", "u")]


# Combined, equation 5


@pytest.mark.parametrize(
    ("user_ratio", "project_ratio", "flagged", "literal"),
    [
        (None, None, None, None),
        (None, 0.4, 0.4, 0.4),
        (0.2, None, 0.2, 0.2),
        (0.2, 0.4, 0.3, 0.3),
        (1.0, 0.4, 0.7, 0.4),
        (0.2, 1.0, 0.6, 0.2),
        (1.0, 1.0, 1.0, None),
        (1.3, 0.4, 0.7, 0.4),
    ],
)
def test_users_and_projects_a_are_combined_by_equation_5(
    finished: Finished,
    user_ratio: float | None,
    project_ratio: float | None,
    flagged: float | None,
    literal: float | None,
) -> None:
    jobs = []
    if user_ratio is not None:
        jobs.append(finished(int(1_000 * user_ratio), 1_000, project=None))
    if project_ratio is not None:
        jobs.append(finished(int(1_000 * project_ratio), 1_000, user=None))
    assert model_of(SMALL, *jobs).adjustment(request()) == flagged
    printed = model_of(replace(SMALL, literal_equation_5=True), *jobs)
    assert printed.adjustment(request()) == literal
    expected = 1_000 if literal is None else int(1_000 * literal)
    assert printed.scheduled_time(request()) == min(1_000, math.ceil(expected / 60) * 60)


def test_the_mean_of_both_is_rounded_up_to_a_millionth(finished: Finished) -> None:
    model = model_of(SMALL, finished(1, 1_000_000, project=None), finished(2, 1_000_000, user=None))
    assert model.adjustment_micro(request(1_000_000)) == 2


# The hook's arithmetic


@given(st.integers(0, 1_000_000), st.integers(1, 10**7), st.sampled_from([1, 60, 300]))
def test_scheduled_time_by_exact_fractions(micro: int, requested: int, rounding_s: int) -> None:
    settings = replace(PLAIN, rounding_s=rounding_s, minimum_scheduled_time_s=90)
    scheduled = settings.scheduled_time(micro, requested)
    assert 1 <= scheduled <= requested
    assert scheduled * 1_000_000 >= micro * requested
    if 90 < scheduled < requested:
        assert scheduled % rounding_s == 0
        assert (scheduled - rounding_s) * 1_000_000 < micro * requested
    assert scheduled >= min(90, requested)


def test_whole_minutes_and_bounds() -> None:
    assert PLAIN.scheduled_time(500_000, 3_600) == 1_800
    assert PLAIN.scheduled_time(500_001, 3_600) == 1_860
    assert PLAIN.scheduled_time(0, 3_600) == 60
    assert PLAIN.scheduled_time(0, 45) == 45
    assert PLAIN.scheduled_time(999_999, 90) == 90


def test_a_is_never_below_the_minimum_adjustment(finished: Finished) -> None:
    model = model_of(replace(SMALL, minimum_adjustment=0.1), finished(1, 1_000))
    assert model.adjustment(request()) == 0.1


# Endings


@pytest.mark.parametrize("ending", [Ending.COMPLETED, Ending.FAILED, Ending.OUT_OF_MEMORY])
def test_exact_endings_count_as_they_are(finished: Finished, ending: Ending) -> None:
    assert model_of(SMALL, finished(300, 1_000, ending=ending)).adjustment(request()) == 0.3


@pytest.mark.parametrize("runtime", [970, 1_000, 1_030])
def test_timed_out_counts_as_one(finished: Finished, runtime: int) -> None:
    model = model_of(SMALL, finished(runtime, 1_000, ending=Ending.TIMED_OUT))
    assert model.adjustment(request()) == 1.0


@pytest.mark.parametrize(
    "ending", [Ending.NODE_FAILED, Ending.PREEMPTED, Ending.REQUEUED, Ending.NEVER_STARTED]
)
def test_endings_that_are_no_evidence_are_not_learned(finished: Finished, ending: Ending) -> None:
    model = model_of(SMALL, finished(300, 1_000, ending=ending))
    assert model.adjustment(request()) is None
    assert model.describe(user="u", project="p") == []


@pytest.mark.parametrize("ending", list(Ending))
def test_a_job_that_never_started_is_no_evidence(finished: Finished, ending: Ending) -> None:
    model = model_of(SMALL, finished(0, 1_000, ending=ending, started=False))
    assert model.adjustment(request()) is None


def test_cancelled_jobs_alone_are_not_enough_history(finished: Finished) -> None:
    cancelled = [finished(300, 1_000, ending=Ending.CANCELLED) for _ in range(9)]
    model = model_of(SMALL, *cancelled)
    assert model.adjustment(request()) is None
    assert model.describe(user="u")[0].submissions == 0
    assert model.describe(user="u")[0].processor_seconds == 9 * 300


def test_cancelled_below_the_adjustment_says_nothing_above_it_raises(finished: Finished) -> None:
    exact = [finished(100 * number, 1_000) for number in range(1, 11)]
    low = [finished(700, 1_000, ending=Ending.CANCELLED) for _ in range(50)]
    high = [finished(950, 1_000, ending=Ending.CANCELLED) for _ in range(5)]
    assert model_of(SMALL, *exact).adjustment(request()) == 0.8
    assert model_of(SMALL, *exact, *low).adjustment(request()) == 0.8
    # 5 bounds above 0.9: 0.8 * (10 + 5) = 12 > 9; at 0.95 they speak no more: 9 >= 0.8 * 10.
    assert model_of(SMALL, *exact, *high).adjustment(request()) == 0.95


@given(
    st.lists(st.integers(0, 1_000), min_size=1, max_size=30),
    st.lists(st.integers(0, 1_000), max_size=30),
    st.randoms(use_true_random=False),
)
def test_bounds_only_raise_and_order_does_not_matter(
    exact: list[int], bounds: list[int], draw: random.Random
) -> None:
    def job(runtime: int, ending: Ending) -> FinishedJob:
        return FinishedJob(request(), 0, runtime, runtime, ending)

    jobs = [job(runtime, Ending.COMPLETED) for runtime in exact]
    without = model_of(SMALL, *jobs).adjustment_micro(request())
    jobs += [job(runtime, Ending.CANCELLED) for runtime in bounds]
    with_bounds = model_of(SMALL, *jobs).adjustment_micro(request())
    assert without is not None
    assert with_bounds is not None
    assert with_bounds >= without
    # The definition, written out: smallest x with C(x) >= 0.8 (T + bounds above x).
    expected = next(
        x
        for x in sorted({*exact, *bounds})
        if 5 * sum(r <= x for r in exact) >= 4 * (len(exact) + sum(r > x for r in bounds))
    )
    assert with_bounds == expected * 1_000
    draw.shuffle(jobs)
    assert model_of(SMALL, *jobs).adjustment_micro(request()) == with_bounds


def test_suspended_time_is_left_out(finished: Finished) -> None:
    job = replace(finished(300, 1_000), start_time=0, end_time=5_000)  # suspended for 4,700 s
    assert model_of(SMALL, job).adjustment(request()) == 0.3


# Ageing


def test_window_drops_old_evidence_and_its_count(finished: Finished) -> None:
    settings = replace(SMALL, window_s=100, threshold=2)
    jobs = [finished(900, 1_000, end_time=1_000 + step) for step in (0, 50)]
    model = model_of(settings, *jobs)
    assert model.adjustment(request()) == 0.9
    model.advance(1_100)
    assert model.adjustment(request()) == 0.9
    model.advance(1_101)
    assert model.adjustment(request()) is None
    assert model.changed_rows() == {("project", "p", 0): None, ("user", "u", 0): None}
    model.learn_one(finished(100, 1_000, end_time=1_120))
    model.learn_one(finished(1, 1_000, end_time=900))  # arrives late: before the window
    assert [(row.submissions, row.processor_seconds) for row in model.rows()] == [(2, 1_000)] * 2
    model.advance(2_000)
    assert model.describe(user="u", project="p") == []


@given(
    st.lists(
        st.tuples(
            st.integers(1, 1_000),
            st.integers(1, 50),
            st.sampled_from(["a", "b", None]),
            st.booleans(),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_a_window_holds_what_learning_only_its_jobs_would(
    steps: list[tuple[int, int, str | None, bool]],
) -> None:
    production = AccuracySettings.production()
    settings = replace(production, threshold=1, window_s=300)
    now, jobs = 10_000, []
    for number, (runtime, pause, array, cancelled) in enumerate(steps):
        now += pause
        ending = Ending.CANCELLED if cancelled else Ending.COMPLETED
        job = JobRequest(str(number), "u", "p", 1 + number % 7, 1_000, 0, array_id=array)
        jobs.append(FinishedJob(job, now - runtime, now, runtime, ending))
    inside = [job for job in jobs if job.end_time >= now - 300]
    assert list(model_of(settings, *jobs).rows()) == list(model_of(settings, *inside).rows())


def test_half_life_weighs_later_evidence_more(finished: Finished) -> None:
    old = [finished(900, 1_000, end_time=0) for _ in range(10)]
    young = [finished(100, 1_000, end_time=10 * DAY_S) for _ in range(2)]
    settings = replace(SMALL, percentile=0.5)
    assert model_of(settings, *old, *young).adjustment(request()) == 0.9
    ageing = replace(settings, half_life_s=DAY_S)
    assert model_of(ageing, *old, *young).adjustment(request()) == 0.1
    # 10 * 2**-2 > 2, 10 * 2**-3 < 2
    for days, expected in ((2, 0.9), (3, 0.1)):
        young = [finished(100, 1_000, end_time=days * DAY_S) for _ in range(2)]
        assert model_of(ageing, *old, *young).adjustment(request()) == expected
        assert model_of(ageing, *young, *old).adjustment(request()) == expected  # late news


def test_half_life_of_twenty_years_does_not_overflow(finished: Finished) -> None:
    settings = replace(AccuracySettings.production(), window_s=None, half_life_s=DAY_S, threshold=3)
    model = AccuracyModel(settings)
    for year in range(21):
        for _ in range(4):
            model.learn_one(finished(90_000, 100_000, end_time=year * 365 * DAY_S))
    # Four jobs of this year against the imagined one: exactly 80%.
    assert model.adjustment(request(100_000)) == 0.9
    restored = AccuracyModel(settings)
    restored.restore(json.loads(json.dumps(model.state())))
    assert list(restored.rows()) == list(model.rows())


# Rows, inspection, state


def test_rows_are_classed_and_sufficient(finished: Finished) -> None:
    settings = replace(PLAIN, threshold=2, class_bounds_s=(3_600, 14_400))
    jobs = [finished(360 * k, 3_600) for k in (1, 2)] + [finished(720, 3_601)]
    model = model_of(settings, *jobs)
    rows = list(model.rows())
    assert [(r.scope, r.name, r.requested_time_class, r.adjustment) for r in rows] == [
        ("project", "p", 0, 0.2),
        ("user", "u", 0, 0.2),
    ]
    assert rows[0].submissions == 2
    assert rows[0].processor_seconds == 1_080
    assert rows[0].largest_processor_seconds is None
    assert model.adjustment(request(3_600)) == 0.2
    assert model.adjustment(request(3_601)) is None
    history = model.describe(user="u")
    assert [(h.above_s, h.up_to_s, h.submissions, h.adjustment) for h in history] == [
        (0, 3_600, 2, 0.2),
        (3_600, 14_400, 1, None),
    ]
    assert settings.class_limits(2) == (14_400, None)


def test_changed_rows_are_those_of_the_jobs_learned_since(finished: Finished) -> None:
    model = model_of(SMALL, finished(100, 1_000), finished(200, 1_000, user="v", project=None))
    assert set(model.changed_rows()) == {("user", "u", 0), ("project", "p", 0), ("user", "v", 0)}
    assert model.changed_rows() == {}
    model.learn_one(finished(400, 1_000, user="v", project=None))
    changed = model.changed_rows()
    assert {key: row and row.adjustment for key, row in changed.items()} == {("user", "v", 0): 0.4}


def test_state_of_other_settings_is_refused(finished: Finished) -> None:
    state = model_of(SMALL, finished(100, 1_000)).state()
    with pytest.raises(StateError, match=r"other settings \(percentile\)"):
        AccuracyModel(replace(SMALL, percentile=0.9)).restore(state)
    with pytest.raises(StateError, match="version 7, not 1"):
        AccuracyModel(SMALL).restore({**state, "version": 7})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"percentile": 0.0}, "percentile = 0.0: it must be above 0"),
        ({"percentile": 80}, "percentile = 80: it must be above 0 and at most 1"),
        ({"percentile": math.nan}, "percentile = nan"),
        ({"threshold": 0}, "threshold = 0"),
        ({"minimum_adjustment": 1.5}, "minimum_adjustment = 1.5: it must be from 0 to 1"),
        ({"full_weight_accuracy": 0.0}, "full_weight_accuracy = 0.0"),
        ({"minimum_scheduled_time_s": 0}, "minimum_scheduled_time_s = 0"),
        ({"rounding_s": 0}, "rounding_s = 0"),
        ({"class_bounds_s": (60, 60)}, "ascending seconds"),
        ({"window_s": 0}, "window_s = 0"),
        ({"half_life_s": 60}, "at least a day"),
        ({"window_s": DAY_S, "half_life_s": DAY_S}, "leave the other out"),
    ],
)
def test_settings_that_can_not_be(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        replace(PLAIN, **change)  # type: ignore[arg-type]  # wrong values are the subject


def test_the_share_that_was_used_is_told_beside_a(finished: Finished) -> None:
    settings = replace(AccuracySettings.production(), threshold=10)
    history = model_of(settings, *[finished(70, 1_000) for _ in range(14)]).describe(user="u")
    assert [(one.adjustment, one.used_share) for one in history] == [(1.0, 0.07)]
    few = model_of(settings, finished(70, 1_000)).describe(user="u")
    assert [(one.adjustment, one.used_share) for one in few] == [(None, None)]
