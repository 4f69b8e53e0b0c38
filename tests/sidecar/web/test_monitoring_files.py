"""Alert rules and dashboard: Prometheus takes them, and they ask for nothing that is not told."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health, SelfMetrics
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import FEWEST_SCORED, MOST_MISSED, NEAR, watch_limits
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.plain_beside.account import account_of
from foretime_sidecar.plain_beside.beside import BesideStanding, PlainBeside
from foretime_sidecar.replays.demonstration import Demonstration
from foretime_sidecar.safety.circuit_breaker import BreakerFigures, CircuitBreaker
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.plain_starts import JudgedJob
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.api.work_lines import FEWEST_RAISED
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS

from tests.support.processes.prometheus_server import PrometheusServer, debian_tool
from tests.support.replay_runs import made_workload
from tests.support.slurm.mock_site import running

NOW, DAY = 1_700_000_000, 86_400
_NAMES = re.compile(r"\b(?:foretime|process)_\w+")


@pytest.fixture(scope="module")
def contrib(repository: Path) -> Path:
    return repository / "contrib"


@pytest.fixture(scope="module")
def dashboard(contrib: Path) -> Any:
    return json.loads((contrib / "grafana/foretime.json").read_text())


def queries(dashboard: Any) -> dict[str, list[str]]:
    """Give what each panel of the dashboard asks for, by its title."""
    return {
        panel["title"]: [target["expr"] for target in panel["targets"]]
        for panel in dashboard["panels"]
        if panel["type"] != "row"
    }


# -- all that is ever exported ---------------------------------------------------------------------


def names_of(text: str) -> set[str]:
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


class Told:
    """A daemon that can tell all that a daemon with its settings ever tells."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **sections: Any) -> None:
        settings = Settings.model_validate({"table": {"path": str(folder / "table")}} | sections)
        slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        for number in range(6):
            slurm.submit(Submission(f"u{number}", "p", None, 64, 7200, 600))
        self.sidecar = Sidecar(
            settings,
            SlurmCommands(slurm.run),
            Store(":memory:"),
            forecasts=True,
            shadow=True,
            beside=True,
        )
        for _ in range(8):
            slurm.advance(slurm.now + 600)
            self.sidecar.look(slurm.now)
            self.sidecar.poll(slurm.now)
            self.sidecar.waits.refresh()
        (folder / "table.alive").touch()
        assert self.sidecar.scoreboard is not None
        while self.sidecar.scoreboard.refresh():
            pass
        waits = self.sidecar.waits
        waits.reliability = Reliability(30, 500, 9, LEVELS, LEVELS, 0.1, 60, 60.0, ())
        waits.kept_bounds = KeptBounds(30, 500, 9, 0.95)
        beside = self.sidecar.beside
        assert beside is not None
        standing = BesideStanding("", 1, NOW, 1, NOW, model_is_off=False)
        patch.setattr(PlainBeside, "standing", property(lambda _: standing))
        beside.latest_account = account_of(
            [
                JudgedJob(f"u{user}", 8, day * DAY, day * DAY + 900, *starts, ours)
                for day in range(20)
                for user, ours in ((1, True), (2, False))
                for starts in ((day * DAY + 1000 + day, day * DAY + 950 + day),)
            ],
            0,
            "week",
        )
        figures = BreakerFigures(500, 10.0, 60, 600)
        patch.setattr(CircuitBreaker, "figures", lambda *_: figures)
        row = (
            "INSERT INTO job_decisions VALUES (NULL, ?, 'x', 1, 'u', 'p', 'q', 1, ?, 1, 1, '-', 1)"
        )
        self.sidecar.store.write("test", row, [(NOW, "planned")])
        self.text = SelfMetrics(self.sidecar, Health(NOW), lambda: slurm.now).text().decode()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Give every name that a daemon may tell, with the values of label ``of`` of the limits."""
    names: set[str] = set()
    limits: set[str] = set()
    enforce = {"hook": {"mode": "enforce"}}
    for sections in (enforce, {"queue_order": {"order": "dynp"}}):
        with pytest.MonkeyPatch.context() as patch:
            told = Told(tmp_path_factory.mktemp("told"), patch, **sections)
            names |= names_of(told.text)
            limits |= watch_limits(told.sidecar).keys()
    return {"names": names, "limits": limits}


# -- a real Prometheus beside a real daemon --------------------------------------------------------


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a demonstration's daemon on a port; gives host and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    shown = Demonstration(made_workload(600, days=20), tmp_path_factory.mktemp("demo"), address, 1)
    shown.rehearse(6 * 3600)
    with running(shown.daemon):
        yield address


@pytest.fixture(scope="module")
def prometheus(
    daemon: str, contrib: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    rules = contrib / "prometheus/foretime.rules.yml"
    with PrometheusServer(tmp_path_factory.mktemp("prometheus"), daemon, rules) as server:
        server.wait_for_scrape()
        yield server


@pytest.fixture(scope="module")
def alerts(prometheus: PrometheusServer) -> dict[str, str]:
    """Give each alert's expression, as Prometheus has read it."""
    (group,) = prometheus.ask("rules")["groups"]
    return {rule["name"]: rule["query"] for rule in group["rules"]}


