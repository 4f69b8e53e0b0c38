"""A Blue Gene's running jobs in an engine that begins from a snapshot."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.bluegene.machine_file import intrepid


def engine() -> Engine:
    return Engine(40_960, now=1_000, machine=intrepid())


def names(run: Engine) -> list[str]:
    had = run.schedule().bgp_partition
    assert had is not None
    return [intrepid().bgp_partitions[index].name for index in had.tolist()]


def test_running_jobs_have_the_bgp_partitions_that_are_said() -> None:
    run = engine()
    for name in ("MESH-R20-1024", "ANL-R00-R07-8192", "ANL-R30-R47-16384"):
        nodes = int(name.split("-")[-1])
        ends = 3_000 if name == "ANL-R00-R07-8192" else 5_000
        run.add_running(0, nodes, ends, 6_000, bgp_partition=name)
    # Rows 2 to 4 are taken until 5,000: rows 0 and 1 are free before.
    waiting = run.submit(1_000, 16_384, 100, 100)
    run.finish()
    assert names(run) == [
        "MESH-R20-1024", "ANL-R00-R07-8192", "ANL-R30-R47-16384", "ANL-R00-R17-16384",
    ]  # fmt: skip
    assert run.job(waiting).start_time == 3_000


def test_what_conflicts_is_refused() -> None:
    run = engine()
    run.add_running(0, 1_024, 5_000, 6_000, bgp_partition="ANL-R20-1024")
    with pytest.raises(InputError, match="has ANL-R21-1024, which is not free"):  # wires alone
        run.add_running(0, 1_024, 5_000, 6_000, bgp_partition="ANL-R21-1024")
    with pytest.raises(InputError, match="has ANL-R20-M1-512, which is not free"):
        run.add_running(0, 512, 5_000, 6_000, bgp_partition="ANL-R20-M1-512")
    with pytest.raises(InputError, match="700 nodes, which partitions of 1024 hold"):
        run.add_running(0, 700, 5_000, 6_000, bgp_partition="ANL-R22-M1-512")
    with pytest.raises(InputError, match="intrepid has no partition 'ANL-R9'"):
        run.add_running(0, 700, 5_000, 6_000, bgp_partition="ANL-R9")
    flat = Engine(100)
    with pytest.raises(InputError, match="the machine is no Blue Gene"):
        flat.add_running(0, 10, 100, 100, bgp_partition="ANL-R20-1024")
