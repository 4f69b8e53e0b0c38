"""Prints the reference of campaign files in docs/campaigns.md: ``python -m`` this module.

A test compares the two, so that the page can't say anything else than the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from foretime_sim.campaigns.accuracy import BUILT_IN_ACCURACY
from foretime_sim.campaigns.campaign import (
    Declaration,
    Grid,
    JobQueue,
    LogSource,
    Report,
    Scoring,
)

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("Top of the file", Declaration),
    ("[[logs]]", LogSource),
    ("[grid]", Grid),
    ("[scoring]", Scoring),
    ("[report]", Report),
    ("[jobqueue]", JobQueue),
)
_TABLES = {"logs", "grid", "accuracy", "scoring", "report", "jobqueue"}


def to_markdown() -> str:
    """Write every table and key, its default and its meaning."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, model in _SECTIONS:
        yield f"### {title}"
        yield ""
        yield " ".join((model.__doc__ or "").split())
        yield ""
        yield "| key | default | meaning |"
        yield "|---|---|---|"
        for key, field in model.model_fields.items():
            if model is Declaration and key in _TABLES:
                continue
            meaning = (field.description or "").replace("|", "\\|")
            yield f"| `{key}` | {_default(field, key)} | {meaning} |"
        yield ""
    yield "### [accuracy.NAME]"
    yield ""
    yield (
        "An accuracy rule of your own, for `accuracy_rule`: `based_on` says which built-in rule it "
        "starts from (production if not given), the other keys what is different. "
        "docs/estimators.md tells what they mean."
    )
    yield ""
    yield "| key | production | tang2010 |"
    yield "|---|---|---|"
    production, tang2010 = (asdict(rule) for rule in BUILT_IN_ACCURACY.values())
    for key, value in production.items():
        yield f"| `{key}` | {_toml(value)} | {_toml(tang2010[key])} |"


def _default(field: FieldInfo, key: str) -> str:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    if key in ("exclude", "include", "baseline"):
        return ""
    return "" if default in (None, "", ()) else _toml(default)


def _toml(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return f"`{json.dumps(list(value))}`"
    return f"`{json.dumps(value)}`"


if __name__ == "__main__":
    print(to_markdown(), end="")
