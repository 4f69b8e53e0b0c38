"""What ``#PBS`` lines ask for, in sbatch's words: OpenPBS, PBS Professional and TORQUE.

Chunks and their place, which sbatch has no words for, are given in qsub's besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.pbs_durations import parse_pbs_duration
from foretime_sim.logs.pbs_records import project_of, requested_processors

from foretime_sidecar.job_options.batch_script import Directive
from foretime_sidecar.job_options.begin_time import parse_pbs_begin
from foretime_sidecar.job_options.sbatch_options import OF_CHUNKS, Option, value_of_unknown
from foretime_sidecar.wording.durations import format_duration

# qsub(1) of OpenPBS 23 and TORQUE 6.
_VALUED = frozenset("aAcCdDeFGjJklLmMNopPqrRSTtuvwW")
_ALONE = frozenset("fhIVxXz")
_WALLTIME = "write it as HH:MM:SS or seconds, as for qsub"
# Commas part resources, but also stand in some of their values.
_RESOURCES = re.compile(r",(?=[A-Za-z_][\w.]*(?:=|,|$))")
_SIZE = frozenset({"select", "nodes", "ncpus", "procs", "nodect"})


def read_pbs_options(directives: Sequence[Directive], now: float) -> Iterator[Option]:
    """Give a script's options by the long names that sbatch has for them.

    Later ones stand for earlier ones, but of each resource the first one counts (seen on OpenPBS
    23.06). What has no such name is given by qsub's own; ``known`` tells whether qsub has it.

    Parameters
    ----------
    directives
        The lines.
    now
        Epoch seconds, for ``-a``.

    Raises
    ------
    InputError
        Naming line, option and value, if qsub would not take it.
    """
    given: dict[str, Option] = {}
    resources: dict[str, Option] = {}
    for directive in directives:
        for option in _letters(directive):
            if not option.known:
                yield option
            elif option.name == "-l":
                for each in _resources(option):
                    resources.setdefault(each.name, each)
            elif option.name == "-W":
                given |= {each.name: each for each in _attributes(option)}
            else:
                given[option.name] = option
    yield from _of_resources(resources)
    yield from _plain(given, now)


def read_pbs_resources(text: str, where: str) -> list[Option]:
    """Give what stands after ``qsub -l`` in the same way.

    Raises
    ------
    InputError
        As `read_pbs_options`.
    """
    resources: dict[str, Option] = {}
    for each in _resources(Option("-l", text, where)):
        resources.setdefault(each.name, each)
    return list(_of_resources(resources))


def _of_resources(resources: dict[str, Option]) -> Iterator[Option]:
    yield from _size(resources)
    for name, option in resources.items():
        if name == "walltime":
            yield _option("time", format_duration(_walltime(option)), option)
        elif name == "place" and "excl" in (option.value or ""):
            yield _option("exclusive", "", option)
        elif name not in _SIZE and name != "place":
            yield _option(f"-l {name}", option.value, option)


def _letters(directive: Directive) -> Iterator[Option]:
    """Take a line apart, as getopt does with qsub's letters."""
    rest = list(directive.words)
    while rest:
        word = rest.pop(0)
        if not re.fullmatch(r"-[A-Za-z].*", word, re.DOTALL):
            raise InputError(
                f"{directive.where}: {word!r} is no option of qsub's, nor the value of one; quote "
                "values that have blanks"
            )
        letter, value = word[1], word[2:]
        if letter in _ALONE:
            yield Option(f"-{letter}", None, directive.where)
            if value:
                rest.insert(0, f"-{value}")
        elif letter in _VALUED:
            if not value and not rest:
                raise InputError(
                    f"{directive.where}: -{letter} is given no value; write one after it"
                )
            yield Option(f"-{letter}", value or rest.pop(0), directive.where)
        else:
            unknown = value or value_of_unknown(rest)
            yield Option(f"-{letter}", unknown, directive.where, known=False)


def _resources(option: Option) -> Iterator[Option]:
    for each in _RESOURCES.split(option.value or ""):
        name, equals, value = each.partition("=")
        if not name.strip():
            raise InputError(
                f"{option.where}: -l = {option.value!r}: {each!r} names no resource; write "
                "NAME=VALUE,NAME=VALUE"
            )
        yield _option(name.strip(), value.strip() if equals else None, option)


