"""Forecasts of the waits of a recorded live run, and how good they were.

``python -m tests.slurm.runs.forecast_trial looks-21.jsonl.gz ...`` makes a forecast of each job at
the first look that has it waiting, as the daemon would then: it has learned what ended until then.
It writes docs/live_forecasts.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.slurm.runs.recorded_looks import looks_of
from tests.support.forecasts.forecast_trial import (
    BESIDE_HEADER,
    WORDS,
    BesidePlan,
    beside_rows,
    section,
    trial,
)

LEARNED = 200
"""Jobs seen waiting at the beginning of a run that are only learned from: a site has a history."""
PAGE = Path(__file__).resolve().parents[3] / "docs/live_forecasts.md"

_INTRODUCTION = f"""\
# Forecasts beside a live Slurm

`python -m tests.slurm.runs.recorded_looks FOLDER SEED JOBS LOAD` records a live Slurm 26.05;
`python -m tests.slurm.runs.forecast_trial FOLDER/*.jsonl.gz` makes the forecasts, and this page.

The cluster has ten nodes of ten CPUs, five users in three accounts, priorities of fair share
(half-life of 20 min), age, QOS and size, and limits: MaxJobsPU of a QOS, MaxTRESPU of another,
GrpJobs of a third, GrpTRES and GrpJobs of two accounts. Jobs of 10 s to 5 min come at the rate at
which the machine can do them. The queue is looked at every 10 s; the forecasters are told what
ended until then, and the site as it was read up to 2 min before. Each job is forecast at the first
look that has it waiting, with a quarter of the samples, as on a busy machine. The first {LEARNED}
that are seen waiting are only learned from, as a site has a history.

{WORDS}
The second table of a run compares the likely start with Slurm's own plan, which users see by
`squeue --start`, at the first look that has both. Slurm plans with time limits. Jobs end before
these, so most jobs start sooner than it says. Others start later, as jobs with higher priority
come. Jobs at a limit have no plan.

`sbatch --test-only` is coarser. It adds to the first moment with enough free nodes, by the time
limits of what runs, the requested processor-time of all waiting jobs of the partition with at least
the priority of the new job, divided by the CPUs of the partition (`_delayed_job_start_time` of
Slurm 25.11). So it takes no backfilling into account.

"""


def main(paths: list[str]) -> None:
    """Write the page."""
    parts: list[str] = []
    beside: list[BesidePlan] = []
    for path in paths:
        looks, records = looks_of(Path(path))
        name = Path(path).name.removesuffix(".jsonl.gz").replace("looks-", "Run ")
        outcome = trial(looks, records, hurried=True)
        parts += list(section(name, len(records), outcome, LEARNED))
        beside += outcome.scored(LEARNED).beside
    parts += ["## All runs: the likely start and Slurm's own plan", "", BESIDE_HEADER]
    parts += beside_rows(beside)
    PAGE.write_text(_INTRODUCTION + "\n".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
