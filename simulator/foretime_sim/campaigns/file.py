"""Reading a campaign's TOML file, with errors that say where, what, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic
import pydantic_core
from foretime_estimators.jobs.errors import InputError
from pydantic import BaseModel

from foretime_sim.campaigns.accuracy import (
    ACCURACY_KEYS,
    BUILT_IN_ACCURACY,
    accuracy_settings,
)
from foretime_sim.campaigns.campaign import (
    CONDITION_AXES,
    NONE,
    Campaign,
    Declaration,
    Grid,
    JobQueue,
    LogSource,
    Report,
    Rule,
    Scoring,
    expanded,
)
from foretime_sim.engine.site_refusals import site_refusals
from foretime_sim.files.toml_messages import message_of, nearest
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models.workload_models import DEFAULTS
from foretime_sim.policies.advance_reservations import read_reservations
from foretime_sim.policies.policy_file import read_policy
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.sites.site_file import Site, read_site

_TABLES: dict[str, type[BaseModel]] = {
    "logs": LogSource,
    "grid": Grid,
    "scoring": Scoring,
    "report": Report,
    "jobqueue": JobQueue,
}
_GRID_KEYS = ("policy", *Grid.model_fields)
_LISTS = ("logs", "exclude", "include")
_GENERATED_ONLY, _LOGS_ONLY = (
    ("jobs", "load", "seed"),
    ("format", "columns", "time_zone", "lenient", "overruns", "missing_request", "occupied"),
)


def read_campaign(path: Path | str) -> Campaign:
    """Read and check a campaign.

    Logs are not read yet; `foretime_sim.campaigns.cells.plan` looks at them.

    Raises
    ------
    InputError
        Naming file, line, table, key and value, and what would be valid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim import read_campaign
    >>> text = '''
    ... logs = [{generate = "pc2", jobs = 200}]
    ... grid = {order = ["fcfs", "sjf"]}
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "orders.toml"
    ...     _ = path.write_text(text)
    ...     campaign = read_campaign(path)
    >>> campaign.axes["order"]
    ('fcfs', 'sjf')
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"{path}: can't read the campaign: {reason}; name a TOML file") from error
    return parse_campaign(text, path)


def parse_campaign(text: str, path: Path) -> Campaign:
    """Read the text of a campaign file; see `read_campaign`."""
    return _Reader(text, path).campaign()


class _Reader:
    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path

    def campaign(self) -> Campaign:
        values = parse_toml(self.text, str(self.path))
        folder = self.path.absolute().parent
        self._read_policies(values, folder)
        try:
            declared = Declaration.model_validate(values, context={"folder": folder})
        except pydantic.ValidationError as error:
            # What is written wrong explains best; what is missing may be what was misspelt.
            problems = error.errors(include_url=False)
            first = min(problems, key=lambda problem: problem["type"] == "missing")
            raise InputError(self._explain(first)) from error
        accuracy = dict(BUILT_IN_ACCURACY)
        for name, table in declared.accuracy.items():
            if name in BUILT_IN_ACCURACY:
                raise self._refuse(("accuracy", name), "is built in; choose another name")
            for key in table:
                if key not in (*ACCURACY_KEYS, "based_on"):
                    raise self._unknown(("accuracy", name, key), (*ACCURACY_KEYS, "based_on"))
            try:
                accuracy[name] = accuracy_settings(table)
            except InputError as error:
                raise self._refuse(("accuracy", name), str(error)) from error
        for rule in declared.grid.accuracy_rule:
            if rule not in accuracy:
                raise self._refuse(
                    ("grid", "accuracy_rule"),
                    f"there is no rule {rule!r}; {nearest(rule, accuracy)}",
                )
        if declared.scoring.warm_up_s is not None and declared.scoring.warm_up_share is not None:
            raise self._refuse(("scoring", "warm_up_share"), "give it or warm_up_s, not both")
        if (
            declared.scoring.cool_down_s is not None
            and declared.scoring.cool_down_share is not None
        ):
            raise self._refuse(("scoring", "cool_down_share"), "give it or cool_down_s, not both")
        logs = self._logs(declared, folder)
        include = self._rules("include", declared.include, logs, accuracy, folder)
        named = self._named("reservations", declared.grid.reservations, include)
        reservations = {NONE: ()} | self._reservations(named, folder)
        sites = self._sites(self._named("site", declared.grid.site, include), folder)
        if sites:
            logs = self._sized(logs, sites)
        output = declared.output or f"{self.path.stem}-results"
        campaign = Campaign(
            path=folder / self.path.name,
            name=declared.name or self.path.stem,
            description=declared.description,
            output=folder / self._expanded(output, ("output",)),
            logs=logs,
            grid=declared.grid,
            exclude=self._rules("exclude", declared.exclude, logs, accuracy, folder),
            include=include,
            accuracy=accuracy,
            reservations=reservations,
            sites=sites,
            unknown_users=self._unknown_users(declared.unknown_users),
            scoring=declared.scoring,
            report=declared.report,
            jobqueue=declared.jobqueue,
        )
        return replace(campaign, report=self._report(campaign))

    def _read_policies(self, values: dict[str, Any], folder: Path) -> None:
        """Put the keys of a policy file in the place of ``policy``, wherever a table names one."""
        report = values.get("report")
        named: list[tuple[tuple[str, ...], object]] = [
            (("grid",), values.get("grid")),
            (("report", "baseline"), report.get("baseline") if isinstance(report, dict) else None),
        ]
        for rules in ("include", "exclude"):
            if isinstance(values.get(rules), list):
                named += [((rules, str(n)), rule) for n, rule in enumerate(values[rules])]
        for where, table in named:
            if isinstance(table, dict) and "policy" in table:
                name = table.pop("policy")
                for key, value in self._policy(name, (*where, "policy"), folder).items():
                    table.setdefault(key, value)

    def _policy(self, name: object, where: tuple[str, ...], folder: Path) -> dict[str, Any]:
        if not isinstance(name, str):
            raise self._refuse(where, "give the name of one policy, or of its file", name)
        try:
            policy = read_policy(expanded(name), folder)
        except InputError as error:
            raise self._refuse(where, str(error), name) from error
        if strange := policy.keys() - Grid.model_fields.keys():
            raise self._refuse(
                where, f"campaigns have no {min(strange)}; take it out of the policy", name
            )
        return policy

    def _logs(self, declared: Declaration, folder: Path) -> dict[str, LogSource]:
        logs: dict[str, LogSource] = {}
        for number, source in enumerate(declared.logs):
            where = ("logs", str(number))
            if (source.path is None) == (source.generate is None):
                raise self._refuse(where, "give path, or generate, and not both")
            wrong = _GENERATED_ONLY if source.generate is None else _LOGS_ONLY
            for key in wrong:
                if key in source.model_fields_set and not (key == "seed" and source.estimates):
                    kind = "generated workloads" if source.generate is None else "logs"
                    raise self._refuse((*where, key), f"this is for {kind}; leave it out")
            if source.longest_estimate_s is not None and source.estimates is None:
                raise self._refuse((*where, "longest_estimate_s"), "this is for estimates: give it")
            if source.path is not None:
                path = folder / self._expanded(source.path, (*where, "path"))
                try:
                    is_folder, is_file = path.is_dir(), path.is_file()
                except OSError as error:
                    raise self._refuse(
                        (*where, "path"), f"{path} can't be looked at: {error.strerror}"
                    ) from None
                if is_folder:
                    raise self._refuse(
                        (*where, "path"),
                        f"{path} is a folder: name a file (foretime workload convert makes one of "
                        "PBS's accounting folder)",
                    )
                if not is_file:
                    raise self._refuse((*where, "path"), f"there is no file {path}")
                source = source.model_copy(update={"path": str(path)})
                name = source.name or re.sub(r"\.(gz|xz|swf|csv|txt)(?=\.|$)", "", path.name)
            else:
                name = source.name or _generated_name(source)
            if name in logs:
                raise self._refuse(where, f"a log is called {name!r} already; give it a name")
            logs[name] = source
        return logs

    @staticmethod
    def _named(
        axis: str, of_grid: Iterable[str], include: Iterable[Rule]
    ) -> dict[str, tuple[str, ...]]:
        """Give the files that an axis names, and where in the campaign's file each stands."""
        found = dict.fromkeys(of_grid, ("grid", axis)) | {
            name: ("include", str(rule.number - 1), axis)
            for rule in include
            for name in rule.values.get(axis, ())
        }
        return {name: where for name, where in found.items() if name != NONE}

    def _sites(self, named: Mapping[str, tuple[str, ...]], folder: Path) -> dict[str, Site]:
        """Read the sites, each named at a place of the campaign's file."""
        found: dict[str, Site] = {}
        stems: dict[str, str] = {}
        for name, where in named.items():
            try:
                found[name] = site = read_site(folder / expanded(name))
            except InputError as error:
                raise self._refuse(where, str(error)) from error
            for refusal in site_refusals(site):
                raise self._refuse(where, refusal, name)
            other = stems.setdefault(Path(name).stem, name)
            if other != name:
                raise self._refuse(
                    where, f"tables would call it as they call {other}: rename a file", name
                )
        return found

    def _unknown_users(self, text: str) -> UnknownUsersChoice:
        try:
            return UnknownUsersChoice(text, 'unknown_users = "{}"')
        except InputError as error:
            line = self._line_of(("unknown_users",))
            raise InputError(f"{self.path}:{line}: {error}") from None

    def _sized(
        self, logs: Mapping[str, LogSource], sites: Mapping[str, Site]
    ) -> dict[str, LogSource]:
        """Size the logs' machine as the largest site's, for all policies to have the same jobs."""
        for number, source in enumerate(logs.values()):
            if source.processors is not None:
                raise self._refuse(
                    ("logs", str(number), "processors"),
                    "a site has a machine: leave it out, or the sites",
                )
        processors = max(site.machine.cpus for site in sites.values())
        return {
            name: source.model_copy(update={"processors": processors})
            for name, source in logs.items()
        }

    def _reservations(
        self, named: Mapping[str, tuple[str, ...]], folder: Path
    ) -> dict[str, tuple[AdvanceReservation, ...]]:
        """Read the files of advance reservations, each named at a place of the campaign's file."""
        found = {}
        for name, where in named.items():
            try:
                found[name] = read_reservations(folder / expanded(name))
            except InputError as error:
                raise self._refuse(where, str(error)) from error
        return found

    def _rules(
        self,
        table: str,
        rules: list[dict[str, Any]],
        logs: Iterable[str],
        accuracy: Iterable[str],
        folder: Path,
    ) -> tuple[Rule, ...]:
        found = []
        for number, given in enumerate(rules):
            where = (table, str(number))
            if not given:
                raise self._refuse(where, "it is empty; name at least one axis")
            values: dict[str, tuple[Any, ...]] = {}
            for key, value in given.items():
                if key == "log":
                    values["log"] = tuple(value) if isinstance(value, list) else (value,)
                    known, what = tuple(logs), "log"
                elif key in Grid.model_fields:
                    axis = "seed" if key == "seeds" else key
                    values[axis] = self._axis(key, value, folder, (*where, key))
                    known, what = tuple(accuracy), "accuracy rule"
                else:
                    raise self._unknown((*where, key), ("log", *_GRID_KEYS))
                if key in ("log", "accuracy_rule"):
                    for name in values[key]:
                        if name not in known:
                            raise self._refuse(
                                (*where, key),
                                f"there is no {what} {name!r}; {nearest(name, known)}",
                            )
            found.append(Rule(number + 1, self._line_of(where), values))
        return tuple(found)

    def _axis(
        self, key: str, value: object, folder: Path, where: tuple[str, ...]
    ) -> tuple[Any, ...]:
        try:
            grid = Grid.model_validate({key: value}, context={"folder": folder})
        except pydantic.ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise self._refuse(where, message_of(problem), problem["input"]) from error
        values: tuple[Any, ...] = getattr(grid, key)
        return values

    def _report(self, campaign: Campaign) -> Report:
        """Check the baseline: it must be one of the policies that the grid has."""
        axes = campaign.axes
        policy_axes = [axis for axis in axes if axis not in CONDITION_AXES]
        baseline = {}
        for key, value in campaign.report.baseline.items():
            where = ("report", "baseline", key)
            if key not in policy_axes:
                raise self._unknown(where, policy_axes)
            values = self._axis(key, value, campaign.folder, where)
            included = [v for rule in campaign.include for v in rule.values.get(key, ())]
            if len(values) != 1 or values[0] not in (*axes[key], *included):
                raise self._refuse(
                    where,
                    f"the baseline has one of [grid]'s {key}: {_told((*axes[key], *included))}",
                )
            baseline[key] = values[0]
        return campaign.report.model_copy(update={"baseline": baseline})

    def _expanded(self, text: str, where: tuple[str, ...]) -> str:
        try:
            return expanded(text)
        except InputError as error:
            raise self._refuse(where, str(error)) from error

    def _explain(self, problem: pydantic_core.ErrorDetails) -> str:
        location = tuple(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            model = _TABLES[location[0]] if len(location) > 1 else Declaration
            valid = _GRID_KEYS if model is Grid else model.model_fields
            return str(self._unknown(location, valid))
        if problem["type"] == "missing":
            return f"{self.path}: it declares no logs: add a [[logs]] table with a path or generate"
        if problem["type"] in ("model_type", "dict_type", "list_type") and location[0] in _LISTS:
            return str(self._refuse(location[:1], f"write it as tables, [[{location[0]}]]"))
        if problem["type"] in ("model_type", "dict_type"):
            return str(self._refuse(location, f"write it as a table, [{location[0]}]"))
        return str(self._refuse(location, message_of(problem), problem["input"]))

    def _unknown(self, location: tuple[str, ...], valid: Iterable[str]) -> InputError:
        valid = tuple(valid)
        return InputError(
            f"{self._place(location)}: there is no such key; {nearest(location[-1], valid)}"
        )

    def _refuse(self, location: tuple[str, ...], message: str, value: object = None) -> InputError:
        shown = "" if value is None else f" = {value!r}"
        return InputError(f"{self._place(location)}{shown}: {message}")

    def _place(self, location: tuple[str, ...]) -> str:
        """Name file, line, table and key."""
        table, *rest = location
        if table in _LISTS and rest and rest[0].isdigit():
            named = f"[[{table}]] number {int(rest[0]) + 1}"
            rest = rest[1:]
        elif table == "accuracy" and rest:
            named = f"[accuracy.{rest[0]}]"
            rest = rest[1:]
        elif rest:
            named = f"[{table}]"
        else:
            named, rest = "", [table]
        keys = ".".join(key for key in rest if not key.isdigit())
        return f"{self.path}:{self._line_of(location)}: {' '.join(filter(None, (named, keys)))}"

    def _line_of(self, location: tuple[str, ...]) -> int:
        """Line of a key, or of its table, or 1."""
        table, *rest = location
        number = int(rest.pop(0)) if rest and rest[0].isdigit() else 0
        if table == "accuracy" and rest:
            table = f"accuracy.{rest.pop(0)}"
        key = rest[0] if rest else None
        found, seen, inside = 1, -1, False
        for line_number, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[{1,2}\s*([\w.-]+)\s*\]{1,2}\s*(#.*)?$", line):
                inside = header[1] == table or header[1].startswith(f"{table}.")
                if header[1] == table:
                    seen += 1
                    inside = seen == number
                    if inside:
                        found = line_number
                if inside and key is not None and header[1] == f"{table}.{key}":
                    return line_number
            elif inside and key is not None and re.match(rf"\s*{re.escape(key)}\s*[.=]", line):
                return line_number
            elif seen < 0 and re.match(rf"\s*{re.escape(table)}\s*[.=]", line):
                found = line_number
        return found


def _told(values: Iterable[object]) -> str:
    return ", ".join(repr(value) for value in dict.fromkeys(values))


def _generated_name(source: LogSource) -> str:
    """Say what is generated, where the campaign gives it no name."""
    model = source.generate or "lublin2003"
    jobs, load = source.jobs or DEFAULTS[model].jobs, source.load or DEFAULTS[model].load
    of_load = "" if load is None else f"-load-{load:g}"
    return f"{model}-{jobs}-jobs{of_load}-seed-{source.seed}"
