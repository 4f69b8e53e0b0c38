"""What Streit 2002 prints: tables 2 to 6, and its misprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.models.weibull import Weibull
from foretime_sim.policies.order import Order
from foretime_sim.workloads.workload import Workload

SETS = ("CTC", "KTH", "PC2", "SDSC")
"""In the order of the paper's columns."""


@dataclass(frozen=True, slots=True)
class SetFigures:
    """A column of table 2 (a trace) or 3 (a generated set).

    Attributes
    ----------
    jobs, widest_processors, machine_processors
        Counts.
    processors_mean
        "Average requested resources".
    requested_s, runtime_s, interarrival_s
        Mean, least and largest, seconds.
    overrunning_jobs
        "Jobs with actual > estimated runtime".
    weibull_shape, weibull_scale_s
        alpha and beta of the interarrival times; those of a generated set are its trace's.
    """

    jobs: int
    widest_processors: int
    machine_processors: int
    processors_mean: float
    requested_s: tuple[float, int, int]
    runtime_s: tuple[float, int, int]
    overrunning_jobs: int
    interarrival_s: tuple[float, int, int]
    weibull_shape: float
    weibull_scale_s: float

    @classmethod
    def of(cls, workload: Workload, interarrival: Weibull) -> Self:
        """Give the same figures of a workload of at least two jobs."""

        def told(values: Int64Array) -> tuple[float, int, int]:
            return float(values.mean()), int(values.min()), int(values.max())

        return cls(
            len(workload),
            int(workload.processors.max()),
            workload.machine_processors,
            float(workload.processors.mean()),
            told(workload.requested_time),
            told(workload.actual_runtime),
            int((workload.actual_runtime > workload.requested_time).sum()),
            told(np.diff(workload.submit_time)),
            interarrival.alpha,
            interarrival.beta_s,
        )


def _of_sets(*columns: SetFigures) -> Mapping[str, SetFigures]:
    return dict(zip(SETS, columns, strict=True))


TABLE_2 = _of_sets(
    SetFigures(
        *(79_302, 336, 430, 10.72),
        requested_s=(24_324, 0, 64_800),
        runtime_s=(10_983, 0, 71_998),
        overrunning_jobs=7_180,
        interarrival_s=(369, 0, 164_472),
        weibull_shape=0.35,
        weibull_scale_s=60,
    ),
    SetFigures(
        *(28_490, 100, 100, 7.68),
        requested_s=(13_677, 60, 216_000),
        runtime_s=(8_876, 0, 226_709),
        overrunning_jobs=478,
        interarrival_s=(1_031, 0, 327_952),
        weibull_shape=0.35,
        weibull_scale_s=200,
    ),
    SetFigures(
        *(35_094, 96, 96, 6.34),
        requested_s=(11_716, 1, 1_209_600),
        runtime_s=(4_346, 1, 604_800),
        overrunning_jobs=0,
        interarrival_s=(870, 0, 313_861),
        weibull_shape=0.25,
        weibull_scale_s=40,
    ),
    SetFigures(
        *(67_667, 128, 352, 10.53),
        requested_s=(14_337, 0, 172_800),
        runtime_s=(6_119, 0, 510_209),
        overrunning_jobs=4_327,
        interarrival_s=(934, 0, 79_503),
        weibull_shape=0.4,
        weibull_scale_s=290,
    ),
)
TABLE_3 = _of_sets(
    SetFigures(
        *(10_000, 330, 430, 10.67),
        requested_s=(24_260, 0, 64_800),
        runtime_s=(10_924, 0, 71_998),
        overrunning_jobs=929,
        interarrival_s=(287, 0, 24_815),
        weibull_shape=0.35,
        weibull_scale_s=60,
    ),
    SetFigures(
        *(10_000, 100, 100, 7.73),
        requested_s=(13_643, 60, 216_000),
        runtime_s=(9_060, 0, 215_965),
        overrunning_jobs=178,
        interarrival_s=(1_047, 0, 191_258),
        weibull_shape=0.35,
        weibull_scale_s=200,
    ),
    SetFigures(
        *(10_000, 96, 96, 6.48),
        requested_s=(11_516, 1, 604_800),
        runtime_s=(4_442, 1, 604_800),
        overrunning_jobs=0,
        interarrival_s=(1_013, 0, 236_546),
        weibull_shape=0.25,
        weibull_scale_s=40,
    ),
    SetFigures(
        *(10_000, 128, 352, 10.71),
        requested_s=(14_305, 0, 64_800),
        runtime_s=(6_085, 0, 64_884),
        overrunning_jobs=640,
        interarrival_s=(945, 0, 76_019),
        weibull_shape=0.4,
        weibull_scale_s=290,
    ),
)