def _attributes(option: Option) -> Iterator[Option]:
    """Give the dependency of ``-W``; its other attributes don't change when a job starts."""
    for each in _RESOURCES.split(option.value or ""):
        name, _, value = each.partition("=")
        if name.strip() == "depend":
            yield _option("depend", value.strip(), option)


def _option(name: str, value: str | None, like: Option) -> Option:
    return Option(name, value, like.where)


def _size(resources: dict[str, Option]) -> Iterator[Option]:
    """Give processors, and nodes where they are asked for."""
    asked = [option for name, option in resources.items() if name in _SIZE]
    if not asked:
        return
    try:
        count = requested_processors(
            lambda name: resources[name].value if name in resources else None
        )
    except ValueError as error:
        raise InputError(
            f"{asked[-1].where}: {_written(asked)}: {error}; write it as select=2:ncpus=8 or "
            "nodes=2:ppn=8"
        ) from None
    if count is None:
        raise InputError(
            f"{asked[-1].where}: {_written(asked)}: no processors at all; ask for some"
        )
    chunks = resources.get("select") or resources.get("nodes")
    if chunks is not None and _each_on_its_node(resources):
        heads = [chunk.partition(":")[0] for chunk in (chunks.value or "").split("+")]
        nodes = sum(int(head) if head.isdigit() else 1 for head in heads)
        yield _option("nodes", str(nodes), chunks)
    yield _option("ntasks", str(count), asked[-1])
    if "select" in resources:
        yield from (resources[name] for name in OF_CHUNKS if name in resources)


def _each_on_its_node(resources: dict[str, Option]) -> bool:
    """Whether each chunk has a node of its own: TORQUE's nodes, or place=scatter."""
    if "select" not in resources:
        return "nodes" in resources
    return "place" in resources and "scatter" in (resources["place"].value or "")


def _written(options: Sequence[Option]) -> str:
    return "-l " + ",".join(f"{each.name}={each.value}" for each in options)


def _walltime(option: Option) -> int:
    try:
        seconds = parse_pbs_duration(option.value or "")
    except ValueError as error:
        raise InputError(f"{option.where}: -l walltime: {error}; {_WALLTIME}") from None
    if not seconds:
        raise InputError(
            f"{option.where}: -l walltime = {option.value!r} is no time at all; {_WALLTIME}"
        )
    return seconds


def _plain(given: dict[str, Option], now: float) -> Iterator[Option]:
    """Give the options that are letters of qsub's."""
    account, project = given.pop("-A", None), given.pop("-P", None)
    charged = project_of(
        None if account is None else account.value, None if project is None else project.value
    )
    for like in (account, project):
        if charged is not None and like is not None and like.value == charged:
            yield _option("account", charged, like)
            break
    for name, option in given.items():
        value = option.value or ""
        match name:
            case "-q":
                if queue := value.partition("@")[0]:
                    yield _option("partition", queue, option)
            case "-J" | "-t":
                yield _option("array", value, option)
            case "depend":
                yield _dependency(option)
            case "-a":
                try:
                    begin = parse_pbs_begin(value, now)
                except InputError as error:
                    raise InputError(f"{option.where}: -a = {value!r} {error}") from None
                yield _option("begin", f"uts{begin}", option)
            case "-h" | "-p" | "-u":
                yield option


_AFTER = re.compile(r"after(?:ok|notok|any)?(?::\d+(?:\[\d*\])?(?:\.[\w.\-]+)?)+", re.ASCII)


def _dependency(option: Option) -> Option:
    """Give a dependency on other jobs in sbatch's words: the servers' names left out."""
    parts = (option.value or "").split(",")
    if not all(_AFTER.fullmatch(part) for part in parts):
        return _option("-W depend", option.value, option)
    plain = [re.sub(r"(:\d+)(?:\[\d*\])?(?:\.[\w.\-]+)?", r"\1", part) for part in parts]
    return _option("dependency", ",".join(plain), option)
