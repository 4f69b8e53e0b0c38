"""The jobs of an event file of Buffalo's Slurm simulator (``.events``).

A line each: ``-dt SECONDS -e submit_batch_job | -sim-walltime RUNTIME_S --uid=USER`` and options of
sbatch. A runtime of -1 goes on to the time limit. ``--exclusive=user`` is read as ``--exclusive``:
jobs of one user do not share nodes either.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping

from foretime_sim.files.durations import parse_duration

from tests.slurm.runs.run_job import RunJob

_BEYOND_LIMIT_S = 600
_MIB = {"M": 1, "G": 1024}


def event_jobs(text: str, users: Mapping[str, str] | None = None) -> list[RunJob]:
    """Read the submissions of an event file.

    Parameters
    ----------
    text
        Of the file.
    users
        What users are called here; ``None``: as in the file.
    """
    lines = [line for line in text.splitlines() if line.startswith("-dt")]
    return [_job(line, users) for line in lines]


def _job(line: str, users: Mapping[str, str] | None) -> RunJob:
    said = _parser().parse_args(shlex.split(line.replace("|", " ")))
    limit = -(-(parse_duration(said.t) or 0) // 60)
    return RunJob(
        submit_s=int(said.dt),
        user=users[said.uid] if users else said.uid,
        account=said.A,
        qos=said.q,
        slurm_partitions=said.p,
        time_limit_min=limit,
        runtime_s=60 * limit + _BEYOND_LIMIT_S if said.walltime < 0 else int(said.walltime),
        tasks=said.n,
        nodes=said.N,
        tasks_per_node=said.ntasks_per_node,
        memory_mib=said.mem,
        gpus_per_node=said.gres,
        constraint=said.constraint,
        exclusive=said.exclusive is not None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="an event", allow_abbrev=False)
    for name in ("-e", "-J", "-A", "-q", "-p", "-t", "--uid", "--constraint"):
        parser.add_argument(name)
    parser.add_argument("script", nargs="?")
    parser.add_argument("-dt", type=float)
    parser.add_argument("-sim-walltime", dest="walltime", type=float)
    parser.add_argument("-n", type=int, default=1)
    parser.add_argument("-N", type=int)
    parser.add_argument("--ntasks-per-node", type=int)
    parser.add_argument("--mem", type=_memory)
    parser.add_argument("--gres", type=lambda text: int(text.removeprefix("gpu:")))
    parser.add_argument("--exclusive", nargs="?", const="yes")
    return parser


def _memory(text: str) -> int:
    """Read ``--mem``, MiB where it has no unit."""
    return int(text) if text.isdecimal() else int(text[:-1]) * _MIB[text[-1]]
