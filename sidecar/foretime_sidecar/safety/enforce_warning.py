"""What enforce did to waits where it was measured on a live Slurm, in words for administrators."""

from __future__ import annotations

from foretime_sidecar.settings.settings import HookSettings

MEASURED = (
    'on a live, overloaded Slurm 26.05 hook.mode = "enforce" made mean waits 27 to 42% longer than '
    "plain Slurm's"
)
INSTEAD = (
    "stay in observe, where forecasts and reports work, and try "
    "SchedulerParameters=bf_job_part_count_reserve=1 first, which made them shorter without "
    'Foretime (docs/slurm.md, "What enforce does to waits")'
)


def lengthens_waits(hook: HookSettings) -> bool:
    """Say whether the settings are those with which longer waits were measured."""
    return hook.mode == "enforce" and hook.mechanism == "slurm-soft-limit"
