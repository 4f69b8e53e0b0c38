"""What a page in somebody's browser must not have the daemon do, and what answers forbid."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.answers.daemon_client import RefusedError, SiteDaemon
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.change_tokens import VALID_S, ChangeTokens
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.connections.request_guard import ANSWER_HEADERS
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.processes.raw_http import exchange, head
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
HOSTS = ["cluster.example.org", "Portal.example.org:8443"]
# Nothing here erases ann; what may erase anybody erases zoe.
FORGET, ALLOWED = "/v1/me/forget?user=ann", "/v1/me/forget?user=zoe"
PATHS = ("/", "/static/page.css", "/healthz", "/metrics", "/v1/me", "/openapi.json", "/nowhere")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """A daemon on a unix socket, whose own user (this one) may erase anybody."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    with MockSite(tmp_path_factory.mktemp("guard"), slurm, api={"hosts": HOSTS}) as site:
        yield site


@pytest.fixture(scope="module")
def port_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """A daemon on a port."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    listen = {"listen": "127.0.0.1:0"}
    with MockSite(tmp_path_factory.mktemp("port"), slurm, api=listen) as site:
        yield site


@pytest.fixture
def client(site: MockSite) -> Iterator[TestClient]:
    """Asks as the user bob, with bob's token."""
    bob = Caller(Identity("socket", "bob", 4242))
    site.app.dependency_overrides[caller_of] = lambda: bob
    client = TestClient(site.app, base_url="http://localhost", raise_server_exceptions=False)
    client.headers[TOKEN_HEADER] = client.get(TOKEN_PATH).json()["token"]
    yield client
    site.app.dependency_overrides.clear()


def ask_raw(
    site: MockSite, target: str, *headers: str, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """Give status, headers and body of the one answer to a request on the socket."""
    sent = head(target, "Connection: close", *headers, method=method)
    begin, _, body = exchange(site.socket_path, sent).partition(b"\r\n\r\n")
    first, *lines = begin.decode("latin-1").split("\r\n")
    return (
        int(first.split()[1]),
        {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)},
        body,
    )


def refused(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    """Give the status of an error and where it is, which has the one shape."""
    status, headers, body = answer
    assert headers["content-type"] == "application/json"
    error = json.loads(body)["error"]
    assert list(error) == ["what", "where", "remedy"]
    assert all(isinstance(text, str) and text for text in error.values())
    return status, error["where"]


def token_of(site: MockSite) -> str:
    return f"{TOKEN_HEADER}: {json.loads(ask_raw(site, TOKEN_PATH)[2])['token']}"


def erased(site: MockSite, user: str = "ann") -> bool:
    return json.loads(ask_raw(site, f"/v1/me?user={user}")[2])["forgotten_at"] is not None


# -- Host ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8080", "LocalHost", "127.0.0.1", "127.0.0.1:1", "127.9.8.7"),
        *("[::1]", "[::1]:8642", "cluster.example.org", "CLUSTER.example.org"),
        "portal.example.org:8443",
    ],
)
def test_hosts_that_are_the_daemons_are_let_in(site: MockSite, host: str) -> None:
    assert ask_raw(site, "/healthz", f"Host: {host}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "localhost.evil.example", "notlocalhost"),
        *("127.0.0.1.evil.example", "0.0.0.0", "0.0.0.0:8642", "[::]", "10.0.0.1", "[fe80::1]"),
        *("", "localhost:", "localhost:x", "localhost.", "localhost, localhost", "2130706433"),
        *("evil@localhost", "localhost@evil.example", "localhost/evil", "127.1", "::1"),
        *("cluster.example.org:8443", "cluster.example.org.", "portal.example.org"),
        *("a.cluster.example.org", "local\xadhost", "x" * 300),
    ],
)
def test_a_host_of_somebody_elses_is_misdirected(site: MockSite, host: str) -> None:
    for path in PATHS:
        assert refused(ask_raw(site, path, f"Host: {host}")) == (421, "Host")
    answer = ask_raw(site, FORGET, f"Host: {host}", token_of(site), method="POST")
    assert refused(answer) == (421, "Host")
    assert not erased(site)


@pytest.mark.parametrize(
    "host", ["https://cluster", "cluster/foretime", "*", "", "a b", "a:b", "a:"]
)
def test_a_host_that_can_be_none_is_told_at_the_start(host: str) -> None:
    with pytest.raises(ValidationError):
        ApiSettings(hosts=[host])


