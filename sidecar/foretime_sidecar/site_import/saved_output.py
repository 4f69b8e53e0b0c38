"""Saved outputs of a folder, told apart by what they hold, not by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import read_text

from foretime_sidecar.site_import.columns import header_of
from foretime_sidecar.site_import.conf_file import from_conf, is_conf, is_topology, switches_in
from foretime_sidecar.site_import.pbs_output_kinds import pbs_kind_of, says_nothing
from foretime_sidecar.site_import.site_output import (
    COMMANDS,
    NEEDED,
    PBS,
    SLURM,
    SiteOutput,
    saving,
)

_REFUSALS = re.compile(
    r"^(?:\w+: (?:error|fatal)|slurm_load_\w+|Unable to contact|You are not running a supported"
    r"|\S+: command not found|invalid \w+|Problem with query)",
    re.IGNORECASE,
)
_NOT_NEEDED = re.compile(r"\s*JOBID PARTITION\s+PRIORITY\b")
"""Outputs that say nothing more: sprio."""


def read_folder(folder: Path) -> SiteOutput:
    """Read a folder's saved outputs of Slurm or PBS, or its slurm.conf.

    Raises
    ------
    InputError
        If the folder can't be read, a file is empty, cut off or no output of a command that is
        read, an output is there twice, or one that is needed is not there; names file and command.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"--from {folder}: can't be read: {error.strerror}; name a folder of saved outputs"
        ) from None
    output = SiteOutput()
    conf: Path | None = None
    empty: list[Path] = []
    for path in paths:
        if _is_empty(path):
            empty.append(path)
            continue
        text = read_text(path, what="saved output")
        kind = kind_of(text)
        if kind is None and is_conf(text):
            conf = path
            continue
        printed = kind in SLURM or kind in PBS
        if kind is None and is_topology(text):
            kind, text = "topology", switches_in(text, str(path))
        elif path.suffix == ".conf":
            output.unread.append(path.name)
            continue
        elif _NOT_NEEDED.match(text):
            continue
        if kind is None and says_nothing(text):
            empty.append(path)
            continue
        if kind is None:
            raise InputError(f"{path}: {_why_unknown(text)}")
        if printed and not text.endswith("\n"):
            raise InputError(f"{path}: its last line is cut off; save it again: {COMMANDS[kind]}")
        if kind in output.texts:
            # What is saved a record a line and over several lines says the same, as does a file.
            if kind in ("nodes", "partitions", "reservations", "topology"):
                continue
            raise InputError(
                f"{path}: is an output of {COMMANDS[kind]!r}, as {output.sources[kind]}; keep one"
            )
        output.add(kind, text, str(path))
    if conf is not None and not output.texts.keys() & set(NEEDED["slurm"]):
        from_conf(read_text(conf, what="slurm.conf"), str(conf), output)
        output.unread.clear()  # they are slurm.conf's own
    elif conf is not None:
        output.unread.append(conf.name)
    _check_whole(output, folder, empty)
    return output


def _is_empty(path: Path) -> bool:
    """Whether a file is; InputError if it is no file."""
    try:
        if path.is_file():
            return path.stat().st_size == 0
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    what = "a folder" if path.is_dir() else "no file"
    raise InputError(f"{path}: is {what}; take it out of the folder of saved output")


def _check_whole(output: SiteOutput, folder: Path, empty: Sequence[Path]) -> None:
    """Refuse a folder with outputs of both schedulers, or without one that is needed."""
    if len(output.schedulers) > 1:
        of_slurm = next(output.sources[kind] for kind in output.texts if kind in SLURM)
        of_pbs = next(output.sources[kind] for kind in output.texts if kind not in SLURM)
        raise InputError(
            f"--from {folder}: {of_slurm} is of Slurm, and {of_pbs} of PBS: keep those of one"
        )
    scheduler = next(iter(output.schedulers), "slurm")
    # PBS prints nothing where there are no reservations, and its files may be all comments. Slurm
    # prints nothing of a network without switches; where it has some, their lack is told.
    empty = [path for path in empty if path.stem != "topology"]
    if scheduler == "slurm" and empty:
        text = read_text(empty[0], what="saved output")
        raise InputError(f"{empty[0]}: {_why_unknown(text)}")
    for kind in NEEDED[scheduler]:
        if kind not in output.texts:
            raise InputError(
                f"--from {folder}: no output of {COMMANDS[kind]!r} is there: save it there:"
                f" {saving(kind)}"
            )


def kind_of(text: str) -> str | None:
    """Tell which command printed a text; ``None`` if none that is read."""
    start = next((line for line in text.splitlines() if line.strip()), "")
    for kind, pattern in _STARTS.items():
        if re.match(pattern, start):
            return kind
    return _table_kind(set(header_of(start))) or pbs_kind_of(text)


_STARTS = {
    "config": r"Configuration data as of ",
    "nodes": r"NodeName=\S+ .*(?:Arch|CoresPerSocket|CPUTot)=",
    "partitions": r"PartitionName=\S+(?:$| AllowGroups=)",
    "reservations": r"ReservationName=\S+ StartTime=|No reservations in the system",
    "licenses": r"LicenseName=|No licenses configured",
    "topology": r"SwitchName=\S+ Level=",
    "sdiag": r"\*{20,}|sdiag output at",
    "dump": r"# To edit this file start with a cluster line|Cluster - '",
}


_FIRST_WORDS = {
    "config": "Configuration data as of ",
    "nodes": "NodeName=",
    "partitions": "PartitionName=",
    "reservations": "ReservationName=",
    "licenses": "LicenseName=",
    "topology": "SwitchName=",
}


def _table_kind(columns: set[str]) -> str | None:
    if {"account", "user", "rawshares", "rawusage"} <= columns:
        return "sshare"
    if {"account", "user"} <= columns and columns & {"share", "fairshare"}:
        return "assoc"
    if {"name", "priority", "usagefactor"} <= columns:
        return "qos"
    if {"user", "defacct"} <= columns:
        return "users"
    return None


def _why_unknown(text: str) -> str:
    start = text.strip().splitlines()[0][:80]
    if not start.replace("\t", " ").isprintable():
        return "is no text, or was damaged; take it out of the folder, or save it again"
    if _REFUSALS.match(start):
        return f"is the error of a command: {start!r}; run it where Slurm answers, and save it anew"
    if "|" not in start and {"Account", "User"} & set(start.split()):
        return f"is a table without |: {start!r}; save it with -P"
    if re.search(r"^ +Mom = ", text, re.MULTILINE):
        return f"is an output of pbsnodes that is no JSON; save it again: {PBS['hosts']}"
    for kind, first in _FIRST_WORDS.items():
        if start.startswith(first) or first.startswith(start):
            return f"is cut off or damaged: it begins {start!r}; save it again: {COMMANDS[kind]}"
    return (
        f"is no output of a command that is read: {start!r}; take it out of the folder, or save it"
        " again: docs/site.md names the commands"
    )
