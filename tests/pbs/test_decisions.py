"""What the hook says of jobs reaches `foretime explain`: of arrays too, and of what came before."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pbs.installed_foretime import InstalledForetime

FORETIME = str(Path(sys.executable).with_name("foretime"))
SCRIPT = "application/x-python"


@contextmanager
def serving(foretime: InstalledForetime) -> Iterator[None]:
    """Run the daemon, which reads the server's logs, meanwhile."""
    text = foretime.settings_file.read_text()
    logs = f'pbs_server_logs_dir = "{foretime.server.home}/server_logs"'
    if logs not in text:
        foretime.settings_file.write_text(text.replace("[store]", f"{logs}\n[store]"))
    daemon = foretime.server.namespaces.start([FORETIME, "serve"])
    try:
        yield
    finally:
        foretime.server.run(["pkill", "--full", "foretime serve"])
        daemon.communicate()


def explained(foretime: InstalledForetime, job: str) -> dict[str, Any]:
    """Give what `foretime explain` says of a job, once the daemon has seen it."""
    found: dict[str, Any] = {}

    def known() -> bool:
        reply = foretime.run("explain", job, "--json")
        if reply.returncode == 0:
            found.update(json.loads(reply.stdout))
        return bool(found)

    foretime.server.wait_for(known, f"foretime explain {job}")
    return found


def test_explain_tells_the_hooks_own_reason_also_of_what_the_daemon_did_not_see(
    foretime: InstalledForetime,
) -> None:
    pbs = foretime.server
    pbs.qmgr("set server scheduling = false")
    before = pbs.qsub("-lwalltime=1000", "-vFORETIME=off")
    with serving(foretime):
        shrinking = pbs.qsub("-lmin_walltime=100,max_walltime=1000")
        array = pbs.qsub("-J1-3", "-lwalltime=1000")
        left = pbs.qsub("-J1-3", "-lwalltime=1000", "-vFORETIME=off")
        assert explained(foretime, before)["reason"] == "opt-out"
        assert explained(foretime, shrinking)["reason"] == "shrink-to-fit"
        assert explained(foretime, array)["action"] == "planned"
        assert explained(foretime, left)["reason"] == "opt-out"
    away = pbs.qsub("-lwalltime=1000", "-vFORETIME=off")
    with serving(foretime):
        assert explained(foretime, away)["reason"] == "opt-out"
        assert explained(foretime, left)["reason"] == "opt-out"


def test_a_subjob_that_has_run_is_stored_with_its_decision(foretime: InstalledForetime) -> None:
    pbs = foretime.server
    with serving(foretime):
        array = pbs.qsub("-J1-2", "-lwalltime=1000", script="sleep 1")
        pbs.wait_for_state(array, "F")
        subjob = array.replace("[]", "[2]")

        def stored() -> bool:
            path = foretime.folder / "store"
            if not path.exists():
                return False
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
                # The daemon may still be making the store's tables.
                tables = "SELECT name FROM sqlite_master"
                if ("decisions",) not in store.execute(tables).fetchall():
                    return False
                asked = "SELECT decision FROM decisions WHERE job_id = ?"
                return f"job={array} " in str(store.execute(asked, [subjob]).fetchall())

        pbs.wait_for(stored, f"the decision of {subjob}")