# -- Origin and Sec-Fetch-Site -------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        ["Origin: http://evil.example"],
        ["Origin: null"],
        ["Origin: http://localhost"],  # another port of the same machine is another's page
        ["Origin: http://localhost:8080.evil.example"],
        ["Origin: http://localhost:8080", "Origin: http://evil.example"],
        ["Origin: file://localhost:8080"],
        ["Origin: http://127.0.0.1:8080"],
        ["Origin: http://portal.example.org"],
        ["Origin: http://localhost:8080/"],
        ["Origin: "],
        ["Origin: http://["],
        ["Origin: http://[::1"],
        ["Origin: http://localhost:8080:"],
        ["Origin: ftp://localhost:8080"],
        ["Sec-Fetch-Site: cross-site"],
        ["Sec-Fetch-Site: same-site"],  # another port of the same host
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
        ["Sec-Fetch-Site: rubbish"],
    ],
)
def test_what_another_page_has_a_browser_send_is_refused(
    site: MockSite, headers: list[str]
) -> None:
    where = headers[0].partition(":")[0]
    host = "Host: localhost:8080"
    for path in PATHS:
        assert refused(ask_raw(site, path, host, *headers)) == (403, where)
    answer = ask_raw(site, FORGET, host, *headers, token_of(site), method="POST")
    assert refused(answer) == (403, where)
    assert not erased(site)


@pytest.mark.parametrize(
    "headers",
    [
        ["Host: localhost:8080", "Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin"],
        ["Host: [::1]:8080", "Origin: http://[::1]:8080"],
        ["Host: cluster.example.org", "Origin: https://cluster.example.org"],
        # A web server before the daemon that does not pass Host on.
        ["Host: localhost", "Origin: https://portal.example.org:8443"],
        ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    ],
)
def test_the_daemons_own_page_may_ask(site: MockSite, headers: list[str]) -> None:
    assert ask_raw(site, "/healthz", *headers)[0] == 200
    assert ask_raw(site, ALLOWED, *headers, token_of(site), method="POST")[0] == 200


def test_a_link_leads_to_the_page_and_nowhere_else(site: MockSite) -> None:
    link = "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"
    assert ask_raw(site, "/", *link)[0] == 200
    assert ask_raw(site, "/?ntasks=4&time=60", *link)[0] == 200
    # It would be noted that the user has asked for it.
    assert ask_raw(site, "/v1/forecast?ntasks=4&time=60", *link)[0] == 403
    assert ask_raw(site, "/", *link, token_of(site), method="POST")[0] == 403


RUBBISH = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30).filter(
    lambda text: "\x7f" not in text
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("Host", "Origin", "Sec-Fetch-Site", "Content-Length", TOKEN_HEADER)),
            RUBBISH | st.from_regex(r"(http://)?\[?[0-9a-z:.]{0,9}\]?(:[0-9]*)?", fullmatch=True),
        ),
        max_size=3,
    )
)
def test_rubbish_is_refused_and_no_crash(site: MockSite, headers: list[tuple[str, str]]) -> None:
    client = TestClient(site.app, base_url="http://localhost", raise_server_exceptions=False)
    raw = [(name.encode(), text.encode("latin-1")) for name, text in headers]
    assert client.get("/healthz", headers=raw).status_code in {200, 400, 403, 413, 421}
    assert client.post("/v1/me/forget", headers=raw).status_code in {400, 403, 413, 421}


# -- the token -----------------------------------------------------------------------------------


def test_nothing_changes_without_ones_own_token(site: MockSite) -> None:
    good = token_of(site)
    for headers in (
        (),
        ("X-Requested-With: foretime",),
        (f"{TOKEN_HEADER}: ",),
        (f"{TOKEN_HEADER}: rubbish",),
        (f"{TOKEN_HEADER}: \xe9.\xe9",),
        (f"{TOKEN_HEADER}: {'9' * 5000}.0",),
        (good[:-1],),
        (good + "0",),
        (good.replace(": ", ": 9"),),
        (good, good),
        (good.replace(TOKEN_HEADER, "Cookie"),),
        (good.replace(f"{TOKEN_HEADER}:", "Authorization: Bearer"),),
    ):
        assert refused(ask_raw(site, FORGET, *headers, method="POST")) == (403, TOKEN_HEADER)
        assert not erased(site)
    in_address = f"{FORGET}&token={good.partition(': ')[2]}"
    assert refused(ask_raw(site, in_address, method="POST")) == (403, TOKEN_HEADER)
    assert not erased(site)
    assert ask_raw(site, ALLOWED, good, method="POST")[0] == 200
    assert erased(site, "zoe")


def test_a_token_is_of_one_caller(site: MockSite, client: TestClient) -> None:
    assert client.post("/v1/me/forget").status_code == 200
    for other in (Identity("socket", "ann", 4243), Identity("socket", None, 4242)):
        site.app.dependency_overrides[caller_of] = lambda other=other: Caller(other)
        assert client.post("/v1/me/forget").status_code == 403
    # The same person, known by something else.
    proxied = Caller(Identity("proxy", "bob"))
    site.app.dependency_overrides[caller_of] = lambda: proxied
    assert client.post("/v1/me/forget").status_code == 200


