"""The job that a forecast is asked for: command line over environment over batch script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.job_options.batch_script import BatchScript
from foretime_sidecar.job_options.begin_time import parse_begin
from foretime_sidecar.job_options.sbatch_options import (
    ASKED,
    NOT_ASKED,
    OF_CHUNKS,
    Option,
    read_options,
)
from foretime_sidecar.job_options.sbatch_values import array_tasks, checked

# Where sbatch's name of a variable is not SBATCH_ and the option's (its manual page).
_ENVIRONMENT = {
    "array": "SBATCH_ARRAY_INX",
    "mem": "SBATCH_MEM_PER_NODE",
    "time": "SBATCH_TIMELIMIT",
} | {
    name: f"SBATCH_{name.upper().replace('-', '_')}"
    for name in ("account", "exclusive", "gpus", "gpus-per-node", "gres", "partition", "qos",
                 "reservation")
}  # fmt: skip
# What says how large a job is: PBS's resources that do stand for all that was said of it before.
_SIZE = frozenset({"nodes", "ntasks", "ntasks-per-node", "cpus-per-task"})

RESOURCES = "resources"
"""By this name a command line gives what stands after ``qsub -l``."""

_JOB_ID = re.compile(r"\d{1,18}(?:_\d{1,9}|\[\d{0,9}\])?(?:\.[A-Za-z0-9][\w.\-]*)?", re.ASCII)


def is_job_id(text: str) -> bool:
    """Whether it is the id of a job: 123, 123_4 (Slurm), 123[4].server (PBS)."""
    return _JOB_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job that has not been submitted.

    Attributes
    ----------
    options
        Values in one form each, by sbatch's long names.
    notes
        What is not looked at, in words.
    """

    options: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def parameters(self, now: float) -> dict[str, str]:
        """Give the parameters of ``/v1/forecast``; a job without a size is one task, as for sbatch.

        Parameters
        ----------
        now
            Epoch seconds, for ``--begin``.

        Raises
        ------
        InputError
            If the time limit is missing, or ``--begin`` is no time.
        """
        if "time" not in self.options:
            raise InputError(
                "the time limit is missing; give --time (-t), or a batch script that has one"
            )
        asked = {
            name.replace("-", "_"): value
            for name, value in self.options.items()
            if name not in ("array", "gpus-per-node")
        }
        if "exclusive" in asked:
            asked["exclusive"] = "true"
        if "begin" in asked:
            try:
                asked["begin"] = str(parse_begin(asked["begin"], now))
            except InputError as error:
                raise InputError(f"--begin = {asked['begin']!r}: {error}") from None
        if per_node := self.options.get("gpus-per-node"):
            # The same thing to Slurm (sbatch's manual page).
            gres = ",".join(f"gpu:{each}" for each in per_node.split(","))
            asked["gres"] = f"{asked['gres']},{gres}" if "gres" in asked else gres
        if not asked.keys() & {"nodes", "ntasks"}:
            asked["ntasks"] = "1"
        return asked


def asked_job(
    command_line: Mapping[str, str],
    environment: Mapping[str, str],
    script: BatchScript | None,
    now: float,
) -> AskedJob:
    """Put together what is asked for, as sbatch does.

    Parameters
    ----------
    command_line
        Values of flags by sbatch's long names, and `RESOURCES`.
    environment
        Of which sbatch's variables are taken (SBATCH_PARTITION, ...).
    script
        A batch script's directives, if there is one.
    now
        Epoch seconds, for ``qsub -a``.

    Raises
    ------
    InputError
        Naming place, option and value, if sbatch or qsub would not take it.

    Examples
    --------
    >>> from foretime_sidecar.job_options.job_request import asked_job
    >>> asked_job({"ntasks": "8", "time": "60"}, {}, None, now=0)
    AskedJob(options={'ntasks': '8', 'time': '01:00:00'}, notes=())
    """
    given: dict[str, Option] = {}
    notes: list[str] = []
    if script is not None:
        notes += [f"not looked at: {note}" for note in script.notes]
        of_slurm = [
            option for line in script.slurm for option in read_options(line.words, line.where)
        ]
        notes += _add(given, of_slurm)
        of_pbs: list[Option] = []
        if script.pbs:
            from foretime_sidecar.job_options.pbs_options import read_pbs_options  # what logs know

            of_pbs += read_pbs_options(script.pbs, now)
        notes += _add_resources(given, of_pbs)
    _add(
        given,
        [
            Option(name, environment[variable], variable)
            for name, variable in _ENVIRONMENT.items()
            if variable in environment
        ],
    )
    if (text := command_line.get(RESOURCES)) is not None:
        from foretime_sidecar.job_options.pbs_options import read_pbs_resources

        notes += _add_resources(given, read_pbs_resources(text, "command line"))
    flags = [
        Option(name, value, "command line")
        for name, value in command_line.items()
        if name != RESOURCES
    ]
    if _SIZE & {option.name for option in flags}:
        given = {name: option for name, option in given.items() if name not in OF_CHUNKS}
    _add(given, flags)
    options = {
        name: option.value or ""
        if name in OF_CHUNKS  # which the daemon checks
        else checked(name, option.value or "", option.where)
        for name, option in given.items()
    }
    if "array" in options:
        tasks = array_tasks(options["array"])
        notes.append(f"an array of {tasks:,} tasks: said is when the first one starts")
    return AskedJob(options, tuple(notes))


def _add_resources(given: dict[str, Option], resources: Iterable[Option]) -> list[str]:
    """Take over resources of PBS; a size of theirs takes the place of any other."""
    found = list(resources)
    if _SIZE & {option.name for option in found}:
        for name in (*_SIZE, *OF_CHUNKS):
            given.pop(name, None)
    return _add(given, found)


def _add(given: dict[str, Option], options: Iterable[Option]) -> list[str]:
    """Take over what is asked with; give what is not, in words."""
    notes = []
    for option in options:
        written = option.name if option.name.startswith("-") else f"--{option.name}"
        written += "" if option.value is None else f"={option.value}"
        if not option.known:
            notes.append(f"not known, and ignored: {option.where}: {written}")
        elif option.name in ASKED or option.name in OF_CHUNKS:
            given[option.name] = option
        elif option.name in NOT_ASKED or option.name.startswith("-"):
            notes.append(f"not looked at: {option.where}: {written}")
    return notes
