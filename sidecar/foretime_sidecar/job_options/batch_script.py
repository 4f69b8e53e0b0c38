"""The ``#SBATCH`` and ``#PBS`` lines of a batch script, split into words as sbatch does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

_SLURM, _PBS = "#SBATCH", "#PBS"


@dataclass(frozen=True, slots=True)
class Directive:
    """One line of directives.

    Attributes
    ----------
    words
        Options and values, quotes taken away.
    where
        The file and the line, ``job.sh:3``.
    """

    words: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class BatchScript:
    """What a script asks of its scheduler.

    Attributes
    ----------
    slurm, pbs
        The lines of each, in their order.
    notes
        What was not looked at, in words.
    """

    slurm: tuple[Directive, ...]
    pbs: tuple[Directive, ...]
    notes: tuple[str, ...] = ()


def read_script(text: str, name: str) -> BatchScript:
    """Read a script's directives, up to its first line that is a command.

    Parameters
    ----------
    text
        The script.
    name
        Its name, for errors.

    Raises
    ------
    InputError
        If sbatch would refuse it: no ``#!``, DOS line breaks, a quote left open.

    Examples
    --------
    >>> from foretime_sidecar.job_options.batch_script import read_script
    >>> lines = ("#!/bin/sh", "#SBATCH -n 8 -t 60", "srun ./program")
    >>> read_script(chr(10).join(lines), "job.sh").slurm[0].words
    ('-n', '8', '-t', '60')
    """
    if not text.startswith("#!"):
        raise InputError(
            f"{name}:1: a batch script begins with #! and its interpreter, and this does not; "
            "write #!/bin/sh there, or give the job's id or its flags instead"
        )
    slurm: list[Directive] = []
    pbs: list[Directive] = []
    notes: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        if line.endswith("\r"):
            raise InputError(
                f"{where}: the line ends as on Windows, which sbatch refuses; convert the script "
                "with dos2unix"
            )
        # qsub allows blanks before its prefix, sbatch does not.
        if line.startswith(_SLURM):
            words = split_words(line.removeprefix(_SLURM), where)
            if words[:1] in (("hetjob",), ("packjob",)):
                notes.append(f"{where}: components after the first, which is asked about alone")
                break
            slurm.append(Directive(words, where))
        elif line.lstrip().startswith(_PBS):
            pbs.append(Directive(split_words(line.lstrip().removeprefix(_PBS), where), where))
        elif _is_command(line):
            break
    return BatchScript(tuple(slurm), tuple(pbs), tuple(notes))


def _is_command(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


_PIECE = re.compile(
    r"""
      (?P<escaped> \\. )
    | "(?P<double> (?: [^"\\] | \\. )* )"
    | '(?P<single> (?: [^'\\] | \\. )* )'
    | (?P<plain> [^\s"'\\\#]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BLANKS = re.compile(r"\s*")


def split_words(text: str, where: str) -> tuple[str, ...]:
    r"""Split a directive into words as sbatch does (Slurm 26.05, ``_get_argument``).

    Blanks part words, quotes of either kind join them, ``#`` outside of quotes ends the line even
    within a word, and ``\`` takes the next character as it is, inside of quotes, too.

    Raises
    ------
    InputError
        If a quote is left open.
    """
    words: list[str] = []
    position = 0
    while True:
        blanks = _BLANKS.match(text, position)  # of any number, none too
        begin = position = position if blanks is None else blanks.end()
        word = ""
        while piece := _PIECE.match(text, position):
            position = piece.end()
            (found,) = (part for part in piece.groups() if part is not None)
            word += found if piece["plain"] else _ESCAPED.sub(r"\1", found)
        rest = text[position:]
        if rest[:1] in ('"', "'"):
            raise InputError(
                f"{where}: the quote {rest[0]} in {text.strip()!r} is left open; close it"
            )
        if rest == "\\":  # nothing follows that it could take as it is
            position = len(text)
        if position > begin:
            words.append(word)
        if rest[:1] in ("", "#", "\\"):
            return tuple(words)