def test_prometheus_scrapes_the_daemon_and_no_alert_fires(prometheus: PrometheusServer) -> None:
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    told = set(prometheus.ask("label/__name__/values"))
    assert {"foretime_watch_limit", "foretime_breaker_open", "foretime_poll_age_seconds"} <= told
    (group,) = prometheus.ask("rules")["groups"]
    bad = [rule["name"] for rule in group["rules"] if rule["health"] == "err"]
    assert bad == []
    assert [one for one in prometheus.ask("alerts")["alerts"] if one["state"] == "firing"] == []


def test_every_query_of_the_dashboard_is_one(prometheus: PrometheusServer, dashboard: Any) -> None:
    for exprs in queries(dashboard).values():
        for expr in exprs:
            prometheus.ask("query", query=expr.replace("$instance", ".*"))
    answer = prometheus.ask("query", query='foretime_working{instance=~".*"}')
    assert answer["result"]


def test_alerts_ask_for_nothing_that_is_not_told(
    alerts: dict[str, str], exported: dict[str, set[str]]
) -> None:
    for alert, query in alerts.items():
        assert set(_NAMES.findall(query)) <= exported["names"], alert
        assert set(re.findall(r'\bof="(\w+)"', query)) <= exported["limits"], alert


def test_alerts_and_the_page_have_the_same_bounds(alerts: dict[str, str]) -> None:
    breaker = (alerts[f"Foretime{name}"] for name in ("PlansOutlived", "HeadSlips", "LongWaits"))
    assert all(f"({NEAR} * foretime_watch_limit" in query for query in breaker)
    for name in ("BoundsHoldSeldom", "StartBoundsMissed"):
        assert alerts[f"Foretime{name}"].endswith(f">= {FEWEST_SCORED}")
    missed = alerts["ForetimeRaisedJobsMissed"]
    assert f"{MOST_MISSED} * increase" in missed
    assert missed.endswith(f">= {FEWEST_RAISED}")


def test_every_limit_has_an_alert(alerts: dict[str, str], exported: dict[str, set[str]]) -> None:
    used = {of for query in alerts.values() for of in re.findall(r'\bof="(\w+)"', query)}
    assert used == exported["limits"]


def test_every_alert_is_in_the_documents_and_no_other(
    alerts: dict[str, str], repository: Path
) -> None:
    page = (repository / "docs/watching.md").read_text()
    assert re.findall(r"^\| `(Foretime\w+)` \|", page, flags=re.MULTILINE) == list(alerts)


# -- files alone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [("check", "rules", "foretime.rules.yml"), ("test", "rules", "foretime.test.yml")],
    ids=lambda command: " ".join(command[:2]),
)
def test_promtool_takes_the_rules(contrib: Path, command: tuple[str, ...]) -> None:
    run = [debian_tool("promtool"), *command]
    done = subprocess.run(
        run, cwd=contrib / "prometheus", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("order", ["auto", "dynp"])
def test_promtool_takes_the_metrics(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch, queue_order={"order": order}, hook={"mode": "enforce"})
    run = [debian_tool("promtool"), "check", "metrics"]
    done = subprocess.run(run, input=told.text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_dashboard_asks_for_all_that_is_told_and_for_nothing_else(
    dashboard: Any, exported: dict[str, set[str]]
) -> None:
    text = json.dumps(queries(dashboard))
    asked = set(_NAMES.findall(text))
    assert asked <= exported["names"]
    assert set(re.findall(r'of=\\"(\w+)\\"', text)) <= exported["limits"]
    # Of these no picture says anything, or another has the same.
    unseen = {
        *("foretime_table_generation", "foretime_table_rows", "foretime_finished_jobs"),
        *("foretime_enforcing", "foretime_disabled", "foretime_queue_age_seconds"),
        *("foretime_estimators_set_aside", "foretime_forecast_now_brier"),
        *("foretime_queue_order_seconds", "foretime_queue_order_tries_total"),
        *("foretime_queue_order_switches_total", "process_start_time_seconds"),
    }
    assert exported["names"] - asked == unseen


def test_the_dashboard_can_be_imported_beside_any_prometheus(dashboard: Any) -> None:
    source, instance = dashboard["templating"]["list"]
    assert (source["type"], source["query"], dashboard["id"]) == ("datasource", "prometheus", None)
    own = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    assert instance["datasource"] == own
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == own
            assert all(target["datasource"] == own for target in panel["targets"])
            assert all("$instance" in target["expr"] for target in panel["targets"])
