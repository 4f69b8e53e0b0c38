"""How often one caller may ask: buckets by hand, and what is answered when one is empty."""

from __future__ import annotations

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sidecar.web.auth.rate_limits import RateLimits
from hypothesis import example, given
from hypothesis import strategies as st


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def limits(clock: Clock, per_minute: int = 60, burst: int = 5) -> RateLimits:
    settings = ApiSettings(requests_per_minute=per_minute, request_burst=burst)
    return RateLimits(settings, clock)


def test_a_burst_is_let_through_and_then_the_rate() -> None:
    clock = Clock()
    buckets = limits(clock)
    assert [buckets.take("ann", 1) for _ in range(6)] == [0, 0, 0, 0, 0, 1]
    clock.now += 1
    assert [buckets.take("ann", 1) for _ in range(2)] == [0, 1]
    clock.now += 2.5
    assert buckets.take("ann", 5) == 3  # 2.5 there, 2.5 s to come
    assert buckets.take("ann", 2) == 0  # nothing was taken by what was refused


def test_each_caller_has_their_own() -> None:
    buckets = limits(Clock())
    assert buckets.take("ann", 5) == 0
    assert buckets.take("ann", 1) == 1
    assert buckets.take("bob", 5) == 0


def test_buckets_that_are_full_again_are_forgotten() -> None:
    clock = Clock()
    buckets = limits(clock)
    for number in range(10_001):
        buckets.take(f"user{number}", 1)
        clock.now += 0.01
    assert len(buckets._buckets) < 1_000
    # Those that are not full are kept: the last has asked just now.
    assert buckets.take("user10000", 5) == 1


@example([(22.292158102818078, 5), (0.0, 5)])
@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), max_size=60))
def test_no_caller_gets_more_than_burst_and_rate(asked: list[tuple[float, int]]) -> None:
    clock = Clock()
    buckets = limits(clock, per_minute=30, burst=7)
    begin, given_out = clock.now, 0
    for pause_s, tokens in asked:
        clock.now += pause_s
        wait_s = buckets.take("ann", tokens)
        given_out += tokens if not wait_s else 0
        assert given_out <= 7 + (clock.now - begin) * 0.5 + 1e-6
        if wait_s:
            clock.now += wait_s
            assert buckets.take("ann", tokens) == 0
            given_out += tokens


@pytest.fixture
def app() -> FastAPI:
    """An application with the limits, whose callers a test sets."""
    settings = ApiSettings(requests_per_minute=60, request_burst=5)
    app = FastAPI(dependencies=[Depends(RateLimits(settings, Clock()).check)])

    @app.exception_handler(ApiError)
    def refused(_request: Request, error: ApiError) -> JSONResponse:
        return error.response()

    for path in ("/v1/forecast", "/v1/advice", "/healthz", "/metrics"):
        app.get(path)(lambda: "answer")
    return app


def test_too_many_requests_are_told_when_to_come_again(app: FastAPI) -> None:
    app.dependency_overrides[caller_of] = lambda: Caller(Identity.of_peer(Peer(1, 65534, 65534)))
    client = TestClient(app, base_url="http://localhost")
    for _ in range(5):
        assert client.get("/v1/forecast").status_code == 200
    refused = client.get("/v1/forecast")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    error = refused.json()["error"]
    assert error["what"].startswith("nobody asks too often: 60 requests a minute")
    assert error["remedy"] == "ask again in 1 s"
    assert client.get("/v1/advice").headers["Retry-After"] == "5"
    assert client.get("/healthz").status_code == client.get("/metrics").status_code == 200
    # Others are answered all the same; those whom nothing tells apart are one.
    app.dependency_overrides[caller_of] = lambda: Caller(None)
    assert client.get("/v1/advice").status_code == 200
    assert client.get("/v1/forecast").status_code == 429


def test_over_a_port_each_uid_has_their_own(app: FastAPI) -> None:
    client = TestClient(app, base_url="http://localhost")
    for uid in (1000, 1001):
        app.dependency_overrides[caller_of] = lambda uid=uid: Caller(None, connection=uid)
        assert {client.get("/v1/forecast").status_code for _ in range(5)} == {200}
        refused = client.get("/v1/forecast")
        assert refused.status_code == 429
        assert refused.json()["error"]["what"].startswith(f"uid {uid} asks too often")


def test_root_may_ask_as_often_as_it_likes(app: FastAPI) -> None:
    app.dependency_overrides[caller_of] = lambda: Caller(Identity.of_peer(Peer(1, 0, 0)))
    client = TestClient(app, base_url="http://localhost")
    assert {client.get("/v1/advice").status_code for _ in range(20)} == {200}
