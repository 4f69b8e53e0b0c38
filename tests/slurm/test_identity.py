"""What a live Slurm says of people: its tokens who asks, PrivateData what they may see."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.authenticate import Identities
from foretime_sidecar.web.auth.identity import IdentityError
from starlette.datastructures import Headers

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_rest import write_jwt_key


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


def test_what_the_site_hides_is_known(slurm: SlurmCluster) -> None:
    client = SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1))
    assert client.configuration().private_data == frozenset()
    slurm.set_conf({"PrivateData": "jobs,usage"}, restart=True)
    assert client.configuration().private_data == {"jobs", "usage"}
    # Root's commands see all jobs all the same.
    slurm.sbatch("-t", "5", user="bob")
    assert [job.request.user for job in client.queue().jobs] == ["bob"]
