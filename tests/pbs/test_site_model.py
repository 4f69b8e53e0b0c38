"""A live server decides as the model of it does; the recorded runs are longer (site_runs.py)."""

from __future__ import annotations

import os

import pytest

from tests.pbs.site_runs import run_live
from tests.pbs.site_workload import live_jobs
from tests.support.pbs.pbs_runs import LiveRun, compare, model_of

if "FORETIME_LIVE_MODEL" not in os.environ:
    # A busy server tells of ends late, and the order of starts is judged.
    pytest.skip("set FORETIME_LIVE_MODEL=1 for it", allow_module_level=True)

JOBS = 20


# Some five minutes, side by side with ``-n 2``.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["by_queue", "formula_depth"])
def test_a_live_server_starts_jobs_as_the_model_does(openpbs: None, name: str) -> None:
    live = LiveRun.of(f"{name}-live", run_live(name, live_jobs(seed=7, count=JOBS, load=4.0)))
    like = compare(live, model_of(live))
    assert like.pairs
    assert like.same >= 0.97 * like.pairs
    assert like.model_wait_s == pytest.approx(like.live_wait_s, rel=0.05)
