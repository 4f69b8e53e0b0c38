"""The page behind other web servers: Open OnDemand's application, and nginx's configuration."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from foretime_sim.mock_slurm import MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Policy

from tests.sidecar.mock_site import MockSite

NOW = 1_700_000_000


@pytest.fixture(scope="module")
def ondemand(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The application, before a daemon on a mock Slurm."""
    path = repository / "contrib/ondemand/foretime/passenger_wsgi.py"
    spec = importlib.util.spec_from_file_location("passenger_wsgi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 4, 7200, 5400))
    slurm.submit(Submission("bob", "p", None, 4, 7200, 5400))
    with MockSite(tmp_path_factory.mktemp("portal"), slurm) as site:
        module.SOCKET = str(site.socket_path)  # type: ignore[attr-defined]
        yield module


def ask(
    module: ModuleType, path: str, query: str = "", method: str = "GET"
) -> tuple[str, dict[str, str], str]:
    """Give status, headers and body."""
    said: list[Any] = []
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "/pun/sys/foretime",
        "PATH_INFO": path,
        "QUERY_STRING": query,
    }
    body = b"".join(module.application(environ, lambda *answer: said.append(answer)))
    ((status, headers),) = said
    return status, {name.lower(): value for name, value in headers}, body.decode()


def test_the_page_and_its_files(ondemand: ModuleType) -> None:
    status, headers, body = ask(ondemand, "/", "ntasks=4&time=60")
    assert status == "200 OK"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "95% sure within" in body
    assert int(headers["content-length"]) == len(body.encode())
    assert ask(ondemand, "/static/page.css")[1]["content-type"].startswith("text/css")
    assert ask(ondemand, "/v1/forecast", "time=soon&ntasks=1")[0].startswith("400 ")


def test_addresses_are_relative_to_a_folder(ondemand: ModuleType) -> None:
    status, headers, _ = ask(ondemand, "")
    assert (status, headers["location"]) == ("302 Found", "/pun/sys/foretime/")


def test_only_questions_are_handed_on(ondemand: ModuleType) -> None:
    assert ask(ondemand, "/v1/breaker/reset", method="POST")[0].startswith("405 ")


def test_a_daemon_that_is_away(ondemand: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ondemand, "SOCKET", "/nowhere")
    status, _, body = ask(ondemand, "/")
    assert status.startswith("503 ")
    assert "does not answer on this machine" in body
