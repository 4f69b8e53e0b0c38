"""What Tang 2010 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is worked out on every run of the log: as it is, and on each jittered copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.policies.order import Order

from foretime_studies.frame.runs import METRICS, RunFigures
from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.tang2010.study import (
    BLENDS,
    MAIN,
    SELECTIVE,
    Tang2010,
    case_name,
)

Holds: TypeAlias = Callable[["_Run"], bool]


@dataclass(frozen=True, slots=True)
class _Run:
    """One repeat (``None``: the log as it is) of every case."""

    found: Tang2010
    repeat: int | None

    def of(self, treatment: str, order: Order = Order.WFP) -> RunFigures:
        """Give the figures of a case."""
        return self._figures(self._input_of(treatment), order, treatment)

    def base_of(self, treatment: str, order: Order = Order.WFP) -> RunFigures:
        """Give the requested times' figures on the input that a treatment runs on."""
        return self._figures(self._input_of(treatment), order, "requested")

    def _input_of(self, treatment: str) -> str:
        return self.found.on_projects if treatment in self.found.schemes else MAIN

    def _figures(self, on: str, order: Order, treatment: str) -> RunFigures:
        runs = self.found.runs[case_name(on, order, treatment)]
        return runs.single if self.repeat is None else runs.repeats[self.repeat]

    def gain(
        self, treatment: str, metric: str, fraction: float = 1.0, order: Order = Order.WFP
    ) -> float:
        """Gain over the requested times; 0 where nobody waits."""
        base = self.base_of(treatment, order).mean(metric, fraction)
        return 1 - self.of(treatment, order).mean(metric, fraction) / base if base else 0.0

    def gains(self, treatment: str, fraction: float = 1.0, order: Order = Order.WFP) -> list[float]:
        """Gains in all three metrics."""
        return [self.gain(treatment, metric, fraction, order) for metric in METRICS]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, and how it is tested.

    Attributes
    ----------
    where
        Table, figure or section.
    says
        In short.
    holds
        Whether it is so in a run.
    needs
        Schemes that it is about.
    """

    where: str
    says: str
    holds: Holds
    needs: tuple[str, ...] = ()


def _rising(run: _Run, fraction: float) -> bool:
    gains = [run.gains(name, fraction) for name in BLENDS]
    return all(
        later >= earlier
        for metric in zip(*gains, strict=True)
        for earlier, later in pairwise(metric)
    )


def _mean_gain(run: _Run, treatment: str, fraction: float = 1.0) -> float:
    return float(np.mean(run.gains(treatment, fraction)))


def _backfilled(run: _Run, treatment: str) -> int:
    return run.of(treatment).started_jobs[2]


def _class_gains(run: _Run, treatment: str, kind: str) -> Float64Array:
    """Gains of each class, shape (metrics, classes); NaN without jobs or waits."""
    base, new = (getattr(of, kind) for of in (run.base_of(treatment), run.of(treatment)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([1 - new[metric] / base[metric] for metric in METRICS])


def _most(gains: Sequence[float] | Float64Array) -> bool:
    known = np.asarray(gains)[np.isfinite(gains)]
    return bool((known > 0).mean() > 0.5) if known.size else False


def _small_gain_more(run: _Run, treatment: str, kind: str) -> bool:
    gains = _class_gains(run, treatment, kind)
    lower, upper = gains[:, :2], gains[:, 2:]
    if not (np.isfinite(lower).any() and np.isfinite(upper).any()):
        return False
    return bool(lower[np.isfinite(lower)].mean() > upper[np.isfinite(upper)].mean())


FCFS, WFP = Order.FCFS, Order.WFP

CLAIMS = (
    Claim(
        "table III",
        "WFP outperforms FCFS on every metric",
        lambda run: all(
            run.of("requested", WFP).mean(metric, fraction)
            < run.of("requested", FCFS).mean(metric, fraction)
            for metric in METRICS
            for fraction in (1.0, 0.99)
        ),
    ),
    Claim(
        "table III",
        "fewer jobs are backfilled under WFP than under FCFS",
        lambda run: (
            run.of("requested", WFP).started_jobs[2] < run.of("requested", FCFS).started_jobs[2]
        ),
    ),
    Claim(
        "figure 4(a)",
        "FCFS: the wait improves by less than 5% at a = 0.25",
        lambda run: 0 < run.gain("a=0.25", "wait", order=FCFS) < 0.05,
    ),
    Claim(
        "figure 4(a)",
        "FCFS: the wait is almost the same at a = 1",
        lambda run: abs(run.gain("a=1", "wait", order=FCFS)) < 0.03,
    ),
    Claim(
        "figure 4(a)",
        "FCFS: at a = 0.5 and 0.75 the wait is worse, by nearly 10%",
        lambda run: all(
            -0.15 < run.gain(name, "wait", order=FCFS) < -0.05 for name in ("a=0.5", "a=0.75")
        ),
    ),
    Claim(
        "figure 4(a)",
        "FCFS: uwait is worse at every a",
        lambda run: all(run.gain(name, "unitless_wait", order=FCFS) < 0 for name in BLENDS),
    ),
    Claim(
        "figure 4(a)",
        "FCFS: slowdown gains at every a but 0.5",
        lambda run: all(
            (run.gain(name, "slowdown", order=FCFS) > 0) == (name != "a=0.5") for name in BLENDS
        ),
    ),
    Claim(
        "figure 4(b)",
        "FCFS: below p99 more accuracy generally improves the averages (most of them)",
        lambda run: _most([gain for name in BLENDS for gain in run.gains(name, 0.99, FCFS)]),
    ),
    Claim(
        "section VI",
        "FCFS is not sensitive to estimates: at a = 1 it gains less than WFP in every metric",
        lambda run: all(
            run.gain("a=1", metric, order=FCFS) < run.gain("a=1", metric) for metric in METRICS
        ),
    ),
    Claim(
        "figure 5(a)",
        "WFP: the higher the accuracy, the greater the gain, in all three metrics",
        lambda run: _rising(run, 1.0),
    ),
    Claim(
        "figure 5(b)",
        "WFP: the same below p99",
        lambda run: _rising(run, 0.99),
    ),
    Claim(
        "figure 5(a)",
        "WFP: perfect accuracy gains 30% to over 50%",
        lambda run: min(run.gains("a=1")) >= 0.28 and max(run.gains("a=1")) >= 0.48,
    ),
    Claim(
        "figure 5(c)",
        "WFP: the greater the accuracy, the more jobs start from the head",
        lambda run: (
            run.of("requested").started[0] < run.of("a=1").started[0]
            and run.of("a=0.25").started[0] < run.of("a=0.75").started[0]
        ),
    ),
    Claim(
        "figure 6",
        "every selective method beats the baseline, in all three metrics",
        lambda run: all(gain > 0 for name in SELECTIVE for gain in run.gains(name)),
    ),
    Claim(
        "figure 6",
        "S001 and S010 gain less than S100, S110 and S111",
        lambda run: (
            max(_mean_gain(run, name) for name in ("S001", "S010"))
            < min(_mean_gain(run, name) for name in ("S100", "S110", "S111"))
        ),
    ),
    Claim(
        "figure 6",
        "S111 and S110 are the best",
        lambda run: (
            min(_mean_gain(run, name, 0.95) for name in ("S110", "S111"))
            > max(_mean_gain(run, name, 0.95) for name in ("S001", "S010", "S100"))
        ),
    ),
    Claim(
        "figure 6",
        "S110 waits slightly less than S111 for most jobs (up to the fraction 0.97)",
        lambda run: run.of("S110").mean("wait", 0.97) < run.of("S111").mean("wait", 0.97),
    ),
    Claim(
        "figure 6",
        "S110 has more large outliers than S111: its uwait and slowdown soar beyond 0.97",
        lambda run: all(
            run.of("S110").mean(metric) * run.of("S111").mean(metric, 0.97)
            > run.of("S111").mean(metric) * run.of("S110").mean(metric, 0.97)
            for metric in ("unitless_wait", "slowdown")
        ),
    ),
    Claim(
        "figure 7",
        "S010 and S110 backfill most jobs",
        lambda run: (
            min(_backfilled(run, name) for name in ("S010", "S110"))
            > max(_backfilled(run, name) for name in ("S001", "S100", "S111"))
        ),
    ),
    Claim(
        "figure 7",
        "S110 backfills fewer than S010",
        lambda run: _backfilled(run, "S110") < _backfilled(run, "S010"),
    ),
    Claim(
        "figure 7",
        "S111 backfills the fewest",
        lambda run: _backfilled(run, "S111") == min(_backfilled(run, name) for name in SELECTIVE),
    ),
    Claim(
        "figure 8",
        "combined is better than user and project",
        lambda run: (
            _mean_gain(run, "combined") > max(_mean_gain(run, name) for name in ("user", "project"))
        ),
        ("user", "project", "combined"),
    ),
    Claim(
        "figure 8",
        "user is worse than project",
        lambda run: _mean_gain(run, "user") < _mean_gain(run, "project"),
        ("user", "project"),
    ),
    Claim(
        "figure 8",
        "selective is better than user and project",
        lambda run: (
            _mean_gain(run, "selective")
            > max(_mean_gain(run, name) for name in ("user", "project"))
        ),
        ("user", "project", "selective"),
    ),
    Claim(
        "figure 8",
        "selective is better than combined below p99, and not for all jobs",
        lambda run: (
            _mean_gain(run, "selective", 0.99) > _mean_gain(run, "combined", 0.99)
            and _mean_gain(run, "selective") <= _mean_gain(run, "combined")
        ),
        ("combined", "selective"),
    ),
    Claim(
        "section V.B",
        "combined gains 10.0% in wait, 17.7% in uwait, 20.0% in slowdown (each within 5 points)",
        lambda run: all(
            abs(gain - told) < 0.05
            for gain, told in zip(run.gains("combined"), (0.100, 0.177, 0.200), strict=True)
        ),
        ("combined",),
    ),
    Claim(
        "section V.B",
        "its gains are comparable to those of a = 0.75 (mean within 8 points)",
        lambda run: abs(_mean_gain(run, "combined") - _mean_gain(run, "a=0.75")) < 0.08,
        ("combined",),
    ),
    Claim(
        "figure 9",
        "combined and selective beat the baseline in most classes of size",
        lambda run: all(
            _most(_class_gains(run, name, "by_size")) for name in ("combined", "selective")
        ),
        ("combined", "selective"),
    ),
    Claim(
        "figure 9",
        "small jobs gain more than large ones (combined)",
        lambda run: _small_gain_more(run, "combined", "by_size"),
        ("combined",),
    ),
    Claim(
        "figure 10",
        "combined and selective beat the baseline in most classes of length",
        lambda run: all(
            _most(_class_gains(run, name, "by_length")) for name in ("combined", "selective")
        ),
        ("combined", "selective"),
    ),
    Claim(
        "figure 10",
        "the longer the job, the longer it waits; uwait and slowdown fall (baseline)",
        lambda run: (
            run.of("requested").by_length["wait"][0] < run.of("requested").by_length["wait"][3]
            and all(
                run.of("requested").by_length[metric][0] > run.of("requested").by_length[metric][3]
                for metric in ("unitless_wait", "slowdown")
            )
        ),
    ),
    Claim(
        "figure 10",
        "short jobs gain more than long ones (combined)",
        lambda run: _small_gain_more(run, "combined", "by_length"),
        ("combined",),
    ),
)


def claims_table(found: Tang2010) -> StudyTable:
    """Say of each claim whether it holds of the log as it is, and on how many copies."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        if not set(claim.needs) <= set(found.schemes):
            continue
        single = claim.holds(_Run(found, None))
        repeats = sum(claim.holds(_Run(found, repeat)) for repeat in range(found.repeats))
        told = f"{repeats} of {found.repeats}" if found.repeats else None
        rows.append((claim.where, claim.says, "yes" if single else "no", told))
    columns = (
        Column("where"),
        Column("the paper says"),
        Column("holds here"),
        Column("on jittered copies"),
    )
    return StudyTable("claims", "What the paper says, and whether it holds", columns, tuple(rows))
