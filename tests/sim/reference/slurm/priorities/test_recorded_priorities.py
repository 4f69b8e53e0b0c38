"""The model gives every digit of sprio and sshare that live clusters printed.

The records are of 22.05.8 and 26.05.5; `tests/slurm/model/test_priorities.py` makes and
compares new ones (`Record.write`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.slurm.slurm_priority_cases import CASES, site_of
from tests.support.slurm.slurm_priority_record import Record
from tests.support.slurm.slurm_priority_replay import differences

VERSIONS = {"22.05": (22, 5), "26.05": (26, 5)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("release", VERSIONS)
def test_every_recorded_priority_and_share_is_the_models(
    repository: Path, release: str, case: str
) -> None:
    record = Record.read(repository / f"tests/assets/slurm/{release}/priorities/{case}.json")
    site = site_of(CASES[case], VERSIONS[release])
    assert sum(len(sample.sprio) + len(sample.sshare) for sample in record.samples) > 200
    assert list(differences(record, site, VERSIONS[release])) == []
