"""Formulas of PBS: ``job_sort_formula`` and ``fairshare_usage_res``.

PBS evaluates them in Python (``formula_evaluate`` in server_info.cpp); here only numbers, names,
arithmetic, comparisons and functions of `math` are let through. A formula that fails at a job is 0
there, as in PBS.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

from foretime_estimators.jobs.errors import InputError

_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_FUNCTIONS: dict[str, Any] = {
    name: function for name, function in vars(math).items() if not name.startswith("_")
} | {"min": min, "max": max, "abs": abs, "pow": pow, "int": int, "float": float, "round": round}
_NOT_MODELLED = ("eligible_time", "accrue_type")


class Formula:
    """A formula, read once.

    Parameters
    ----------
    text
        As PBS has it.
    counts_eligible_time
        Whether PBS counts the time that jobs were eligible; a formula of it is then refused.

    Raises
    ------
    InputError
        If it is no formula, or uses what is not modelled.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.formula import Formula
    >>> Formula("10 * ncpus + queue_priority").value({"ncpus": 4, "queue_priority": 5})
    45.0
    """

    def __init__(self, text: str, counts_eligible_time: bool = False) -> None:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError) as error:
            raise InputError(f"the formula {text!r} can't be read: {error}") from None
        names = set()
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise InputError(
                    f"the formula {text!r} has {type(node).__name__}: only numbers, names,"
                    " arithmetic, comparisons and functions of math are modelled"
                )
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") not in _FUNCTIONS:
                raise InputError(
                    f"the formula {text!r} calls {ast.unparse(node.func)}: only functions of math"
                    " are modelled"
                )
            if isinstance(node, ast.Name):
                names.add(node.id)
        for name in _NOT_MODELLED:
            if counts_eligible_time and name in names:
                raise InputError(
                    f"the formula {text!r} uses {name}, which is not modelled where"
                    " eligible_time_enable is set"
                )
        self._names = names - _FUNCTIONS.keys()
        self._code = compile(tree, "<formula>", "eval")

    def value(self, known: Mapping[str, float]) -> float:
        """Evaluate it; a name that nobody knows is 0, as is a formula that fails."""
        names = {name: known.get(name, 0) for name in self._names}
        try:
            # Only what `_ALLOWED` lets through, on numbers: nothing that could do harm.
            return float(eval(self._code, {"__builtins__": {}}, {**_FUNCTIONS, **names}))  # noqa: S307
        except (ArithmeticError, ValueError, TypeError):
            return 0.0
