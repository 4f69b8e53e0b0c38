"""A site under PBS, as it is described."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsReservation, PbsSite, ShareGroup

HOSTS = tuple(PbsHost(f"n{at}", {"ncpus": 8, "mem": 2**30}) for at in range(3))
QUEUES = (PbsQueue("workq"), PbsQueue("short", resources_max={"walltime": 600}))


def test_alike_hosts_are_a_group_and_queues_are_over_those_they_may_use() -> None:
    gpu = PbsHost("g0", {"ncpus": 16, "mem": 2**31, "ngpus": 2})
    own = PbsHost("s0", {"ncpus": 4}, queue="short")
    machine = PbsSite((*HOSTS, gpu, own, PbsHost("login", {})), QUEUES).machine
    assert [(group.name, group.nodes, group.cpus) for group in machine.node_groups] == [
        ("n0", 3, 8),
        ("g0", 1, 16),
        ("s0", 1, 4),
    ]
    assert (machine.node_groups[1].memory_mib, machine.node_groups[1].gpus) == (2048, 2)
    assert [(part.name, part.node_groups) for part in machine.slurm_partitions] == [
        ("workq", ("n0", "g0")),
        ("short", ("s0",)),
    ]
    assert machine.slurm_partitions[1].max_time_s == 600
    assert machine.default_partition == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"hosts": (HOSTS[0], HOSTS[0])}, "host 'n0' is there twice"),
        ({"queues": (QUEUES[0], QUEUES[0])}, "queue 'workq' is there twice"),
        ({"queues": ()}, "at least one host and one execution queue"),
        ({"share_groups": (ShareGroup("a", "staf"), ShareGroup("staff"))}, "did you mean 'staff'"),
        ({"hosts": (PbsHost("n0", {}, queue="shrt"),)}, "did you mean 'short'"),
        ({"reservations": (PbsReservation("R1", 0, 1, {"n9": {}}),)}, "no host 'n9'"),
    ],
)
def test_a_site_that_contradicts_itself_is_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        PbsSite(**{"hosts": HOSTS, "queues": QUEUES, **arguments})  # type: ignore[arg-type]


def test_limits_say_whom_they_name() -> None:
    limits = PbsLimits(max_run={"o:PBS_ALL": 5}, max_run_res={"mem": {"u:alice": 1}})
    assert [limits.name_any(kind) for kind in "ougp"] == [True, True, False, False]
