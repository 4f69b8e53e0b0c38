"""Commands that people wait for import nothing that is slow before they have asked the daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy

from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
# Each costs a third of all that a question needs, or more. (Typer itself brings pydantic.)
SLOW = {"fastapi", "foretime_sim", "numpy", "pandas", "requests", "rich", "tenacity"}
NEVER = {"foretime_sim._core", "foretime_sim.engine", "numpy", "pandas", "sqlite3", "sqlite_utils"}
IMPORTED = """
import json, sys
questions = []
def note(event, arguments):
    if event == "socket.connect":
        questions.append(sorted(sys.modules))
sys.addaudithook(note)
from foretime_sidecar.cli import main
sys.argv = ["foretime", *sys.argv[1:]]
try:
    main()
except SystemExit:
    print(json.dumps([questions[0], sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """64 processors, taken for 30 minutes, and one more job that wants them all."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    waiting = slurm.submit(Submission("bob", "p", None, 64, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path_factory.mktemp("daemon"), slurm) as site:
        site.waiting = str(waiting)
        yield site


def imported(site: MockSite, *arguments: str) -> tuple[set[str], set[str], str]:
    """Modules at the first question and at the end, and what the command said."""
    settings = site.socket_path.with_name("site.toml")
    settings.write_text(
        f'[api]\nlisten = "{site.listen}"\n[table]\npath = "{site.settings.table.path}"\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments, "--settings", str(settings)],
        capture_output=True,
        text=True,
        check=True,
    )
    at_question, at_end = json.loads(done.stderr.splitlines()[-1])
    return set(at_question), set(at_end), done.stdout


COMMANDS: dict[str, tuple[str, Callable[[MockSite], list[str]]]] = {
    "wait JOB": ("Job      64 processors", lambda site: ["wait", site.waiting]),
    "wait -n": ("Job      4 processors", lambda site: ["wait", "-n", "4", "-t", "1:00:00"]),
    "status": ("mode     observe", lambda site: ["status"]),
    "explain": ("asks for 00:10:00", lambda site: ["explain", site.waiting]),
    "decisions": ("00:10:00", lambda site: ["decisions"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_simulator_and_no_store_are_imported_for_a_question(
    site: MockSite, command: str
) -> None:
    says, arguments = COMMANDS[command]
    at_question, at_end, said = imported(site, *arguments(site))
    assert says in said
    assert not at_question & (SLOW | NEVER)
    assert not at_end & NEVER


# What a login node has: Python, and of Foretime's dependencies these.
CLIENT = {"lazy_loader", "pydantic", "rich", "typer", "typing_extensions"}
LOGIN_NODE = """
import importlib.metadata, re, sys
NAMES = {"prometheus_client", "requests_unixsocket", "sqlite_utils", "jwt"}
for line in importlib.metadata.requires("foretime"):
    NAMES.add(re.match(r"[\\w-]+", line)[0].replace("-", "_"))
NAMES |= {"sqlite3", "sklearn", "foretime_sim._core", "foretime_sim.engine"}
sys.modules |= dict.fromkeys(NAMES - {CLIENT} - {"foretime"})  # so that they can't be imported
from foretime_sidecar.cli import main
sys.argv = ["foretime", *sys.argv[1:]]
main()
"""


def on_a_login_node(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LOGIN_NODE.replace("{CLIENT}", repr(CLIENT)), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_login_node_needs_the_client_and_the_sockets_place_alone(
    site: MockSite, tmp_path: Path, command: str
) -> None:
    says, arguments = COMMANDS[command]
    socket = ["--socket", str(site.socket_path)]
    done = on_a_login_node(tmp_path, *arguments(site), *socket)
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout


def test_where_no_place_is_named_an_error_names_what_to_give(tmp_path: Path) -> None:
    done = on_a_login_node(tmp_path, "wait", "-n", "4", "-t", "60")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "foretime: no foretime daemon answers at unix:/run/foretime/foretime.sock; start it, or "
        "name its socket with --socket\n"
    )


def test_lines_of_pbs_bring_no_simulator_either(site: MockSite, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#PBS -l select=1:ncpus=8,walltime=01:00:00\n")
    at_question, at_end, said = imported(site, "wait", str(script))
    assert "Job      8 processors" in said
    assert "foretime_sim.logs.pbs_records" in at_question
    assert not at_question & ((SLOW | NEVER) - {"foretime_sim"})
    assert not at_end & NEVER
