"""What ``foretime explain`` says of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_sidecar.wording.clocks import dated_clock
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration


def explanation(answer: Mapping[str, Any]) -> list[str]:
    """Put what the daemon knows of a job in words."""
    asked = format_duration(answer["requested_time_s"])
    new = answer["scheduled_time_s"]
    said = {
        "planned": "is planned with {new}",
        "changed": "is planned with {new} now",
        "observed": "would be planned with {new}, but is not",
        "advised": "would be planned with {new}, but is not",
        "unplanned": "would be planned with {new}, but is not",
        "left": "is planned with all of it",
        "cleared": "is planned with all of it again",
    }[answer["action"]].format(new="" if new is None else format_duration(new))
    who = f"Job {answer['job_id']} of {answer['user'] or 'an unknown user'}"
    lines = [
        f"{who} asks for {asked}, and {said}: {answer['why']}.",
        f"It may run for {asked} in any case: what it is planned with ends no job.",
    ]
    own = answer["own_jobs"]
    if answer["estimated_from"] is not None:
        lines.append(f"What it needs is estimated from {answer['estimated_from']}.")
    elif own is None:
        lines.append("None of your jobs of such a length has ended since Foretime looks.")
    elif own["adjustment"] is None and own["submissions"] >= own["threshold"]:
        lines.append(f"{own['submissions']} submissions of such a length have ended.")
    elif own["adjustment"] is None:
        have = "has" if own["submissions"] == 1 else "have"
        few = f"{counted(own['submissions'], 'submission')} of such a length {have} ended"
        if new is not None and new < answer["requested_time_s"]:
            lines.append(f"{few}; until {own['threshold']} have, those of its project tell.")
        else:
            lines.append(f"{few}; {own['threshold']} are needed before they are planned shorter.")
    else:
        lines.append(
            f"{own['submissions']} submissions of such a length have ended; most used at most "
            f"{max(own['used_share'], 0.01):.0%} of what they asked for."
        )
        if own["used_share"] < own["adjustment"] == 1:
            # The imagined job's share of the weight (foretime_estimators.accuracy.accuracy).
            lines.append(
                "They are planned shorter once they have used more processor time in all: at "
                "least as much as the largest of them asked for."
            )
    for one in answer["history"]:
        new = one["scheduled_time_s"]
        planned = "" if new is None else f" with {format_duration(new)}"
        lines.append(f"  {dated_clock(one['made_at'])}  {one['action']}{planned} ({one['reason']})")
    return lines
