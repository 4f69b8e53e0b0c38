"""The Intrepid-like workload against what Tang et al. (IPDPS 2010) say of theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.intrepid_like import (
    JOBS,
    NODES,
    SPLIT_S,
    IntrepidLike,
    TraitShares,
    generate,
)
from foretime_sim.models.workload_models import DEFAULTS
from foretime_sim.models.workload_models import generate as generate_by_name
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MODEL = IntrepidLike()


@pytest.fixture(scope="module", params=[1, 2])
def periods(request: pytest.FixtureRequest) -> tuple[Workload, Workload]:
    """WL-I and WL-II."""
    return generate(seed=request.param).split(SPLIT_S)


def names(labels: Labels | None) -> set[str]:
    assert labels is not None
    return {labels.names[code] for code in np.unique(labels.codes)}


def test_jobs_users_and_projects_are_those_of_table_1(periods: tuple[Workload, Workload]) -> None:
    history, test = periods
    assert (len(history), len(test)) == (48_056, 10_479)
    assert (len(names(history.users)), len(names(test.users))) == (207, 103)
    assert (len(names(history.projects)), len(names(test.projects))) == (84, 61)
    assert history.moment(0).startswith("2009-01-01")
    assert test.moment(int(test.submit_time[0])).startswith("2009-07-01")
    assert test.moment(int(test.submit_time[-1])).startswith("2009-07-3")


def test_there_are_some_new_users_and_fewer_new_projects(
    periods: tuple[Workload, Workload],
) -> None:
    history, test = periods
    assert len(names(test.users) - names(history.users)) == 10
    assert len(names(test.projects) - names(history.projects)) == 2


def test_accuracy_as_the_text_says_of_figure_3(periods: tuple[Workload, Workload]) -> None:
    for period in periods:
        accuracy = period.actual_runtime / period.requested_time
        assert np.mean(accuracy > 1) == pytest.approx(0.20, abs=0.01)
        assert accuracy.max() < 1.05  # "slightly larger than 1"
        assert 0.11 <= np.mean((accuracy > 0.9) & (accuracy <= 1)) <= 0.13
        assert np.mean(accuracy < 0.5) > 0.5
        assert 0.20 < np.mean(accuracy < 0.2) < 0.25


def test_small_accuracies_agree_with_table_3(periods: tuple[Workload, Workload]) -> None:
    # (slowdown - 1) / uwait is a mean of 1/R: 5.6 under WFP, 4.8 under FCFS.
    history, _ = periods
    assert 4.7 < np.mean(history.requested_time / history.actual_runtime) < 5.9


def test_sizes_have_the_papers_shares(periods: tuple[Workload, Workload]) -> None:
    for period in periods:
        found = {size: float(np.mean(period.processors == size)) for size, _ in MODEL.size_shares}
        for size, share in MODEL.size_shares:
            assert found[size] == pytest.approx(share, abs=1e-3)
        assert np.mean(period.processors == 8_192) * len(period) / 31 > 1  # "common": daily
        assert np.sum(period.processors == 32_768) / (len(period) / 338) > 1  # "regularly"


def test_the_test_period_has_its_load() -> None:
    for seed in (1, 2, 3):
        _, test = generate(seed=seed, overruns="cut").split(SPLIT_S)
        load = float(test.processors @ test.actual_runtime) / (NODES * 31 * DAY_S)
        assert load == pytest.approx(MODEL.test_load, rel=0.03)


def test_history_tells_of_the_future_and_of_near_jobs_more(
    periods: tuple[Workload, Workload],
) -> None:
    history, test = periods
    accuracy = test.actual_runtime / test.requested_time
    assert test.users is not None
    assert history.users is not None

    def correlation(lag: int) -> float:
        before, after = [], []
        for user in np.unique(test.users.codes):  # type: ignore[union-attr]
            own = accuracy[test.users.codes == user]  # type: ignore[union-attr]
            if len(own) > lag:
                before.append(own[:-lag])
                after.append(own[lag:])
        return float(np.corrcoef(np.concatenate(before), np.concatenate(after))[0, 1])

    assert correlation(1) > correlation(50) > 0.1
    # Between the periods: a user's mean of the past half year tells of July.
    past = history.actual_runtime / history.requested_time
    seen = {
        user: past[history.users.codes == user].mean() for user in np.unique(history.users.codes)
    }
    known = np.isin(test.users.codes, list(seen))
    expected = np.array([seen[user] for user in test.users.codes[known]])
    assert np.corrcoef(expected, accuracy[known])[0, 1] > 0.2


def test_the_page_has_the_parts_of_the_variance(repository: Path) -> None:
    page = (repository / "docs" / "studies" / "intrepid-like.md").read_text()
    for name, shares in (
        ("size", MODEL.size_traits),
        ("request", MODEL.request_traits),
        ("R", MODEL.accuracy_traits),
    ):
        parts = (shares.project, shares.user, shares.application, shares.session, shares.job)
        cells = [f"{part:.2f}" if part > 1e-9 else "" for part in parts]
        assert " ".join(f"| {name} | {' | '.join(cells)} |".split()) in " ".join(page.split())
    assert f"load of July, {MODEL.test_load:g}" in page


def test_traits_that_nothing_shares_are_independent() -> None:
    alone = TraitShares(0.0, 0.0, 0.0, 0.0)
    jobs = generate(20_000, model=IntrepidLike(accuracy_traits=alone))
    accuracy = jobs.actual_runtime / jobs.requested_time
    assert abs(np.corrcoef(accuracy[:-1], accuracy[1:])[0, 1]) < 0.05


@settings(max_examples=20)
@given(st.integers(10, 900), st.integers(0, 5), st.one_of(st.none(), st.floats(0.1, 2)))
def test_any_arguments_give_a_sound_workload(jobs: int, seed: int, load: float | None) -> None:
    made, again = (generate(jobs, seed=seed, load=load, overruns="cut") for _ in range(2))
    assert len(made) == jobs
    for column in ("submit_time", "processors", "requested_time", "actual_runtime"):
        assert np.array_equal(getattr(made, column), getattr(again, column))
    assert (np.diff(made.submit_time) >= 0).all()
    assert made.submit_time[0] >= 0
    assert (made.actual_runtime >= 1).all()
    assert (made.actual_runtime <= made.requested_time).all()
    assert 1 <= made.processors.min() <= made.processors.max() <= NODES
    assert not made.users.mask.any()  # type: ignore[union-attr]
    assert "generated, not real" in made.notes[0]
    if load is not None and made.submit_time[-1] > 1_000:
        work = float(made.processors @ made.actual_runtime)
        assert work / (NODES * made.submit_time[-1]) == pytest.approx(load, rel=0.01)


def test_seeds_differ() -> None:
    one, other = generate(500, seed=1), generate(500, seed=2)
    assert not np.array_equal(one.actual_runtime, other.actual_runtime)


def test_written_and_read_again(tmp_path: Path) -> None:
    made = generate(300)
    path = tmp_path / "made.swf.gz"
    write_swf(log_of_workload(made), path)
    again, _ = workload_of_log(read_log(path), processors=None, filters=Filters(overruns="keep"))
    assert np.array_equal(again.actual_runtime, made.actual_runtime)
    assert np.array_equal(again.processors, made.processors)
    assert again.machine_processors == NODES


def test_by_name_it_has_its_defaults_and_cuts_overruns() -> None:
    assert DEFAULTS["intrepid-like"].jobs == JOBS
    assert DEFAULTS["intrepid-like"].processors == NODES
    made = generate_by_name("intrepid-like", jobs=100)
    assert (made.actual_runtime <= made.requested_time).all()
    kept = generate_by_name("intrepid-like", jobs=100, overruns="keep")
    assert (kept.actual_runtime > kept.requested_time).any()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"jobs": 9}, "9 jobs"),
        ({"seed": -1}, "seed -1"),
        ({"load": 0.0}, "load 0"),
        ({"processors": 256}, "40,960"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        generate_by_name("intrepid-like", **arguments)  # type: ignore[arg-type]


def test_bad_models_are_refused() -> None:
    with pytest.raises(InputError, match="size_shares sum to"):
        IntrepidLike(size_shares=((512, 0.5),))
    with pytest.raises(InputError, match="shares of a trait"):
        TraitShares(0.5, 0.5, 0.5, 0.5)
