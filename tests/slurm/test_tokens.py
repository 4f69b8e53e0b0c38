"""Tokens of a live Slurm say who asks the daemon."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from foretime_sidecar.api_settings import ApiSettings
from foretime_sidecar.identities import Identities
from foretime_sidecar.identity import IdentityError
from starlette.datastructures import Headers

from tests.slurm.slurm_cluster import SlurmCluster
from tests.slurm.slurm_rest import write_jwt_key


def test_a_token_of_scontrol_says_who_asks(slurm: SlurmCluster, tmp_path: Path) -> None:
    slurm.set_conf(write_jwt_key(slurm.folder), restart=True)
    identities = Identities(ApiSettings(jwt_key_file=str(slurm.folder / "etc/jwt.key")), time.time)
    shown = Headers({"X-SLURM-USER-TOKEN": slurm.token("alice")})
    found = identities.of(None, shown)
    assert found is not None
    assert (found.source, found.user) == ("slurm-token", "alice")
    another = tmp_path / "key"
    another.write_bytes(os.urandom(32))
    another.chmod(0o600)
    with pytest.raises(IdentityError):
        Identities(ApiSettings(jwt_key_file=str(another)), time.time).of(None, shown)
