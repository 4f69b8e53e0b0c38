"""What Talby & Feitelson (IPPS/SPDP 1999) print in sections 3.3 and 5.

D. Talby and D. Feitelson, "Supporting Priorities and Improving Utilization of the IBM SP2 Scheduler
Using Slack Based Backfilling".
"""

from __future__ import annotations

from foretime_studies.frame.published import published

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
MONTHS = published(__package__, "months")
"""Tables of 5.2 and 5.3."""
YEAR = MONTHS.pop("all")
FIRST_MONTH = next(iter(MONTHS))
GAIN_BY_SLACK_FACTOR = {3.0: 0.165, 9.0: 0.1925}
"""Section 5.2: average wait against the conservative scheduler's."""
ORDERS = published(__package__, "orders")
"""Table at the end of 5.3."""
