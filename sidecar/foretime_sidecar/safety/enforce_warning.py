"""What enforce did to waits where it was measured on a live Slurm, in words for administrators."""

from __future__ import annotations

from foretime_sidecar.settings.settings import Settings

MEASURED = (
    'on a live, overloaded Slurm 26.05 hook.mode = "enforce" made mean waits 27 to 42% longer than '
    "plain Slurm's"
)
INSTEAD = (
    'keep queue_order.order = "auto", the default, which made them shorter there '
    '(docs/start_now.md, docs/slurm.md, "What planning short does to waits")'
)


def lengthens_waits(settings: Settings) -> bool:
    """Say whether the settings are those with which longer waits were measured."""
    hook = settings.hook
    plans = hook.mode == "enforce" and not settings.starts_now
    return plans and hook.mechanism == "slurm-soft-limit"