def test_nobody_known_gets_none(site: MockSite, client: TestClient, port_site: MockSite) -> None:
    site.app.dependency_overrides[caller_of] = lambda: Caller(None)
    for reply in (client.get(TOKEN_PATH), client.post("/v1/me/forget")):
        assert reply.status_code == 403
        assert "does not tell who you are" in reply.json()["error"]["what"]
    with pytest.raises(RefusedError, match="does not tell who you are"):
        SiteDaemon(port_site.listen).ask("/v1/me/forget", {}, "POST")


def test_every_path_that_changes_anything_asks_for_it(site: MockSite, client: TestClient) -> None:
    del client.headers[TOKEN_HEADER]
    changing = [
        (method, path)
        for path, methods in site.app.openapi()["paths"].items()
        for method in methods
        if method != "get"
    ]
    assert {path for _, path in changing} == {
        *("/v1/me/forget", "/v1/breaker/reset", "/v1/me/notify", "/v1/me/notify/stop")
    }
    for method, path in changing:
        reply = client.request(method, path)
        assert (reply.status_code, reply.json()["error"]["where"]) == (403, TOKEN_HEADER)


def test_a_token_is_one_persons_and_ends() -> None:
    now = 100.0
    tokens = ChangeTokens(lambda: now)
    token = tokens.make("ann")
    assert tokens.fault(token, "ann") is None
    assert tokens.make("ann") == token
    assert tokens.fault(token, "bob") == (
        "this is no token of yours, or one of before the daemon's start"
    )
    now += VALID_S
    assert tokens.fault(token, "ann") is None
    now += 1.5
    assert tokens.fault(token, "ann") == "the token has expired"
    until, _, signature = token.partition(".")
    assert tokens.fault(f"{int(until) + 60}.{signature}", "ann") is not None
    assert ChangeTokens(lambda: 100.0).fault(token, "ann") is not None


def test_the_commands_get_a_token_by_themselves(site: MockSite) -> None:
    answer = SiteDaemon(site.listen).ask("/v1/me/forget", {"user": "carl"}, "POST")
    assert answer["user"] == "carl"
    assert SiteDaemon(site.listen).ask("/v1/breaker/reset", {}, "POST")["was_open"] is False


# -- answers -------------------------------------------------------------------------------------


def test_every_answer_is_kept_from_frames_caches_and_other_sites(
    site: MockSite, client: TestClient
) -> None:
    replies = [client.get(path) for path in PATHS]
    replies += [
        client.get("/v1/forecast?time=soon"),
        client.get("/v1/ab?since=0"),
        client.post("/healthz"),
        client.get("/healthz", headers={"Host": "evil.example"}),
        client.options(
            "/v1/me/forget",
            headers={"Origin": "http://localhost", "Access-Control-Request-Method": "POST"},
        ),
        client.post("/v1/me/forget", headers={TOKEN_HEADER: ""}),
    ]
    assert {reply.status_code for reply in replies} == {200, 400, 403, 404, 405, 421}
    site.app.dependency_overrides[caller_of] = lambda: None  # a mistake of ours
    replies.append(client.get("/v1/me"))
    assert replies[-1].status_code == 500
    for reply in replies:
        assert not [name for name in reply.headers if name.startswith("access-control-")]
        for name, value in ANSWER_HEADERS.items():
            if not reply.url.path.startswith("/static"):
                assert reply.headers[name] == value, (reply.url, name)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "FORGET", "HEAD", "OPTIONS"])
def test_other_methods_do_nothing(client: TestClient, method: str) -> None:
    for path in ("/v1/me/forget", "/v1/breaker/reset", "/v1/me"):
        assert client.request(method, path).status_code == 405


def test_a_form_or_json_is_not_taken(client: TestClient) -> None:
    before = client.get("/v1/me").json()["forgotten_at"]
    for body in ({"json": {"user": "bob"}}, {"data": {"user": "bob"}}, {"content": b"user=bob"}):
        reply = client.request("POST", "/v1/me/forget", **body)
        assert (reply.status_code, reply.headers["Connection"]) == (413, "close")
    assert client.get("/v1/me").json()["forgotten_at"] == before


# -- Open OnDemand -------------------------------------------------------------------------------


def test_ondemand_passes_on_which_page_asks(site: MockSite, repository: Path) -> None:
    """Its own cookie comes along whichever page has the browser ask."""
    path = repository / "contrib/ondemand/foretime/passenger_wsgi.py"
    spec = importlib.util.spec_from_file_location("passenger_wsgi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SOCKET = str(site.socket_path)  # type: ignore[attr-defined]

    def status(**more: str) -> str:
        said: list[str] = []
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/v1/me", "QUERY_STRING": "user=ann"}
        module.application(environ | more, lambda status, _: said.append(status))
        return said[0]

    assert status().startswith("200 ")
    assert status(HTTP_SEC_FETCH_SITE="same-origin").startswith("200 ")
    assert status(HTTP_SEC_FETCH_SITE="cross-site").startswith("403 ")
