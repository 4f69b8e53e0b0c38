"""Checks of a Slurm whose jobs the daemon raises or puts in order through their site factors."""

from __future__ import annotations

from foretime_sidecar.install.doctor.checkup import Finding, ok, problem, warning
from foretime_sidecar.install.doctor.slurm_facts import SlurmFacts
from foretime_sidecar.ordering.own_site_factors import why_no_site_factors
from foretime_sidecar.ordering.start_way import why_none_raised

_NOT_NEEDED = "not needed, as no site factor is set"


def may_raise(facts: SlurmFacts) -> Finding:
    """Look whether Slurm is set up so that site factors may be set, where the settings set them."""
    settings = facts.settings
    if not facts.sets_site_factors:
        return ok(_NOT_NEEDED)
    starts = settings.starts_now
    why_not = (why_none_raised if starts else why_no_site_factors)(facts.as_the_daemon_reads_it)
    if not why_not:
        return ok("site factors count, and nothing speaks against them")
    told = problem if settings.starts_jobs or settings.queue_order.keeps_order else warning
    what = "no job is started at once" if starts else "the queue is not put in order"
    return told(f"{what}: {why_not}", "see docs/start_now.md, When it does nothing")


def backfill_goes_on(facts: SlurmFacts) -> Finding:
    """Look whether a change of a job ends the cycle of backfill that it falls into."""
    if not facts.sets_site_factors:
        return ok(_NOT_NEEDED)
    if "bf_continue" in facts.words("SchedulerParameters"):
        return ok("bf_continue is set")
    return warning(
        "SchedulerParameters lacks bf_continue: a site factor that is set while backfill lets "
        "others act ends its cycle, so that jobs further back are not looked at",
        "add bf_continue, and scontrol reconfigure (sdiag tells how far cycles get: Last depth "
        "cycle)",
    )


def request_limit(facts: SlurmFacts) -> Finding:
    """Look whether slurmctld makes the daemon wait between changes."""
    if not facts.sets_site_factors:
        return ok(_NOT_NEEDED)
    if "rl_enable" not in facts.words("SlurmctldParameters"):
        return ok("rl_enable is not set")
    return warning(
        "SlurmctldParameters has rl_enable: from the daemon's account slurmctld takes "
        "rl_bucket_size changes (30) at once and then rl_refill_rate (2) a second, unless it is "
        "SlurmUser's",
        "raise rl_bucket_size to some hundreds",
    )
