"""The templates that pages are made of."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

HERE = Path(__file__).parent


def page_templates() -> Environment:
    """Give them; whatever they show is escaped, and what they miss is an error."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    templates.filters["units"] = _keep_units
    return templates


def _keep_units(text: str) -> str:
    """Let no line end between a number and its unit."""
    return re.sub(r"(\d) (?=(?:d|h|min)\b)", "\\1\N{NO-BREAK SPACE}", text)
