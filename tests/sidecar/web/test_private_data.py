"""Where the scheduler hides jobs: who is told what of waits, and how coarsely."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.clients.pbs.json import parse_configuration as pbs_configuration
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.control_texts import parse_configuration as slurm_configuration
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecast_answer.coarsening import coarse_count, coarse_wait
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_700_000_000
UNKNOWN = Caller(None)
NOBODY, OLGA = Caller(Identity("munge", "nobody", 65534)), Caller(Identity("munge", "olga"), True)
QUESTION = "/v1/forecast?processors=64&time=60"


class Site:
    """A full machine behind the API: a job runs, twelve wait, one of them nobody's."""

    def __init__(self, folder: Path, private_data: str) -> None:
        self.slurm = MockSlurm(SlurmSetup(64, private_data=private_data), Policy(), None, NOW)
        self.slurm.submit(Submission("ann", "p", None, 64, 7000, 5400))
        for _ in range(11):
            self.slurm.submit(Submission("bob", "p", None, 64, 600, 600))
        self.mine = str(self.slurm.submit(Submission("nobody", "p", None, 8, 1800, 1200)))
        settings = Settings.model_validate({"table": {"path": str(folder / "table")}})
        commands = SlurmCommands(self.slurm.run)
        self.sidecar = Sidecar(settings, commands, Store(":memory:"), forecasts=True)
        self.app = create_app(self.sidecar, Health(NOW), lambda: NOW + 60)
        self.client = TestClient(
            self.app, base_url="http://localhost", raise_server_exceptions=False
        )
        self.look(NOW + 60)

    def look(self, now: int) -> None:
        self.slurm.advance(now)
        self.sidecar.look(now)
        assert self.sidecar.forecasting is not None
        assert self.sidecar.forecasting.refresh()

    def ask(self, path: str, caller: Caller, status: int = 200) -> Any:
        self.app.dependency_overrides[caller_of] = lambda: caller
        reply = self.client.get(path)
        assert reply.status_code == status, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("private"), "jobs,usage")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("public"), "")


def test_where_jobs_are_hidden_one_must_be_known_to_ask(private: Site, public: Site) -> None:
    for path in (QUESTION, "/v1/advice?processors=64&time=60", "/v1/map"):
        error = private.ask(path, UNKNOWN, 403)["error"]
        assert "hides other people's jobs" in error["what"]
        public.ask(path, UNKNOWN)
        private.ask(path, NOBODY)


def test_answers_are_coarse_but_not_for_operators(private: Site, public: Site) -> None:
    exact = public.ask(QUESTION, NOBODY)
    assert private.ask(QUESTION, OLGA) | {"user": "nobody"} == exact
    coarse = private.ask(QUESTION, NOBODY)
    for level, wait in exact["wait_s"].items():
        assert coarse["wait_s"][level] >= wait
        assert coarse["start_time"][level] == coarse["made_at"] + coarse["wait_s"][level]
        assert coarse["start_time"][level] % 900 == 0
    assert coarse["likely_wait_s"] == coarse["wait_s"]["0.5"]
    assert {str(level): wait for level, wait in coarse["quantiles"]} == coarse["wait_s"]
    assert (exact["running_jobs"], exact["pending_jobs"]) == (1, 12)
    assert (coarse["running_jobs"], coarse["pending_jobs"]) == (10, 20)
    assert exact["reason"]["text"].endswith("; 12 jobs ahead in the queue")
    assert coarse["reason"]["text"] == "waits for 64 processors"
    assert "hides" in coarse["assumptions"][-1]
    assert coarse["starts_now"] in (0, 0.25, 0.5, 0.75, 1)


def test_of_few_users_those_who_are_not_known_are_told_as_little(tmp_path: Path) -> None:
    public = Site(tmp_path, "")
    exact, coarse = public.ask(QUESTION, NOBODY), public.ask(QUESTION, UNKNOWN)
    assert exact["wait_s"]["0.95"] < coarse["wait_s"]["0.95"]
    assert coarse["start_time"]["0.95"] % 900 == 0
    assert (exact["pending_jobs"], coarse["pending_jobs"]) == (12, 20)
    assert "few users have jobs" in coarse["assumptions"][-1]
    for user in ("u1", "u2"):
        public.slurm.submit(Submission(user, "p", None, 64, 600, 600))
    public.look(NOW + 70)
    assert public.ask(QUESTION, UNKNOWN)["pending_jobs"] == 14


