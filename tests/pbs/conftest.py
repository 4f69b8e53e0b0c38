"""Live PBS servers for tests: one fresh for a test, or one for all tests of a module.

All of these tests carry the marker ``real_pbs``: ``make test-pbs`` runs them, ``make test`` leaves
them out. docs/real_pbs.md says how to write one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.openpbs import why_no_server
from tests.pbs.pbs_server import PbsServer

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real_pbs)


@pytest.fixture(scope="session")
def openpbs() -> None:
    """Skip where there is no OpenPBS."""
    missing = why_no_server()
    if missing:
        pytest.skip(f"no live PBS: {missing}")


@pytest.fixture
def new_server(openpbs: None) -> Iterator[Callable[..., PbsServer]]:
    """Bring up servers, with the arguments of `PbsServer`; they end with the test."""
    servers: list[PbsServer] = []

    def bring_up(**options: Any) -> PbsServer:
        servers.append(PbsServer(**options))
        return servers[-1]

    yield bring_up
    for server in servers:
        server.stop()


@pytest.fixture
def pbs(new_server: Callable[..., PbsServer]) -> PbsServer:
    """Give a fresh server of one host with eight CPUs, without the hook."""
    return new_server()


@pytest.fixture
def foretime(pbs: PbsServer) -> InstalledForetime:
    """Give Foretime with its hook registered on a fresh server."""
    installed = InstalledForetime(pbs)
    installed.install()
    return installed


@pytest.fixture(scope="module")
def pbs_of_module(openpbs: None) -> Iterator[PbsServer]:
    """Give one server, without the hook, to all tests of a module that ask for it."""
    with PbsServer() as server:
        yield server


@pytest.fixture(scope="module")
def foretime_of_module(pbs_of_module: PbsServer) -> InstalledForetime:
    """Give Foretime with its hook registered to all tests of a module that ask for it."""
    installed = InstalledForetime(pbs_of_module)
    installed.install()
    return installed
