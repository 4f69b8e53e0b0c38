"""What a job is charged by: its billing TRES, which is weighed out of the others.

Source: ``calc_job_billable_tres`` (src/slurmctld/job_mgr.c), ``assoc_mgr_tres_weighted``
(src/common/assoc_mgr.c).
"""

from __future__ import annotations

from collections.abc import Mapping

FIRST_KINDS = ("cpu", "mem", "node")
"""Kinds of TRES that are summed up first, in the order of Slurm's numbers for them."""


def kinds_in_order(kinds: set[str]) -> list[str]:
    """Put kinds of TRES in Slurm's order, but for ``billing``, which is worked out of the others.

    Slurm numbers the others as AccountingStorageTRES names them; here they are in order of name.
    That can change the last bit of a sum.
    """
    rest = sorted(kinds - {*FIRST_KINDS, "billing"})
    return [*(kind for kind in FIRST_KINDS if kind in kinds), *rest]


def billing(tres: Mapping[str, int], weights: Mapping[str, float], flags: frozenset[str]) -> float:
    """Give the billing TRES: weighted sum, or with MAX_TRES the largest of what nodes have.

    Without weights it is the CPUs. Of memory the weight is that of a MiB. With MAX_TRES_GRES
    (24.11 and newer) GRES are added to the largest of CPUs, memory and nodes.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.billing import billing
    >>> asked = {"cpu": 4, "mem": 2048, "license/x": 1}
    >>> weights = {"cpu": 1.0, "mem": 0.0009765625, "license/x": 3.0}
    >>> billing(asked, weights, frozenset()), billing(asked, weights, frozenset({"MAX_TRES"}))
    (9.0, 7.0)
    """
    if not weights:
        return float(tres.get("cpu", 0))
    adds_gres = "MAX_TRES_GRES" in flags
    takes_largest = adds_gres or "MAX_TRES" in flags
    of_node = everywhere = of_gres = 0.0
    for kind in kinds_in_order(set(tres)):
        value = float(tres[kind]) * weights.get(kind, 0.0)
        is_gres = kind.startswith("gres/")
        if not (takes_largest and (is_gres or kind in FIRST_KINDS)):
            everywhere += value
        elif adds_gres and is_gres:
            of_gres += value
        else:
            of_node = max(of_node, value)
    return of_node + of_gres + everywhere
