"""Jobs that the daemon starts at once on the mock PBS, by its own rules, and where not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.clients.pbs.start_rank import CYCLE_DIRECTIVE
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.pbs_starts import PbsStarts, goes_by_submission, why_no_ranks
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.heartbeat import beat, heartbeat_path
from foretime_sidecar.safety.watchdog import watch_ranks
from foretime_sidecar.schedulers.pbs import PbsStrategy
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import (
    HookSettings,
    SchedulerSettings,
    Settings,
    TableSettings,
)
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import LiveSite
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.sites.pbs.formula import RANK
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsServer, PbsSite
from foretime_sim.workloads.node_request import JobResources

NOW = 1_800_000_000
HOUR = 3600
SITE = PbsSite(
    (PbsHost("a", {"ncpus": 2}), PbsHost("b", {"ncpus": 2})),
    (PbsQueue("workq"),),
    PbsServer(job_sort_formula=RANK),
    PbsScheduler(strict_ordering=True),
)


class World:
    """A mock PBS whose head job waits for two hours, and what starts jobs there."""

    def __init__(self, site: PbsSite = SITE, *, spread: bool = False) -> None:
        policy = Policy(backfill=Pbs(site), correction=Correction.PBS)
        self.pbs = MockPbs(PbsSetup(4, machine=site.machine), policy, None, NOW)
        self.known = KeptSite(LiveSite("PBS", self.pbs.site), HOUR, lambda: NOW, lambda: NOW)
        self.known.refresh()
        self.sent: list[list[str]] = []
        self.fails = ""  # a command that does
        self._late_s = 0
        self.store = Store(":memory:")
        self.expected_h: dict[str, float] = {}
        self.hook = HookSettings(mechanism="pbs-soft-walltime")
        self.why_not = ""
        self.start()
        # It would run for five.
        filler = PbsSubmission("bob", "p", None, 3, 2 * HOUR, 5 * HOUR)
        if spread:  # one CPU of each host
            of_nodes = JobResources(nodes=2, tasks=2)
            filler = replace(filler, processors=2, of_nodes=of_nodes)
        self.filler = self.pbs.submit(filler)
        self.head = self.submit(4, 1)
        self.pass_time(60)

    def _run(self, argv: object) -> str:
        words = list(argv)  # type: ignore[call-overload]
        if words[0] == self.fails:
            raise SchedulerError(f"{self.fails}: the server is away")
        if words[0] == "qalter" and self._late_s:
            self.pass_time(self._late_s)
        if words[0] in ("qalter", "qmgr"):
            self.sent.append(words)
        return self.pbs.run(words)

    def slow_down(self) -> None:
        """From now on jobs start before they are changed."""
        self._late_s = 1

    def start(self) -> None:
        """Have the daemon begin, again."""
        self.client = PbsCommands(self._run, overlap_s=0)
        way = PbsStarts(self.known)
        self.starts = StartNow(
            self.hook, QueueOrderSettings(), self.client, self.store, threading.RLock(), way
        )

    def submit(
        self,
        processors: int,
        hours: float,
        expected_h: float | None = None,
        user: str = "ann",
        nodes: int | None = None,
    ) -> str:
        """Submit a job that runs as long as it asks; give its id."""
        seconds = round(hours * HOUR)
        asked = PbsSubmission(
            user, "p", None, processors, seconds, seconds,
            of_nodes=None if nodes is None else JobResources(nodes=nodes, tasks=processors),
        )  # fmt: skip
        job_id = self.pbs.submit(asked)
        if expected_h is not None:
            self.expected_h[job_id] = expected_h
        return job_id

    def pass_time(self, seconds: int) -> None:
        """Turn the clock."""
        self.pbs.advance(self.pbs.now + seconds)

    def look(self) -> int:
        """Let the daemon look; give how many jobs it raised."""
        look = Look(self.pbs.now, self.client.queue(), True, Correction.PBS)

        def expected(job: JobRequest, now: int) -> RolePrediction | None:
            hours = self.expected_h.get(job.job_id)
            if hours is None:
                return None
            return RolePrediction(round(hours * HOUR), round(hours * HOUR), job.requested_time)

        exclusions = Exclusions(scheduler="pbs")
        configuration = self.client.configuration()
        return self.starts.arrange(look, configuration, expected, exclusions, self.why_not)

    def running(self) -> set[str]:
        """Name the jobs that run."""
        jobs = self.client.queue().jobs
        return {job.request.job_id for job in jobs if job.state is QueueState.RUNNING}

    def ranks(self) -> dict[str, int]:
        """Give the ranks of the jobs that wait."""
        return dict(self.client.site_factors())


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.store.close()


def test_a_job_that_is_expected_to_end_before_the_top_job_starts_is_started(world: World) -> None:
    """PBS itself leaves it waiting: it asks for more than the two hours until then."""
    long = world.submit(1, 5, expected_h=4)
    short = world.submit(1, 5, expected_h=1)
    world.pass_time(300)
    assert world.running() == {world.filler}, "by itself PBS starts neither"
    assert world.look() == 1
    assert world.ranks()[short] > 0
    assert world.sent[-1] == ["qmgr", "-c", CYCLE_DIRECTIVE]
    world.pass_time(10)
    assert world.running() == {world.filler, short}
    assert world.look() == 0
    assert world.ranks().keys() == {world.head, long}
    assert world.ranks()[world.head] > world.ranks()[long] > 0, "the top job stands in front"
    assert (world.starts.raised, world.starts.missed) == (1, 0)
    assert world.store.site_factors().keys() == {world.head, long}


def test_no_time_of_a_job_is_touched(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    world.look()
    assert {words[0] for words in world.sent} == {"qalter", "qmgr"}
    assert {words[2].split("=")[0] for words in world.sent if words[0] == "qalter"} == {RANK}
    assert any(words[3:] == [job] for words in world.sent)


def test_the_shortest_expected_goes_first(world: World) -> None:
    world.submit(1, 5, expected_h=1)
    shorter = world.submit(1, 5, expected_h=0.5)
    world.pass_time(10)
    assert world.look() == 1
    assert max(world.ranks(), key=world.ranks().__getitem__) == shorter


def test_a_job_that_fits_on_no_host_is_not_raised() -> None:
    """It wants two CPUs of one host, and one of each is free."""
    world = World(spread=True)
    world.submit(1, 5, expected_h=1, nodes=1)
    pair = world.submit(2, 5, expected_h=0.5, nodes=1)
    world.pass_time(10)
    assert world.look() == 1
    assert world.ranks()[pair] < world.ranks()[world.head]
    world.store.close()


def test_a_limit_of_the_site_holds() -> None:
    """Of the user who has a job running no other may start."""
    one = PbsLimits(max_run={"u:PBS_GENERIC": 1})
    world = World(replace(SITE, queues=(PbsQueue("workq", limits=one),)))
    other = world.submit(1, 5, expected_h=0.5, user="bob")
    world.pass_time(10)
    assert world.look() == 0
    assert world.ranks()[other] < world.ranks()[world.head]
    world.store.close()


def test_the_later_a_top_job_is_the_less_may_go_before_it(world: World) -> None:
    """It was planned in two hours, and the job before it runs for five."""
    world.look()
    world.pbs.alter(world.filler, {"walltime": 6 * HOUR})
    world.pass_time(3 * HOUR - 60)
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    assert world.look() == 0, "the top job is an hour late"
    assert world.ranks()[job] < world.ranks()[world.head]


def test_what_was_raised_is_given_back(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    world.pbs.alter(job, {"walltime": 5 * HOUR})
    assert world.look() == 1
    world.starts.give_back()
    assert not any(world.ranks().values())
    assert world.store.site_factors() == {}


def test_the_next_daemon_gives_back_what_a_dead_one_raised(world: World) -> None:
    world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    assert world.look() == 1
    world.start()
    assert world.look() == 0
    assert not any(world.ranks().values())


def test_a_rank_that_nobody_knows_of_is_given_back(world: World) -> None:
    """As of a job that was raised, ran, and was put back into the queue."""
    world.look()
    again = world.submit(2, 5)
    world.pbs.alter(again, {RANK: 5_000_000_000})
    world.pass_time(10)
    world.look()
    assert 0 < world.ranks()[again] < world.ranks()[world.head]
    world.starts.give_back()
    assert not any(world.ranks().values())


def test_a_rank_that_nobody_knows_of_is_given_back_at_the_end(world: World) -> None:
    """No look has seen it yet: the job was raised, ran, and was requeued since."""
    world.look()
    again = world.submit(2, 5)
    world.pbs.alter(again, {RANK: 5_000_000_000})
    world.starts.give_back()
    assert not any(world.ranks().values())


def test_a_rank_that_is_not_read_as_it_was_set_is_given_back(world: World) -> None:
    """As of a resource that is a float: PBS keeps 24 bits of one."""
    world.look()
    set_so = world.ranks()[world.head]
    world.pbs.alter(world.head, {RANK: set_so + 64})
    world.starts.give_back()
    assert not any(world.ranks().values())
    assert world.store.site_factors() == {}


def test_a_job_that_starts_while_ranks_are_given_back_is_no_failure(world: World) -> None:
    """PBS refuses to change it; the others get theirs back."""
    world.look()
    small = world.submit(1, 1)
    world.pbs.alter(small, {RANK: 7})
    world.slow_down()
    assert world.starts.give_back() == 2
    assert small in world.running()
    assert not any(world.ranks().values())


@pytest.mark.parametrize("fails", ["qalter", "qstat"])
def test_a_server_that_is_away_gets_ranks_back_later(world: World, fails: str) -> None:
    world.look()
    world.fails = fails
    with pytest.raises(SchedulerError, match="away"):
        world.starts.give_back()
    world.fails = ""
    assert any(world.ranks().values())
    world.start()
    world.look()
    assert not any(world.ranks().values())


def test_where_qmgr_fails_ranks_are_set_and_given_back(world: World) -> None:
    """PBS then looks at the queue when it does so by itself."""
    world.fails = "qmgr"
    short = world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    assert world.look() == 1
    assert world.ranks()[short] > world.ranks()[world.head]
    world.starts.give_back()
    assert not any(world.ranks().values())


@pytest.mark.parametrize("why_not", ["disabled", "the circuit breaker is open"])
def test_what_may_not_be_raised_is_given_back_at_the_next_look(world: World, why_not: str) -> None:
    world.look()
    again = world.submit(2, 5)
    world.pbs.alter(again, {RANK: 5_000_000_000})
    world.why_not = why_not
    assert world.look() == 0
    assert not any(world.ranks().values())
    sent = len(world.sent)
    world.look()
    assert len(world.sent) == sent


def test_a_daemon_that_raises_none_gives_back_what_a_dead_one_raised(world: World) -> None:
    world.look()
    settings = Settings(
        scheduler=SchedulerSettings(kind="pbs"), hook=HookSettings(mechanism="pbs-soft-walltime")
    )
    daemon = PbsStrategy(settings, world.client, world.store, threading.RLock(), None)
    look = Look(world.pbs.now, world.client.queue(), True, Correction.PBS)
    daemon.arrange(look, world.client.configuration(), lambda _: 0, "")
    assert not any(world.ranks().values())
    assert world.store.site_factors() == {}


def test_the_watchdog_gives_back_what_a_silent_daemon_raised(world: World, tmp_path: Path) -> None:
    """It needs no store, as every rank is Foretime's."""
    world.look()
    settings = Settings(
        scheduler=SchedulerSettings(kind="pbs"),
        hook=HookSettings(mechanism="pbs-soft-walltime"),
        table=TableSettings(path=str(tmp_path / "table")),
    )
    sign = heartbeat_path(settings.table)
    beat(sign)
    beaten, after_s = sign.stat().st_mtime, settings.table.watchdog_after_s
    alive = watch_ranks(settings, world.client, beaten + after_s)
    assert (alive.alive, alive.site_factors) == (True, 0)
    assert any(world.ranks().values())
    found = watch_ranks(settings, world.client, beaten + after_s + 1)
    assert (found.alive, found.site_factors) == (False, 1)
    assert not any(world.ranks().values())


