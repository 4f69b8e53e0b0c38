"""Who asks: what proves it, what does not, and that rubbish is neither an identity nor a crash."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import string
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jwt
import pytest
import requests_unixsocket
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.authenticate import Identities
from foretime_sidecar.web.auth.identity import Identity, IdentityError, name_of
from foretime_sidecar.web.auth.munge_credential import MungeCredentials
from foretime_sidecar.web.auth.peer import Peer
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
KEY = bytes(range(1, 33))
SECRET = "kept between the proxy and us"
RSA_KEY = rsa.generate_private_key(65537, 2048)
NOBODY, DAEMON, ROOT = Peer(1, 65534, 65534), Peer(2, 1, 1), Peer(3, 0, 0)


def written(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def key_set(**more: Any) -> bytes:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key()))
    return json.dumps({"keys": [{**public, "kid": "one", **more}]}).encode()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ApiSettings:
    """Everything is believed that can be, but MUNGE."""
    folder = tmp_path_factory.mktemp("keys")
    return ApiSettings(
        jwt_key_file=written(folder / "jwt", KEY),
        jwks_file=written(folder / "jwks", key_set(), 0o644),
        proxy_users=["daemon"],
        proxy_secret_file=written(folder / "secret", f"{SECRET}\n".encode()),
        operators=["olga"],
    )


@pytest.fixture(scope="module")
def identities(settings: ApiSettings) -> Identities:
    return Identities(settings, lambda: NOW)


def token(key: Any = KEY, algorithm: str = "HS256", **claims: Any) -> str:
    whole = {"sun": "alice", "exp": NOW + 60, "iat": NOW, **claims}
    kept = {name: value for name, value in whole.items() if value is not None}
    headers = {"kid": "one"} if algorithm == "RS256" else None
    return jwt.encode(kept, key, algorithm, headers=headers)


def signed_by_hand(header: dict[str, Any], claims: Any, key: bytes) -> str:
    """A token as RFC 7515 says, made without PyJWT."""

    def part(content: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=")

    said = part(header) + b"." + part(claims)
    mac = base64.urlsafe_b64encode(hmac.digest(key, said, hashlib.sha256)).rstrip(b"=")
    return (said + b"." + mac).decode()


def bearer(text: str) -> Headers:
    return Headers({"Authorization": f"Bearer {text}"})


# -- Slurm's tokens ------------------------------------------------------------------------------


def test_a_token_says_who_asks(identities: Identities) -> None:
    alice = Identity("slurm-token", "alice")
    assert identities.of(None, bearer(token())) == alice
    assert identities.of(None, bearer(token(RSA_KEY, "RS256"))) == alice
    assert identities.of(None, Headers({"X-SLURM-USER-TOKEN": token()})) == alice
    by_hand = signed_by_hand({"alg": "HS256"}, {"username": "alice", "exp": NOW + 1}, KEY)
    assert identities.of(None, bearer(by_hand)) == alice
    # A name beside it counts for nothing.
    named = Headers({"X-SLURM-USER-TOKEN": token(), "X-SLURM-USER-NAME": "root"})
    assert identities.of(None, named) == alice
    nobody = identities.of(None, bearer(token(sun="nobody")))
    assert nobody is not None
    assert nobody.uid == 65534
    assert not nobody.privileged


def test_a_claim_of_the_sites_own_is_looked_at_first(settings: ApiSettings) -> None:
    chosen = settings.model_copy(update={"jwt_user_claim": "preferred_username"})
    identities = Identities(chosen, lambda: NOW)
    found = identities.of(None, bearer(token(preferred_username="carol")))
    assert found == Identity("slurm-token", "carol")
    assert identities.of(None, bearer(token())) == Identity("slurm-token", "alice")


PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
CLAIMS = {"sun": "alice", "exp": NOW + 60}
FORGED = {
    "wrong key": token(bytes(32)),
    "wrong RSA key": token(rsa.generate_private_key(65537, 2048), "RS256"),
    "expired": token(exp=NOW - 60),
    "expires never": token(exp=None),
    "expires in words": signed_by_hand({"alg": "HS256"}, {"sun": "alice", "exp": "late"}, KEY),
    "expires at true": signed_by_hand({"alg": "HS256"}, {"sun": "alice", "exp": True}, KEY),
    "expires at infinity": signed_by_hand(
        {"alg": "HS256"}, {"sun": "alice", "exp": float("inf")}, KEY
    ),
    "not yet valid": token(nbf=NOW + 60),
    "issued in the future": token(iat=NOW + 60),
    "names nobody": token(sun=None),
    "names a number": signed_by_hand({"alg": "HS256"}, {"sun": 0, "exp": NOW + 60}, KEY),
    "names a path": token(sun="../root"),
    "names root and more": token(sun="root\n"),
    "claims are a list": signed_by_hand({"alg": "HS256"}, ["alice"], KEY),
    "unsigned": signed_by_hand({"alg": "none"}, CLAIMS, b"").rpartition(".")[0] + ".",
    "of an algorithm in capitals": signed_by_hand({"alg": "hs256"}, CLAIMS, KEY),
    "HS512": token(bytes(64), "HS512"),
    # A public key taken for a secret one.
    "alg confusion, PEM": signed_by_hand({"alg": "HS256"}, CLAIMS, PEM),
    "alg confusion, JWKS": signed_by_hand({"alg": "HS256", "kid": "one"}, CLAIMS, key_set()),
    "a key of its own": signed_by_hand(
        {"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}}, CLAIMS, bytes(3)
    ),
    "unknown key": jwt.encode(CLAIMS, RSA_KEY, "RS256", headers={"kid": "two"}),
    "without key": jwt.encode(CLAIMS, RSA_KEY, "RS256") + "x",
    "critical extension": signed_by_hand({"alg": "HS256", "crit": ["exp"]}, CLAIMS, KEY),
    "kid is a list": signed_by_hand({"alg": "HS256", "kid": ["one"]}, CLAIMS, KEY),
    "alg is a list": signed_by_hand({"alg": ["HS256"]}, CLAIMS, KEY),
    "deep": "e30." * 3 + "[" * 5000,
    "long": "a" * 100_000,
    "empty": "",
    "another alphabet": "é.é.é",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_token_that_is_none_of_ours_is_no_identity(identities: Identities, name: str) -> None:
    with pytest.raises(IdentityError) as refused:
        identities.of(None, bearer(FORGED[name]))
    assert refused.value.remedy
    assert KEY.decode("latin-1") not in str(refused.value)


@pytest.mark.parametrize("kind", ["jwt_key_file", "jwks_file"])
def test_what_a_token_is_signed_with_is_for_the_settings_to_say(
    settings: ApiSettings, kind: str
) -> None:
    identities = Identities(settings.model_copy(update={kind: ""}), lambda: NOW)
    refused, taken = token(), token(RSA_KEY, "RS256")
    if kind == "jwks_file":
        refused, taken = taken, refused
    assert identities.of(None, bearer(taken)) is not None
    with pytest.raises(IdentityError, match="not taken here"):
        identities.of(None, bearer(refused))


def test_tokens_are_not_looked_at_without_a_key() -> None:
    identities = Identities(ApiSettings(), lambda: NOW)
    assert identities.of(None, bearer(token())) is None
    assert identities.of(NOBODY, bearer(token())) == Identity("socket", "nobody", 65534)


def test_a_key_made_with_openssl_genrsa_is_one(tmp_path: Path) -> None:
    text = b"-----BEGIN RSA PRIVATE KEY-----\nabcdef\n-----END RSA PRIVATE KEY-----\n"
    path = written(tmp_path / "key", text)
    identities = Identities(ApiSettings(jwt_key_file=path), lambda: NOW)
    by_hand = signed_by_hand({"alg": "HS256"}, CLAIMS, text)
    assert identities.of(None, bearer(by_hand)) == Identity("slurm-token", "alice")


def test_a_changed_key_counts_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "key", KEY)
    identities = Identities(ApiSettings(jwt_key_file=path), lambda: NOW)
    new = bytes(range(2, 34))
    written(tmp_path / "key", new)
    with pytest.raises(IdentityError):
        identities.of(None, bearer(token()))
    assert identities.of(None, bearer(token(new))) is not None


@pytest.mark.parametrize(
    ("setting", "content", "mode", "said"),
    [
        ("jwt_key_file", None, 0, "can't read it"),
        ("jwt_key_file", b"short", 0o600, "can be guessed"),
        ("jwt_key_file", KEY, 0o644, "everybody may read"),
        ("proxy_secret_file", b"", 0o600, "it is empty"),
        ("jwks_file", b"{}", 0o644, "no JSON Web Key Set"),
        ("jwks_file", b'{"keys": [{"kty": "oct", "k": "AAAA"}]}', 0o644, "RSA key"),
    ],
)
def test_a_key_that_can_not_be_used_is_told_at_the_start(
    tmp_path: Path, setting: str, content: bytes | None, mode: int, said: str
) -> None:
    path = str(tmp_path / "file")
    if content is not None:
        written(tmp_path / "file", content, mode)
    with pytest.raises(InputError, match=said) as refused:
        Identities(ApiSettings.model_validate({setting: path}), lambda: NOW)
    assert f"api.{setting}" in str(refused.value)


# -- the proxy -----------------------------------------------------------------------------------


def proxied(*names: str, secret: str | None = None) -> Headers:
    raw = [(b"x-remote-user", name.encode("latin-1")) for name in names]
    if secret is not None:
        raw.append((b"x-foretime-proxy-secret", secret.encode("latin-1")))
    return Headers(raw=raw)


def test_the_proxys_header_is_believed_of_the_proxy(identities: Identities) -> None:
    alice = Identity("proxy", "alice")
    assert identities.of(DAEMON, proxied("alice")) == alice
    assert identities.of(None, proxied("alice", secret=SECRET)) == alice
    # What comes through it is not the proxy's own, even if nobody is named.
    assert identities.of(DAEMON, proxied()) is None
    assert identities.of(None, proxied(secret=SECRET)) is None


def test_a_proxy_makes_nobody_root(settings: ApiSettings) -> None:
    chosen = settings.model_copy(update={"proxy_users": ["root"]})
    identities = Identities(chosen, lambda: NOW)
    assert identities.of(ROOT, proxied()) is None
    found = identities.of(ROOT, proxied("root"))
    assert found is not None
    assert not found.privileged


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        (NOBODY, proxied("alice")),
        (NOBODY, proxied("nobody")),
        (NOBODY, proxied("alice", secret=SECRET)),  # on the socket the peer decides
        (ROOT, proxied("alice")),
        (None, proxied("alice")),
        (None, proxied("alice", secret="")),
        (None, proxied("alice", secret=SECRET + "x")),
        (None, proxied("alice", secret=SECRET[:-1])),
        (None, proxied(secret="wrong")),
        (None, Headers(raw=[*proxied("a", secret=SECRET).raw, *proxied(secret=SECRET).raw])),
        (DAEMON, proxied("alice", "bob")),
        (DAEMON, proxied("")),
        (DAEMON, proxied("alice,bob")),
        (DAEMON, proxied("uid 0")),
        (DAEMON, proxied("ålice")),
    ],
)
def test_a_forged_header_is_refused(
    identities: Identities, peer: Peer | None, headers: Headers
) -> None:
    with pytest.raises(IdentityError):
        identities.of(peer, headers)


def test_without_a_proxy_its_header_is_like_any_other() -> None:
    identities = Identities(ApiSettings(), lambda: NOW)
    assert identities.of(None, proxied("alice")) is None
    assert identities.of(NOBODY, proxied("root")) == Identity("socket", "nobody", 65534)


# -- together ------------------------------------------------------------------------------------


def test_proofs_that_disagree_are_none(identities: Identities) -> None:
    for peer, headers in (
        (NOBODY, bearer(token())),
        (ROOT, bearer(token())),
        (DAEMON, Headers({"X-Remote-User": "bob", "Authorization": f"Bearer {token()}"})),
        (None, Headers({"X-SLURM-USER-TOKEN": token(sun="bob"), **bearer(token())})),
    ):
        with pytest.raises(IdentityError, match="more than one"):
            identities.of(peer, headers)
    # One that is none spoils the others.
    with pytest.raises(IdentityError):
        identities.of(NOBODY, bearer("rubbish"))


def test_of_proofs_that_agree_the_surest_counts(identities: Identities) -> None:
    found = identities.of(NOBODY, bearer(token(sun="nobody")))
    assert found == Identity("socket", "nobody", 65534)
    headers = Headers({"X-Remote-User": "alice", "Authorization": f"Bearer {token()}"})
    assert identities.of(DAEMON, headers) == Identity("slurm-token", "alice")


# -- MUNGE ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def munge_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A munged of our own."""
    if not all(map(shutil.which, ("munged", "munge", "unmunge"))):
        pytest.skip("MUNGE is not installed (apt install munge)")
    if os.geteuid() != 0:
        pytest.skip("credentials of others can be made by root alone")
    folder = tmp_path_factory.mktemp("munge")
    for above in (folder, *folder.parents):
        if above.stat().st_mode & 0o011 != 0o011:
            above.chmod(above.stat().st_mode | 0o011)
    key = written(folder / "key", os.urandom(32))
    command = ["munged", "--foreground", "--force", f"--socket={folder}/s", f"--key-file={key}"]
    command += [f"--{name}-file={folder / name}" for name in ("pid", "seed", "log")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as munged:
        for _ in range(200):
            if (folder / "s").exists():
                break
            time.sleep(0.05)
        yield f"{folder}/s"
        munged.terminate()


def credential(socket: str, uid: int = 65534, *options: str) -> str:
    command = ["munge", "--no-input", f"--socket={socket}", *options]
    return subprocess.run(
        command, user=uid, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_munge_says_who_asks_and_only_once(munge_socket: str) -> None:
    settings = ApiSettings(munge=True, munge_socket=munge_socket)
    identities = Identities(settings, lambda: NOW)
    shown = Headers({"Authorization": f"Munge {credential(munge_socket)}"})
    assert identities.of(None, shown) == Identity("munge", "nobody", 65534)
    with pytest.raises(IdentityError, match="used before"):
        identities.of(None, shown)
    of_root = Headers({"Authorization": f"Munge {credential(munge_socket, 0)}"})
    found = identities.of(None, of_root)
    assert found is not None
    assert found.privileged
    nobodys = Headers({"Authorization": f"Munge {credential(munge_socket)}"})
    with pytest.raises(IdentityError, match="more than one"):
        identities.of(DAEMON, nobodys)


def test_a_request_decodes_its_credential_once(munge_socket: str, tmp_path: Path) -> None:
    """The rate limit asks who it is, and the answer does."""
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    api = {"munge": True, "munge_socket": munge_socket, "proxy_users": [name_of(os.geteuid())]}
    with MockSite(tmp_path, slurm, api=api) as site:
        where = f"http+unix://{quote(str(site.socket_path), safe='')}/v1/accuracy"
        headers = {"Authorization": f"Munge {credential(munge_socket)}"}
        with requests_unixsocket.Session() as session:
            session.trust_env = False
            assert session.get(where, headers=headers).json()["user"] == "nobody"
            again = session.get(where, headers=headers)
        assert again.status_code == 401
        assert "used before" in again.json()["error"]["what"]


def test_munge_refuses_what_is_not_for_us(munge_socket: str) -> None:
    munge = MungeCredentials(munge_socket)
    good = credential(munge_socket)
    at = len(good) // 2
    changed = good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :]
    short = credential(munge_socket, 65534, "--ttl=1")
    others = credential(munge_socket, 65534, "--restrict-uid=1")
    time.sleep(2.1)
    for wrong, said in (
        (changed, "does not vouch"),
        (short, "expired"),
        (others, "not for the daemon's user"),
        ("rubbish", "no MUNGE credential"),
        (good + "\n" + good, "no MUNGE credential"),
        ("MUNGE:AwQFAACC:", "does not vouch"),
    ):
        with pytest.raises(IdentityError, match=said):
            munge.identity(wrong, "Authorization")
    assert munge.identity(good, "Authorization").user == "nobody"


def test_without_munged_nobody_is_let_through(tmp_path: Path) -> None:
    if not shutil.which("unmunge"):
        pytest.skip("MUNGE is not installed (apt install munge)")
    with pytest.raises(StateError, match="munged"):
        MungeCredentials(str(tmp_path / "none")).identity("MUNGE:AwQFAACC:", "Authorization")


# -- over HTTP -----------------------------------------------------------------------------------


class FromPeer:
    """The application as a peer of a unix socket finds it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.peer: Peer | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["peer"] = self.peer
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def served(
    settings: ApiSettings, tmp_path_factory: pytest.TempPathFactory
) -> tuple[FromPeer, TestClient]:
    whole = Settings.model_validate(
        {
            "table": {"path": str(tmp_path_factory.mktemp("table") / "t")},
            "api": {**settings.model_dump(), "request_burst": 1_000_000},
        }
    )
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    sidecar = Sidecar(whole, SlurmCommands(slurm.run), Store(":memory:"))
    app = FromPeer(create_app(sidecar, Health(NOW), lambda: NOW))
    return app, TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def test_what_each_may_see_over_http(served: tuple[FromPeer, TestClient]) -> None:
    app, client = served
    app.peer = None

    def whose(user: str, **headers: str) -> int:
        return client.get(f"/v1/accuracy?user={user}", headers=headers).status_code

    assert whose("alice", Authorization=f"Bearer {token()}") == 200
    assert whose("bob", Authorization=f"Bearer {token()}") == 403
    assert whose("bob", Authorization=f"Bearer {token(sun='olga')}") == 200
    assert whose("bob", Authorization=f"Bearer {token(sun='root')}") == 200
    reply = client.get("/v1/accuracy", headers={"Authorization": f"Bearer {token(exp=NOW - 60)}"})
    assert reply.status_code == 401
    assert reply.json()["error"]["what"] == "the token has expired"
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    app.peer = DAEMON
    assert whose("alice", **{"X-Remote-User": "alice"}) == 200
    assert whose("daemon", **{"X-Remote-User": "alice"}) == 403
    assert whose("daemon") == 403
    assert whose("bob", **{"X-Remote-User": "olga"}) == 200


def test_a_proxy_on_the_real_socket_is_believed_whom_it_names(tmp_path: Path) -> None:
    """Of a peer that the kernel vouches for: this process is the proxy, and root or not besides."""
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    us = name_of(os.geteuid())
    with MockSite(tmp_path, slurm, api={"proxy_users": [us]}) as site:
        where = f"http+unix://{quote(str(site.socket_path), safe='')}"

        def asked(question: str = "", **headers: str) -> Any:
            with requests_unixsocket.Session() as session:
                session.trust_env = False
                return session.get(f"{where}/v1/accuracy{question}", headers=headers)

        assert asked(**{"X-Remote-User": "alice"}).json()["user"] == "alice"
        assert asked("?user=bob", **{"X-Remote-User": "alice"}).status_code == 403
        assert asked("?user=bob").status_code == 403
        assert asked().json()["user"] is None
        assert asked(**{"X-Remote-User": "alice, root"}).status_code == 401


HEADER_VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=5),
    st.sampled_from(("HS256", "RS256", "none")),
    st.lists(st.text(max_size=3), max_size=2),
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            ("Authorization", "X-SLURM-USER-TOKEN", "X-Remote-User", "X-Foretime-Proxy-Secret")
        ),
        st.one_of(
            st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")),
            st.builds(
                "{} {}".format,
                st.sampled_from(("Bearer", "bearer", "Munge", "MUNGE:", "Basic", "")),
                st.text(string.ascii_letters + string.digits + "._-=+/:", max_size=80),
            ),
            st.builds(
                lambda header, claims: f"Bearer {signed_by_hand(header, claims, bytes(32))}",
                st.dictionaries(st.sampled_from(("alg", "kid", "b64", "crit")), HEADER_VALUES),
                st.dictionaries(st.sampled_from(("sun", "exp")), st.integers() | st.text()),
            ),
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(HEADERS)
def test_rubbish_is_never_an_identity_nor_a_crash(
    served: tuple[FromPeer, TestClient], headers: list[tuple[str, str]]
) -> None:
    app, client = served
    app.peer = None
    raw = [(name.encode(), text.encode("latin-1")) for name, text in headers]
    reply = client.get("/v1/accuracy", headers=raw)
    assert reply.status_code in (200, 401)
    if reply.status_code == 200:
        assert reply.json()["user"] is None
