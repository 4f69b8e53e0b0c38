"""Policies found by name: what is loaded from where, and what is said if it can't be."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import Backfill, parse_backfill
from foretime_sim.policies.order import Order, OrderName
from foretime_sim.policies.policy import Policy, parse_order
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder

SOUND = """
    import numpy as np
    LIMIT = 5
    def shortest(queue, now):
        return -queue.requested_time
    class Remembering:
        class Inner:
            def __call__(self, queue, now):
                return queue.wait
    def _own(queue, now): ...
"""
Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module into the current folder; forget it, and its like, afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def one(name: str, text: str) -> None:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))

    yield one
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_built_in_names_come_first() -> None:
    assert parse_order("wfp") is Order.WFP
    assert parse_backfill("EASY_SJBF") is Backfill.EASY_SJBF
    with pytest.raises(InputError, match=r"'sjf'\? Valid: fcfs.*, or module:attribute"):
        parse_order("sfj")
    with pytest.raises(InputError) as caught:
        parse_order("myp")
    assert str(caught.value) == (
        f"unknown queue order 'myp'. Valid: {', '.join(get_args(OrderName))}, or module:attribute"
        " of your own"
    )
    assert parse_order("priority") is Order.PRIORITY
    with pytest.raises(InputError, match="unknown backfilling 'eazy'; did you mean 'easy'"):
        parse_backfill("eazy")


def test_functions_classes_and_packages_are_loaded_by_name(write: Write) -> None:
    write("sound_a", SOUND)
    write("pack.sound", SOUND)
    path = list(sys.path)
    order = parse_order("sound_a:shortest")
    assert isinstance(order, PythonOrder)
    assert str(order) == "sound_a:shortest"
    assert order.function.__name__ == "shortest"
    assert str(parse_backfill("pack.sound:Remembering.Inner")) == "pack.sound:Remembering.Inner"
    assert sys.path == path
    assert parse_order(" sound_a : shortest ") == order
    assert len({order, parse_order("sound_a:shortest"), parse_order("sound_a:Remembering")}) == 2


def test_they_are_found_again_in_another_process(write: Write) -> None:
    write("sound_b", SOUND)
    policy = Policy(parse_order("sound_b:shortest"), PythonBackfill.load("sound_b:Remembering"))
    assert pickle.loads(pickle.dumps(policy)) == policy
    done = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer).order)"],
        input=pickle.dumps(policy),
        capture_output=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.decode() == "sound_b:shortest\n"


def module_level(queue: object, now: int) -> None: ...


def test_a_function_given_as_it_is() -> None:
    policy = PythonOrder(module_level)
    assert policy.name.endswith("test_python_policy_loading:module_level")
    assert policy == PythonOrder(module_level)
    assert PythonOrder(len, "own").name == "own"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sond_c:shortest", "no module 'sond_c' in {folder} or among the installed ones; did you"),
        ("sond_c:shortest", "did you mean 'sound_c'?"),
        ("sound_c.more:shortest", "no module 'sound_c.more' in"),
        ("qqqq:shortest", "there is no module 'qqqq'"),
        ("sound_c:shortst", "sound_c ({folder}/sound_c.py) has no 'shortst'; did you mean 'short"),
        ("sound_c:qqqq", "has no 'qqqq'. It has shortest, Remembering"),
        ("sound_c:Remembering.Iner", "has no 'Iner'; did you mean 'Inner'?"),
        ("sound_c:LIMIT", "order sound_c:LIMIT is of type int, which can't be called"),
        ("sound_c:", "order 'sound_c:': give a built-in one by its name alone, or your own as"),
        (":shortest", "module:attribute, such as my_module:my_order"),
        ("sound-c:shortest", "module:attribute, such as my_module:my_order"),
        ("sound_c.py:a:b", "module:attribute, such as my_module:my_order"),
        ("broken_c:a", "broken_c can't be imported: {folder}/broken_c.py:3: x = 1 / 0: ZeroDiv"),
        ("using_broken_c:a", "{folder}/broken_c.py:3: x = 1 / 0: ZeroDivisionError: division by"),
        ("wrong_c:a", "{folder}/wrong_c.py:2: def f(:: SyntaxError: invalid syntax"),
        ("needing_c:a", "{folder}/needing_c.py:2: import qqqq_: ModuleNotFoundError: No module na"),
    ],
)
def test_what_can_not_be_loaded(write: Write, tmp_path: Path, name: str, says: str) -> None:
    write("sound_c", SOUND)
    write("broken_c", "\n\nx = 1 / 0\n")
    write("using_broken_c", "import broken_c\n")
    write("wrong_c", "\ndef f(:\n")
    write("needing_c", "\nimport qqqq_\n")
    path = list(sys.path)
    with pytest.raises(InputError) as caught:
        parse_order(name)
    assert says.format(folder=tmp_path) in str(caught.value)
    assert sys.path == path
