"""``foretime decisions`` and ``foretime explain``: the audit on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foretime_sidecar.safety.reasons import REASONS
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy

from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000


def test_reasons_are_explained_below_the_table(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    with MockSite(tmp_path, slurm) as site:
        for _ in range(2):
            slurm.submit(Submission("ann", "p", None, 64, 600, 600))
        site.advance(60)
        code, out, err = run("decisions", "--socket", site.socket_path)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()[1:4]]
    reasons = dict.fromkeys(row[-2] for row in rows)
    assert len(rows) > len(reasons) > 0
    explained = [line.split(maxsplit=1) for line in out.splitlines()[4:]]
    assert explained == [[reason, REASONS[reason]] for reason in reasons]


def test_what_jobs_used_is_told_though_no_shorter_time_follows(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    accuracy = {"scheme": "combined", "threshold": 10}
    with MockSite(tmp_path, slurm, accuracy=accuracy) as site:
        # 14 jobs have used 98% of the processor time that one of them asks for: too little for A.
        for _ in range(14):
            slurm.submit(Submission("ann", "p", None, 64, 36_000, 2520))
            site.advance(2520)
        job = slurm.submit(Submission("ann", "p", None, 64, 36_000, 2520))
        site.advance(60)
        code, out, err = run("explain", job, "--socket", site.socket_path)
    assert (code, err) == (0, "")
    assert "14 submissions of such a length have ended; most used at most 7% of what" in out
    assert "planned shorter once they have used more processor time in all" in out
    assert "100%" not in out
    assert "need what they ask for" not in out


def test_a_job_planned_by_its_project_is_not_said_to_be_planned_by_nothing(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    accuracy = {"scheme": "combined", "threshold": 10}
    with MockSite(tmp_path, slurm, accuracy=accuracy) as site:
        for user in ("ann", *["bob"] * 40):
            slurm.submit(Submission(user, "p", None, 64, 36_000, 2520))
            site.advance(2520)
        job = slurm.submit(Submission("ann", "p", None, 64, 36_000, 2520))
        site.advance(60)
        code, out, err = run("explain", job, "--socket", site.socket_path)
    assert (code, err) == (0, "")
    assert "would be planned with" in out
    assert "1 submission of such a length has ended; until 10 have, those of its project" in out
    assert "are needed before" not in out
