"""Forecasts of Graham's noons see nothing that comes later, and learn what can be known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.waits.block_sums import Blocks
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.survival_forest import ForestSettings
from foretime_studies.graham2021.columns import FUTURE, KNOWN, NOT_USED, WAIT
from foretime_studies.graham2021.features import features_of
from foretime_studies.graham2021.forests import Grower, Plan, Told, known_at, published_split
from foretime_studies.graham2021.polls import NoonPolls, read_noon_polls
from foretime_studies.graham2021.study import (
    SETTLING_POLLS,
    Graham2021,
    asked_at_noons,
    past_waits,
    study,
)
from foretime_studies.graham2021.tables import near_published, tables, week_blocks

from tests.support.workloads.graham_archives import made_polls, write_archive

SMALL = ForestSettings(trees=15, least_jobs=5, tried=0.5)


@pytest.fixture(scope="module")
def polls(tmp_path_factory: pytest.TempPathFactory) -> NoonPolls:
    path = tmp_path_factory.mktemp("polls") / "polls.tar.xz"
    return read_noon_polls(write_archive(path, made_polls(days=25, jobs=40)))


@pytest.fixture(scope="module")
def found(polls: NoonPolls) -> Graham2021:
    return study(polls, settings=SMALL)


def test_what_comes_after_a_noon_changes_no_forecast_of_it(
    polls: NoonPolls, found: Graham2021
) -> None:
    """Every wait that had not ended by a noon ends at another time; later polls are others."""
    noon = int(polls.polls[SETTLING_POLLS + 2])
    ended = polls.poll_time + polls.wait_s <= noon
    rng = np.random.default_rng(9)
    other = np.maximum(noon - polls.poll_time, 0) + rng.integers(1, 10**6, len(polls))
    later = polls.poll_time > noon
    known = polls.known.copy()
    known[later] = rng.permutation(known[later])
    changed = replace(polls, wait_s=np.where(ended, polls.wait_s, other), known=known)
    np.testing.assert_array_equal(
        features_of(changed).values[~later], features_of(polls).values[~later]
    )
    again = study(changed, settings=SMALL)
    asked = np.flatnonzero((polls.poll_time <= noon) & (polls.poll_time >= polls.polls[14]))
    assert len(asked) == 3 * 40
    for before, after in zip(
        (*found.online, *found.ablations), (*again.online, *again.ablations), strict=True
    ):
        both = asked[np.isin(asked, before.rows)]
        np.testing.assert_array_equal(
            before.of(both).forecasts.wait_s, after.of(both).forecasts.wait_s
        )


def test_features_are_made_of_known_columns(polls: NoonPolls) -> None:
    features = features_of(polls)
    words = {word for name in features.names for word in name.split(" / ")}
    assert not words & ({*FUTURE, *NOT_USED} | {WAIT})
    assert {name for name in words if "_" in name} - {"slurm_partition"} <= {
        *KNOWN,
        *(f"recent {what} by account and slurm_partition" for what in ("jobs", "wait", "starts")),
        *(f"recent {what} by slurm_partition" for what in ("jobs", "wait", "starts")),
    }
    grouped = [name for group in features.groups.values() for name in group]
    assert set(grouped) == set(features.names)
    assert features.without("fair share").shape[1] == len(features.names) - 7


def test_waits_of_like_jobs_by_hand(tmp_path: Path) -> None:
    """Of three like jobs a day and two days back two have started, after 100 and 10,000 s."""
    rows = made_polls(days=3, jobs=2)
    for poll in rows:
        for row in poll:
            row |= {"account_id": 3, "partition_id_y": 2}
    rows[0][0][WAIT], rows[0][1][WAIT], rows[1][0][WAIT] = 100, 10**6, 10_000
    rows[1][1]["account_id"] = 4
    polls = read_noon_polls(write_archive(tmp_path / "polls.tar.xz", rows))
    features = features_of(polls)
    values = dict(zip(features.names, features.values.T, strict=True))
    last = polls.rows_of(int(polls.polls[2]))
    weights, waits = np.array([0.5, 0.5, 1.0]), np.array([100, 2 * DAY_S, 10_000])
    kind = "account and slurm_partition"
    np.testing.assert_allclose(values[f"recent jobs by {kind}"][last], np.log1p(2))
    np.testing.assert_allclose(
        values[f"recent wait by {kind}"][last], weights @ np.log10(waits) / 2
    )
    np.testing.assert_allclose(values[f"recent starts by {kind}"][last], 1.5 / 2)
    assert (values[f"recent wait by {kind}"][polls.rows_of(int(polls.polls[0]))] == -1).all()


def test_a_gap_is_kept(polls: NoonPolls) -> None:
    noon = int(polls.polls[10])
    rows, waited_s, started = known_at(polls, noon, gap_days=3)
    then = noon - 3 * DAY_S
    assert polls.poll_time[rows].max() == then - DAY_S
    assert (polls.poll_time[rows] + waited_s <= then).all()
    assert not started.all()


def test_the_forest_learns_what_the_polls_were_made_of(found: Graham2021) -> None:
    """Waits were made of the queue ahead, a factor of 1.35 around it."""
    ours, past = found.online[:2]

    def squared(told: Told) -> float:
        return near_published(found, told, Blocks.of(None, told.rows))[2].value

    assert squared(ours) < 0.06 < 0.1 < squared(past)
    held = found.polls.wait_s[ours.rows] <= ours.forecasts.wait_s[:, LEVELS.index(0.95)]
    assert held.mean() == pytest.approx(0.95, abs=0.03)


def test_any_number_of_workers_says_the_same(polls: NoonPolls) -> None:
    plans = [Plan("a", (int(polls.polls[day]),)) for day in (14, 15)]
    grower = Grower(polls, features_of(polls), SMALL)
    alone, together = (grower.grow_all(plans, workers) for workers in (1, 2))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.forecasts.wait_s, other.forecasts.wait_s)


def test_rules_by_hand(polls: NoonPolls, found: Graham2021) -> None:
    noon = int(polls.polls[-1])
    asked = polls.rows_of(noon)[0]
    past = past_waits(polls, noon)
    alike = (polls.slurm_partition == polls.slurm_partition[asked]) & (polls.poll_time < noon)
    alike &= polls.poll_time + polls.wait_s <= noon
    assert past.forecasts.wait_s[0, MEDIAN] == pytest.approx(np.median(polls.wait_s[alike]))
    ahead = found.online[-1].of(np.array([asked]))
    known = dict(zip(KNOWN, polls.known[asked].tolist(), strict=False))
    hours = known["q_p_core_hours_above"] / known["r_p_cores_above"]
    assert ahead.forecasts.wait_s[0, MEDIAN] == pytest.approx(3_600 * hours)
    bound = asked_at_noons(Qbets(), polls, [noon]).forecasts.wait_s
    assert np.isin(bound[0], polls.wait_s).mean() > 0.8


def test_the_published_split_tests_seven_days() -> None:
    """Seven days are tested, 47 learned from, seven were for validation."""
    noons = 1_619_870_400 + DAY_S * np.arange(61)
    empty = np.zeros((61, 1))
    none = np.zeros(61, dtype=np.int64)
    polls = NoonPolls(noons, noons, none, none, empty, none + 1, none > 0)
    test, training = published_split(polls)
    assert ((test - noons[0]) // DAY_S).tolist() == [14, 20, 36, 48, 54, 55, 57]
    assert len(training) == 47
    assert not np.isin(training, test).any()


def test_too_few_polls_are_refused(tmp_path: Path) -> None:
    few = read_noon_polls(write_archive(tmp_path / "few", made_polls(days=14, jobs=1)))
    with pytest.raises(InputError, match="14 polls: 14 are needed to learn from, and one more"):
        study(few)
    more = read_noon_polls(write_archive(tmp_path / "more", made_polls(days=15, jobs=1)))
    with pytest.raises(InputError, match="name the whole archive"):
        study(more)


def test_tables(found: Graham2021) -> None:
    made = {table.key: table for table in tables(found)}
    assert made["published"].rows[0][2:] == (0.416, "", 0.5989, "", 0.6583, "")
    methods = [row[0] for row in made["online"].rows]
    assert methods == ["forest", "past waits", "qbets", "queue ahead"]
    assert week_blocks(found, found.online[0].rows).weeks is None  # eleven noons
    assert len(made["ablations"].rows) == 5