@dataclass(frozen=True, slots=True)
class PrintedRun:
    """A column of a block of table 4: one set, quality and decider at a shrinking factor of 1.00.

    Attributes
    ----------
    artww_s
        Seconds.
    utilization, loss_of_capacity
        Shares.
    started
        Jobs started with each order.
    """

    artww_s: int
    utilization: float
    loss_of_capacity: float
    started: Mapping[Order, int]


def _block(*rows: tuple[float, ...]) -> dict[tuple[str, str], PrintedRun]:
    """Read a block of table 4, row by row as it is printed; keys are (quality, decider)."""
    columns = [(quality, decider) for quality in QUALITIES for decider in ("simple", "advanced")]
    return {
        key: PrintedRun(
            int(artww),
            utilization / 100,
            lost,
            {Order.SJF: int(sjf), Order.FCFS: int(fcfs), Order.LJF: int(ljf)},
        )
        for key, artww, utilization, lost, sjf, fcfs, ljf in zip(columns, *rows, strict=True)
    }


QUALITIES = ("artww", "art", "makespan")
"""In the order of table 4."""
TABLE_4: Mapping[str, Mapping[tuple[str, str], PrintedRun]] = {
    "CTC": _block(
        (25_980, 21_912, 26_082, 21_648, 27_268, 25_829),
        (75.36, 75.70, 74.02, 74.96, 75.64, 75.08),
        (0.12650, 0.10911, 0.13731, 0.12099, 0.09054, 0.10395),
        (2_703, 6_115, 2_472, 5_860, 130, 551),
        (6_817, 1_296, 6_418, 1_144, 5_295, 953),
        (477, 2_586, 1_107, 2_993, 4_572, 8_493),
    ),
    "KTH": _block(
        (48_077, 33_299, 49_301, 40_663, 50_497, 50_395),
        (66.00, 65.64, 66.01, 65.64, 66.14, 66.11),
        (0.16398, 0.16456, 0.17121, 0.18386, 0.16588, 0.16629),
        (2_865, 7_885, 2_768, 5_730, 142, 322),
        (6_854, 1_345, 6_313, 1_313, 5_951, 686),
        (278, 767, 916, 2_954, 3_904, 8_989),
    ),
    "PC2": _block(
        (43_124, 31_493, 42_795, 31_994, 47_747, 47_260),
        (42.60, 42.49, 42.60, 42.58, 42.60, 42.60),
        (0.22423, 0.23792, 0.22147, 0.23937, 0.22724, 0.22722),
        (2_553, 7_550, 2_615, 6_651, 65, 391),
        (7_344, 1_062, 7_106, 766, 6_789, 229),
        (103, 1_388, 279, 2_673, 3_146, 9_380),
    ),
    "SDSC": _block(
        (9_969, 9_936, 9_963, 9_921, 9_982, 9_991),
        (31.32, 31.32, 31.32, 31.32, 31.32, 31.32),
        (0.00133, 0.00119, 0.00135, 0.00124, 0.00135, 0.00135),
        (317, 3_924, 309, 1_031, 1, 0),
        (9_561, 4_206, 9_517, 4_797, 9_570, 3_087),
        (121, 1_869, 173, 4_171, 428, 6_912),
    ),
}
"""Table 4 by set, and by quality and decider."""


