"""Live Slurm clusters for tests: one fresh for a test, or one for all tests of a module.

All of these tests carry the marker ``real_slurm``: ``make test-slurm`` runs them, ``make test``
leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.harness.experiments import Experiment, RunningExperiment
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease, why_no_cluster

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if _is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real_slurm)
            if _experiment_of(item) is not None:
                item.add_marker(pytest.mark.experiment)
    items.sort(key=lambda item: _experiment_of(item) is not None)


def _is_left_out(item: pytest.Item) -> bool:
    """Whether a test's release is one that has a selection of the tests, without this one."""
    release = _release_of(item)
    if release is None or not release.sampled:
        return False
    return item.get_closest_marker("every_release") is None


def _release_of(item: pytest.Item) -> SlurmRelease | None:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    found = callspec.params.get("release") or callspec.params.get("native_release")
    return found if isinstance(found, SlurmRelease) else None


def _experiment_of(item: pytest.Item) -> Experiment | None:
    experiment: Experiment | None = getattr(getattr(item, "module", None), "EXPERIMENT", None)
    return experiment


@pytest.fixture(scope="session", autouse=True)
def experiments(request: pytest.FixtureRequest) -> dict[tuple[str, str], RunningExperiment]:
    """Begin every experiment of the selected tests, on the releases that they are selected for."""
    chosen = {
        (item.module.__name__, release.name): (found, release)
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and (found := _experiment_of(item))
        and (release := _release_of(item))
        and not (why_no_cluster() or release.missing)
    }
    return {key: RunningExperiment(run, release) for key, (run, release) in chosen.items()}


@pytest.fixture
def experiment(
    request: pytest.FixtureRequest,
    release: SlurmRelease,
    experiments: dict[tuple[str, str], RunningExperiment],
) -> Any:
    """Give what this module's experiment found on a release."""
    return experiments[request.module.__name__, release.name].result()


def _demand(release: SlurmRelease) -> SlurmRelease:
    missing = why_no_cluster() or release.missing
    if missing:
        pytest.skip(f"no live Slurm: {missing}")
    return release


@pytest.fixture(scope="session", params=RELEASES, ids=str)
def release(request: pytest.FixtureRequest) -> SlurmRelease:
    """Each Slurm release of this machine in turn; skips where it is missing.

    Of releases that are ``sampled`` only tests with the marker ``every_release``.
    """
    return _demand(request.param)


@pytest.fixture(
    scope="session", params=[each for each in RELEASES if each.soft_limit or each.missing], ids=str
)
def native_release(request: pytest.FixtureRequest) -> SlurmRelease:
    """Each release with ``time_min_as_soft_limit`` in turn, as `release` gives them."""
    return _demand(request.param)


@pytest.fixture
def new_cluster() -> Iterator[Callable[..., SlurmCluster]]:
    """Bring up clusters, with the arguments of `SlurmCluster`; they end with the test."""
    clusters: list[SlurmCluster] = []

    def bring_up(release: SlurmRelease, **options: Any) -> SlurmCluster:
        clusters.append(SlurmCluster(release, **options))
        return clusters[-1]

    yield bring_up
    for cluster in clusters:
        cluster.stop()


@pytest.fixture
def slurm(release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]) -> SlurmCluster:
    """Give a fresh cluster of four nodes with four CPUs, of each release."""
    return new_cluster(release)


@pytest.fixture
def cluster(native_release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]) -> SlurmCluster:
    """Give a fresh cluster of two nodes with a native soft limit and the hook."""
    cluster = new_cluster(native_release, nodes=2)
    cluster.install_hook()
    return cluster


@pytest.fixture(scope="module")
def slurm_of_module(release: SlurmRelease) -> Iterator[SlurmCluster]:
    """Give one cluster, of each release, to all tests of a module that ask for it."""
    cluster = SlurmCluster(release)
    yield cluster
    cluster.stop()
