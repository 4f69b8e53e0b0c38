"""Who submits in the generated Intrepid-like workload: people, projects, and what they run again.

Counts are those of Tang 2010, table I. How often each submits, and that everybody has few
applications that come back in runs of similar jobs, the paper does not say: these are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array

APPLICATIONS = 4
"""That each person runs."""
SECOND_PROJECT = 0.2
"""Share of people who have one."""
ZIPF_EXPONENT = 0.9
"""How fast activity falls with rank, of people and of each one's applications."""
MONTHLY_TURNOVER = 0.8
"""Standard deviation of the log of how much busier a person is in one period than usual."""


@dataclass(frozen=True, slots=True)
class Headcount:
    """How many there are.

    Attributes
    ----------
    history_users, history_projects, test_users, test_projects
        Who submits in each period (Tang 2010, table I).
    new_users, new_projects
        Those of the test period that the history has not seen. The paper says that there are
        "some new users" and that projects are "comparatively more stable".
    """

    history_users: int = 207
    history_projects: int = 84
    test_users: int = 103
    test_projects: int = 61
    new_users: int = 10
    new_projects: int = 2

    def scaled(self, share: float) -> Headcount:
        """Give fewer of each, at least one, for a workload of fewer jobs."""
        if share >= 1:
            return self

        def some(count: int) -> int:
            return max(1, round(count * share))

        history_users, test_users = some(self.history_users), some(self.test_users)
        return Headcount(
            history_users=history_users,
            history_projects=min(some(self.history_projects), history_users),
            test_users=test_users,
            test_projects=min(some(self.test_projects), test_users),
            new_users=int(self.new_users * share),
            new_projects=int(self.new_projects * share),
        )


@dataclass(frozen=True, slots=True)
class People:
    """Everybody, by number from 0; the newcomers of the test period come last.

    Attributes
    ----------
    users, projects
        How many in all.
    project_of
        Shape (users, 2): a person's own project, and the second (the same where there is none).
    weight
        Shape (2, users): how much each submits in history and test period; 0 for who does not.
    active_projects
        Shape (2, projects): whose jobs there are in each period.
    """

    users: int
    projects: int
    project_of: Int64Array
    weight: Float64Array
    active_projects: BoolArray

    @classmethod
    def draw(cls, count: Headcount, rng: np.random.Generator) -> People:
        """Draw who belongs where and submits when, so that the counts are met exactly."""
        users = count.history_users + count.new_users
        projects = count.history_projects + count.new_projects
        activity = 1.0 / rng.permutation(np.arange(1.0, users + 1)) ** ZIPF_EXPONENT
        popularity = 1.0 / np.arange(1.0, count.history_projects + 1) ** ZIPF_EXPONENT
        popularity /= popularity.sum()
        first = np.empty(users, dtype=np.int64)
        # One member founds each project; the others go where many are.
        first[: count.history_projects] = np.arange(count.history_projects)
        joining = count.history_users - count.history_projects
        first[count.history_projects : count.history_users] = rng.choice(
            count.history_projects, size=joining, p=popularity
        )
        in_test = np.zeros(projects, dtype=np.bool_)
        in_test[count.history_projects :] = True
        in_test[: count.test_projects - count.new_projects] = True  # the popular ones stay
        newcomers = np.arange(count.history_users, users)
        first[newcomers] = rng.choice(count.history_projects, size=len(newcomers), p=popularity)
        first[newcomers] %= max(1, count.test_projects - count.new_projects)
        first[newcomers[: count.new_projects]] = np.arange(count.history_projects, projects)
        second = rng.choice(count.history_projects, size=users, p=popularity)
        second = np.where(rng.random(users) < SECOND_PROJECT, second, first)

        stays = np.zeros(users, dtype=np.bool_)
        stays[newcomers] = True
        founders = np.arange(min(count.test_projects - count.new_projects, count.history_projects))
        stays[founders] = True
        others = np.flatnonzero(in_test[first] & ~stays)
        free = count.test_users - int(stays.sum())
        chance = activity[others] / activity[others].sum() if len(others) else None
        if free > 0 and len(others):
            some = rng.choice(others, size=min(free, len(others)), replace=False, p=chance)
            stays[some] = True
        turnover = np.exp(rng.normal(0.0, MONTHLY_TURNOVER, (2, users)))
        weight = activity * turnover
        weight[0, newcomers] = 0.0
        weight[1, ~stays] = 0.0
        active = np.ones((2, projects), dtype=np.bool_)
        active[0, count.history_projects :] = False
        active[1] = in_test
        return cls(users, projects, np.stack([first, second], axis=1), weight, active)


@dataclass(frozen=True, slots=True)
class Sessions:
    """Runs of similar jobs: one person, project and application; every array is (sessions,).

    Attributes
    ----------
    user, project, application
        Numbers from 0; applications are numbered through all people.
    jobs
        How many jobs each has, at least 1.
    """

    user: Int64Array
    project: Int64Array
    application: Int64Array
    jobs: Int64Array

    @classmethod
    def draw(
        cls,
        people: People,
        period: int,
        jobs: int,
        jobs_per_session: float,
        rng: np.random.Generator,
    ) -> Sessions:
        """Draw the sessions of a period (0 history, 1 test), of exactly so many jobs in all.

        Everybody who is active has at least one session, in their own project.
        """
        weight = people.weight[period]
        active = np.flatnonzero(weight > 0)[:jobs]
        # All have one job for sure, so that cutting the last session can't lose anybody.
        lengths = np.ones(len(active), dtype=np.int64)
        more: list[int] = []
        left = jobs - len(active)
        while left > 0:
            length = min(left, int(rng.geometric(1 / jobs_per_session)))
            more.append(length)
            left -= length
        user = np.concatenate(
            [active, rng.choice(people.users, size=len(more), p=weight / weight.sum())]
        ).astype(np.int64)
        sessions = len(user)
        first, second = people.project_of[user].T
        elsewhere = (rng.random(sessions) < 0.3) & people.active_projects[period][second]
        elsewhere[: len(active)] = False
        ranks = 1.0 / np.arange(1.0, APPLICATIONS + 1) ** ZIPF_EXPONENT
        which = rng.choice(APPLICATIONS, size=sessions, p=ranks / ranks.sum())
        return cls(
            user=user,
            project=np.where(elsewhere, second, first),
            application=user * APPLICATIONS + which,
            jobs=np.concatenate([lengths, np.array(more, dtype=np.int64)]),
        )
