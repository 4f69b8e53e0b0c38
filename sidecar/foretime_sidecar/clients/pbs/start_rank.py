"""The resource that a job of PBS is raised by (`foretime_sim.sites.pbs.formula.RANK`)."""

from __future__ import annotations

from foretime_sim.sites.pbs.formula import RANK

_TYPE = "type=long"
RESOURCE_DIRECTIVE = f"create resource {RANK} {_TYPE},flag=r"
"""What makes it: with flag r users can neither ask for it nor change it.

A float would not do: PBS keeps 24 bits of one, so ranks near each other would be the same, and none
would be read as it was set."""

TYPE_DIRECTIVE = f"set resource {RANK} {_TYPE}"
"""What mends one that is of another type, as long as PBS remembers no job that had it."""

FORMULA_DIRECTIVE = f'set server job_sort_formula = "{RANK}"'
CYCLE_DIRECTIVE = "set server scheduling = True"
"""What has pbs_sched look at the queue, if scheduling is on; a change of a job does not."""


def rank_of(value: object) -> int:
    """Read a job's; 0 for none, or what is no number."""
    try:
        return int(float(str(value)))
    except (ValueError, OverflowError):
        return 0
