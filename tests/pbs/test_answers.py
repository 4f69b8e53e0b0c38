"""PBS answers each form of submission and of a change with the hook as it does without.

The same exit code, the same words, and in the end the same job but for soft_walltime; and what it
says is what was recorded, by which the mock is judged (tests/plugin/test_pbs_answers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from tests.pbs.answers import Answer, AnsweringServer, Form, forms, read_recorded, recorded

T = TypeVar("T")


class Pair:
    """A plain server and one with the hook, which are asked the same at the same time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2)
        self.sites = list(self._pool.map(lambda hook: AnsweringServer(hooked=hook), (False, True)))

    def both(self, question: Callable[[AnsweringServer], T]) -> tuple[T, T]:
        """Ask both."""
        plain, hooked = self._pool.map(question, self.sites)
        return plain, hooked

    def answer(self, form: Form) -> tuple[Answer, Answer]:
        """Give what both answer and what becomes of it, as soon as that is alike, or in the end."""
        done = dict(zip(self.sites, self.both(lambda site: site.answer(form)), strict=True))
        self.both(lambda site: site.settle(form, done[site][0]))
        become = partial(self.both, lambda site: site.become(*done[site]))
        plain, hooked = become()
        for _ in range(50):
            if plain.job == hooked.job:
                break
            plain, hooked = become()
        self.both(lambda site: site.forget(done[site][0]))
        return plain, hooked

    def stop(self) -> None:
        """End both."""
        self.both(lambda site: site.stop())


@pytest.fixture(scope="module")
def pair(openpbs: None) -> Iterator[Pair]:
    """Both servers."""
    pair = Pair()
    yield pair
    pair.stop()


@pytest.fixture(scope="module")
def record() -> dict[str, object]:
    """What was recorded, by name."""
    return dict(read_recorded())


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.name)
def test_the_hook_changes_no_answer(form: Form, pair: Pair, record: dict[str, object]) -> None:
    plain, hooked = pair.answer(form)
    assert hooked.replies == plain.replies
    assert hooked.job == plain.job
    assert recorded(form, hooked) == record[form.name], "record anew: python -m tests.pbs.answers"


def test_the_hook_lowers_a_managers_soft_walltime_with_the_walltime(pair: Pair) -> None:
    """The one answer that is another: PBS refuses a walltime below it, and the hook spares that."""
    steps = ("manager qalter -lsoft_walltime=300 {job}", "alice qalter -lwalltime=250 {job}")
    plain, hooked = pair.answer(Form("lowered", steps=steps))
    refused = f"qalter: Illegal attribute or resource value {plain.job_id}\n"
    assert (plain.replies[-1], plain.soft_walltime) == ((166, refused), "00:05:00")
    assert (hooked.replies[-1], hooked.soft_walltime) == ((0, ""), "00:04:10")


def test_there_are_enough_forms() -> None:
    answers = read_recorded()
    changes = [form for form in forms() if form.steps]
    assert (len(forms()) - len(changes) >= 63, len(changes) >= 39) == (True, True)
    assert sum(answers[form.name].get("decision") == "planned -" for form in forms()) > 100
    refused = [name for name, each in answers.items() if any(code for code, _ in each["replies"])]
    assert len(refused) > 50
