"""What Talby & Feitelson (IPPS/SPDP 1999) print in sections 3.3 and 5.

D. Talby and D. Feitelson, "Supporting Priorities and Improving Utilization of the IBM SP2 Scheduler
Using Slack Based Backfilling".
"""

from __future__ import annotations

from dataclasses import dataclass

LOG_PREFIX = "KTH-SP2-1996"
"""How the archive's file of the paper's log begins."""
PROCESSORS = 128
"""Section 5.1."""
REAL_PROCESSORS = 100
"""What the machine had."""
AVERAGE_WAIT_S = 2_401.0
"""AWT of section 5.2: the conservative scheduler's average."""
JOBS_PER_MONTH = 2_357
FEWEST_JOBS, MOST_JOBS = 1_924, 4_060
"""Of the months after the first (section 5.2)."""
FIRST_MONTH_JOBS = 85


@dataclass(frozen=True, slots=True)
class PaperMonth:
    """A row of the tables of 5.2 and 5.3: average waits in seconds.

    Attributes
    ----------
    month
        ``YYYY-MM``.
    conservative, priority
        Table of 5.2: all priorities equal.
    unequal, high, low
        Table of 5.3: every fifth job at high priority; all jobs, those, and the others.
    """

    month: str
    conservative: float
    priority: float
    unequal: float
    high: float
    low: float


MONTHS = (
    PaperMonth("1996-09", 440.6, 440.6, 440.6, 0.0, 550.8),
    PaperMonth("1996-10", 3_062.7, 2_504.3, 2_783.7, 2_295.6, 2_906.0),
    # Printed as 1882.3; with every fifth job at 4460.2 and all at 4797.7 it is this.
    PaperMonth("1996-11", 4_887.0, 3_774.6, 4_797.7, 4_460.2, 4_882.1),
    PaperMonth("1996-12", 2_157.2, 1_904.2, 2_026.0, 1_814.8, 2_078.8),
    PaperMonth("1997-01", 3_302.3, 2_531.9, 2_777.4, 2_603.8, 2_820.8),
    PaperMonth("1997-02", 2_624.3, 2_373.9, 2_728.7, 2_369.2, 2_818.7),
    PaperMonth("1997-03", 2_644.8, 2_196.9, 2_220.9, 1_687.2, 2_354.6),
    PaperMonth("1997-04", 2_220.3, 1_905.2, 2_056.2, 1_797.4, 2_120.9),
    PaperMonth("1997-05", 2_093.6, 1_779.2, 1_889.3, 1_491.9, 1_988.7),
    PaperMonth("1997-06", 1_443.2, 1_282.0, 1_374.7, 1_323.3, 1_387.6),
    PaperMonth("1997-07", 399.9, 354.1, 372.6, 320.2, 385.8),
    PaperMonth("1997-08", 1_941.5, 1_670.8, 1_847.1, 1_817.5, 1_854.5),
)
CONSERVATIVE_S, PRIORITY_S = 2_401.44, 2_004.46
"""Averages over all jobs of the year (table of 5.2)."""
UNEQUAL_S, HIGH_S, LOW_S = 2_226.17, 1_955.28, 2_294.0
"""The same in the table of 5.3."""
GAIN_BY_SLACK_FACTOR = {3.0: 0.165, 9.0: 0.1925}
"""Section 5.2: average wait against the conservative scheduler's."""


@dataclass(frozen=True, slots=True)
class PaperOrder:
    """A column of the table at the end of 5.3, and the gain that 5.2 states; waits in seconds."""

    gain: float
    equal: float
    unequal: float
    high: float
    low: float


ORDERS = {
    "ast": PaperOrder(0.165, 2_004.5, 2_226.2, 1_955.3, 2_294.0),
    "aat": PaperOrder(0.13, 2_088.5, 2_223.3, 1_952.6, 2_291.1),
    "dc": PaperOrder(0.092, 2_179.9, 2_250.1, 1_988.1, 2_315.7),
    "du": PaperOrder(0.081, 2_206.0, 2_279.8, 2_048.9, 2_337.6),
    "dp": PaperOrder(0.117, 2_120.0, 2_228.5, 1_962.3, 2_295.1),
}
"""By insertion order, in the order of the table; "descending" scheduled time means ascending."""
