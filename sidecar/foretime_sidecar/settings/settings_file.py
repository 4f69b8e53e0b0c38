"""The daemon's TOML file of settings: read, checked, written, and described.

``contrib/foretime.toml`` and ``docs/settings.md`` are printed from here and tested to be equal.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pydantic_core
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.files.toml_messages import message_of
from foretime_sim.files.toml_text import parse_toml

from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_section import Names
from foretime_sidecar.settings.settings_text import settings_text

_WATCHDOG_PERIOD_S = 60  # of contrib/systemd/foretime-watchdog.timer


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its section, key, type and default as TOML shows them, and meaning."""

    section: str
    key: str
    type: str
    default: Any
    meaning: str


def read_settings(path: Path) -> Settings:
    """Read a TOML file of settings.

    Raises
    ------
    InputError
        Naming file, line, setting and value, and for an unknown name the nearest valid one.
    """
    return parse_settings(settings_text(path), str(path))


def parse_settings(text: str, where: str = "settings", only: str | None = None) -> Settings:
    """Read the text of a settings file, or one section of it; see `read_settings`.

    Examples
    --------
    >>> from foretime_sidecar import parse_settings
    >>> settings = parse_settings("accuracy = {threshold = 20}")
    >>> settings.accuracy.threshold
    20
    """
    values = parse_toml(text, where)
    if only is not None:
        values = {name: value for name, value in values.items() if name == only}
    try:
        settings = Settings.model_validate(values)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(_explain(first, text, where)) from error
    try:
        settings.accuracy.to_model()
    except InputError as error:
        named = re.match(r"accuracy settings? (\w+)", str(error))
        line = _line_of(text, ("accuracy", named[1]) if named else ("accuracy",))
        raise InputError(f"{where}:{line}: {error}") from error
    _check_together(settings, text, where)
    return settings


def _check_together(settings: Settings, text: str, where: str) -> None:
    """Refuse settings that are each valid but not with each other."""
    scheduler, table = settings.scheduler, settings.table
    mechanism = settings.hook.mechanism
    if (scheduler.kind == "pbs") != (mechanism == "pbs-soft-walltime"):
        line = _line_of(text, ("hook", "mechanism"))
        right = (
            'with scheduler.kind = "pbs" it must be "pbs-soft-walltime"'
            if scheduler.kind == "pbs"
            else 'it is PBS\'s: set scheduler.kind = "pbs", or another mechanism'
        )
        given = "mechanism" in settings.hook.model_fields_set
        said = f"hook.mechanism {'=' if given else 'is left out, which is'} {mechanism!r}"
        raise InputError(f"{where}:{line}: {said}: {right}")
    if scheduler.longest_poll_interval_s < scheduler.poll_interval_s:
        line = _line_of(text, ("scheduler", "longest_poll_interval_s"))
        raise InputError(
            f"{where}:{line}: scheduler.longest_poll_interval_s = "
            f"{scheduler.longest_poll_interval_s}: it must not be less than "
            f"scheduler.poll_interval_s = {scheduler.poll_interval_s}"
        )
    order = settings.queue_order
    may = scheduler.sets_site_factors or (scheduler.kind == "pbs" and order.starts_now)
    if (order.keeps_order or order.starts_now) and not may:
        line = _line_of(text, ("queue_order", "order"))
        raise InputError(
            f"{where}:{line}: queue_order.order = {order.order!r}: site factors are "
            'read and set by Slurm\'s commands alone: set scheduler.kind = "slurm" and '
            'scheduler.client = "commands"; on PBS there is "start-now" alone'
        )
    _check_hook(settings, text, where)
    _check_notify(settings, text, where)
    lapses = 2 * (table.publish_interval_s + scheduler.longest_poll_interval_s)
    if table.valid_for_s < lapses:
        line = _line_of(text, ("table", "valid_for_s"))
        raise InputError(
            f"{where}:{line}: table.valid_for_s = {table.valid_for_s}: the table would run out "
            f"before the next; it must be at least {lapses}, twice table.publish_interval_s and "
            "scheduler.longest_poll_interval_s together"
        )
    least_s = 2 * max(scheduler.longest_poll_interval_s, scheduler.poll_interval_s)
    if table.watchdog_after_s < least_s:
        line = _line_of(text, ("table", "watchdog_after_s"))
        raise InputError(
            f"{where}:{line}: table.watchdog_after_s = {table.watchdog_after_s}: a daemon that "
            "only waits for its next look would be taken for dead; it must be at least "
            f"{least_s}, twice scheduler.longest_poll_interval_s"
        )
    _check_lowered_limits(settings, text, where)
    _check_longest_pause(settings, text, where)
    if scheduler.overlap_s >= settings.store.retention_days * DAY_S:
        line = _line_of(text, ("scheduler", "overlap_s"))
        raise InputError(
            f"{where}:{line}: scheduler.overlap_s = {scheduler.overlap_s}: jobs would be read "
            "again after they were deleted, and learned twice; it must be less than "
            f"store.retention_days = {settings.store.retention_days}"
        )


