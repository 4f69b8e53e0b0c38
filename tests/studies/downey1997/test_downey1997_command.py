"""The page of the study of Downey 1997 is what its command wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from foretime_sim.logs.log_files import read_log
from foretime_studies.downey1997.heads import heads_of
from foretime_studies.downey1997.logs import studied_log
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import StudyTable

RESULTS = Path("docs") / "studies" / "downey1997"


def results(repository: Path) -> dict[str, StudyTable]:
    document = json.loads((repository / RESULTS / "results.json").read_text())
    return {table.key: table for table in StudyReport.from_json(document).tables}


def test_the_paragon_again(trace: Callable[[str], Path], repository: Path) -> None:
    """What is quick to run again is as written: the lines, and who waited at the head."""
    path = trace("SDSC-Par-1996-3.1-cln.swf.gz")
    log = studied_log(read_log(path), path.name)
    written = results(repository)
    of_paragon = [row for row in written["table1-4"].rows if row[0] == log.name]
    fitted = {name: fit_uniform_log(log.runtimes(name)) for name in log.class_names}
    for row in of_paragon:
        line = fitted[str(row[1])]
        assert line is not None
        assert row[6:9] == pytest.approx((line.intercept, line.slope, line.r_squared))
    heads = heads_of(log.workload)
    row = next(row for row in written["predictions"].rows if row[0] == log.name)
    assert row[6:8] == (len(log.workload), len(heads.moments))
    needed = next(row for row in written["table3"].rows if row[0] == log.name)
    assert needed[2] == pytest.approx(float(heads.needed.mean()))
