"""How good forecasts are on a log replayed under a PBS: the looks, and the figures."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim import simulate
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.waits.forecaster import LEVELS

from tests.pbs.forecast_trial import INTRODUCTION, PAGE, ReplayedPbs, sites_of
from tests.support.forecasts.forecast_trial import (
    PAST,
    SERVED,
    WAYS,
    BesidePlan,
    Outcome,
    beside_rows,
    rows_of,
    trial,
)
from tests.support.replay_runs import made_workload

MADE = made_workload(180, days=1)
assert MADE.users is not None
WORKLOAD = MADE.take(MADE.users.codes >= 0)  # who has no name has no share
SITE, FORWARD = WAYS.values()


@pytest.mark.parametrize("name", ["job_sort_formula", "Fair share"])
def test_each_job_that_waits_is_forecast_at_its_first_look(name: str) -> None:
    replayed = ReplayedPbs(WORKLOAD, sites_of(WORKLOAD)[name])
    records = replayed.records()
    schedule = simulate(WORKLOAD, Policy(backfill=Pbs(replayed.site)))
    started = schedule.start_time + WORKLOAD.epoch_of_zero
    of_log = {f"{job + 1}.pbs": start for job, start in enumerate(started.tolist())}
    assert {each.job.request.job_id: each.job.start_time for each in records} == of_log
    looks = list(replayed.looks())
    site = looks[-1].site
    assert isinstance(site, PbsSite)
    used = sum(group.usage for group in site.share_groups)
    assert (used > 1e6) == (name == "Fair share"), "the site is read anew, with what was used"
    outcome = trial(looks, records, hurried=True)
    submitted = WORKLOAD.submit_time + WORKLOAD.epoch_of_zero
    first = [
        next(look.look.taken_at for look in looks if look.look.taken_at > submit)
        for submit in submitted.tolist()
    ]
    waits = [start - at for start, at in zip(started.tolist(), first, strict=True) if start >= at]
    assert sorted(outcome.wait_s.tolist()) == sorted(waits)
    assert not outcome.failures
    for told in outcome.told.values():
        assert told.shape == (len(waits), len(LEVELS))
    assert not np.isnan(outcome.told[SERVED]).any()
    error = {
        way: np.abs(outcome.told[way][20:, LEVELS.index(0.5)] - outcome.wait_s[20:]).mean()
        for way in (SITE, FORWARD)
    }
    assert error[SITE] < error[FORWARD]


def test_figures_are_of_the_jobs_that_have_an_answer() -> None:
    levels = len(LEVELS)
    wait = np.array([1e9, 100.0, 1000.0, 500.0, 1e9])
    served = np.repeat([[0.0], [80.0], [600.0], [np.nan], [0.0]], levels, axis=1)
    past = np.repeat([[0.0], [300.0], [200.0], [600.0], [0.0]], levels, axis=1)
    outcome = Outcome(wait, {SERVED: served, PAST: past}, 1.0, {}).scored(learned=1)
    told = [row.split("|")[1:-1] for row in rows_of(outcome)]
    figures = [[cell.strip() for cell in row] for row in told]
    # All levels alike: half of the error is lost, above or below.
    assert figures[0][:6] == ["served", "2", "0.0%", "0.0%", "340", "105.0"]
    assert figures[1][:6] == ["past waits", "3", "66.7%", "66.7%", "300", "183.3"]
    # On the two that both answered: 10 and 200 s lost, and 100 and 400 s.
    assert outcome.less_loss(np.asarray) == pytest.approx(1 - 210 / 500)


def test_the_schedulers_own_plan_stands_beside_the_likely_wait() -> None:
    wait = np.array([100.0, 200.0, 300.0, 400.0, 500.0])
    told = {SERVED: np.zeros((5, len(LEVELS))), PAST: np.zeros((5, len(LEVELS)))}
    beside = [BesidePlan(place, 100.0, 400.0 + place, 110.0 - 30 * place) for place in range(5)]
    scored = Outcome(wait, told, 1.0, {}, beside).scored(learned=1)
    # Of the second to the fourth: 301, 302 and 303 s late, and 20, 50 and 80 s early.
    figures = [
        [cell.strip() for cell in row.split("|")[2:-1]] for row in beside_rows(scored.beside)
    ]
    assert figures == [["3", "302", "302", "100%", "+302"], ["3", "50", "50", "0%", "-50"]]


def test_a_wait_within_a_minute_is_as_good_as_a_start_at_once() -> None:
    wait = np.array([30.0, 59.0, 61.0, 200.0, 0.0])
    told = np.zeros((5, len(LEVELS)))
    outcome = Outcome(wait, {SERVED: told}, 1.0, {}).scored(learned=0)
    (row,) = rows_of(outcome)
    assert [cell.strip() for cell in row.split("|")[3:5]] == ["0.0%", "50.0%"]


def test_the_page_says_how_it_was_made() -> None:
    text = PAGE.read_text()
    assert text.startswith(INTRODUCTION), "python -m tests.pbs.forecast_trial writes it anew"
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        *sites_of(WORKLOAD)
    ]
