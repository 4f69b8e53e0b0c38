"""Answers made coarse for those from whom jobs are hidden: each field says how.

Starts are moved to the next mark of a clock, the coarser the longer the wait is; each clock's marks
are marks of the finer ones, so that bounds stay in order. They hold no less often than before, and
whoever asks again and again learns no more than when a mark is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

# Up to which wait which step, seconds.
STEPS = ((3600, 900), (6 * 3600, 3600), (86_400, 3 * 3600), (7 * 86_400, 43_200))
_LONGEST_STEP_S = 86_400


def coarse_wait(wait_s: int, made_at: int) -> int:
    """Give the seconds from a moment until the mark after a wait; 0 stays 0."""
    if wait_s <= 0:
        return 0
    step = next((step for up_to, step in STEPS if wait_s <= up_to), _LONGEST_STEP_S)
    return -(-(made_at + wait_s) // step) * step - made_at


def coarse_count(count: int) -> int:
    """Round a number of jobs up: to tens, from a hundred on to hundreds, and so on."""
    step = 10
    while count > 10 * step:
        step *= 10
    return -(-count // step) * step


@dataclass(frozen=True, slots=True)
class Telling:
    """What the rules of an answer's fields need besides.

    Attributes
    ----------
    made_at
        When the answer was made, epoch seconds.
    why
        Why it is coarse, in words.
    """

    made_at: int
    why: str


@dataclass(frozen=True, slots=True)
class Coarsened:
    """How a field is coarsened, in its annotation.

    Attributes
    ----------
    rule
        From the exact value, the exact model that it is a field of, and the telling; not asked of
        what is ``None``, which stays so.
    """

    rule: Callable[[Any, Any, Telling], Any]


AS_IS = Coarsened(lambda value, _, __: value)
"""It tells nothing of others, or they may know it."""
HIDDEN = Coarsened(lambda *_: None)
IN_PARTS = Coarsened(lambda part, _, telling: coarsened(part, telling))
"""It has fields of its own, which say how."""
TO_QUARTERS = Coarsened(lambda probability, _, __: round(probability * 4) / 4)
TO_A_MARK = Coarsened(lambda wait_s, _, telling: coarse_wait(wait_s, telling.made_at))
TO_MARKS = Coarsened(
    lambda waits, _, telling: {
        name: coarse_wait(wait_s, telling.made_at) for name, wait_s in waits.items()
    }
)
ROUNDED_UP = Coarsened(lambda count, _, __: coarse_count(count))
EACH_ROUNDED_UP = Coarsened(
    lambda counts, _, __: {name: coarse_count(count) for name, count in counts.items()}
)


class Told(BaseModel):
    """An answer, or a part of one, each of whose fields says how it is coarsened."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Refuse a field that does not say it: it would be told as it is."""
        for name in cls.model_fields:
            _rule_of(cls, name)


AnyTold = TypeVar("AnyTold", bound=Told)


def coarsened(answer: AnyTold, telling: Telling) -> AnyTold:
    """Give an answer as coarse as its fields say."""
    values = {}
    for name in type(answer).model_fields:
        value = getattr(answer, name)
        rule = _rule_of(type(answer), name)
        values[name] = None if value is None else rule(value, answer, telling)
    return type(answer)(**values)


def _rule_of(model: type[Told], name: str) -> Callable[[Any, Any, Telling], Any]:
    said = [each for each in model.model_fields[name].metadata if isinstance(each, Coarsened)]
    if len(said) != 1:
        raise TypeError(f"{model.__name__}.{name} must say once how it is coarsened")
    return said[0].rule
