"""`foretime serve`, `foretime wait` and `foretime config` as commands."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from foretime_estimators.errors import InputError
from foretime_sidecar.cli.config import config_app
from foretime_sidecar.cli.serve import serve
from foretime_sidecar.cli.wait import describe, wait
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.daemon_client import DaemonError, ask
from foretime_sidecar.server import Daemon
from foretime_sidecar.settings import Settings
from foretime_sidecar.settings_file import parse_settings, to_markdown, to_toml
from foretime_sim.mock_slurm import MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Policy
from typer.testing import CliRunner, Result

NOW = 1_700_000_000

app = typer.Typer()
app.command("serve")(serve)
app.command("wait")(wait)
app.add_typer(config_app, name="config")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A daemon on a mock Slurm: 64 processors, taken for 30 minutes, and one held job."""
    folder = tmp_path_factory.mktemp("daemon")
    path = folder / "s"
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    slurm.advance(NOW + 60)
    settings = Settings.model_validate(
        {
            "scheduler": {"history_days": 1},
            "store": {"path": str(folder / "store")},
            "table": {"path": str(folder / "table")},
            "api": {"listen": f"unix:{path}"},
        }
    )
    daemon = Daemon(settings, SlurmCommands(slurm.run, 0), clock=lambda: NOW + 60)
    daemon.poll_once()
    (folder / "foretime.toml").write_text(to_toml(settings))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    deadline = time.monotonic() + 60
    while not daemon.answers and time.monotonic() < deadline:
        time.sleep(0.02)
    yield path
    daemon.end()
    thread.join(30)
    assert not thread.is_alive()


def test_wait_in_words(socket_path: Path) -> None:
    result = run("wait", "-n", "8", "-t", "2:00:00", "--socket", str(socket_path))
    assert result.exit_code == 0, result.output
    first, second, *_ = result.output.splitlines()
    assert first.startswith("Expected start: in 00:29:00 (2023-11-1")
    assert first.endswith("for 8 processors and 02:00:00")
    assert second == "The queue of 00:00:00 ago: 1 running, 0 waiting."


def test_wait_as_json_found_by_the_settings(socket_path: Path) -> None:
    settings = str(socket_path.parent / "foretime.toml")
    result = run(
        "wait", "-n", "64", "-t", "1-00", "-A", "p", "-p", "main", "--json", "--settings", settings
    )
    answer = json.loads(result.output)
    assert (answer["likely_wait_s"], answer["requested_time_s"]) == (1740, 86_400)
    assert (answer["account"], answer["partition"]) == ("p", "main")


def test_what_the_daemon_refuses_is_a_wrong_question(socket_path: Path) -> None:
    result = run("wait", "-n", "65", "-t", "60", "--socket", str(socket_path))
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "processors = 65: only 64 processors are up now; ask for less"


def test_no_daemon_is_one_line_and_its_own_exit_code(tmp_path: Path) -> None:
    result = run("wait", "-n", "1", "-t", "60", "--socket", str(tmp_path / "none"))
    assert isinstance(result.exception, DaemonError)
    assert result.exception.exit_code == 3
    assert str(result.exception) == (
        f"no foretime daemon answers at unix:{tmp_path}/none; is it running "
        "(systemctl status foretime)?"
    )
    with pytest.raises(DaemonError, match="no foretime daemon answers at 127"):
        ask("127.0.0.1:9", "/v1/forecast", {})


def test_why_there_is_no_answer_as_json(tmp_path: Path, socket_path: Path) -> None:
    nowhere = str(tmp_path / "none")
    result = run("wait", "-n", "1", "-t", "60", "--json", "--socket", nowhere)
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {
        "error": {
            "what": f"no foretime daemon answers at unix:{nowhere}",
            "remedy": "is it running (systemctl status foretime)?",
        }
    }
    result = run("wait", "-n", "65", "-t", "60", "--json", "--socket", str(socket_path))
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {
        "error": {
            "what": "processors = 65: only 64 processors are up now",
            "remedy": "ask for less",
        }
    }


@pytest.mark.parametrize("said", [b"not http at all", b"HTTP/1.0 200 OK\r\n\r\n<p>hello"])
def test_something_else_answers(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            # Each attempt connects twice: to see whether anybody is there, and to ask.
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        if connection.recv(4096):
                            connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(DaemonError, match="no foretime daemon"):
                ask(f"unix:{path}", "/v1/forecast", {"processors": 1, "time": "1"})
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(30)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["-n", "1", "-t", "soon"], "'soon' is not a duration"),
        (["-n", "1", "-t", "60", "--socket", "a", "--settings", "b"], "give one"),
        (["-n", "1", "-t", "60", "--settings", "/none"], "can't read the settings"),
    ],
)
def test_wrong_questions(arguments: list[str], what: str) -> None:
    result = run("wait", *arguments)
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


def test_an_answer_in_every_form() -> None:
    answer: dict[str, Any] = {
        "processors": 64,
        "requested_time_s": 7200,
        "scheduled_time_s": 2400,
        "start_time": {"0.5": NOW, "0.95": NOW + 600},
        "likely_wait_s": 0,
        "wait_s": {"0.5": 0, "0.95": 600},
        "snapshot_age_s": 4000,
        "running_jobs": 3,
        "pending_jobs": 5,
        "left_out": {"held": 2, "dependent": 1},
        "assumptions": ["jobs run for their scheduled time"],
    }
    assert describe(answer).splitlines() == [
        "Expected start: at once, for 64 processors and 02:00:00",
        "95% sure within 00:10:00.",
        "Such jobs of yours have mostly ended within 00:40:00.",
        "The queue of 01:06:40 ago: 3 running, 5 waiting; left out: 2 held, 1 dependent.",
        "That is long ago: the daemon does not reach the scheduler.",
        "Assumed: jobs run for their scheduled time.",
    ]
    unknown = describe(answer | {"start_time": None, "assumptions": ["the queue is too long"]})
    assert unknown.splitlines()[0] == "No forecast: the queue is too long."


def test_config_shows_every_default() -> None:
    assert run("config", "show").output == to_toml()
    assert run("config", "show", "--markdown").output == to_markdown()


def test_config_shows_a_file(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text('[forecast]\norder = "xf"\n')
    shown = run("config", "show", str(path)).output
    assert parse_settings(shown).forecast.order == "xf"
    assert isinstance(run("config", "show", "--markdown", str(path)).exception, InputError)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[forecast]\norder = "expansion-factor"\n', "foretime.toml:2: forecast.order"),
        ("[forecast]\nodrer = 1\n", "did you mean 'forecast.order'?"),
        ('[api]\nlisten = "0.0.0.0:1"\n', "not a loopback address"),
    ],
)
def test_config_check_names_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text(text)
    result = run("config", "check", str(path))
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


def test_config_check_of_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text(to_toml())
    assert run("config", "check", str(path)).output == f"{path}: good\n"


@pytest.mark.parametrize("command", [["serve"], ["wait"], ["config", "show"], ["config", "check"]])
def test_every_help_has_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"Example: foretime {' '.join(command)}" in result.output
