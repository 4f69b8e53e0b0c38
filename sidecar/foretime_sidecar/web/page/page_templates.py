"""The templates that pages are made of."""

from __future__ import annotations

import re
import time
from pathlib import Path

from foretime_estimators.time_units import DAY_S
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from foretime_sidecar.wording.clocks import local_time, zone_name

HERE = Path(__file__).parent
_CLOCKS_CHANGE_S = 30 * DAY_S
# Before a unit, between parts of a duration, after the day of the week, and before the month.
_INSEPARABLE = re.compile(
    r"(?<=\d) (?=(?:d|h|min)\b)|(?<=\d [dh]) (?=\d)|(?<=\b[A-Z][a-z]{2}) (?=\d{1,2} [A-Z])"
    r"|(?<=\d) (?=[A-Z][a-z]{2} )"
)


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
    """Let no line end within a duration (``2 d 12 h``) or a date (``Mon 30 Nov``)."""
    return _INSEPARABLE.sub("\N{NO-BREAK SPACE}", text)


def zone_shown() -> dict[str, str]:
    """Name the time zone of what is shown, with its offsets from UTC now and in 30 days, minutes.

    By these the page's script sees whether the reader's clock shows the same.
    """
    now = int(time.time())
    offsets = [local_time(at).utcoffset() for at in (now, now + _CLOCKS_CHANGE_S)]
    minutes = [round(offset.total_seconds() / 60) for offset in offsets if offset is not None]
    return {"zone": zone_name(now), "offsets": " ".join(map(str, minutes))}
