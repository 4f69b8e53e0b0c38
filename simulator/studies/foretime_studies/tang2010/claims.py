"""What Tang 2010 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is worked out on every run of the log: as it is, and on each jittered copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.policies.order import Order

from foretime_studies.frame.published import published
from foretime_studies.frame.runs import METRICS, RunFigures
from foretime_studies.frame.tables import Rows, study_table
from foretime_studies.tang2010.study import (
    BLENDS,
    MAIN,
    SELECTIVE,
    Tang2010,
    case_name,
)
from foretime_studies.tang2010.tables import PAPER_GAINS


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


CLAIMS = published(__package__, "claims")
"""What the paper says, by what `HOLDS` calls it."""


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


def _sum_up(run: _Run, names: Iterable[str], fraction: float = 1.0) -> list[float]:
    return [_mean_gain(run, name, fraction) for name in names]


def _as_printed(run: _Run) -> bool:
    printed = PAPER_GAINS["combined"]
    return all(abs(run.gain("combined", metric) - printed[metric]) < 0.05 for metric in METRICS)


def _has_outliers(run: _Run) -> bool:
    """Whether S110's uwait and slowdown grow more beyond the fraction 0.97 than those of S111."""
    some, all_of_them = run.of("S110"), run.of("S111")
    return all(
        some.mean(metric) * all_of_them.mean(metric, 0.97)
        > all_of_them.mean(metric) * some.mean(metric, 0.97)
        for metric in ("unitless_wait", "slowdown")
    )


def _longer_waits_longer(run: _Run) -> bool:
    by_length = run.of("requested").by_length
    return by_length["wait"][0] < by_length["wait"][3] and all(
        by_length[metric][0] > by_length[metric][3] for metric in ("unitless_wait", "slowdown")
    )


def _wfp_beats_fcfs(run: _Run) -> bool:
    fcfs, wfp = (run.of("requested", order) for order in (FCFS, WFP))
    return all(
        wfp.mean(metric, fraction) < fcfs.mean(metric, fraction)
        for metric in METRICS
        for fraction in (1.0, 0.99)
    )


FCFS, WFP = Order.FCFS, Order.WFP
_BOTH = ("user", "project")
_LEARNED = ("combined", "selective")

HOLDS: dict[str, Callable[[_Run], bool]] = {
    "WFP beats FCFS": _wfp_beats_fcfs,
    "WFP backfills fewer": lambda run: (
        run.of("requested", WFP).started_jobs[2] < run.of("requested", FCFS).started_jobs[2]
    ),
    "FCFS gains little at 0.25": lambda run: 0 < run.gain("a=0.25", "wait", order=FCFS) < 0.05,
    "FCFS the same at 1": lambda run: abs(run.gain("a=1", "wait", order=FCFS)) < 0.03,
    "FCFS worse between": lambda run: all(
        -0.15 < run.gain(name, "wait", order=FCFS) < -0.05 for name in ("a=0.5", "a=0.75")
    ),
    "FCFS uwait worse": lambda run: all(
        run.gain(name, "unitless_wait", order=FCFS) < 0 for name in BLENDS
    ),
    "FCFS slowdown gains": lambda run: all(
        (run.gain(name, "slowdown", order=FCFS) > 0) == (name != "a=0.5") for name in BLENDS
    ),
    "FCFS gains below p99": lambda run: _most(
        [gain for name in BLENDS for gain in run.gains(name, 0.99, FCFS)]
    ),
    "FCFS less sensitive": lambda run: all(
        run.gain("a=1", metric, order=FCFS) < run.gain("a=1", metric) for metric in METRICS
    ),
    "WFP rising": lambda run: _rising(run, 1.0),
    "WFP rising below p99": lambda run: _rising(run, 0.99),
    "WFP perfect": lambda run: min(run.gains("a=1")) >= 0.28 and max(run.gains("a=1")) >= 0.48,
    "WFP from the head": lambda run: (
        run.of("requested").started[0] < run.of("a=1").started[0]
        and run.of("a=0.25").started[0] < run.of("a=0.75").started[0]
    ),
    "selective beat baseline": lambda run: all(
        gain > 0 for name in SELECTIVE for gain in run.gains(name)
    ),
    "S001 and S010 less": lambda run: (
        max(_sum_up(run, ("S001", "S010"))) < min(_sum_up(run, ("S100", "S110", "S111")))
    ),
    "S111 and S110 best": lambda run: (
        min(_sum_up(run, ("S110", "S111"), 0.95))
        > max(_sum_up(run, ("S001", "S010", "S100"), 0.95))
    ),
    "S110 waits less": lambda run: (
        run.of("S110").mean("wait", 0.97) < run.of("S111").mean("wait", 0.97)
    ),
    "S110 has outliers": _has_outliers,
    "S010 and S110 backfill most": lambda run: (
        min(_backfilled(run, name) for name in ("S010", "S110"))
        > max(_backfilled(run, name) for name in ("S001", "S100", "S111"))
    ),
    "S110 backfills fewer": lambda run: _backfilled(run, "S110") < _backfilled(run, "S010"),
    "S111 backfills fewest": lambda run: (
        _backfilled(run, "S111") == min(_backfilled(run, name) for name in SELECTIVE)
    ),
    "combined best": lambda run: _mean_gain(run, "combined") > max(_sum_up(run, _BOTH)),
    "user below project": lambda run: _mean_gain(run, "user") < _mean_gain(run, "project"),
    "selective beats both": lambda run: _mean_gain(run, "selective") > max(_sum_up(run, _BOTH)),
    "selective below p99": lambda run: (
        _mean_gain(run, "selective", 0.99) > _mean_gain(run, "combined", 0.99)
        and _mean_gain(run, "selective") <= _mean_gain(run, "combined")
    ),
    "combined as printed": _as_printed,
    "combined as 0.75": lambda run: (
        abs(_mean_gain(run, "combined") - _mean_gain(run, "a=0.75")) < 0.08
    ),
    "gains by size": lambda run: all(_most(_class_gains(run, n, "by_size")) for n in _LEARNED),
    "small gain more": lambda run: _small_gain_more(run, "combined", "by_size"),
    "gains by length": lambda run: all(_most(_class_gains(run, n, "by_length")) for n in _LEARNED),
    "longer waits longer": _longer_waits_longer,
    "short gain more": lambda run: _small_gain_more(run, "combined", "by_length"),
}


@study_table("claims", "What the paper says, and whether it holds")
def claims_table(found: Tang2010) -> Rows:
    """Say of each claim whether it holds of the log as it is, and on how many copies."""
    for key, claim in CLAIMS.items():
        if not set((claim["needs"] or "").split()) <= set(found.schemes):
            continue
        holds = HOLDS[key]
        repeats = sum(holds(_Run(found, repeat)) for repeat in range(found.repeats))
        yield [
            ("where", claim["where"]),
            ("the paper says", claim["says"]),
            ("holds here", "yes" if holds(_Run(found, None)) else "no"),
            ("on jittered copies", f"{repeats} of {found.repeats}" if found.repeats else None),
        ]