def test_the_others_stand_by_what_they_are_expected_to_take(world: World) -> None:
    """As PBS fills what a job leaves before anybody looks; none of them fits now."""
    long, unknown = world.submit(1, 3, expected_h=2.5), world.submit(1, 4)
    short = world.submit(1, 5, expected_h=2.4)
    world.pass_time(10)
    assert world.look() == 0
    in_order = sorted(world.ranks(), key=world.ranks().__getitem__, reverse=True)
    assert in_order == [world.head, short, long, unknown]
    sent = len(world.sent)
    world.pass_time(600)
    assert world.look() == 0
    assert len(world.sent) == sent, "a rank need not change as time goes by"


def test_a_first_job_that_pbs_plans_no_start_of_keeps_nobody_from_one() -> None:
    """It asks for more than there is of the memory of any host."""
    waiting = [_waiting("1", None), _waiting("2", NOW + 60), _waiting("3", None)]
    way = PbsStarts(None)
    first = [way._submitted_first(waiting, 1)[0].request.job_id for _ in range(8)]
    assert first == ["1", "1", "1", "2", "2", "2", "2", "2"]


def _waiting(name: str, start: int | None) -> QueuedJob:
    request = JobRequest(name, "ann", None, 1, HOUR, NOW)
    return QueuedJob(request, QueueState.PENDING, start_time=start, eligible_time=NOW)


