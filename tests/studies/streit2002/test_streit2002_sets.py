"""The job sets of Streit 2002: their factors and machines, and requests that are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.models.lublin2003 import generate
from foretime_studies.streit2002.sets import (
    CTC,
    JOB_SETS,
    KTH,
    PC2,
    SDSC,
    on_machine,
    sets_of_logs,
    with_exact_requests,
)


def test_factors_and_machines_are_the_papers() -> None:
    """Section 5.2's list, and the third line of table 2."""
    ends = {job_set.name: (job_set.factors[0], job_set.factors[-1]) for job_set in JOB_SETS}
    assert ends == {"CTC": (1.0, 0.65), "KTH": (1.0, 0.6), "PC2": (0.8, 0.4), "SDSC": (0.6, 0.3)}
    assert KTH.factors == (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)
    assert [len(job_set.factors) for job_set in JOB_SETS] == [8, 9, 9, 7]
    assert [job_set.printed_processors for job_set in JOB_SETS] == [430, 100, 96, 352]
    assert [job_set.processors("log") for job_set in JOB_SETS] == [338, 100, 96, 128]


def test_the_same_load_on_another_machine() -> None:
    """SDSC's 352 processors at a factor of 0.4 are offered what 128 are at one of 1.1."""
    assert SDSC.factor_on(0.4, "printed") == 0.4
    assert SDSC.factor_on(0.4, "log") == pytest.approx(1.1)
    assert PC2.factor_on(0.4, "log") == 0.4


def test_another_machine_has_room_for_the_widest_job() -> None:
    jobs = generate(50, processors=64, load=0.5)
    widest = int(jobs.processors.max())
    assert on_machine(jobs, widest).machine_processors == widest
    with pytest.raises(InputError, match=f"a machine of {widest - 1} is too small"):
        on_machine(jobs, widest - 1)


def test_exact_requests_change_no_job() -> None:
    jobs = generate(200, processors=32, load=0.9)
    overrunning = replace(jobs, actual_runtime=jobs.actual_runtime * 2)
    overrunning.actual_runtime[0] = 0
    exact = with_exact_requests(overrunning)
    assert (exact.requested_time >= 1).all()
    assert (exact.requested_time[1:] == exact.actual_runtime[1:]).all()
    before, after = simulate(overrunning), simulate(exact)
    assert (overrunning.actual_runtime > overrunning.requested_time).any()
    assert np.array_equal(before.end_time - before.start_time, after.end_time - after.start_time)


def test_logs_are_known_by_their_names() -> None:
    names = ["KTH-SP2-1996-2.1-cln.swf.gz", "CTC-SP2-1996-3.1-cln.swf.gz"]
    assert sets_of_logs(names) == {names[0]: KTH, names[1]: CTC}
    with pytest.raises(InputError, match=r"Curie\.swf: not a log of this study"):
        sets_of_logs(["Curie.swf"])
    with pytest.raises(InputError, match="another log of KTH"):
        sets_of_logs([names[0], "KTH-SP2-1996-2.swf"])