@dataclass(frozen=True, slots=True)
class PrintedSwitches:
    """A column of table 5 that is not in table 4: advanced decider, quality ARTwW, factor 1.00.

    Attributes
    ----------
    actual_runtime_s, wait_s, art_s
        Means, seconds.
    tries
        Of switches.
    switches
        Share of the tries that changed to each order.
    same
        Share that kept the order.
    backlog
        Mean number of waiting jobs at a try.
    """

    actual_runtime_s: int
    wait_s: float
    art_s: int
    tries: int
    switches: Mapping[Order, float]
    same: float
    backlog: float


_SWITCHES = (
    ((10_927, 3_178, 14_105, 16_946), (4.49, 4.59, 0.59, 90.32), 22.05),
    ((9_063, 6_925, 15_989, 18_840), (5.80, 5.85, 0.45, 87.92), 14.48),
    ((4_442, 4_577, 9_018, 15_552), (3.61, 3.64, 0.23, 92.52), 15.04),
    ((6_085, 44.02, 6_129, 509), (3.73, 3.93, 0.98, 91.36), 6.36),
)
"""Columns of table 5: runtime, wait, ART, tries; percent to SJF, FCFS, LJF, same; backlog."""
TABLE_5: Mapping[str, PrintedSwitches] = {
    name: PrintedSwitches(
        int(runtime),
        wait,
        int(art),
        int(tries),
        {Order.SJF: sjf / 100, Order.FCFS: fcfs / 100, Order.LJF: ljf / 100},
        same / 100,
        backlog,
    )
    for name, ((runtime, wait, art, tries), (sjf, fcfs, ljf, same), backlog) in zip(
        SETS, _SWITCHES, strict=True
    )
}
WAIT_OVER_RUNTIME = {"CTC": 0.35, "KTH": 0.84, "PC2": 0.91, "SDSC": 0.007}
"""Average wait over average runtime in the text on table 5, whose own are 29, 76, 103 and 0.7%."""
TABLE_6_ROWS = (
    *("1", "2 & 7", "3 & 9", "4b & 5", "4a", "4c", "6a", "6b"),
    *("6c", "8a", "8b", "8c", "10a", "10b", "10c"),
)
"""Cases as table 6 counts them."""
TABLE_6: Mapping[str, Mapping[str, int]] = {
    name: dict(zip(TABLE_6_ROWS, counts, strict=True))
    for name, counts in {
        "CTC": (2_549, 1_324, 692, 1_298, 5, 4, 81, 10_669, 100, 224, 0, 0, 0, 37, 0),
        "KTH": (1_693, 1_756, 1_029, 403, 5, 3, 116, 13_664, 81, 89, 1, 0, 0, 26, 0),
        "PC2": (2_209, 920, 535, 304, 2, 0, 58, 11_449, 36, 39, 0, 0, 0, 17, 0),
        "SDSC": (271, 27, 15, 31, 1, 0, 8, 150, 5, 1, 0, 0, 0, 1, 0),
    }.items()
}
TABLE_6_TOTALS = {"CTC": 16_946, "KTH": 18_840, "PC2": 15_552, "SDSC": 509}
"""Printed below the counts: all but case 10b, which is in the sums of the other two rows."""
DIFFERENT = ("1", "6b", "8c", "10c")
"""Cases of the last row but one; the deciders agree in case 1 where FCFS is the current order."""
PRINTED_DIFFERENT = {"CTC": 13_218, "KTH": 15_357, "PC2": 13_658, "SDSC": 421}
CURRENT = ("1", "6a", "6b", "8a", "8c", "10b", "10c")
"""Cases in which the advanced decider keeps the current order for being that. The last row has case
5 (with 4b) too, in which it takes LJF, whatever was before."""
PRINTED_CURRENT = {"CTC": 14_858, "KTH": 15_932, "PC2": 14_076, "SDSC": 462}
"""KTH's is 15,991 by the counts above it."""


def summed(name: str, cases: Sequence[str]) -> int:
    """Add up printed counts of a set."""
    return sum(TABLE_6[name][case] for case in cases)
