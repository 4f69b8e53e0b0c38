"""Options in groups: a frozen dataclass for each, of which typer sees flat parameters."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from typer.models import OptionInfo

RARE = ", rarely needed"
"""How the names of panels end that ``--help`` leaves to ``--help-all``."""


@dataclass(frozen=True)
class OptionGroup:
    """Options of one subject: each field is annotated as a parameter of a command would be.

    Attributes
    ----------
    panel
        Panel of the help page.
    rarely_needed
        Fields that ``--help`` leaves to ``--help-all``.
    """

    panel: ClassVar[str]
    rarely_needed: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Give the fields as parameters of a function."""
        hints = get_type_hints(cls, include_extras=True)
        for field in fields(cls):
            panel = cls.panel + (RARE if field.name in cls.rarely_needed else "")
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=_in_panel(hints[field.name], panel),
            )


def _in_panel(hint: Any, panel: str) -> Any:  # noqa: ANN401 - a type, as typing gives it
    """Put the option of an annotation into a panel."""
    base, *infos = get_args(hint)
    for place, info in enumerate(infos):
        if isinstance(info, OptionInfo):
            infos[place] = copy.copy(info)
            infos[place].rich_help_panel = panel
    return Annotated[(base, *infos)]


def with_option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Let typer see the fields of a function's option groups as parameters of their own."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[OptionGroup]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, OptionGroup):
            groups[parameter.name] = hint
            parameters.extend(hint.parameters())
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hint, kind=kind))

    @functools.wraps(function)
    def flat(**given: Any) -> None:  # noqa: ANN401 - what typer has read
        filled = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**filled, **given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat
