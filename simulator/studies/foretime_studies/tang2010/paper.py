"""What Tang 2010 prints."""

from __future__ import annotations

from foretime_studies.frame.published import published

PAPER_TABLE_1, PAPER_GAINS = (published(__package__, name) for name in ("table1", "gains"))
PAPER_TABLE_3 = published(__package__, "table3", keys=2)
ACCURACIES = published(__package__, "figure3")
"""What the text says of figure 3, by ranges of R."""
