"""The daemon answers as its own description says, to whoever asks and whatever is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from hypothesis import HealthCheck, settings
from schemathesis.config import (
    ChecksConfig,
    GenerationConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support import client_answers

KEY = b"a key of the test's own, as long as Slurm's"
EXAMPLES = 5  # of each path and caller, besides those that the schema's bounds give
NOW = 1_700_000_000


class Site:
    """A machine that is full, with jobs of two users, behind the API with all that is optional."""

    def __init__(self, folder: Path) -> None:
        key = folder / "key"
        key.write_bytes(KEY)
        key.chmod(0o600)
        secret = folder / "secret"
        secret.write_text("the proxy's own secret, and nobody else's")
        secret.chmod(0o600)
        self.now = NOW
        chosen = Settings.model_validate(
            {
                "table": {"path": str(folder / "table")},
                "queue_order": {"order": "dynp"},
                "notify": {
                    "way": "sendmail",
                    "mail_domain": "hpc.example",
                    "sendmail": str(folder / "none"),
                    "most_jobs": 1,
                },
                "api": {
                    "jwt_key_file": str(key),
                    "proxy_secret_file": str(secret),
                    "operators": ["olga"],
                    "requests_per_minute": 1_000_000,
                    "request_burst": 1_000_000,
                },
            }
        )
        slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        self.jobs = [
            str(slurm.submit(Submission(user, "p", None, 64, 1800, 1800)))
            for user in ("ann", "bob", "ann", "ann")
        ]
        slurm.advance(NOW + 60)
        self.now = NOW + 60
        self.sidecar = Sidecar(
            chosen,
            SlurmCommands(slurm.run),
            Store(":memory:"),
            forecasts=True,
            shadow=True,
            beside=True,
            notifies=True,
        )
        self.sidecar.look(self.now)
        self.sidecar.poll(self.now)
        assert self.sidecar.forecasting is not None
        assert self.sidecar.forecasting.refresh()
        scoreboard = self.sidecar.scoreboard
        assert scoreboard is not None
        while scoreboard.refresh():
            pass
        self._shown: dict[str, dict[str, str]] = {}
        self.app: FastAPI = create_app(self.sidecar, Health(NOW), lambda: self.now)

    def headers(self, user: str | None) -> dict[str, str]:
        """What somebody shows: a token of who they are, and one to change anything with."""
        if user is None:
            return {}
        if user not in self._shown:
            claims = {"sun": user, "exp": self.now + 3600, "iat": self.now}
            shown = {"Authorization": f"Bearer {jwt.encode(claims, KEY, 'HS256')}"}
            client = TestClient(self.app, base_url="http://localhost")
            token = client.get(TOKEN_PATH, headers=shown).json()["token"]
            self._shown[user] = shown | {TOKEN_HEADER: token}
        return self._shown[user]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("daemon"))
    ASKED.app = made.app
    yield made
    del ASKED.app
    assert made.sidecar.notifier is not None
    made.sidecar.notifier.save()
    made.sidecar.store.close()


def closed(schema: Any) -> Any:
    """A schema in which no object has fields that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        shut.setdefault("additionalProperties", False)
    return shut


class Asked:
    """The application of the site that the tests at work have."""

    app: FastAPI

    async def __call__(self, *arguments: Any) -> None:
        await self.app(*arguments)


ASKED = Asked()
# All that may become of a wrong question; 431 where it is longer than 32 KiB.
REFUSED = ["400", "401", "403", "404", "405", "431"]


def described(*, makes_proofs: bool) -> schemathesis.BaseSchema:
    """What the daemon says of itself, before there is one to ask."""
    generation = GenerationConfig(
        deterministic=bool(os.environ.get("CI")), with_security_parameters=makes_proofs
    )
    checks = ChecksConfig.from_dict({"negative_data_rejection": {"expected-statuses": REFUSED}})
    project = ProjectConfig(generation=generation, checks=checks)
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    found = schemathesis.openapi.from_dict(closed(DESCRIPTION), config=config)
    found.app = ASKED
    return found


DESCRIPTION = client_answers.described()
# Whoever shows a good proof shows no other.
OF_KNOWN, OF_UNKNOWN = described(makes_proofs=False), described(makes_proofs=True)
# No schema says which parameters of a job go together, and which jobs a machine has room for.
OF_JOBS = ("/v1/forecast", "/v1/advice")
BOUNDED = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


def answer(case: schemathesis.Case[Any], site: Site, user: str | None) -> None:
    left_out: list[schemathesis.CheckFunction] = (
        [positive_data_acceptance] if case.operation.path in OF_JOBS else []
    )
    case.call_and_validate(
        base_url="http://localhost", headers=site.headers(user), excluded_checks=left_out
    )


@OF_KNOWN.parametrize()
@BOUNDED
def test_an_operator_is_answered_as_described(case: schemathesis.Case[Any], site: Site) -> None:
    answer(case, site, "olga")


@OF_KNOWN.parametrize()
@BOUNDED
def test_a_user_is_answered_as_described(case: schemathesis.Case[Any], site: Site) -> None:
    answer(case, site, "ann")


@OF_UNKNOWN.parametrize()
@BOUNDED
def test_nobody_known_is_answered_as_described(case: schemathesis.Case[Any], site: Site) -> None:
    answer(case, site, None)


def test_news_of_a_job_that_waits_are_answered_as_described(site: Site) -> None:
    """Which jobs wait no schema says: these are asked for by their own ids."""
    _, bobs, anns, another = site.jobs

    def asked(path: str, job: str) -> int:
        case = OF_KNOWN[path]["POST"].Case(query={"job": job})
        reply = case.call_and_validate(base_url="http://localhost", headers=site.headers("ann"))
        return reply.status_code

    notify, stop = "/v1/me/notify", "/v1/me/notify/stop"
    assert [asked(notify, job) for job in (bobs, anns, another)] == [404, 200, 409]
    assert [asked(stop, anns), asked(stop, anns)] == [200, 404]
