"""The settings' scheduler decides what it is asked through and what is done for it."""

from __future__ import annotations

import threading
from typing import Any, get_args

import pytest
from foretime_sidecar.clients.client import SchedulerClient
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.rest import SlurmRest
from foretime_sidecar.schedulers.choice import client_of, strategy_of
from foretime_sidecar.schedulers.strategy import SchedulerStrategy
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.store.store import Store
from foretime_sim.policies.policy import Correction

KINDS = get_args(SchedulerSettings.model_fields["kind"].annotation)


def strategy(scheduler: Any, **of_scheduler: str) -> SchedulerStrategy:
    settings = Settings(scheduler=SchedulerSettings.model_validate(of_scheduler))
    store, lock = Store(":memory:"), threading.RLock()
    return strategy_of(settings, scheduler, store, lock, lambda: None, None, None, unhurried=False)


@pytest.mark.parametrize(
    ("chosen", "client"),
    [
        ({"kind": "slurm"}, SlurmCommands),
        ({"kind": "slurm", "client": "slurmrestd"}, SlurmRest),
        ({"kind": "pbs"}, PbsCommands),
    ],
)
def test_the_settings_name_the_client(
    chosen: dict[str, str], client: type[SchedulerClient]
) -> None:
    scheduler = SchedulerSettings.model_validate(chosen)
    assert isinstance(client_of(scheduler, RequestTime()), client)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_strategy_that_speaks_against_nothing_at_first(
    scheduler: Any, kind: str
) -> None:
    assert strategy(scheduler, kind=kind).why_not_enforced() == ""


def test_kinds_differ_in_what_is_done_for_them(scheduler: Any) -> None:
    slurm, pbs = strategy(scheduler, kind="slurm"), strategy(scheduler, kind="pbs")
    assert (slurm.correction, pbs.correction) == (Correction.SLURM, Correction.PBS)
    assert (slurm.users_set_time_min, pbs.users_set_time_min) == (True, False)
    assert slurm.ordering is not None
    assert pbs.ordering is None
    assert strategy(scheduler, kind="slurm", client="slurmrestd").ordering is None
