"""Formulas of PBS, read once: ``job_sort_formula`` and ``fairshare_usage_res``.

PBS evaluates them in Python (``formula_evaluate`` in server_info.cpp). Here only numbers, names,
arithmetic, comparisons and functions of `math` are let through, all on floating-point numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

RANK = "ft_rank"
"""The resource by which Foretime raises a job where it is all of ``job_sort_formula``: jobs that
have none are equal, so that PBS orders them as it does without a formula."""

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "and",
    ast.Or: "or",
    ast.USub: "neg",
    ast.Not: "not",
}
_APPLY: Mapping[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": math.pow,
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "neg": lambda a: -a,
    "not": lambda a: float(not a),
    "min": min,
    "max": max,
    "abs": abs,
    "fabs": abs,
    "int": math.trunc,
    "trunc": math.trunc,
    "float": float,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "fmod": math.fmod,
}
_FUNCTIONS = {
    **dict.fromkeys(("min", "max", "pow", "fmod"), 2),
    **dict.fromkeys(("abs", "fabs", "int", "trunc", "float", "round", "floor", "ceil"), 1),
    **dict.fromkeys(("sqrt", "exp", "log", "log2", "log10"), 1),
}
"""How many values each takes; ``min`` and ``max`` take more, too."""
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}


@dataclass(frozen=True, slots=True)
class FormulaNode:
    """A number, a name, or an operation on what is below it.

    Attributes
    ----------
    kind
        ``number``, ``name``, ``if``, or what is done: ``+``, ``**``, ``and``, ``neg``, ``sqrt`` ...
    below
        What it is done with; of ``if`` the condition, and what holds with it and without.
    number, name
        Of those kinds.
    """

    kind: str
    below: tuple[FormulaNode, ...] = ()
    number: float = 0.0
    name: str = ""

    def value(self, known: Mapping[str, float]) -> float:
        """Evaluate it; a name that nobody knows is 0.

        Raises
        ------
        ArithmeticError, ValueError
            If something is divided by 0, or has no value that a floating-point number can hold.
        """
        if self.kind == "number":
            return self.number
        if self.kind == "name":
            return float(known.get(self.name, 0.0))
        if self.kind == "if":
            return self.below[1 if self.below[0].value(known) else 2].value(known)
        if self.kind in ("and", "or"):
            first = self.below[0].value(known)
            return first if (first == 0) == (self.kind == "and") else self.below[1].value(known)
        found = float(_APPLY[self.kind](*(node.value(known) for node in self.below)))
        if not math.isfinite(found):
            raise OverflowError(f"{self.kind} gives {found}")
        return found

    @property
    def names(self) -> frozenset[str]:
        """Which names it has."""
        mine = frozenset([self.name]) if self.kind == "name" else frozenset()
        return mine.union(*(node.names for node in self.below))


def parse_formula(text: str) -> FormulaNode:
    """Read a formula.

    Raises
    ------
    InputError
        If it is no formula, uses what is not modelled, or has a number that is too large.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.formula import parse_formula
    >>> parse_formula("10 * ncpus + queue_priority").value({"ncpus": 4, "queue_priority": 5})
    45.0
    """
    try:
        return _Reading(text).node(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"the formula {text!r} can't be read: {error}") from None
    except (RecursionError, MemoryError):
        raise InputError(f"the formula {text[:60]!r}... is nested too deep") from None


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text

    def _refuse(self, what: str) -> InputError:
        return InputError(
            f"the formula {self._text!r} {what}: only numbers, names, arithmetic, comparisons and"
            f" {', '.join(sorted(_FUNCTIONS))} are modelled"
        )

    def node(self, tree: ast.expr) -> FormulaNode:
        made = self._made(tree)
        if made.below and not made.names:
            try:
                return FormulaNode("number", number=made.value({}))
            except (ArithmeticError, ValueError) as error:
                raise InputError(
                    f"the formula {self._text!r}: {ast.unparse(tree)} has no value: {error}"
                ) from None
        return made

    def _made(self, tree: ast.expr) -> FormulaNode:
        match tree:
            case ast.Constant(value=bool() | int() | float() as number):
                return self._number(number)
            case ast.Name(id=name):
                if name in _CONSTANTS:
                    return FormulaNode("number", number=_CONSTANTS[name])
                return FormulaNode("name", name=name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.node(operand)
            case ast.UnaryOp(op=op, operand=operand):
                return self._operation(op, operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(op, left, right)
            case ast.BoolOp(op=op, values=values):
                *before, made = (self.node(value) for value in values)
                for node in reversed(before):
                    made = FormulaNode(_OPERATORS[type(op)], (node, made))
                return made
            case ast.Compare():
                return self._comparison(tree)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return FormulaNode("if", (self.node(test), self.node(body), self.node(orelse)))
            case ast.Call():
                return self._call(tree)
        raise self._refuse(f"has {type(tree).__name__}")

    def _number(self, number: float) -> FormulaNode:
        try:
            value = float(number)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise InputError(f"the formula {self._text[:60]!r} has a number that is too large")
        return FormulaNode("number", number=value)

    def _operation(self, op: ast.AST, *operands: ast.expr) -> FormulaNode:
        if type(op) not in _OPERATORS:
            raise self._refuse(f"has {type(op).__name__}")
        return FormulaNode(_OPERATORS[type(op)], tuple(self.node(each) for each in operands))

    def _comparison(self, tree: ast.Compare) -> FormulaNode:
        """Give a < b < c as both of a < b and b < c."""
        terms = [tree.left, *tree.comparators]
        pairs = zip(tree.ops, terms, terms[1:], strict=False)
        *before, made = (self._operation(op, left, right) for op, left, right in pairs)
        for node in reversed(before):
            made = FormulaNode("and", (node, made))
        return made

    def _call(self, tree: ast.Call) -> FormulaNode:
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if name not in _FUNCTIONS or tree.keywords:
            raise self._refuse(f"calls {ast.unparse(tree)}")
        takes, given = _FUNCTIONS[name], len(tree.args)
        if given != takes and not (name in ("min", "max") and given > takes):
            raise self._refuse(f"calls {name} with {given} values")
        kind = "**" if name == "pow" else name
        *before, made = (self.node(argument) for argument in tree.args)
        for node in reversed(before):
            made = FormulaNode(kind, (node, made))
        return made if before else FormulaNode(kind, (made,))
