"""What a manager of PBS, as the daemon's user is, can't reach on a live server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pbs.pbs_server import PbsServer


@pytest.mark.parametrize(
    "directive",
    [
        "create hook mine event=queuejob",
        "import hook foretime application/x-python default {hook}",
        "set hook foretime enabled=false",
        "delete hook foretime",
    ],
)
def test_a_manager_brings_no_code_into_the_server(
    directive: str, pbs_of_module: PbsServer, tmp_path: Path
) -> None:
    """Hooks run as root, and are for root alone to make and to change."""
    pbs_of_module.qmgr("list hook")  # which root may
    hook = tmp_path / "hook.py"
    hook.write_text("import os\n", encoding="utf-8")
    done = pbs_of_module.run(["qmgr", "-c", directive.format(hook=hook)], "manager")
    assert done.returncode != 0
    assert "manager@pbs01 is unauthorized to access hooks data" in done.stdout + done.stderr


def test_a_manager_changes_jobs_and_the_server(pbs_of_module: PbsServer) -> None:
    job = pbs_of_module.qsub("-lwalltime=60")
    for argv in (
        ["qalter", "-lwalltime=30", job],
        ["qmgr", "-c", "set server comment = tried"],
        ["qdel", job],
    ):
        pbs_of_module.checked(argv, "manager")
