"""Settings of slack-based backfilling: wrong ones are refused, with what to do."""

import math
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import Backfill, with_settings
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackJobs, SlackSettings
from foretime_sim.workloads.workload import Workload

COLUMN = np.array([1, 2])
JOBS = Workload("two", 4, None, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN)
NONE = np.zeros(2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slack_factor": -1.0}, "slack_factor is -1.0: give 0 or more"),
        ({"slack_factor": math.inf}, "slack_factor is inf"),
        ({"slack_factor": math.nan}, "slack_factor is nan"),
        ({"average_wait_s": -2.0}, "average_wait_s is -2.0: give 0 seconds or more"),
        ({"average_wait_s": math.inf}, "average_wait_s is inf"),
        ({"utilization_weight": 1.5}, "utilization_weight is 1.5: give a weight from 0 to 1"),
        ({"time_weight": -0.1}, "time_weight is -0.1"),
        ({"priority_weight": math.nan}, "priority_weight is nan"),
        ({"fairness_weight": 2.0}, "fairness_weight is 2.0"),
    ],
)
def test_a_setting_out_of_range_is_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SlackSettings(**wrong)  # type: ignore[arg-type]


def test_settings_belong_to_slack_alone() -> None:
    with pytest.raises(InputError, match="only slack backfilling has a slack, not easy"):
        Policy(backfill=with_settings(Backfill.EASY, settings=SlackSettings()))
    assert Backfill.SLACK.settings == SlackSettings()


def test_choices_are_read_by_name_and_wrong_names_refused() -> None:
    assert InsertionOrder.parse("AST") is InsertionOrder.AST
    assert Overruns.parse("kill_blocking") is Overruns.KILL_BLOCKING
    with pytest.raises(InputError, match="unknown insertion order 'asd'; did you mean 'ast'"):
        InsertionOrder.parse("asd")


def test_what_is_known_of_jobs_is_checked() -> None:
    SlackJobs.equal(2, 0.5).check(JOBS.name, JOBS.job_id)
    SlackJobs(NONE, np.array([0.0, -np.inf]), np.array([0.0, 2401.0])).check(JOBS.name, JOBS.job_id)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (SlackJobs.equal(3), r"user_priority has shape \(3,\)"),
        (SlackJobs(NONE, np.array(["a", "b"])), "political_priority has shape .* type <U1"),
        (SlackJobs(np.array([0, 1.01]), NONE), "job 2: user_priority is 1.01, it must be from 0"),
        (SlackJobs(np.array([0, -np.inf]), NONE), "job 2: user_priority is -inf"),
        (SlackJobs(NONE, np.array([-0.5, 0])), "job 1: political_priority is -0.5, .* or -inf"),
        (SlackJobs(NONE, np.array([np.nan, 0])), "job 1: political_priority is nan"),
        (SlackJobs(NONE, NONE, np.array([1, np.inf])), "job 2: average_wait_s is inf"),
    ],
)
def test_wrong_values_name_the_job(wrong: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong.check(JOBS.name, JOBS.job_id)
