"""The ``#SBATCH`` and ``#PBS`` lines of a batch script, split into words as sbatch and qsub do."""

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

    As sbatch and qsub (OpenPBS 23.06) do: qsub needs no ``#!``, takes blanks before its prefix, and
    goes on after lines that begin with a colon.

    Parameters
    ----------
    text
        The script.
    name
        Its name, for errors.

    Raises
    ------
    InputError
        If sbatch or qsub would refuse it: DOS line breaks, a quote left open, no ``#!`` where there
        are no ``#PBS`` lines or are ``#SBATCH`` lines.

    Examples
    --------
    >>> from foretime_sidecar.job_options.batch_script import read_script
    >>> lines = ("#!/bin/sh", "#SBATCH -n 8 -t 60", "srun ./program")
    >>> read_script(chr(10).join(lines), "job.sh").slurm[0].words
    ('-n', '8', '-t', '60')
    """
    slurm: list[Directive] = []
    pbs: list[Directive] = []
    notes: list[str] = []
    of_slurm = True  # sbatch still reads on
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        if line.endswith("\r"):
            raise InputError(
                f"{where}: the line ends as on Windows, which sbatch and qsub refuse; convert "
                "the script with dos2unix"
            )
        stripped = line.lstrip()
        if line.startswith(_SLURM) and of_slurm:
            words = split_words(line.removeprefix(_SLURM), where)
            if words[:1] in (("hetjob",), ("packjob",)):
                notes.append(f"{where}: components after the first, which is asked about alone")
                break
            slurm.append(Directive(words, where))
        elif stripped.startswith(_PBS):
            words = split_words(stripped.removeprefix(_PBS), where, comments=False)
            pbs.append(Directive(words, where))
        elif stripped.startswith(":"):
            of_slurm = False
        elif stripped and not stripped.startswith("#"):
            break
    if not text.startswith("#!") and (slurm or not pbs):
        raise InputError(
            f"{name}:1: a batch script begins with #! and its interpreter, and this does not; "
            "write #!/bin/sh there, or give the job's id or its flags instead"
        )
    return BatchScript(tuple(slurm), tuple(pbs), tuple(notes))


def _piece(ends: str) -> re.Pattern[str]:
    """Give what a piece of a word is, in which some characters don't stand outside of quotes."""
    return re.compile(
        rf"""
          (?P<escaped> \\. )
        | "(?P<double> (?: [^"\\] | \\. )* )"
        | '(?P<single> (?: [^'\\] | \\. )* )'
        | (?P<plain> [^\s"'\\{ends}]+ )
        """,
        re.VERBOSE | re.DOTALL,
    )


_PIECE, _PIECE_WITH_HASHES = _piece(r"\#"), _piece("")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BLANKS = re.compile(r"\s*")


def split_words(text: str, where: str, *, comments: bool = True) -> tuple[str, ...]:
    r"""Split a directive into words as sbatch does (Slurm 26.05, ``_get_argument``).

    Blanks part words, quotes of either kind join them, ``#`` outside of quotes ends the line even
    within a word, and ``\`` takes the next character as it is, inside of quotes, too. Without
    ``comments`` ``#`` is a character as any other: qsub has no comments there.

    Raises
    ------
    InputError
        If a quote is left open.
    """
    words: list[str] = []
    position, piece_of_word = 0, _PIECE if comments else _PIECE_WITH_HASHES
    while True:
        blanks = _BLANKS.match(text, position)  # of any number, none too
        begin = position = position if blanks is None else blanks.end()
        word = ""
        while piece := piece_of_word.match(text, position):
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
