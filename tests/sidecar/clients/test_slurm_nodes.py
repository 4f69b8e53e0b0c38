"""Slurm_partitions as two releases tell of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.slurm.nodes import parse_cluster


def cluster_of(folder: Path, **settings: str) -> Cluster:
    nodes, partitions, config = (
        (folder / f"{name}.txt").read_text() for name in ("nodes", "partitions", "config")
    )
    for name, value in settings.items():
        config = re.sub(rf"^{name} .*\n", "", config, flags=re.MULTILINE) + f"{name} = {value}\n"
    return parse_cluster(nodes, partitions, config)


@pytest.fixture(params=["22.05", "26.05"])
def folder(request: pytest.FixtureRequest, repository: Path) -> Path:
    name: str = request.param
    return repository / "tests/assets/slurm" / name / "site"


def test_an_exclusive_partition_is_one_in_every_release(folder: Path) -> None:
    exclusive = {part.name: part.exclusive for part in cluster_of(folder).partitions}
    assert exclusive == {"main": False, "short": False, "gpu": False, "whole": True}


def test_memory_of_the_cluster_counts_where_a_partition_has_none(folder: Path) -> None:
    def memory(cluster: Cluster) -> dict[str, tuple[int | None, int | None]]:
        return {
            part.name: (part.default_memory_per_cpu_mib, part.default_memory_per_node_mib)
            for part in cluster.partitions
        }

    own = {"main": (1000, None), "short": (1000, None), "gpu": (None, 8000)}
    assert memory(cluster_of(folder)) == {**own, "whole": (None, None)}
    assert memory(cluster_of(folder, DefMemPerNode="500")) == {**own, "whole": (None, 500)}
    of_a_cpu = cluster_of(folder, DefMemPerNode="UNLIMITED", DefMemPerCPU="50")
    assert memory(of_a_cpu) == {**own, "whole": (50, None)}
