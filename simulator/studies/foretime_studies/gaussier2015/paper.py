"""What Gaussier et al. (SC'15) print: tables 1, 4, 6, 7 and 8, and numbers of their text.

E. Gaussier, D. Glesser, V. Reis and D. Trystram, "Improving Backfilling by using Machine Learning
to predict Running Times", SuperComputing 2015.
"""

from __future__ import annotations

from typing import Any

from foretime_studies.frame.published import published

PAPER_LOGS = published(__package__, "logs")
"""By name, in the order of table 4."""
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


def paper_log(file: str) -> tuple[str, dict[str, Any]] | None:
    """Find the paper's log that a file's name begins with, its name and its row; else ``None``."""
    rows = PAPER_LOGS.items()
    return next((log for log in rows if file.startswith(log[1]["file_prefix"])), None)
