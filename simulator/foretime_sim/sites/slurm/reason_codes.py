"""Slurm's words for the reasons that the native core gives as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.reasons import TresLimit, word

_WORDS_OF_ASSOCIATIONS = (
    TresLimit.ASSOC_GROUP, TresLimit.ASSOC_GROUP_MINUTES, TresLimit.ASSOC_GROUP_RUN_MINUTES,
    TresLimit.ASSOC_JOB, TresLimit.ASSOC_JOB_NODE, TresLimit.ASSOC_JOB_MINUTES,
)  # fmt: skip
_WORDS_OF_QOS = (
    TresLimit.QOS_GROUP, TresLimit.QOS_GROUP_MINUTES, TresLimit.QOS_GROUP_RUN_MINUTES,
    TresLimit.QOS_JOB, TresLimit.QOS_JOB_NODE, TresLimit.QOS_JOB_MINUTES,
    TresLimit.QOS_USER, TresLimit.QOS_ACCOUNT, TresLimit.QOS_USER_RUN_MINUTES,
    TresLimit.QOS_ACCOUNT_RUN_MINUTES, TresLimit.QOS_LEAST,
)  # fmt: skip


_FIXED = (
    "", "BAD_ACCOUNT", "BAD_QOS", "BAD_LICENSE", "BAD_NODE_COUNT", "BAD_TIME_LIMIT",
    "TOO_MANY_CPUS", "PARTITION_CLOSED", "ARRAY_THROTTLE", "LICENSES", "PARTITION_CONFIG",
    "PARTITION_DOWN", "PARTITION_INACTIVE", "PARTITION_NODES", "PARTITION_TIME", "QOS_NOT_ALLOWED",
    "ACCOUNT_NOT_ALLOWED", "ASSOC_GROUP_JOBS", "ASSOC_GROUP_SUBMITTED", "ASSOC_GROUP_WALL",
    "ASSOC_JOBS", "ASSOC_SUBMITTED", "ASSOC_WALL", "QOS_GROUP_JOBS", "QOS_GROUP_SUBMITTED",
    "QOS_GROUP_WALL", "QOS_USER_JOBS", "QOS_USER_SUBMITTED", "QOS_ACCOUNT_JOBS",
    "QOS_ACCOUNT_SUBMITTED", "QOS_WALL",
)  # fmt: skip
_TRES_REASON, _MOST_KINDS = 1024, 64
_SCOPES = len(_WORDS_OF_QOS)


def reason_word(code: int, kinds: Sequence[str]) -> str | None:
    """Give Slurm's word for a reason of the native core (``Reason``); ``None``: there is none.

    >>> from foretime_sim.sites.slurm.reason_codes import reason_word
    >>> reason_word(0, ["cpu"]), reason_word(20, ["cpu"]), reason_word(1024, ["cpu"])
    (None, 'AssocMaxJobsLimit', 'AssocGrpCpuLimit')
    """
    if not code:
        return None
    if code < _TRES_REASON:
        found: str = getattr(reasons, _FIXED[code])
        return found
    scope, kind = divmod(code - _TRES_REASON, _MOST_KINDS)
    if scope < _SCOPES:
        return word(_WORDS_OF_ASSOCIATIONS[scope], kinds[kind])
    return word(_WORDS_OF_QOS[scope - _SCOPES], kinds[kind])
