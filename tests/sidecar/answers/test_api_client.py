"""The client for programs: alone in a file, typed as the daemon answers, its errors told apart."""

from __future__ import annotations

import ast
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.answers import api_client
from foretime_sidecar.answers.api_client import (
    ForetimeApiError,
    ForetimeClient,
    NoAnswerError,
    NoDaemonError,
    NotAllowedError,
    NotFoundError,
    RefusedQuestionError,
    TooOftenError,
    UnavailableError,
)
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN, TOKEN_HEADER, TOKEN_PATH
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

from tests.support import client_answers
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
# As a program does that has the file alone.
ALONE = """
import sys
sys.modules |= dict.fromkeys(("foretime_sidecar", "foretime_sim", "foretime_estimators"))
sys.path.insert(0, sys.argv[1])
import copied_client
daemon = copied_client.ForetimeClient(sys.argv[2])
print(daemon.forecast(ntasks=64, time="1:00:00")["likely_wait_s"] > 0)
print(daemon.forget("carl")["user"])
try:
    daemon.job_forecast("4711")
except copied_client.NotFoundError as error:
    print(error.status, error.where)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    slurm.submit(Submission("bob", "p", None, 64, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path_factory.mktemp("daemon"), slurm) as site:
        yield site


def test_the_file_works_alone(site: MockSite, tmp_path: Path) -> None:
    shutil.copy(api_client.__file__, tmp_path / "copied_client.py")
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(tmp_path), site.listen],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["True", "carl", "404 job_id"]


def test_it_needs_the_standard_library_alone() -> None:
    imported = set()
    for node in ast.walk(ast.parse(Path(api_client.__file__).read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert imported <= sys.stdlib_module_names


def test_its_types_are_those_of_the_daemon() -> None:
    def shapes(text: str) -> list[str]:
        of_answers = text.partition(client_answers.MARK)[2]
        return [ast.dump(node) for node in ast.parse(of_answers).body]

    made = client_answers.client_with_answers(client_answers.described())
    assert shapes(made) == shapes(Path(api_client.__file__).read_text()), (
        "write them anew: python -m tests.support.client_answers, and ruff format"
    )


def test_every_path_has_a_method(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()

    def answer(_: ForetimeClient, path: str, __: Any, method: str) -> bytes:
        asked.add((method.lower(), path.replace("4711", "{job_id}")))
        return b"{}"

    monkeypatch.setattr(ForetimeClient, "_answer", answer)
    of_a_job = dict.fromkeys(("job_forecast", "explain", "notify", "stop_notifying"), ("4711",))
    arguments = of_a_job | {"ab": (0,)}
    for name, method in vars(ForetimeClient).items():
        if not name.startswith("_") and name != "ask":
            method(ForetimeClient(site.listen), *arguments.get(name, ()))
    paths = site.app.openapi()["paths"]
    assert asked == {(method, path) for path, methods in paths.items() for method in methods}


def test_where_the_daemon_is_and_how_it_is_asked_are_the_daemons_own() -> None:
    assert api_client.DEFAULT_ADDRESS == DEFAULT_LISTEN
    assert api_client.TOKEN_HEADER == TOKEN_HEADER
    assert TOKEN_PATH == "/v1/token"


def test_figures_come_as_text(site: MockSite) -> None:
    assert "foretime_table_rows" in ForetimeClient(site.listen).metrics()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "the host or the port is missing; give unix:PATH or HOST:PORT"),
        ("unix", "the host or the port is missing; give unix:PATH or HOST:PORT"),
        (":80", "the host or the port is missing; give unix:PATH or HOST:PORT"),
        ("localhost", "the host or the port is missing; give unix:PATH or HOST:PORT"),
        ("unix:", "give unix:PATH, a path of 1 to 107 bytes"),
        ("unix:/" + 107 * "x", "give unix:PATH, a path of 1 to 107 bytes"),
        ("unix://run/s", "it is no URL; give unix:/run/s"),
        ("/run/foretime.sock", "it is a path; of a unix socket give unix:/run/foretime.sock"),
        ("http://localhost:8642", "it is a URL; leave http:// out: give localhost:8642"),
        ("http://localhost:8642/v1", "it is a URL; leave http:// out: give localhost:8642"),
        (
            "https://wait.example",
            "it is a URL, and the daemon speaks HTTP alone; leave https:// out: give wait.example",
        ),
        ("localhost:", "'' is no port; give a number from 1 to 65535"),
        ("localhost:x", "'x' is no port; give a number from 1 to 65535"),
        ("localhost:٣", "'٣' is no port; give a number from 1 to 65535"),
        ("localhost:0", "'0' is no port; give a number from 1 to 65535"),
        ("localhost:65536", "'65536' is no port; give a number from 1 to 65535"),
        ("127.0.0.1:8642/", "'8642/' is no port; give a number from 1 to 65535"),
        ("ann@localhost:80", "'ann@localhost' is no name of a host; give HOST:PORT"),
        ("local host:80", "'local host' is no name of a host; give HOST:PORT"),
        ("::x:80", "Only hex digits permitted in 'x' in '::x'"),
    ],
)
def test_what_is_no_address_is_refused_with_why(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"^address = ") as refused:
        ForetimeClient(address)
    assert str(refused.value) == f"address = {address!r}: {why}"


@pytest.mark.parametrize(
    "address",
    ["unix:s", "unix:/run/s", "localhost:1", "node-1.example:65535", "[::1]:8642", "::1:8642"],
)
def test_what_is_an_address_is_taken(address: str) -> None:
    assert ForetimeClient(address).address == address


@given(st.text())
def test_any_other_text_is_refused_by_the_same_error(address: str) -> None:
    with contextlib.suppress(ValueError):
        ForetimeClient(address)


def test_a_command_refuses_a_port_that_nobody_can_ask() -> None:
    with pytest.raises(InputError, match=r"'0' is no port"):
        SiteDaemon("127.0.0.1:0")


@contextlib.contextmanager
def saying(said: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Say the same on a port to whoever asks; give where, and what was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        asked.append(connection.recv(65536))
                        connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def refusal(status: int, *headers: str) -> bytes:
    body = json.dumps({"error": {"what": "it is so", "where": "there", "remedy": "do that"}})
    return "\r\n".join([f"HTTP/1.0 {status} No", *headers, "", body]).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedQuestionError),
        (401, NotAllowedError),
        (403, NotAllowedError),
        (404, NotFoundError),
        (409, RefusedQuestionError),
        (421, RefusedQuestionError),
        (429, TooOftenError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
def test_a_refusal_is_an_error_of_its_own_kind(status: int, kind: type[ForetimeApiError]) -> None:
    said = refusal(status, "Retry-After: 7")
    with saying(said) as (where, _), pytest.raises(ForetimeApiError) as caught:
        ForetimeClient(where).health()
    error = caught.value
    assert type(error) is kind
    assert (error.what, error.where, error.remedy) == ("it is so", "there", "do that")
    assert (error.status, error.retry_after_s) == (status, 7)
    assert str(error) == "it is so; do that"


@pytest.mark.parametrize(
    "said",
    [
        b"rubbish",
        b"HTTP/1.0 200 OK\r\n\r\n[]",
        b"HTTP/1.0 404 No\r\n\r\n<p>",
        b"HTTP/1.0 302 No\r\n\r\n{}",
    ],
)
def test_what_is_no_daemon_is_told(said: bytes) -> None:
    with saying(said) as (where, _), pytest.raises(NoDaemonError) as caught:
        ForetimeClient(where).health()
    assert caught.value.where == where
    assert caught.value.status is None


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match=r"no foretime daemon answers at unix:.*; is it"):
        ForetimeClient(f"unix:{tmp_path}/none").health()


def test_a_daemon_that_takes_too_long_is_not_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(NoAnswerError, match=r"took more than 0.1 s; try again later"):
            ForetimeClient(where, timeout_s=0.1).health()
        listener.settimeout(5)
        listener.accept()[0].close()
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_proof_is_made_for_every_request() -> None:
    proofs = iter(["one", "two"])
    with saying(b'HTTP/1.0 200 OK\r\n\r\n{"token": "t"}') as (where, asked):
        client = ForetimeClient(where, lambda: {"Authorization": f"Munge {next(proofs)}"})
        client.reset_breaker()
    assert b"GET /v1/token" in asked[0]
    assert b"Authorization: Munge one" in asked[0]
    assert b"POST /v1/breaker/reset" in asked[1]
    assert b"Authorization: Munge two" in asked[1]
    assert b"X-Foretime-Token: t" in asked[1]
