"""The pyslurm client on a live Slurm of its release, and what it says of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError

from tests.slurm.harness.busy_cluster import busy_cluster, commands_of
from tests.slurm.harness.live_sidecar import LiveSidecar
from tests.slurm.harness.pyslurm_process import PyslurmProcess
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import BUILD, RELEASES, SlurmRelease
from tests.support.client_checks import CHANGING, READING, Check
from tests.support.slurm.pyslurm_module import told_by_pyslurm

pytestmark = pytest.mark.every_release
_of_pyslurm = pytest.mark.parametrize(
    "release", [each for each in RELEASES if each.name == BUILD], ids=str, indirect=True
)
_of_another = pytest.mark.parametrize(
    "release", [each for each in RELEASES if each.name != BUILD], ids=str, indirect=True
)


@pytest.fixture(scope="session")
def pyslurm() -> Path:
    """The folder that it is installed in; skips where there is none."""
    (built,) = (each for each in RELEASES if each.name == BUILD)
    folder = built.prefix / "pyslurm"
    if not (folder / "whole").exists():
        pytest.skip(f"no pyslurm in {folder}: run tests/slurm/harness/make_slurm_build.sh")
    return folder


@pytest.fixture(scope="module")
def busy(release: SlurmRelease) -> Iterator[SlurmCluster]:
    with busy_cluster(release) as (slurm, _):
        yield slurm


@pytest.fixture(scope="module")
def client(busy: SlurmCluster, pyslurm: Path) -> Iterator[PyslurmProcess]:
    with PyslurmProcess(busy, pyslurm) as client:
        yield client


@_of_pyslurm
@pytest.mark.parametrize("check", [*READING, *CHANGING], ids=lambda check: check.__name__)
def test_it_passes_the_shared_checks(check: Check, client: PyslurmProcess) -> None:
    check(client)


@_of_pyslurm
def test_it_reads_what_the_commands_print(busy: SlurmCluster, client: PyslurmProcess) -> None:
    commands = commands_of(busy)
    for _ in range(10):  # jobs start and end meanwhile: the queue must be the same before and after
        before, by_pyslurm = commands.queue(), client.queue()
        if commands.queue() == before:
            break
    assert by_pyslurm == replace(before, jobs=tuple(map(told_by_pyslurm, before.jobs)))
    assert client.load().server_threads >= 1


@_of_pyslurm
def test_a_daemon_plans_jobs_and_gives_them_back(
    release: SlurmRelease, pyslurm: Path, new_cluster: Callable[..., SlurmCluster]
) -> None:
    slurm = new_cluster(release)
    slurm.add_accounting()
    slurm.install_hook()
    off: dict[str, dict[str, object]] = {"hook": {"disable_file": str(slurm.disable_file)}}
    with LiveSidecar(slurm, more=off, pyslurm=pyslurm):
        running = slurm.sbatch("-n16", "-t100")
        slurm.wait_for_state(running, "RUNNING")
        job = slurm.sbatch("-n16", "-t100")
        shown = slurm.job(job)
        assert shown["AdminComment"].startswith("foretime:treq=100,tmin=20")
        # The daemon sets it, at a look at the queue by pyslurm, and takes it away again.
        slurm.wait_for(lambda: slurm.job(job)["TimeMin"] == "00:20:00", "TimeMin to be set")
        slurm.disable_file.touch()
        slurm.wait_for(lambda: slurm.job(job)["TimeMin"] == "N/A", "TimeMin to be given back")
        assert slurm.job(job)["TimeLimit"] == "01:40:00"


@_of_another
def test_a_slurm_of_another_release_is_told(
    release: SlurmRelease, pyslurm: Path, new_cluster: Callable[..., SlurmCluster]
) -> None:
    with (
        PyslurmProcess(new_cluster(release), pyslurm) as client,
        pytest.raises(SchedulerError) as told,
    ):
        client.queue()
    assert f"is for Slurm 25.11, but slurmctld is {release.name}." in str(told.value)
    assert "install the one of that release" in str(told.value)


@_of_pyslurm
def test_an_unknown_slurm_user_is_told(
    release: SlurmRelease, pyslurm: Path, new_cluster: Callable[..., SlurmCluster]
) -> None:
    """Slurm's library would end the daemon."""
    slurm = new_cluster(release)
    conf = slurm.folder / "etc/slurm.conf"
    conf.write_text(conf.read_text().replace("SlurmUser=slurm", "SlurmUser=nobody-known"))
    with PyslurmProcess(slurm, pyslurm) as client, pytest.raises(InputError) as told:
        client.queue()
    assert "Invalid user for SlurmUser nobody-known" in str(told.value)
    assert "check slurm.conf and that its SlurmUser is a user of this machine" in str(told.value)
