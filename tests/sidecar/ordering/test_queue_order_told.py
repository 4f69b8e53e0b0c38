"""What is told of the order that the queue is kept in: answers, page, commands, metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.cli.application import app
from foretime_sidecar.ordering.order_words import ORDERS, said_value, why_chosen
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite
from typer.testing import CliRunner

from tests.support.slurm.mock_site import MockSite
from tests.support.slurm.ordered_slurm import submission

NOW = 1_800_000_000
HOUR = 3600
ROOT = Caller(Identity.of_peer(Peer(1, 0, 0)))
USER = Caller(Identity.of_peer(Peer(2, 65534, 65534)))


def test_every_order_that_the_queue_can_be_kept_in_has_words() -> None:
    assert [*ORDERS] == [str(order) for order in Order if order is not Order.PRIORITY]


def _slurm(private_data: str = "") -> MockSlurm:
    """One job has all 16 processors for 5 h; a long job came first, then three short ones."""
    policy = Policy(order=Order.PRIORITY, backfill=Backfill.PLANNING)
    slurm = MockSlurm(SlurmSetup(16, private_data=private_data), policy, None, NOW - HOUR)
    for hours, user in ((5, "ann"), (10, "bob"), (1, "cid"), (1, "dan"), (1, "eve")):
        slurm.submit(submission(16, hours * HOUR, user=user))
    slurm.advance(NOW)
    return slurm


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    order = {"order": "dynp", "most_user_share": 1.0}
    with MockSite(tmp_path_factory.mktemp("told"), _slurm(), queue_order=order) as site:
        yield site


def _asked(site: MockSite, path: str, caller: Caller = ROOT) -> Any:
    site.app.dependency_overrides[caller_of] = lambda: caller
    try:
        return TestClient(site.app, base_url="http://localhost", raise_server_exceptions=False).get(
            path
        )
    finally:
        site.app.dependency_overrides.clear()


WHY = (
    "mean response time, weighted by width, of the 4 jobs that wait was 09:45:00 as planned in it, "
    "16:30:00 in FCFS, 16:30:00 in LJF (case 7 of table 1)"
)


def test_the_api_tells_which_order_since_when_and_why(site: MockSite) -> None:
    answer = _asked(site, "/v1/queue-order").json()
    last = answer.pop("last_try")
    assert answer == {
        "set": "dynp",
        "order": "sjf",
        "since": NOW,
        "instead_of": "fcfs",
        "why": WHY,
        "switches_of_a_day": 1,
        "refused": None,
        "going_first": 0,
        "raised": None,
        "missed": None,
    }
    assert last["tried_at"] == NOW
    assert last["quality"] == "artww"


def test_the_log_is_for_operators(site: MockSite) -> None:
    began, switch = _asked(site, "/v1/queue-order/switches").json()["switches"]
    assert (began["order"], began["why"]) == ("fcfs", "dynP began with it")
    assert (switch["order"], switch["why"]) == ("sjf", WHY)
    assert _asked(site, "/v1/queue-order/switches", USER).status_code == 403
    assert _asked(site, f"/v1/queue-order/switches?since={NOW + 1}").json() == {"switches": []}


def test_the_page_says_it(site: MockSite) -> None:
    text = _asked(site, "/", USER).text
    assert "Order of the queue: shortest jobs first, since" in text
    assert f"{WHY[0].upper()}{WHY[1:]}." in text


def test_the_commands_say_it(site: MockSite) -> None:
    run = CliRunner()
    status = run.invoke(app, ["status", "--settings", str(site.settings_path)])
    (line,) = [line for line in status.output.splitlines() if line.startswith("order")]
    assert "shortest jobs first (dynP) since" in line
    assert f"1 switch in 24 h; {WHY}" in line
    at = ["--socket", str(site.socket_path)]
    shown = run.invoke(app, ["decisions", "--queue-order", *at]).output.splitlines()
    assert shown[0].split() == ["time", "order", "before", "waiting", "case", "FCFS", "SJF", "LJF"]
    assert shown[2].split()[2:] == ["sjf", "fcfs", "4", "7", "16:30:00", "09:45:00", "16:30:00"]
    found = json.loads(run.invoke(app, ["decisions", "--queue-order", "--json", *at]).output)
    assert [one["order"] for one in found] == ["fcfs", "sjf"]
    wrong = run.invoke(app, ["decisions", "--queue-order", "--user", "ann", *at])
    assert "leave out --job and --user" in str(wrong.exception)


def test_the_metrics_tell_the_order_in_use(site: MockSite) -> None:
    text = _asked(site, "/metrics").text
    assert 'foretime_queue_order_in_use{order="sjf"} 1.0' in text
    assert 'foretime_queue_order_in_use{order="ljf"} 0.0' in text
    assert 'foretime_queue_order_switches_total{order="sjf"} 1.0' in text
    assert "foretime_queue_order_tries_total 1.0" in text
    assert "foretime_queue_order_failures_total 0.0" in text
    assert "foretime_queue_order_going_first 0.0" in text


def test_where_jobs_are_hidden_users_are_told_no_figures(tmp_path: Path) -> None:
    with MockSite(tmp_path, _slurm("jobs"), queue_order={"order": "dynp"}) as site:
        answer = _asked(site, "/v1/queue-order", USER).json()
        assert (answer["order"], answer["since"]) == ("sjf", NOW)
        assert (answer["why"], answer["last_try"]) == (None, None)
        assert _asked(site, "/v1/queue-order").json()["why"] is not None


def test_an_order_that_is_not_switched_is_told_without_switches(tmp_path: Path) -> None:
    with MockSite(tmp_path, _slurm(), queue_order={"order": "wfp"}) as site:
        answer = _asked(site, "/v1/queue-order").json()
        assert (answer["order"], answer["since"], answer["why"]) == ("wfp", None, None)
        assert _asked(site, "/v1/queue-order/switches").status_code == 404
        assert "Order of the queue: WFP." in _asked(site, "/", USER).text
        metrics = _asked(site, "/metrics").text
        assert "foretime_queue_order_going_first" in metrics
        assert "foretime_queue_order_tries" not in metrics


def test_a_choice_is_told_in_words_with_both_values() -> None:
    assert said_value("wait", 3661.4) == "01:01:01"
    assert said_value("sldww", 1234.567) == "1,234.57"
    assert said_value("2*artww+makespan", 2.5) == "2.50"
    assert said_value("art", None) == "-"
    both = why_chosen("sjf", "ljf", "art+wait", {"sjf": 1.5, "ljf": 2.0}, 1200, None)
    assert both == (
        "the sum of art+wait of the 1,200 jobs that wait was 1.50 as planned in it, 2.00 in LJF"
    )


def test_of_jobs_that_are_started_at_once_it_is_told_how_many(tmp_path: Path) -> None:
    machine = Machine.flat(16)
    slurm = MockSlurm(
        SlurmSetup(16, machine=machine),
        Policy(backfill=Slurm(SlurmSite(machine))),
        None,
        NOW - HOUR,
    )
    for processors, hours in ((12, 5), (16, 1), (4, 2)):
        slurm.submit(submission(processors, hours * HOUR))
    slurm.advance(NOW)
    order, hook = {"order": "start-now"}, {"mode": "enforce"}
    with MockSite(tmp_path, slurm, queue_order=order, hook=hook) as site:
        answer = _asked(site, "/v1/queue-order").json()
        assert (answer["set"], answer["order"], answer["refused"]) == ("start-now", None, None)
        assert (answer["raised"], answer["missed"]) == (0, 0)
        status = CliRunner().invoke(app, ["status", "--settings", str(site.settings_path)])
        (line,) = [line for line in status.output.splitlines() if line.startswith("order")]
        assert line.endswith(
            "Slurm's own; jobs raised to start at once since the daemon began: 0, not started by "
            "the next look: 0"
        )
        assert "Order of the queue" not in _asked(site, "/", USER).text
        metrics = _asked(site, "/metrics").text
        assert "foretime_jobs_raised_total 0.0" in metrics
        assert "foretime_jobs_raised_missed_total 0.0" in metrics
