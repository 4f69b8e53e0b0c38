"""The part of the cluster that enforce is limited to."""

from __future__ import annotations

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.settings.settings import HookSettings
from foretime_sidecar.table.name_kinds import ENFORCE_KINDS, folded, names_of
from foretime_sidecar.table.table import check, encode_name


def in_share(user: str | None, share_percent: int) -> bool:
    """Say whether enforce counts for a user when it is for a share of them: as the hooks do it."""
    if share_percent == 100:
        return True
    return bool(user) and check(encode_name(user or "").encode("ascii")) % 100 < share_percent


def outside(job: QueuedJob, hook: HookSettings) -> str:
    """Give what part of the cluster enforce is limited to that a job is not in, "" if it is."""
    if not in_share(job.request.user, hook.enforce_share_percent):
        return "share"
    if not any(getattr(hook, f"enforce_only_{kind.plural}") for kind in ENFORCE_KINDS):
        return ""
    only = folded(hook.enforced_only)
    names = names_of(job, hook.scheduler)
    for kind in ENFORCE_KINDS:
        wanted = {name for word, name in only if word == kind.word}
        has = {name for word, name in names if word == kind.word}
        if wanted and not (has and has <= wanted):
            return f"only-{kind.plural}"
    return ""
