"""Forecasts of the waits of a log that is replayed under a site's PBS, and how good they were.

``python -m tests.pbs.forecast_trial`` with FORETIME_TRACES set replays the first jobs of KTH's log
on the mock PBS under three sites, and makes a forecast of each job at the first look that has it
waiting, as the daemon would then. It writes docs/pbs_forecasts.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import LiveSite
from foretime_sim.engine.forward import usable_cores
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsServer, PbsSite, ShareGroup
from foretime_sim.workloads.workload import Workload

from tests.support.forecasts.forecast_trial import WORDS, Outcome, TakenLook, section, trial

LOG = "KTH-SP2-1996-2.1-cln.swf.gz"
JOBS = 1500
LEARNED = 150
"""Jobs at the beginning that are only learned from."""
LOOK_S = 300
PAGE = Path(__file__).resolve().parents[2] / "docs/pbs_forecasts.md"
FORMULA = "-walltime"


def sites_of(workload: Workload) -> dict[str, PbsSite]:
    """Give the sites that are tried, each by what it adds to PBS's defaults."""
    plain = PbsSite.flat(workload.machine_processors)
    users = () if workload.users is None else workload.users.names
    return {
        "PBS's defaults": plain,
        "job_sort_formula": replace(plain, server=PbsServer(job_sort_formula=FORMULA)),
        "Fair share": replace(
            plain,
            scheduler=PbsScheduler(fair_share=True, fairshare_usage_res="ncpus*walltime"),
            share_groups=tuple(ShareGroup(user) for user in users),
        ),
    }


@dataclass(frozen=True, slots=True)
class ReplayedPbs:
    """A log on the mock PBS under a site.

    Attributes
    ----------
    workload
        Of the log.
    site
        As which the mock schedules.
    """

    workload: Workload
    site: PbsSite

    def records(self) -> list[FinishedRecord]:
        """Give its jobs as accounting has them in the end."""
        with tempfile.TemporaryDirectory() as folder:
            pbs = self._begun(Path(folder))
            for _ in self._moments(pbs, LOOK_S):
                pass
            pbs.finish()
            client = PbsCommands(pbs.run, Path(folder), overlap_s=0, clock=lambda: pbs.now)
            return list(client.finished_since(Cursor())[0])

    def looks(self, every_s: int = LOOK_S) -> Iterator[TakenLook]:
        """Look at its queue until all jobs have come, and read the site as the daemon does."""
        pbs = self._begun()
        client = PbsCommands(pbs.run)
        known = KeptSite(
            LiveSite("PBS", pbs.site),
            ForecastSettings().site_interval_s,
            clock=lambda: pbs.now,
            monotonic=lambda: pbs.now,
        )
        for now in self._moments(pbs, every_s):
            known.refresh()
            if not isinstance(known.site, PbsSite):
                raise InputError(known.standing.why_not)
            look = Look(now, client.queue(), soft_limit=True, correction=Correction.PBS)
            yield TakenLook(look, known.site)

    def _begun(self, accounting: Path | None = None) -> MockPbs:
        machine = self.site.machine
        setup = PbsSetup(machine.cpus, accounting_dir=accounting, machine=machine)
        policy = Policy(backfill=Pbs(self.site), correction=Correction.PBS)
        return MockPbs(setup, policy, None, self.workload.epoch_of_zero)

    def _moments(self, pbs: MockPbs, every_s: int) -> Iterator[int]:
        """Submit all jobs, and stop every so many seconds."""
        due = pbs.now + every_s
        for job, submit_time in enumerate((self.workload.submit_time + pbs.now).tolist()):
            while due < submit_time:
                pbs.advance(due)
                yield due
                due += every_s
            if submit_time > pbs.now:
                pbs.advance(submit_time)
            request = self.workload.job_request(job)
            pbs.submit(
                PbsSubmission(
                    request.user,
                    None,
                    None,
                    request.processors,
                    request.requested_time,
                    int(self.workload.actual_runtime[job]),
                )
            )
        pbs.advance(due)
        yield due


def outcome_of(replayed: ReplayedPbs) -> Outcome:
    """Make the forecasts of a replayed log."""
    return trial(replayed.looks(), replayed.records())


INTRODUCTION = f"""\
# Forecasts under a PBS's own rules

How good are the forecasts of waits if the daemon runs the queue forward as the site's own PBS
schedules ([a site's file](site.md#under-pbs))? This page compares them with other forecasts of the
same jobs. `python -m tests.pbs.forecast_trial` makes it.

The mock PBS replays the first {JOBS:,} jobs of KTH's SP2 (100 processors) under three sites. Each
of them adds one thing to PBS's defaults. The daemon's own code looks at the queue every
{LOOK_S // 60} minutes and makes the forecasts, with all samples. It reads the site every 15
minutes, and knows the jobs that have ended. Each job is forecast at the first look that has it
waiting. The first {LEARNED} jobs that waited are only learned from.

{WORDS}
| site | what it adds |
|---|---|
| PBS's defaults | first submitted first, and each job starts that fits |
| job_sort_formula | `job_sort_formula = "{FORMULA}"`: the shortest request first |
| Fair share | `fair_share` of `ncpus*walltime` among the users, all with one share |

"""


def main() -> None:
    """Write the page."""
    log = Path(os.environ["FORETIME_TRACES"]) / LOG
    workload = workload_of_log(read_log(log))[0].head(JOBS)
    sites = sites_of(workload)
    with ProcessPoolExecutor(usable_cores()) as pool:
        outcomes = pool.map(outcome_of, (ReplayedPbs(workload, site) for site in sites.values()))
        parts = [
            line
            for name, outcome in zip(sites, outcomes, strict=True)
            for line in section(name, len(workload), outcome, LEARNED)
        ]
    PAGE.write_text(INTRODUCTION + "\n".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
