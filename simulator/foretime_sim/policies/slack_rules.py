"""Priorities and the slack that follows from them (Talby and Feitelson 1999, section 4)."""

from __future__ import annotations

import math

from foretime_estimators.time_units import LONGEST_S

from foretime_sim.policies.slack import INFINITE_SLACK

FIRST_SCHEDULER_PRIORITY = 0.5
"""SP of a job that has no planned start yet: as if it were to wait for the average."""


DUMMY_PRIORITY = 1.0
"""Of the job of no time and no processors that is inserted when a job ends early."""


def priority(user: float, political: float, scheduler: float) -> float:
    """Give the priority of a job: the mean of its three priorities."""
    return (user + political + scheduler) / 3.0


def scheduler_priority(planned_wait_s: int, average_wait_s: float) -> float:
    """Give SP: 1/2 for a planned wait of the average, at most 1."""
    if planned_wait_s == 0:
        return 0.0
    if average_wait_s == 0:
        return 1.0
    return min(planned_wait_s / (2.0 * average_wait_s), 1.0)


def initial_slack(of_priority: float, slack_factor: float, average_wait_s: float) -> int:
    """Give s_0 in whole seconds; `INFINITE_SLACK` for a priority of minus infinity."""
    if of_priority == -math.inf:
        return INFINITE_SLACK
    return math.floor(min((1.0 - of_priority) * slack_factor * average_wait_s, float(LONGEST_S)))
