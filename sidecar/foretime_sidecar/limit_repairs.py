"""Limits that the sidecar itself must change, so that no job is killed or cut at its t_sched.

Pure: from the queue to the changes; `foretime_sidecar.sidecar` makes them at each look.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    QueueState,
)

MINUTE = 60

# What the hook noted with rewrite-limit, a word of AdminComment by itself; the last is the hook's
# (plugin/TABLE.md, "What rewrite-limit writes").
_NOTE = re.compile(r"(?<!\S)foretime:treq=(\d{1,8}),tsched=(\d{1,8})(?!\S)", re.ASCII)


def unrestored_limits(jobs: Sequence[QueuedJob]) -> list[JobChange]:
    """Give back its own limit to each running job that still has the one that the hook lowered.

    PrologSlurmctld does so when a job starts; if it failed, the job would be killed at t_sched. A
    limit that is not t_sched was changed by somebody since, and stays.
    """
    changes = []
    for job in jobs:
        notes = _NOTE.findall(job.admin_comment)
        if job.state is not QueueState.RUNNING or not notes:
            continue
        requested_min, scheduled_min = map(int, notes[-1])
        if scheduled_min < requested_min and job.request.requested_time == scheduled_min * MINUTE:
            changes.append(JobChange(job.request.job_id, time_limit=requested_min * MINUTE))
    return changes
