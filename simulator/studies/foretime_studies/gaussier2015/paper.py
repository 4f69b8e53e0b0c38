"""What Gaussier et al. (SC'15) print: tables 1, 4, 6, 7 and 8, and numbers of their text.

E. Gaussier, D. Glesser, V. Reis and D. Trystram, "Improving Backfilling by using Machine Learning
to predict Running Times", SuperComputing 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """The best and the worst AVEbsld of several runs."""

    best: float
    worst: float


@dataclass(frozen=True, slots=True)
class PaperLog:
    """A log of table 4, and its rows in tables 1, 6 and 7.

    Attributes
    ----------
    name
        As tables call it.
    file_prefix
        How the archive's file of it begins.
    processors, jobs_k, months
        Table 4: processors, thousands of jobs, length.
    easy, easy_plus_plus
        AVEbsld (tables 1, 6 and 7).
    clairvoyant, clairvoyant_sjbf
        With actual runtimes, EASY and EASY-SJBF (tables 1 and 6).
    learning, learning_sjbf
        Table 6: best and worst with learned predictions.
    chosen
        Table 7: of the triple chosen on the other logs.
    """

    name: str
    file_prefix: str
    processors: int
    jobs_k: int
    months: int
    easy: float
    easy_plus_plus: float
    clairvoyant: float
    clairvoyant_sjbf: float
    learning: Span
    learning_sjbf: Span
    chosen: float


PAPER_LOGS = (
    PaperLog(
        "KTH-SP2", "KTH-SP2-1996", 100, 28, 11,
        92.6, 63.5, 71.7, 49.8, Span(62.6, 93.2), Span(51.4, 74.5), 51.4,
    ),
    PaperLog(
        "CTC-SP2", "CTC-SP2-1996", 338, 77, 11,
        49.6, 85.8, 37.2, 17.6, Span(25.5, 163.5), Span(16.3, 134.7), 20.5,
    ),
    PaperLog(
        "SDSC-SP2", "SDSC-SP2-1998", 128, 59, 24,
        87.9, 79.4, 70.5, 56.8, Span(70.9, 102.3), Span(69.7, 194.8), 75.0,
    ),
    PaperLog(
        "SDSC-BLUE", "SDSC-BLUE-2000", 1_152, 243, 32,
        36.5, 21.0, 30.6, 13.2, Span(16.5, 48.0), Span(12.6, 47.8), 34.7,
    ),
    PaperLog(
        "Curie", "CEA-Curie-2011", 80_640, 312, 3,
        202.1, 193.5, 69.9, 12.1, Span(26.3, 9_348.8), Span(24.3, 4_010), 27.9,
    ),
    PaperLog(
        "Metacentrum", "METACENTRUM-2013", 3_356, 495, 6,
        97.6, 87.2, 81.7, 67.2, Span(86.3, 98.1), Span(81.5, 89.8), 84.2,
    ),
)  # fmt: skip
"""In the order of table 4."""

PRINTED_REDUCTION = 0.28
"""Section 6.3.4: mean reduction of AVEbsld against EASY. Table 7's own rows give 37.1%."""
PRINTED_REDUCTION_TO_EASY_PLUS_PLUS = 0.11
"""The same against EASY++; table 7's own rows give 20.7%."""
CORRELATION_MEAN, CORRELATION_MIN, CORRELATION_MAX = 0.26, 0.01, 0.80
"""Section 6.3.2: Pearson's coefficient between the triples' AVEbsld on two logs, of all couples."""
MAE_S = {"last-two": 5_217.0, "e-loss": 6_762.0}
MEAN_E_LOSS = {"last-two": 10.2e8, "e-loss": 2.35e5}
"""Table 8, of a log that is not named."""
EXTREME_SHARE = 0.001
"""Section 6.5: roughly so many jobs have extremely high bounded slowdowns."""


def paper_log(name: str) -> PaperLog | None:
    """Find the paper's log that a workload's or a file's name begins with; ``None`` if none."""
    return next((log for log in PAPER_LOGS if name.startswith(log.file_prefix)), None)
