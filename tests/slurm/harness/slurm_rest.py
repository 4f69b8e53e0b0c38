"""slurmrestd with JWT for a test cluster."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.harness.slurm_conf import REST_UID, SLURM_UID
from tests.slurm.harness.slurm_namespace import SlurmNamespace
from tests.slurm.harness.slurm_releases import SlurmRelease


@dataclass(frozen=True)
class SlurmRest:
    """Where slurmrestd answers.

    Attributes
    ----------
    url
        On loopback; wants a token (``X-SLURM-USER-NAME``, ``X-SLURM-USER-TOKEN``).
    socket
        Its unix socket; there a caller without a token is who the socket's peer is.
    """

    url: str
    socket: Path


def write_jwt_key(folder: Path) -> dict[str, str]:
    """Make the key of the tokens if there is none; gives what slurm.conf must say of it."""
    key = folder / "etc" / "jwt.key"
    if not key.exists():
        key.write_bytes(secrets.token_bytes(32))
    key.chmod(0o600)
    os.chown(key, SLURM_UID, SLURM_UID)
    return {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={key}"}


def start_rest(folder: Path, namespace: SlurmNamespace, port: int) -> SlurmRest:
    """Start slurmrestd as a user of its own (it refuses root) on loopback and on a unix socket."""
    rest = folder / "rest"
    rest.mkdir()
    os.chown(rest, REST_UID, REST_UID)
    namespace.start(
        [
            *("slurmrestd", "-a", "rest_auth/jwt,rest_auth/local"),
            *(f"127.0.0.1:{port}", f"unix:{rest}/socket"),
        ],
        "slurmrest",
        log=folder / "log/slurmrestd.out",
        environment={"SLURM_JWT": "daemon"},
    )
    return SlurmRest(f"http://127.0.0.1:{port}", rest / "socket")


def why_no_rest(release: SlurmRelease) -> str:
    """Say what is missing of it; empty if slurmrestd can be had."""
    if not release.has("slurmrestd"):
        return f"no slurmrestd in {release.folder}: apt-get install slurmrestd"
    if release.plugins is None or not (release.plugins / "rest_auth_jwt.so").exists():
        return f"no JWT plugin in {release.folder}: apt-get install slurm-wlm-jwt-plugin"
    return ""