def _check_lowered_limits(settings: Settings, text: str, where: str) -> None:
    """Refuse a t_sched that may be over before the watchdog has raised the limit of a job."""
    if settings.hook.mechanism != "rewrite-limit":
        return
    # It acts once the daemon has missed a look; it comes each minute, and may take one to do it.
    least_s = settings.scheduler.poll_interval_s + 2 * _WATCHDOG_PERIOD_S
    if settings.accuracy.minimum_scheduled_time_s < least_s:
        line = _line_of(text, ("accuracy", "minimum_scheduled_time_s"))
        raise InputError(
            f"{where}:{line}: accuracy.minimum_scheduled_time_s = "
            f"{settings.accuracy.minimum_scheduled_time_s}: under rewrite-limit a job whose prolog "
            "failed would be killed before foretime watchdog helps it if the daemon is dead; it "
            f"must be at least {least_s}, two minutes more than scheduler.poll_interval_s"
        )


def _check_longest_pause(settings: Settings, text: str, where: str) -> None:
    """Refuse a pause that may outlast a job whose limit was lowered to t_sched.

    That is so under rewrite-limit, and natively once slurm.conf has lost the soft limit. A look may
    fail, so two pauses must fit in, and a minute for what the looks take. The watchdog comes a
    minute after the pause is over, and may take one.
    """
    scheduler, least_s = settings.scheduler, settings.accuracy.minimum_scheduled_time_s
    if scheduler.kind == "pbs" or settings.hook.mode != "enforce":
        return
    safe_s = min((least_s - 60) // 2, least_s - 2 * _WATCHDOG_PERIOD_S)
    most_s = max(safe_s, scheduler.poll_interval_s)
    if scheduler.longest_poll_interval_s > most_s:
        line = _line_of(text, ("scheduler", "longest_poll_interval_s"))
        raise InputError(
            f"{where}:{line}: scheduler.longest_poll_interval_s = "
            f'{scheduler.longest_poll_interval_s}: with hook.mode = "enforce" a job whose limit '
            "was lowered could end before it is given back; it must be at most "
            f"{most_s}: two pauses and a minute must fit into accuracy.minimum_scheduled_time_s = "
            f"{least_s}, unless it is scheduler.poll_interval_s"
        )


def _check_hook(settings: Settings, text: str, where: str) -> None:
    """Refuse what would mean something on the other scheduler alone."""
    hook, is_pbs = settings.hook, settings.scheduler.kind == "pbs"
    if is_pbs and hook.mode == "advise":
        line = _line_of(text, ("hook", "mode"))
        raise InputError(
            f'{where}:{line}: hook.mode = "advise": PBS shows users nothing of a job that it '
            'accepts; set "observe", and let them ask foretime explain'
        )
    foreign = "enforce_only_slurm_partitions" if is_pbs else "enforce_only_queues"
    right = "enforce_only_queues" if is_pbs else "enforce_only_slurm_partitions"
    if getattr(hook, foreign):
        line = _line_of(text, ("hook", foreign))
        raise InputError(
            f"{where}:{line}: hook.{foreign}: with scheduler.kind = "
            f'"{settings.scheduler.kind}" no job would ever be changed; set hook.{right}'
        )


def _check_notify(settings: Settings, text: str, where: str) -> None:
    """Refuse a way of notifying that lacks where to."""
    notify = settings.notify
    needed = "mail_domain" if notify.by_mail else "webhook_url_file"
    if notify.way != "off" and not getattr(notify, needed):
        line = _line_of(text, ("notify", "way"))
        raise InputError(f'{where}:{line}: notify.way = "{notify.way}": set notify.{needed}, too')


def _explain(problem: pydantic_core.ErrorDetails, text: str, where: str) -> str:
    location = tuple(str(part) for part in problem["loc"])
    place = f"{where}:{_line_of(text, location)}"
    name = ".".join(location)
    if problem["type"] == "extra_forbidden":
        known = [f"{setting.section}.{setting.key}" for setting in describe()]
        sections = sorted({setting.section for setting in describe()})
        candidates = known if len(location) > 1 else [*sections, *known]
        return f"{place}: unknown setting {name!r}; {_nearest(name, candidates)}"
    if problem["type"] == "model_type":
        return (
            f"{place}: {name} = {problem['input']!r}: it is a section; write [{name}] and below it"
        )
    return f"{place}: {name} = {problem['input']!r}: {message_of(problem)}"


def _nearest(name: str, candidates: list[str]) -> str:
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    if not near:
        # A right name under the wrong section, or under none.
        last = name.rpartition(".")[2]
        near = [known for known in candidates if known.rpartition(".")[2] == last]
    return f"did you mean {near[0]!r}?" if near else "foretime config show lists them"


def _line_of(text: str, location: tuple[str, ...]) -> int:
    """Line of a setting in its file, or of its section, or 1."""
    section, key = location[0], location[1] if len(location) > 1 else None
    wanted = re.compile(rf"\s*{re.escape(section if key is None else key)}\s*=")
    # Without a header of its own: `section.key = ...` or `section = {...}`.
    elsewhere = re.compile(rf"\s*{re.escape(section)}\s*(=|\.\s*{re.escape(key or '')}\s*=)")
    found, inside = 1, key is None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.fullmatch(r"\s*\[\s*([\w.-]+)\s*\]\s*(#.*)?", line):
            inside = header[1] == section and key is not None
            if header[1] == section:
                found = number
        elif (inside and wanted.match(line)) or (found == 1 and elsewhere.match(line)):
            return number
    return found


def describe() -> Iterator[Setting]:
    """Give every setting, in the order of the file."""
    for section, defaults in Settings():
        for key, field in type(defaults).model_fields.items():
            yield Setting(
                section, key, _type_name(field.annotation), field.default, field.description or ""
            )


_TYPE_NAMES: dict[object, str] = {
    bool: "boolean",
    int: "whole number",
    float: "number",
    str: "text",
    list[int]: "list of whole numbers",
    Names: "list of names",
}


def _type_name(annotation: object) -> str:
    choices = getattr(annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return " | ".join(f'"{choice}"' for choice in choices)
    return _TYPE_NAMES[annotation]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON's text is TOML's, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def section_meaning(section: str) -> str:
    """Give a section's own line of documentation."""
    annotation = Settings.model_fields[section].annotation
    return (annotation.__doc__ or "").strip() if annotation is not None else ""


def origins(path: Path) -> dict[tuple[str, str], str]:
    """Give where each setting that a readable file of settings sets stands in it: FILE:LINE."""
    text = settings_text(path)
    return {
        (section, key): f"{path}:{_line_of(text, (section, key))}"
        for section, values in parse_toml(text, str(path)).items()
        for key in values
    }


def to_toml(
    settings: Settings | None = None, origin: Mapping[tuple[str, str], str] | None = None
) -> str:
    """Write settings (by default the defaults) as a commented TOML file.

    ``origin`` says where a value comes from, by section and key; the others are defaults.

    Examples
    --------
    >>> from foretime_sidecar.settings.settings_file import to_toml
    >>> to_toml().splitlines()[0]
    "# Foretime's settings, all at their defaults: keep only what you change."
    """
    values = (settings or Settings()).model_dump()
    lines = ["# Foretime's settings, all at their defaults: keep only what you change."]
    if settings is not None:
        lines = ["# Foretime's settings."]
    section = None
    for setting in describe():
        if setting.section != section:
            section = setting.section
            lines += ["", f"# {section_meaning(section)}", f"[{section}]"]
        source = ""
        if origin is not None:
            source = f"; {origin.get((setting.section, setting.key), 'default')}"
        lines.append(f"# {setting.meaning} ({setting.type}{source})")
        lines.append(f"{setting.key} = {_toml(values[setting.section][setting.key])}")
    return "\n".join(lines) + "\n"


def to_markdown() -> str:
    """Write the settings' documentation."""
    lines = [
        "# Settings",
        "",
        "The daemon, and every command that speaks of the site, read one TOML file: the one that",
        "`--settings` names, else `$FORETIME_SETTINGS`, else `/etc/foretime/foretime.toml`. A file",
        "that is named must be there. Without any file every setting is at its default, and the",
        "commands say so. `foretime replay` and `foretime simulate` read none unless told to.",
        "",
        "`contrib/foretime.toml` has every setting at its default. `foretime config check FILE`",
        "checks a file. Times are in seconds where the name ends in `_s`. This page is printed by",
        "`foretime config show --markdown`.",
    ]
    section = None
    for setting in describe():
        if setting.section != section:
            section = setting.section
            lines += ["", f"## [{section}]", "", section_meaning(section), ""]
            lines += ["| setting | type | default | meaning |", "|---|---|---|---|"]
        kind = setting.type.replace("|", "\\|")
        lines.append(
            f"| `{setting.key}` | {kind} | `{_toml(setting.default)}` | {setting.meaning} |"
        )
    return "\n".join(lines) + "\n"
