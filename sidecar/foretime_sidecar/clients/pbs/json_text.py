"""JSON as PBS's commands print it, which is not always JSON.

Known defects, by release: quotes, backslashes and line ends that are not escaped in comments,
names and environment variables (OpenPBS pull requests 830 and 2049), numbers such as ``005``,
``.123`` or ``nan`` without quotes (issue 1255, pull request 2603), a ``"Jobs":{`` repeated before
each job and braces missing (pull requests 585 and 1033), commas before a closing brace. What is not
JSON is read line by line, as every release prints one value a line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError

_OPENS = re.compile(r'\s*,?"((?:[^"\\]|\\.)*)"\s*:\s*([{\[])\s*')
_VALUE = re.compile(r'\s*,?"((?:[^"\\]|\\.)*)"\s*:\s*(.*?),?\s*')
_CLOSES = re.compile(r"\s*[}\]][}\]\s]*,?\s*")
_MEMBER = re.compile(r'\s*"(.*)",?\s*')
_ENTRY = re.compile(r"\d+(?:\[\d*\])?\.\S+")  # a job, by its identifier


def read_json(text: str, command: str, section: str) -> dict[str, Any]:
    """Read what a command with ``-F json`` printed; give its entries of one section, by name.

    Parameters
    ----------
    text
        What it printed.
    command
        What to name in the error.
    section
        "Jobs", "nodes" or "Server". Without any entry PBS leaves it out.

    Returns
    -------
    dict
        The entries, and under "timestamp" and "pbs_version" what the reply says of itself.

    Raises
    ------
    SchedulerError
        If it is no such reply.
    """
    reply: object
    try:
        reply = _loads(text)
    except ValueError:
        reply = _mended(text, section)
    if not isinstance(reply, dict) or not reply.keys() & {"pbs_version", "pbs_server", section}:
        shown = " ".join(text.split())[:120]
        raise SchedulerError(
            f"{command} did not answer with PBS's JSON: {shown!r}; Foretime needs OpenPBS or PBS "
            "Professional 14 or newer"
        )
    entries = reply.get(section, {})
    if not isinstance(entries, dict):
        raise SchedulerError(f"{command}: {section} is {type(entries).__name__}, not an object")
    return {
        "timestamp": reply.get("timestamp"),
        "pbs_version": reply.get("pbs_version"),
        section: entries,
    }


def _mended(text: str, section: str) -> dict[str, Any] | None:
    """Read a reply line by line; ``None`` if it does not begin and end as one."""
    stripped = text.strip()
    if not stripped.startswith("{") or not stripped.endswith("}"):
        return None  # cut off: what is missing must not look as if it were not there
    lines = stripped.splitlines()
    reply: dict[str, Any] = {}
    entries: dict[str, Any] = {}
    stack: list[dict[str, Any] | list[Any]] = [reply]
    last: tuple[dict[str, Any], str] | None = None  # the value that a torn line would go on
    for line in lines[1:]:
        if opens := _OPENS.fullmatch(line):
            name, sign = opens[1], opens[2]
            last = None
            if name == section:
                reply[section] = entries
                stack = [reply, entries]
                continue
            if section == "Jobs" and sign == "{" and _ENTRY.fullmatch(name):
                stack = [reply, entries]
            inner: dict[str, Any] | list[Any] = {} if sign == "{" else []
            holder = stack[-1]
            if isinstance(holder, dict):
                holder[name] = inner
            stack.append(inner)
        elif _CLOSES.fullmatch(line):
            for sign in line:
                if sign in "}]" and len(stack) > 1:
                    stack.pop()
            last = None
        elif isinstance(stack[-1], list):
            if member := _MEMBER.fullmatch(line):
                stack[-1].append(member[1])
        elif value := _VALUE.fullmatch(line):
            stack[-1][value[1]] = _value(value[2])
            last = stack[-1], value[1]
        elif last is not None and isinstance(last[0][last[1]], str):
            last[0][last[1]] += "\n" + line.strip().removesuffix(",").removesuffix('"')
    return reply


def _loads(text: str) -> object:
    """Decode JSON; an account called 1e5 comes without quotes, and keeps its name."""
    return json.loads(text, strict=False, parse_float=str, parse_constant=str)


def _value(text: str) -> object:
    try:
        return _loads(text)
    except ValueError:
        pass
    if text.startswith('"'):
        return text[1:].removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")
    return text
