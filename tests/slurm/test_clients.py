"""The scheduler clients on live clusters: the shared checks, and what only a live Slurm shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, JobChange, SchedulerClient
from foretime_sidecar.clients.slurm.rest import SlurmRest
from foretime_sidecar.clients.slurm.rest_connection import RestConnection
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

from tests.slurm.harness.busy_cluster import busy_cluster, commands_of
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_rest import SlurmRest as Address
from tests.support.client_checks import CHANGING, READING, Check

pytestmark = pytest.mark.every_release


@pytest.fixture(scope="module")
def busy_with_rest(release: SlurmRelease) -> Iterator[tuple[SlurmCluster, Address]]:
    with busy_cluster(release) as busy:
        yield busy


@pytest.fixture
def busy(busy_with_rest: tuple[SlurmCluster, Address]) -> SlurmCluster:
    return busy_with_rest[0]


@pytest.fixture
def address(busy_with_rest: tuple[SlurmCluster, Address]) -> Address:
    return busy_with_rest[1]


def _rest(slurm: SlurmCluster, address: Address) -> SlurmRest:
    token = slurm.folder / "token"
    token.write_text(slurm.token())
    connection = RestConnection(address.url, "slurm", str(token), attempts=1)
    return SlurmRest(connection, commands_of(slurm), overlap_s=0)


@pytest.fixture(params=["commands", "slurmrestd"])
def client(request: pytest.FixtureRequest, busy: SlurmCluster, address: Address) -> SchedulerClient:
    """Each client."""
    if request.param == "slurmrestd":
        return _rest(busy, address)
    return commands_of(busy)


@pytest.mark.parametrize("check", [*READING, *CHANGING], ids=lambda check: check.__name__)
def test_every_client_passes_the_shared_checks(check: Check, client: SchedulerClient) -> None:
    check(client)


def test_the_newest_api_of_a_slurmrestd_is_spoken(busy: SlurmCluster, address: Address) -> None:
    newest = {(22, 5): "v0.0.38", (26, 5): "v0.0.45"}
    assert busy.release.version is not None
    api = _rest(busy, address).api()
    assert api == newest.get(busy.release.version[:2], api)


def test_a_token_that_is_none_is_refused(
    busy: SlurmCluster, address: Address, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("none")
    connection = RestConnection(address.url, "slurm", str(tmp_path / "token"), attempts=1)
    with pytest.raises(SchedulerError):
        SlurmRest(connection, commands_of(busy)).queue()


def test_slurmrestd_reads_what_the_commands_print(busy: SlurmCluster, address: Address) -> None:
    rest, commands = _rest(busy, address), commands_of(busy)
    for _ in range(10):  # jobs start and end meanwhile: the queue must be the same before and after
        before, by_slurmrestd = commands.queue(), rest.queue()
        if commands.queue() == before:
            break
    assert by_slurmrestd == before
    finished = [ask.finished_since(Cursor())[0] for ask in (rest, commands)]
    by_rest, by_commands = ({r.job.request.job_id: r for r in some} for some in finished)
    assert by_rest == by_commands
    assert rest.configuration() == commands.configuration()


def test_another_cluster_is_asked_by_name(busy: SlurmCluster) -> None:
    by_name, here = commands_of(busy, "lab"), commands_of(busy)

    def alike() -> bool:  # something may have changed between the two
        return by_name.queue() == here.queue() and (
            by_name.finished_since(Cursor()) == here.finished_since(Cursor())
        )

    busy.wait_for(alike, "both clients to see the same")
    assert by_name.configuration() == here.configuration()
    assert by_name.site_factors() == here.site_factors()
    assert by_name.load().server_threads >= 1


def test_an_unknown_cluster_is_told(busy: SlurmCluster) -> None:
    with pytest.raises(SchedulerError, match="nowhere"):
        commands_of(busy, "nowhere").queue()


def test_restarts_lose_and_double_nothing(busy: SlurmCluster, tmp_path: Path) -> None:
    """A sidecar that polls a little, dies, and is away while a job is requeued and ends."""
    settings = Settings.model_validate({"table": {"path": str(tmp_path / "table")}})
    slurm, client = busy, commands_of(busy)
    now = int(slurm.checked(["date", "+%s"]))

    def poll() -> set[tuple[str, int, str]]:
        store = Store(tmp_path / "store")
        # However long it takes to read what was missed.
        Sidecar(settings, client, store, estimating_s=math.inf).poll(now + 3600)
        stored = {
            (job.request.job_id, job.request.submit_time, job.ending.value)
            for job in store.finished_jobs()
        }
        assert store.finished_count() == len(stored)
        store.close()
        return stored

    first = poll()
    assert poll() == first
    for job in client.queue().jobs:
        slurm.run(["scontrol", "hold", job.request.job_id])
    runs = next(j.request.job_id for j in client.queue().jobs if j.start_time and not j.held)
    slurm.checked(["scontrol", "requeuehold", runs])
    slurm.wait_for_state(runs, "PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT")
    done = slurm.sbatch("-t5", script="true")
    slurm.wait_for_end(done)
    slurm.checked(["scancel", runs])
    slurm.wait_for(
        lambda: {done, runs} <= {r.job.request.job_id for r in client.finished_since(Cursor())[0]},
        "accounting",
    )
    last = poll()
    assert first < last
    endings = [ending for job_id, _, ending in sorted(last - first) if job_id == runs]
    assert Ending.REQUEUED.value in endings
    assert poll() == last


def test_changes_of_array_tasks(busy: SlurmCluster) -> None:
    client = commands_of(busy)
    array = next(j.request.array_id for j in client.queue().jobs if j.request.array_id)
    client.update([JobChange(f"{array}_3", time_limit=600)])
    seen = {job.request.job_id: job for job in client.queue().jobs}
    assert seen[f"{array}_3"].request.requested_time == 600
    assert seen[array].tasks == 4
