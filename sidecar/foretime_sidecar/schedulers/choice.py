"""The settings' scheduler: the one place where its kind decides what is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from foretime_estimators.distributions.runtime_histories import RuntimeHistories

from foretime_sidecar.clients.client import SchedulerClient
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.forecasts.latest_starts import NotedBounds
from foretime_sidecar.ordering.protected_jobs import LateJobs
from foretime_sidecar.schedulers.pbs import PbsStrategy, pbs_client, pbs_site
from foretime_sidecar.schedulers.slurm import SlurmStrategy, slurm_client, slurm_site
from foretime_sidecar.schedulers.strategy import SchedulerStrategy
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import LiveSite, SiteFile
from foretime_sidecar.store.store import Store

_CLIENTS: Mapping[str, Callable[[SchedulerSettings, RequestTime], SchedulerClient]] = {
    "slurm": slurm_client,
    "pbs": pbs_client,
}
_SITES: Mapping[str, Callable[[SchedulerSettings], LiveSite]] = {
    "slurm": slurm_site,
    "pbs": pbs_site,
}


def client_of(scheduler: SchedulerSettings, request_time: RequestTime) -> SchedulerClient:
    """Give the client that the settings say, and that counts how long its requests wait."""
    return _CLIENTS[scheduler.kind](scheduler, request_time)


def strategy_of(
    settings: Settings,
    client: SchedulerClient,
    store: Store,
    lock: threading.RLock,
    runtimes: Callable[[], RuntimeHistories | None],
    bounds: NotedBounds | None,
    site: KeptSite | None,
    late: LateJobs | None = None,
    *,
    unhurried: bool,
) -> SchedulerStrategy:
    """Give what the daemon does for the settings' scheduler.

    Parameters as of `SlurmStrategy`; ``site``: as of `PbsStrategy`.
    """
    if settings.scheduler.kind == "pbs":
        return PbsStrategy(settings, client, store, lock, site)
    return SlurmStrategy(settings, client, store, lock, runtimes, bounds, late, unhurried=unhurried)


def kept_site_of(settings: Settings, *, asks: bool = True) -> KeptSite | None:
    """Give what keeps the site that forecasts run the queue forward as.

    ``None`` where the settings want none, or nobody can tell it. ``asks``: whether the scheduler's
    own commands may be run.
    """
    scheduler, forecast = settings.scheduler, settings.forecast
    if forecast.run_as != "site":
        return None
    if forecast.site_file:
        return KeptSite(SiteFile(forecast.site_file, scheduler.kind), forecast.site_interval_s)
    if not asks:
        return None
    return KeptSite(_SITES[scheduler.kind](scheduler), forecast.site_interval_s)
