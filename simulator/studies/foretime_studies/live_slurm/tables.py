"""The tables of the study: waits of each arm beside the plain ones, goals, and every run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretime_studies.frame.claims import yes
from foretime_studies.frame.tables import Row, StudyTable
from foretime_studies.live_slurm.arms import ARMS, PLAIN, PLAIN_ONE
from foretime_studies.live_slurm.runs import LiveRun
from foretime_studies.live_slurm.workloads import LiveWorkload

Key = tuple[str, str, str]
"""Workload, release and arm."""
FORETOLD_WITHIN = 0.05
NOISE = 0.05
"""What two runs of one arm may differ by, at least."""
_AGAINST_PLAIN, _AGAINST_ONE = -0.25, -0.10


@dataclass(frozen=True, slots=True)
class ArmRuns:
    """The runs of one arm on one workload and release.

    Attributes
    ----------
    workload
        Whose jobs.
    release, arm
        On what, and how.
    runs
        At least one.
    foretold
        Mean waits of copies in a replay; empty if it was not asked.
    """

    workload: LiveWorkload
    release: str
    arm: str
    runs: tuple[LiveRun, ...]
    foretold: tuple[float, ...]

    @property
    def waits(self) -> list[float]:
        """Mean wait of each run, seconds."""
        return [float(run.wait.mean()) for run in self.runs]

    @property
    def wait(self) -> float:
        """Mean of the runs' mean waits."""
        return float(np.mean(self.waits))

    def mean_of(self, quantile: float) -> float:
        """Give the mean over the runs of a quantile of the waits."""
        return float(np.mean([np.quantile(run.wait, quantile) for run in self.runs]))

    def beside(self, other: ArmRuns | None) -> float | None:
        """Give how much longer the mean wait is than another arm's, as a share."""
        return None if other is None else self.wait / other.wait - 1

    @property
    def foretold_off(self) -> float | None:
        """How much more the replay said, as a share of the runs' mean."""
        return float(np.mean(self.foretold)) / self.wait - 1 if self.foretold else None

    @property
    def is_foretold(self) -> bool:
        """Whether the replay's mean is within the range of the runs, or 5% of their mean."""
        said, off = float(np.mean(self.foretold)), self.foretold_off
        within = min(self.waits) <= said <= max(self.waits)
        return within or (off is not None and abs(off) <= FORETOLD_WITHIN)


def by_arm(runs: Sequence[LiveRun], foretold: Mapping[Key, Sequence[float]]) -> list[ArmRuns]:
    """Put runs together, in the order of workloads, releases and arms."""
    found: dict[Key, list[LiveRun]] = defaultdict(list)
    for run in runs:
        found[run.name.workload, run.name.release, run.name.arm].append(run)
    places = list(ARMS)
    keys = sorted(found, key=lambda key: (key[0], -float(key[1]), places.index(key[2])))
    return [
        ArmRuns(
            LiveWorkload.named(key[0]), *key[1:], tuple(found[key]), tuple(foretold.get(key, ()))
        )
        for key in keys
    ]


def tables(arms: Sequence[ArmRuns]) -> list[StudyTable]:
    """Give all tables."""
    known = {(each.workload.name, each.release, each.arm): each for each in arms}

    def other(each: ArmRuns, arm: str) -> ArmRuns | None:
        return known.get((each.workload.name, each.release, arm))

    return [
        StudyTable.of(
            "waits",
            "Waits",
            [_waits(each, other(each, PLAIN.name), other(each, PLAIN_ONE.name)) for each in arms],
        ),
        StudyTable.of(
            "goals",
            "Goals",
            [
                row
                for each in arms
                for row in _goals(each, other(each, PLAIN.name), other(each, PLAIN_ONE.name))
            ],
        ),
        StudyTable.of("runs", "Runs", [_run(run) for each in arms for run in each.runs]),
    ]


def _range(values: Sequence[float]) -> str:
    if not values:
        return "–"
    middle = f"{np.mean(values):.0f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.0f} to {max(values):.0f})"


def _waits(each: ArmRuns, plain: ArmRuns | None, one: ArmRuns | None) -> Row:
    return [
        ("jobs", each.workload.name),
        ("Slurm", each.release),
        ("arm", ARMS[each.arm].about),
        ("runs", len(each.runs)),
        ("mean wait, s", _range(each.waits)),
        ("beside plain", each.beside(plain), "+.0%"),
        ("beside one reservation", each.beside(one), "+.0%"),
        ("bounded slowdown", float(np.mean([run.slowdown.mean() for run in each.runs])), ".2f"),
        ("p90, s", each.mean_of(0.9), ",.0f"),
        ("longest, s", each.mean_of(1), ",.0f"),
        ("foretold, s", _range(each.foretold)),
        ("off by", each.foretold_off, "+.0%"),
    ]


def _goals(each: ArmRuns, plain: ArmRuns | None, one: ArmRuns | None) -> list[Row]:
    rows: list[Row] = []

    def goal(words: str, wanted: str, value: float | None, met: bool) -> None:
        rows.append(
            [
                ("jobs", each.workload.name),
                ("Slurm", each.release),
                ("arm", ARMS[each.arm].about),
                ("goal", words),
                ("wanted", wanted),
                ("is", value, "+.0%"),
                ("met", yes(met)),
            ]
        )

    if ARMS[each.arm].way == "start-now" and plain is not None and one is not None:
        for words, base, most in (
            ("mean wait beside plain", plain, _AGAINST_PLAIN),
            ("mean wait beside one reservation", one, _AGAINST_ONE),
        ):
            gain = each.wait / base.wait - 1
            if each.workload.heavy:
                goal(words, f"at most {most:+.0%}", gain, gain <= most)
            else:
                spread = max(base.waits) / base.wait - 1
                goal(words, "not worse beyond noise", gain, gain <= max(NOISE, spread))
    if each.foretold:
        wanted = "within the runs' range, or 5%"
        goal("foretold", wanted, each.foretold_off, each.is_foretold)
    return rows


def _run(run: LiveRun) -> Row:
    how = run.circumstances
    return [
        ("jobs", run.name.workload),
        ("Slurm", how.version),
        ("arm", ARMS[run.name.arm].about),
        ("run", run.name.number),
        ("mean wait, s", float(run.wait.mean()), ".1f"),
        ("bounded slowdown", float(run.slowdown.mean()), ".2f"),
        ("p90, s", float(np.quantile(run.wait, 0.9)), ",.0f"),
        ("longest, s", int(run.wait.max()), ",d"),
        ("lasted, min", float(run.end_s.max()) / 60, ".0f"),
        ("raised", how.raised),
        ("missed", how.missed),
        ("submitted late by, s", how.latest_s, ".1f"),
        ("ran too long by, s", how.longest_over_s),
        ("load of the machine", how.load, ".1f"),
    ]
