"""What is worked out of a site, and kept for the same site."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.same_site import kept_for_the_same
from foretime_sim.sites.slurm.limit_tables import limit_tables
from foretime_sim.sites.slurm.site import SlurmSite


def test_the_same_site_is_worked_out_once_and_an_equal_one_by_itself() -> None:
    worked_out = []

    @kept_for_the_same
    def of(site: SlurmSite, epoch: int) -> list[int]:
        worked_out.append(epoch)
        return [epoch]

    site = SlurmSite(Machine.flat(64))
    big = 10**9
    assert of(site, big) is of(site, int(str(big)))
    assert of(site, 7) == [7]
    assert of(replace(site), big) == [big]
    assert worked_out == [big, 7, big]
    for epoch in range(4):
        of(site, epoch)
    of(site, big)
    assert worked_out[3:] == [0, 1, 2, 3, big]


def test_an_error_is_not_kept() -> None:
    asked = []

    @kept_for_the_same
    def of(site: SlurmSite) -> int:
        asked.append(site)
        raise ValueError(site)

    site = SlurmSite(Machine.flat(64))
    for _ in range(2):
        with pytest.raises(ValueError, match="SlurmSite"):
            of(site)
    assert len(asked) == 2


def test_a_changed_site_has_its_own_tables() -> None:
    site = SlurmSite(Machine.flat(64), licenses={"matlab": 2})
    assert limit_tables(site) is limit_tables(site)
    more = replace(site, licenses={"matlab": 3})
    assert (limit_tables(site).licenses, limit_tables(more).licenses) == ((2,), (3,))
