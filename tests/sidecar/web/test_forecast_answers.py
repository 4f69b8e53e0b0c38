"""Forecasts as the API answers them: every field of every kind, exact and coarse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.clients.client import Queue
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.start_bounds import NotedBound
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts

NOW = 1_700_000_000
ANN, BOB = Caller(Identity("munge", "ann", 1001)), Caller(Identity("munge", "bob", 1002))
PATHS = {
    "new": "/v1/forecast?nodes=1&ntasks_per_node=16&time=60&account=p&qos=high",
    "new, later": "/v1/forecast?processors=8&time=60&begin=now%2B1hours",
    "advice": "/v1/advice?ntasks=64&time=1:00:00",
    "pending": "/v1/jobs/2/forecast",
    "held": "/v1/jobs/3/forecast",
    "task": "/v1/jobs/4_1/forecast",
    "no forecast": "/v1/jobs/5/forecast",
    "running": "/v1/jobs/1/forecast",
    "all": "/v1/jobs/forecasts",
    "all, brief": "/v1/jobs/forecasts?brief=1",
}
MODELS = {
    "/v1/forecast": "ForecastAnswer",
    "/v1/jobs/{job_id}/forecast": "ForecastAnswer",
    "/v1/jobs/forecasts": "PendingForecasts",
    "/v1/advice": "Advice",
}
PARTS = ("BriefForecast", "Alternative", "StartBound", "Reason", "Calibration", "OtherJobs")
# Of those who see the job: the others are bob's.
OF_ANN = {"running"}


class _Commands(SlurmCommands):
    """Job 3 is held, job 4 an array of which three tasks wait, job 5 wider than the machine.

    Slurm plans jobs 2 and 4; of job 6 it repeats since when it may start.
    """

    def queue(self) -> Queue:
        queue = super().queue()
        marks: dict[str, dict[str, Any]] = {
            "2": {"start_time": NOW + 7200},
            "3": {"held": True, "reason": "JobHeldUser"},
            "4": {"tasks": 3, "pending_tasks": "0-2", "start_time": NOW + 9000},
            "5": {"reason": "PartitionNodeLimit"},
            "6": {"start_time": NOW, "eligible_time": NOW},
        }
        jobs = [replace(job, **marks.get(job.request.job_id, {})) for job in queue.jobs]
        wide = tuple(
            replace(job, request=replace(job.request, processors=100))
            if job.request.job_id == "5"
            else job
            for job in jobs
        )
        return replace(queue, jobs=wide)


def _waits(forecasts: WaitForecasts, _: object = None) -> list[Waits | None]:
    """Give waits that no forecaster changes; of the fifth nothing can be said."""
    return [
        Waits(
            tuple(60 * number + 700 * place for number in range(len(LEVELS))),
            0.1234567,
            tuple(90 * number + 900 * place + 600 for number in range(len(LEVELS))),
            300 * place,
        )
        if place != 4
        else None
        for place in range(len(forecasts.wait_s))
    ]


class _Bounds:
    """Notes the same bound for two jobs, and nothing of others."""

    def bound_of(self, job_id: str, submit_time: int) -> NotedBound | None:
        return NotedBound(NOW + 60, NOW + 7000, NOW + 9000) if job_id in ("2", "3") else None


def answers(folder: Path, private_data: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Ask a full machine, on which one job runs and others wait, one of them held."""
    monkeypatch.setattr(Waits, "rows", _waits)
    slurm = MockSlurm(SlurmSetup(64, private_data=private_data), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 7000, 5400))
    slurm.submit(Submission("bob", "p", None, 64, 600, 600))
    slurm.submit(Submission("bob", "p", None, 8, 1800, 1200))
    for _ in range(3):
        slurm.submit(Submission("bob", None, None, 64, 600, 600))
    settings = Settings.model_validate({"table": {"path": str(folder / "table")}})
    sidecar = Sidecar(settings, _Commands(slurm.run), Store(":memory:"), forecasts=True)
    app = create_app(sidecar, Health(NOW), lambda: NOW + 75)
    client = TestClient(app, base_url="http://localhost")
    slurm.advance(NOW + 60)
    sidecar.look(NOW + 60)
    forecasting = sidecar.forecasting
    assert forecasting is not None
    assert forecasting.refresh()
    assert forecasting.board is not None
    forecasting.board = replace(forecasting.board, assumptions=("the sky does not fall",))
    monkeypatch.setattr(forecasting, "bounds", _Bounds())
    forecasting.kept_bounds = KeptBounds(30, 1234, 9, 0.97123)
    shares = tuple(level if level == 0.95 else None for level in LEVELS)
    forecasting.reliability = Reliability(30, 77, 9, LEVELS, shares, 0.1, 60, 5.0, ())
    found = {}
    for name, path in PATHS.items():
        asker = ANN if name in OF_ANN else BOB
        app.dependency_overrides[caller_of] = lambda asker=asker: asker
        reply = client.get(path)
        assert reply.status_code == 200, reply.text
        found[name] = reply.json()
    return found


@pytest.mark.parametrize("private_data", ["", "jobs"])
def test_every_field_of_every_answer_is_as_recorded(
    private_data: str, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = json.loads((repository / "tests/golden/forecast_answers.json").read_text())
    found = answers(tmp_path, private_data, monkeypatch)
    assert found == golden["coarse" if private_data else "exact"]


def test_the_api_describes_every_field(tmp_path: Path, repository: Path) -> None:
    settings = Settings.model_validate({"table": {"path": str(tmp_path / "table")}})
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    sidecar = Sidecar(settings, SlurmCommands(slurm.run), Store(":memory:"))
    described = create_app(sidecar, Health(NOW), lambda: NOW).openapi()
    replies = {
        path: described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
        for path in MODELS
    }
    named = {path: reply["schema"]["$ref"].rpartition("/")[2] for path, reply in replies.items()}
    assert named == MODELS
    document = (repository / "docs/api.md").read_text()
    fields = [
        (name, field)
        for model in (*MODELS.values(), *PARTS)
        for name, field in described["components"]["schemas"][model]["properties"].items()
    ]
    assert [name for name, field in fields if "description" not in field] == []
    assert [name for name, _ in fields if f"`{name}`" not in document] == []
