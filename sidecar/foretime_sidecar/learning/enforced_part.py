"""The part of the cluster that enforce is limited to."""

from __future__ import annotations

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.settings.settings import HookSettings
from foretime_sidecar.table.table import check, encode_name


def in_share(user: str | None, share_percent: int) -> bool:
    """Say whether enforce counts for a user when it is for a share of them: as the hooks do it."""
    if share_percent == 100:
        return True
    return bool(user) and check(encode_name(user or "").encode("ascii")) % 100 < share_percent


def outside(job: QueuedJob, hook: HookSettings) -> str:
    """Give what part of the cluster enforce is limited to that a job is not in, "" if it is."""
    request = job.request
    if not in_share(request.user, hook.enforce_share_percent):
        return "share"
    only = {name.lower() for name in hook.enforce_only_accounts}
    if only and (request.project or "").lower() not in only:
        return "only-accounts"
    queues = (request.queue or "").split(",")
    for name, wanted in (
        ("only-slurm_partitions", hook.enforce_only_slurm_partitions),
        ("only-queues", hook.enforce_only_queues),
    ):
        if wanted and not all(queue in wanted for queue in queues):
            return name
    return ""
