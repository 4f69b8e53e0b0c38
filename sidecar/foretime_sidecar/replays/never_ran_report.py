"""Which jobs never ran under a site's rules, and why, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from foretime_sidecar.wording.counts import counted


def never_ran_lines(named: Sequence[tuple[str, Mapping[str, float]]]) -> list[Text]:
    """Say how many jobs each of the runs compared never ran, and which jobs are scored.

    Parameters
    ----------
    named
        The runs' names, and by the reason how many jobs each never ran; means over repeats.
    """
    lines = [
        Text(f"{name}{': ' if name else ''}{_said(by_reason)}")
        for name, by_reason in named
        if by_reason
    ]
    if lines:
        scored = "the jobs that ran in every run" if len(named) > 1 else "the others"
        lines.append(Text(f"All figures are of {scored}."))
    return lines


def _said(by_reason: Mapping[str, float]) -> str:
    reasons = "; ".join(f"{_jobs(jobs)} {why}" for why, jobs in by_reason.items())
    jobs = sum(by_reason.values())
    noun = counted(round(jobs), "job") if jobs == round(jobs) else f"{_jobs(jobs)} jobs"
    return f"{noun} never ran: {reasons}."


def _jobs(jobs: float) -> str:
    return f"{jobs:,.0f}" if jobs == round(jobs) else f"{jobs:,.1f}"


def never_ran_key(why: str) -> str:
    """Give what CSV calls the number of jobs that never ran for a reason."""
    return f"never_ran_jobs: {why}"
