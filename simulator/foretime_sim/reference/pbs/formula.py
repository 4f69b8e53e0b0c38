"""Formulas of PBS at a job: ``job_sort_formula`` and ``fairshare_usage_res``."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_sim.sites.pbs.formula import FormulaNode


class Formula:
    """A formula that has been read.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.formula import Formula
    >>> from foretime_sim.sites.pbs.formula import parse_formula
    >>> Formula(parse_formula("10 * ncpus + queue_priority")).value({"ncpus": 4})
    40.0
    """

    def __init__(self, read: FormulaNode) -> None:
        self._read = read

    def value(self, known: Mapping[str, float]) -> float:
        """Evaluate it at a job; a name that nobody knows is 0, as is a formula that fails.

        So it is in PBS (``formula_evaluate`` in server_info.cpp).
        """
        try:
            return self._read.value(known)
        except (ArithmeticError, ValueError):
            return 0.0
