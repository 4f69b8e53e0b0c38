"""The study of Gaussier 2015: triples, selection, correlations, and a small run."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.studies.gaussier2015_paper import (
    PAPER_LOGS,
    PRINTED_REDUCTION,
    PRINTED_REDUCTION_TO_EASY_PLUS_PLUS,
    paper_log,
)
from foretime_sim.studies.gaussier2015_selection import (
    Rule,
    agreements,
    leave_one_out,
    mean_reduction,
    ranks,
)


def test_table_7_says_37_percent() -> None:
    """Its rows give 37.1% against EASY (the text: 28%), and 20.7% against EASY++ (11%)."""
    chosen = [log.chosen for log in PAPER_LOGS]
    found = mean_reduction([log.easy for log in PAPER_LOGS], chosen)
    assert found == pytest.approx(0.371, abs=0.0005)
    assert found > PRINTED_REDUCTION + 0.05
    against = mean_reduction([log.easy_plus_plus for log in PAPER_LOGS], chosen)
    assert against == pytest.approx(0.207, abs=0.0005)
    assert against > PRINTED_REDUCTION_TO_EASY_PLUS_PLUS + 0.05


def test_leave_one_out_by_hand() -> None:
    """Three logs, three triples. The third log's values are the large ones.

    Sums of the others: for log 1 (220, 205, 300), for 2 (210, 209, 303), for 3 (30, 14, 7).
    """
    avebsld = np.array([[10.0, 9.0, 5.0], [20.0, 5.0, 2.0], [200.0, 200.0, 298.0]])
    easy = np.array([10.0, 20.0, 200.0])
    assert leave_one_out(avebsld, easy) == [1, 1, 2]
    # Each log alike: the third triple is worse by a half on log 3, and better by far on the others.
    assert leave_one_out(avebsld, easy, Rule.RATIO) == [2, 2, 2]
    # Ranks on log 3: 1.5, 1.5, 3; on log 1: 3, 2, 1; on log 2: 3, 2, 1.
    assert leave_one_out(avebsld, easy, Rule.RANK) == [1, 1, 2]


def test_ranks_share_ties() -> None:
    assert ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [2.5, 1, 2.5, 4]


def test_agreements_by_hand() -> None:
    """Log 2 is twice log 1; log 3 falls as log 1 rises, but for one disaster in both."""
    avebsld = np.array([[1.0, 2.0, 3.0, 100.0], [2.0, 4.0, 6.0, 200.0], [3.0, 2.0, 1.0, 1_000.0]])
    found = {(pair.first, pair.second): pair for pair in agreements(avebsld)}
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    assert found[0, 1][2:] == pytest.approx((1, 1, 1))
    disaster = found[0, 2]
    assert disaster.pearson > 0.99
    # Ranks 1 2 3 4 and 3 2 1 4: 1 - 6 * (4 + 0 + 4 + 0) / (4 * 15).
    assert disaster.spearman == pytest.approx(0.2)
    assert disaster.spearman < disaster.pearson_log < disaster.pearson
    assert np.isnan(agreements(np.array([[1.0, 1.0], [1.0, 2.0]]))[0].pearson)


def test_the_papers_logs_by_their_files() -> None:
    curie = paper_log("CEA-Curie-2011-2.1-cln.swf.gz")
    assert curie is not None
    assert (curie.name, curie.processors) == ("Curie", 80_640)
    assert paper_log("METACENTRUM-2009-2.swf.gz") is None
