"""What a path may answer, as FastAPI takes it: the type of its answer, and its own refusals.

Answers are described and not made anew: they go out as they are, and tests hold them against their
types.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, TypeAlias, TypeVar

from starlette.responses import Response

ATTRIBUTES = "\n\nAttributes\n----------\n"
"""Begins the part of a docstring that says what fields mean."""
Described: TypeAlias = dict[str, Any]
"""Arguments of FastAPI's `get` and `post`."""
Answer = TypeVar("Answer")


class MetricsResponse(Response):
    """Figures in the text format of Prometheus."""

    media_type = "text/plain; version=0.0.4"


def answers(model: type, *statuses: int) -> Described:
    """Describe a path that answers with what has a type.

    Parameters
    ----------
    model
        The type.
    statuses
        Of HTTP, of refusals that other paths do not have, such as 404.
    """
    described = refusals(*statuses)
    described["responses"][200] = {"model": model}
    return {"response_model": None, **described}


def refusals(*statuses: int) -> Described:
    """Describe refusals alone, of a path whose answer FastAPI knows already."""
    return {"responses": {status: {} for status in statuses}}


def with_fields_of_its_base(answer: type[Answer]) -> type[Answer]:
    """Have the docstring of an answer say what its base's fields mean, too."""
    _, _, attributes = cleandoc(answer.__bases__[0].__doc__ or "").partition(ATTRIBUTES)
    answer.__doc__ = f"{cleandoc(answer.__doc__ or '')}\n{attributes}"
    return answer
