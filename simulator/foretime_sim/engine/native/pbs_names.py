"""Users and projects of a site under PBS, as codes, and who of the site has limits."""

from __future__ import annotations

import numpy as np

from foretime_sim.sites.pbs.limits import EntityLimits, PbsLimits
from foretime_sim.sites.pbs.site import PbsQueue, PbsServer, PbsSite
from foretime_sim.workloads.labels import Labels


class PbsNames:
    """Users and projects as the codes that the core knows them by.

    Parameters
    ----------
    site
        Whose jobs they are. Names in its limits, and in resource_group, come first.
    """

    def __init__(self, site: PbsSite) -> None:
        self._codes: dict[str, dict[str, int]] = {"u": {}, "p": {}}
        for owner in owners(site):
            for limits in all_limits(owner.limits):
                for who in limits:
                    kind, _, name = who.partition(":")
                    if kind in self._codes:
                        self.code(kind, name)
        for group in site.share_groups:
            for kind in self._codes:
                self.code(kind, group.name)

    def code(self, kind: str, name: str | None) -> int:
        """Give the code of a user (``u``) or a project (``p``); -1 for none."""
        if name is None:
            return -1
        known = self._codes[kind]
        return known.setdefault(name, len(known))

    def by_code(self, kind: str) -> dict[int, str]:
        """Give the names of users (``u``) or projects (``p``) by code."""
        return {code: name for name, code in self._codes[kind].items()}

    def columns(self, users: Labels | None, projects: Labels | None, jobs: int) -> np.ndarray:
        """Give the rows of codes of a workload's jobs."""
        rows = np.full((jobs, 2), -1, dtype=np.int64)
        for column, (kind, labels) in enumerate((("u", users), ("p", projects))):
            if labels is not None:
                codes = np.array([*(self.code(kind, name) for name in labels.names), -1])
                rows[:, column] = codes[labels.codes]
        return rows


def owners(site: PbsSite) -> list[PbsServer | PbsQueue]:
    """Give who has limits: the server, then its queues."""
    return [site.server, *site.queues]


def all_limits(limits: PbsLimits) -> list[EntityLimits]:
    """Give all that limits of a server or a queue say, one after the other."""
    return [
        *limits.while_running,
        limits.max_queued,
        *limits.max_queued_res.values(),
        limits.queued_jobs_threshold,
        *limits.queued_jobs_threshold_res.values(),
    ]