def test_what_is_told_of_ones_own_jobs_is_as_coarse(private: Site, public: Site) -> None:
    path = f"/v1/jobs/{private.mine}/forecast"
    exact, coarse = public.ask(path, NOBODY), private.ask(path, NOBODY)
    assert coarse["wait_s"]["0.95"] >= exact["wait_s"]["0.95"]
    assert coarse["start_time"]["0.95"] % 900 == 0
    assert "ahead" not in coarse["reason"]["text"]
    (row,) = private.ask("/v1/jobs/forecasts?brief=1", NOBODY)["jobs"]
    assert row["wait_s"] == coarse["wait_s"]
    assert private.ask("/v1/jobs/forecasts", NOBODY)["others"] == {"pending": 20}
    assert public.ask("/v1/jobs/forecasts", NOBODY)["others"] == {"pending": 11}
    assert private.ask("/v1/jobs/forecasts", UNKNOWN)["jobs"] == []


def test_the_map_and_advice_are_as_coarse(private: Site) -> None:
    (drawn,) = private.ask("/v1/map", NOBODY)["maps"]
    waits = [wait for rows in drawn["bound_95_s"] for wait in rows if wait]
    assert waits
    assert {(NOW + 60 + wait) % 900 for wait in waits} == {0}
    advice = private.ask("/v1/advice?nodes=1&ntasks_per_node=64&time=60", NOBODY)
    for one in advice["alternatives"]:
        difference = advice["asked"]["likely_wait_s"] - one["forecast"]["likely_wait_s"]
        assert one["sooner_s"] == difference
        assert (NOW + 60 + one["forecast"]["likely_wait_s"]) % 900 == 0


def test_where_usage_is_hidden_nothing_of_an_account_is_told(private: Site) -> None:
    assert private.ask("/v1/accuracy?project=p", NOBODY)["project"]["classes"] == []
    assumed = private.ask(QUESTION + "&account=p", NOBODY)["assumptions"]
    assert any("as the site hides accounts" in text for text in assumed)


def test_the_page_is_as_coarse(private: Site, public: Site) -> None:
    def page(site: Site, caller: Caller) -> str:
        site.app.dependency_overrides[caller_of] = lambda: caller
        reply = site.client.get("/")
        assert reply.status_code == 200
        return reply.text

    assert page(private, UNKNOWN).count("<table") < page(public, UNKNOWN).count("<table")
    assert page(private, NOBODY).count("<table") == page(public, NOBODY).count("<table")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [("none", set()), ("jobs", {"jobs"}), ("Accounts,jobs,USAGE", {"accounts", "jobs", "usage"})],
)
def test_what_slurm_hides_is_read_from_private_data(text: str, hidden: set[str]) -> None:
    said = f"SLURM_VERSION = 23.11.10\nPrivateData             = {text}\n"
    assert slurm_configuration(said).private_data == hidden


@pytest.mark.parametrize(
    ("server", "hidden"),
    [
        ('{"query_other_jobs": "True"}', set()),
        ('{"query_other_jobs": "False"}', {"jobs"}),
        ("{}", {"jobs"}),
    ],
)
def test_what_pbs_hides_is_read_from_query_other_jobs(server: str, hidden: set[str]) -> None:
    reply = f'{{"timestamp": 1, "pbs_version": "23", "Server": {{"p": {server}}}}}'
    assert pbs_configuration(reply).private_data == hidden


WAITS = st.lists(st.integers(0, 40 * 86_400), min_size=1, max_size=8)


@given(WAITS, st.integers(NOW, NOW + 100_000))
def test_coarse_bounds_hold_and_stay_in_order(waits: list[int], made_at: int) -> None:
    waits.sort()
    coarse = [coarse_wait(wait, made_at) for wait in waits]
    assert coarse == sorted(coarse)
    for wait, blurred in zip(waits, coarse, strict=True):
        assert wait <= blurred < wait + 86_400
        assert (blurred == 0) == (wait == 0)
        assert blurred == 0 or (made_at + blurred) % 900 == 0


@given(st.integers(0, 50), st.tuples(*[st.integers(1, 900)] * 2), st.integers(1, 3600))
def test_asking_at_any_time_tells_no_two_starts_of_a_quarter_of_an_hour_apart(
    quarter: int, within: tuple[int, int], before: int
) -> None:
    first = NOW // 900 * 900 + 900 * quarter
    one, other = (first + seconds for seconds in within)
    at = first - before
    # Both less than an hour off: else the steps are longer, and so is what can't be told apart.
    if max(one, other) - at <= 3600:
        assert at + coarse_wait(one - at, at) == at + coarse_wait(other - at, at) == first + 900


def test_counts_are_rounded_up() -> None:
    found = [coarse_count(count) for count in (0, 1, 10, 11, 99, 100, 101, 999, 1000, 1001, 12345)]
    assert found == [0, 10, 10, 20, 100, 100, 200, 1000, 1000, 2000, 20_000]
    every = [coarse_count(count) for count in range(3000)]
    assert all(before <= after for before, after in itertools.pairwise(every))
