"""Formulas of PBS: what is read, what is refused, and that the core evaluates them alike."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import _core
from foretime_sim.engine.native.pbs_shares import core_formula
from foretime_sim.reference.pbs.formula import Formula
from foretime_sim.sites.pbs.formula import parse_formula
from hypothesis import example, given, settings
from hypothesis import strategies as st

NAMES = ("ncpus", "walltime", "mem", "job_priority", "nobody")
NUMBERS = st.sampled_from(["0", "1", "2", "0.5", "3", "10", "1e300", "7.25"])


def _formulas(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="]
    one = ["abs", "int", "float", "round", "floor", "ceil", "sqrt", "exp", "log", "log2", "log10"]
    two = ["min", "max", "pow", "fmod"]
    return st.one_of(
        st.builds("({}) {} ({})".format, below, st.sampled_from([*operators, "and", "or"]), below),
        st.builds("{}({})".format, st.sampled_from([*one, "-", "not "]), below),
        st.builds("{}({}, {})".format, st.sampled_from(two), below, below),
        st.builds("({} if {} else {})".format, below, below, below),
        st.builds("({} < {} <= {})".format, below, below, below),
    )


FORMULAS = st.recursive(NUMBERS | st.sampled_from(NAMES), _formulas, max_leaves=12)
VALUES = st.dictionaries(
    st.sampled_from(NAMES[:4]), st.sampled_from([0.0, 1.0, 4.0, 36000.0, -3.5, 2.0**40, 1e200])
)


@settings(max_examples=500)
@given(FORMULAS, VALUES)
@example("ncpus % -3", {"ncpus": 4.0})
@example("ncpus // 0", {"ncpus": 4.0})
@example("ncpus ** ncpus ** ncpus", {"ncpus": 36000.0})
def test_the_core_gives_the_very_same_value(text: str, known: dict[str, float]) -> None:
    try:
        read = parse_formula(text)
    except InputError:
        return
    assert _core.pbs_formula_value(core_formula(read), known) == Formula(read).value(known)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10 * ncpus + queue_priority", 40.0),
        ("1 < ncpus < 5", 1.0),
        ("ncpus // 3 - -7 // 2 + -7 % 4", 6.0),
        ("min(ncpus, 3, 9) ** 2", 9.0),
        ("mem and 1 / mem", 0.0),
        ("1 / mem", 0.0),  # it fails, and is 0
        ("(-8) ** (ncpus / 12)", 0.0),  # no real number
        ("ncpus ** 9999 ** 2", 0.0),
        ("round(2.5) + round(3.5)", 6.0),
        ("not ncpus or True", 1.0),
    ],
)
def test_formulas_have_the_values_of_python(text: str, value: float) -> None:
    read = parse_formula(text)
    known = {"ncpus": 4.0, "mem": 0.0}
    assert Formula(read).value(known) == value
    assert _core.pbs_formula_value(core_formula(read), known) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9**9**9", "9 \\*\\* 9 \\*\\* 9 has no value"),
        ("ncpus + 1 / 0", "1 / 0 has no value"),
        ("1e999", "a number that is too large"),
        ("10" * 400, "a number that is too large"),
        ("ncpus << 3", "has LShift"),
        ("'a' * 3", "has Constant"),
        ("().__class__", "has Attribute"),
        ("[1 for x in y]", "has ListComp"),
        ("__import__('os')", "calls __import__"),
        ("gamma(ncpus)", "calls gamma"),
        ("sqrt(ncpus, 2)", "calls sqrt with 2 values"),
        ("ncpus +", "can't be read"),
        ("-" * 5000 + "ncpus", "nested too deep"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_formula(text)