def test_where_pbs_orders_by_fair_share_only_those_that_start_have_a_rank() -> None:
    """Its top job is who it says, and the others stay in its order."""
    shares = replace(SITE.scheduler, fair_share=True, unknown_shares=10)
    assert goes_by_submission(SITE)
    assert not goes_by_submission(replace(SITE, scheduler=shares))
    world = World(replace(SITE, scheduler=shares))
    long = world.submit(1, 5, expected_h=4)
    short = world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    assert world.look() == 1
    assert [name for name, rank in world.ranks().items() if rank] == [short]
    world.pass_time(10)
    assert world.running() == {world.filler, short}
    assert world.look() == 0
    assert world.ranks() == {world.head: 0, long: 0}
    world.store.close()


def test_scheduling_that_is_off_stays_off(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(10)

    def off(argv: object) -> str:
        return world._run(argv).replace('"scheduling": "True"', '"scheduling": "False"')

    world.client = PbsCommands(off, overlap_s=0)
    assert world.look() == 0
    assert "scheduling is switched off" in world.starts.refused
    PbsCommands(off, overlap_s=0)
    assert world.ranks()[job] == 0
    assert not any(words[0] == "qmgr" for words in world.sent)


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (replace(SITE, scheduler=PbsScheduler()), "strict_ordering is off"),
        (replace(SITE, server=PbsServer()), "foretime install pbs"),
        (replace(SITE, server=PbsServer(job_sort_formula="walltime")), "the site's own (walltime)"),
        (
            replace(SITE, server=PbsServer(job_sort_formula=RANK, job_sort_formula_threshold=1.0)),
            "job_sort_formula_threshold is set",
        ),
        (
            replace(SITE, server=PbsServer(job_sort_formula=RANK, backfill_depth=0)),
            "backfill_depth is 0",
        ),
        (
            replace(SITE, scheduler=replace(SITE.scheduler, round_robin=True, by_queue=False)),
            "round_robin",
        ),
    ],
)
def test_it_says_where_it_can_do_nothing(site: PbsSite, said: str) -> None:
    assert said in why_no_ranks(site)


def test_it_says_that_the_site_is_not_known(world: World) -> None:
    world.known = KeptSite(LiveSite("PBS", world.pbs.site), HOUR)
    world.start()
    assert world.look() == 0
    assert "how this PBS schedules is not known" in world.starts.refused


def test_a_job_that_starts_while_it_is_ranked_is_no_failure(world: World) -> None:
    """PBS refuses to change it, and nobody else had anything to be changed."""
    world.look()
    job = world.submit(1, 1)

    def late(argv: object) -> str:
        if "qalter" in list(argv):  # type: ignore[call-overload]
            world.pass_time(1)
        return world._run(argv)

    world.starts._own._client = world.client = PbsCommands(late, overlap_s=0)
    assert world.look() == 0
    assert job in world.running()


def test_only_managers_set_a_rank(world: World) -> None:
    with pytest.raises(SchedulerError, match="read only or insufficient permission"):
        world.pbs.alter(world.head, {RANK: 5}, requestor="ann")
    with pytest.raises(SchedulerError, match="while job running"):
        world.pbs.alter(world.filler, {RANK: 5})
