"""``/v1/brought``: operators see everybody's jobs, users their own, and what is erased is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.personal_data import data_of, erase
from foretime_sidecar.store.plain_starts import PlainRow, PlainStarts
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

NOW = 1_700_000_000
HOUR = 3600
NOBODY, ROOT = Peer(10, 65534, 65534), Peer(12, 0, 0)


class World:
    """A daemon whose store has compared jobs of two users."""

    def __init__(self, folder: Path, *, enabled: bool = True) -> None:
        settings = Settings.model_validate({"table": {"path": str(folder / "table")}})
        slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        self.store = Store(":memory:")
        rows = [
            PlainRow(
                job_id=str(number),
                submit_time=NOW - 9 * HOUR,
                user=user,
                processors=8,
                seen_at=NOW - 9 * HOUR,
                could_start=NOW - 8 * HOUR,
                start_time=NOW - 7 * HOUR,
                end_time=NOW - HOUR,
                runtime_s=6 * HOUR,
                plain_start=NOW - 5 * HOUR,
                start_with_us=None,
                with_us=1,
                record="",
            )
            for number, user in enumerate(("nobody", "nobody", "ann"))
        ]
        PlainStarts(self.store).keep(rows)
        client = SlurmCommands(slurm.run)
        self.sidecar = Sidecar(settings, client, self.store, beside=enabled)
        self.app = create_app(self.sidecar, Health(NOW), lambda: NOW)
        self.client = TestClient(self.app, base_url="http://localhost")

    def ask(self, peer: Peer | None, query: str = "") -> Any:
        identity = None if peer is None else Identity.of_peer(peer)
        self.app.dependency_overrides[caller_of] = lambda: Caller(identity)
        return self.client.get(f"/v1/brought{query}")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.store.close()


def test_operators_see_everybody(world: World) -> None:
    answer = world.ask(ROOT, "?by=user").json()
    assert answer["user"] is None
    saved = {row["name"]: row["saved_hours"] for row in answer["brought_rows"]}
    assert saved == {"nobody": 4.0, "ann": 2.0}
    assert answer["brought"]["saved_hours"] == 6.0
    assert answer["standing"]["why_not"]


def test_users_see_their_own_jobs_alone(world: World) -> None:
    answer = world.ask(NOBODY, "?by=user").json()
    assert answer["user"] == "nobody"
    assert [row["name"] for row in answer["brought_rows"]] == ["nobody"]
    assert answer["brought"]["jobs"] == 2
    assert answer["left_out_jobs"] == 0


def test_whom_nothing_names_sees_nothing(world: World) -> None:
    assert world.ask(None).status_code == 403


def test_what_can_be_asked_is_checked(world: World) -> None:
    assert world.ask(ROOT, "?by=colour").status_code == 400
    later = world.ask(ROOT, f"?since={NOW}").json()
    assert later["brought"]["jobs"] == 0


def test_where_it_is_not_run_it_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, enabled=False)
    refused = world.ask(ROOT)
    assert refused.status_code == 404
    assert refused.json()["error"]["where"] == "beside.enabled"


def test_what_is_kept_of_a_user_is_shown_and_erased(world: World) -> None:
    assert len(data_of(world.store, "ann")["plain_starts"]) == 1
    assert erase(world.store, "ann", NOW)["plain_starts"] == 1
    answer = world.ask(ROOT, "?by=user").json()
    assert [row["name"] for row in answer["brought_rows"]] == ["nobody"]


def test_every_field_and_metric_is_documented(world: World, repository: Path) -> None:
    document = (repository / "docs/api.md").read_text()
    answer = world.ask(ROOT, "?by=user").json()
    names = {*answer, *answer["brought"], *answer["model"], *answer["standing"]}
    names |= set(answer["brought_rows"][0])
    beside = world.sidecar.beside
    assert beside is not None
    beside._run_at = NOW - 60
    beside.latest_account = beside.account(0, "week")
    metrics = world.client.get("/metrics").text
    told = {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
    assert {"foretime_brought_seconds", "foretime_beside_age_seconds"} <= told
    assert "foretime_brought_seconds 21600.0" in metrics
    names |= {name for name in told if "beside" in name or "brought" in name}
    assert [name for name in sorted(names) if f"`{name}`" not in document] == []
