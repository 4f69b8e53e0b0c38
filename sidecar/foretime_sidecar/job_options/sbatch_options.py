"""sbatch's options, taken apart as getopt does: short, long, clustered, shortened, with ``=``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Slurm 22.05 to 26.05, from sbatch --help and its manual page.
_SHORT = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task",
    "C": "constraint", "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile",
    "G": "gpus", "h": "help", "H": "hold", "i": "input", "I": "immediate", "J": "job-name",
    "k": "no-kill", "L": "licenses", "m": "distribution", "M": "clusters", "n": "ntasks",
    "N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "P": "dependency",
    "q": "qos", "Q": "quiet", "s": "oversubscribe", "S": "core-spec", "t": "time",
    "v": "verbose", "V": "version", "w": "nodelist", "W": "wait", "x": "exclude",
}  # fmt: skip
_ALONE = _names(
    "contiguous consolidate-segments help hold ignore-pbs no-requeue overcommit oversubscribe "
    "parsable quiet reboot share spread-job spread-segments stepmgr test-only usage "
    "use-min-nodes verbose version wait"
)
_PERHAPS_VALUED = _names(
    "exclusive get-user-env immediate nice no-kill oom-kill-step propagate requeue resv-ports"
)
ASKED = _names(
    "account array begin cpus-per-task dependency exclusive gpus gpus-per-node gres mem nodes "
    "ntasks ntasks-per-node partition qos reservation time time-min"
)
"""Options that a forecast is asked with."""
OF_CHUNKS = ("select", "place")
"""What a forecast on PBS is asked with besides, in the words of ``qsub -l``."""
NOT_ASKED = _names(
    "bb bbf cluster-constraint clusters constraint contiguous core-spec cores-per-socket "
    "cpus-per-gpu deadline exclude extra-node-info gpus-per-socket gpus-per-task hold licenses "
    "mem-per-cpu mem-per-gpu mincpus network nice nodefile nodelist ntasks-per-core "
    "ntasks-per-gpu ntasks-per-socket overcommit oversubscribe priority share sockets-per-node "
    "spread-job switches thread-spec threads-per-core tmp tres-per-task"
)
"""Options that can change when a job starts, and that a forecast is not asked with."""
_VALUED = (ASKED | NOT_ASKED | _names(
    "acctg-freq batch bcast chdir comment container container-id container-type cpu-freq "
    "delay-boot distribution error export export-file extra gid gpu-bind gpu-freq gres-flags "
    "hint input job-name kill-on-invalid-dep mail-type mail-user mcs-label mem-bind open-mode "
    "output power prefer profile segment signal tres-bind uid wait-all-nodes wckey wrap"
)) - _ALONE - _PERHAPS_VALUED  # fmt: skip
_KNOWN = _ALONE | _PERHAPS_VALUED | _VALUED


@dataclass(frozen=True, slots=True)
class Option:
    """One option as it was given.

    Attributes
    ----------
    name
        Its long name; as it was written if sbatch has none such.
    value
        Its value; ``None`` without one.
    where
        Where it stands.
    known
        Whether it is one of sbatch's.
    """

    name: str
    value: str | None
    where: str
    known: bool = True


def read_options(words: Sequence[str], where: str) -> Iterator[Option]:
    """Take one line's words apart.

    Raises
    ------
    InputError
        If a word is neither option nor value, a value is missing, or a shortened name could be
        several.
    """
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--") and len(word) > 2:
            yield _long(word[2:], rest, where)
        elif word.startswith("-") and len(word) > 1:
            yield from _cluster(word[1:], rest, where)
        else:
            raise InputError(
                f"{where}: {word!r} is no option of sbatch's, nor the value of one; quote values "
                "that have blanks"
            )


def _long(text: str, rest: list[str], where: str) -> Option:
    written, equals, value = text.partition("=")
    name = _whole_name(written, where)
    if name is None:
        unknown = value if equals else value_of_unknown(rest)
        return Option(f"--{written}", unknown, where, known=False)
    if name in _VALUED and not equals:
        value, equals = _next(rest, f"--{name}", where), "="
    if name in _ALONE and equals:
        raise InputError(f"{where}: --{name} = {value!r}: it takes no value; leave it out")
    return Option(name, value if equals else None, where)


def _cluster(letters: str, rest: list[str], where: str) -> Iterator[Option]:
    """Take ``-sHn4`` apart: flags, and at most one option with a value at the end."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            value = letters or value_of_unknown(rest)
            yield Option(f"-{letter}", value, where, known=False)
            return
        if name in _VALUED:
            yield Option(name, letters or _next(rest, f"-{letter}", where), where)
            return
        yield Option(name, None, where)


def _whole_name(written: str, where: str) -> str | None:
    """Give the option that a name, perhaps shortened, stands for (getopt_long(3))."""
    if written in _KNOWN:
        return written
    fitting = sorted(name for name in _KNOWN if name.startswith(written))
    if len(fitting) > 1:
        raise InputError(
            f"{where}: --{written} could be --{' or --'.join(fitting)}; write it in full"
        )
    return fitting[0] if fitting else None


def _next(rest: list[str], option: str, where: str) -> str:
    if not rest:
        raise InputError(f"{where}: {option} is given no value; write one after it")
    return rest.pop(0)


def value_of_unknown(rest: list[str]) -> str | None:
    """Take the next word off unless it is an option: what is unknown may have a value."""
    return rest.pop(0) if rest and not rest[0].startswith("-") else None
