"""Jobs that the daemon starts at once, on the mock Slurm by its own rules, and where not."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.late_jobs import LateJobs
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.circuit_breaker import CircuitBreaker
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import BreakerSettings, HookSettings
from foretime_sidecar.store.store import Store
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite

from tests.support.slurm.ordered_slurm import Noting, factors_of, submission

NOW = 1_800_000_000
HOUR = 3600
PROCESSORS = 4


class World:
    """A mock Slurm whose head job waits for two hours, and what starts jobs there."""

    def __init__(self, most_places_gained: int = 0) -> None:
        self.order = QueueOrderSettings(head_delay_s=HOUR, most_places_gained=most_places_gained)
        machine = Machine.flat(PROCESSORS)
        self.slurm = MockSlurm(
            SlurmSetup(PROCESSORS, machine=machine),
            Policy(backfill=Slurm(SlurmSite(machine))),
            None,
            NOW,
        )
        self.noting = Noting(self.slurm)
        self.store = Store(":memory:")
        self.expected_h: dict[str, float] = {}
        self.hook = HookSettings()
        self.exclusions = Exclusions()
        self.why_not = ""
        self.late: LateJobs | None = None
        self.start()
        # It would run for five.
        self.slurm.submit(Submission("bob", "p", None, 3, 2 * HOUR, 5 * HOUR))
        self.head = self.submit(4, 1)
        self.pass_time(60)

    def start(self) -> None:
        """Have the daemon begin, again."""
        client = SlurmCommands(self.noting, overlap_s=0)
        self.client = client
        lock = threading.RLock()
        self.starts = StartNow(self.hook, self.order, client, self.store, lock, late=self.late)

    def submit(self, processors: int, hours: float, expected_h: float | None = None) -> str:
        """Submit a job that runs as long as it asks; give its id."""
        asked = submission(processors, round(hours * HOUR), user="ann")
        job_id = f"{self.slurm.submit(asked)}"
        if expected_h is not None:
            self.expected_h[job_id] = expected_h
        return job_id

    def pass_time(self, seconds: int) -> None:
        """Turn the clock."""
        self.slurm.advance(self.slurm.now + seconds)

    def look(self) -> int:
        """Let the daemon look; give how many jobs it raised."""
        configuration = self.client.configuration()
        look = Look(
            self.slurm.now,
            self.client.queue(),
            cluster=self.client.cluster(),
            reservations=tuple(self.client.reservations()),
        )

        def expected(job: JobRequest, now: int) -> RolePrediction | None:
            assert now == self.slurm.now
            hours = self.expected_h.get(job.job_id)
            if hours is None:
                return None
            return RolePrediction(round(hours * HOUR), round(hours * HOUR), job.requested_time)

        return self.starts.arrange(look, configuration, expected, self.exclusions, self.why_not)

    def running(self) -> set[str]:
        """Name the jobs that run."""
        return {
            job.request.job_id for job in self.client.queue().jobs if job.state.value == "running"
        }


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.store.close()


def test_a_job_that_is_expected_to_end_before_the_head_job_starts_is_started(world: World) -> None:
    """Slurm itself leaves it waiting: it asks for more than the two hours until then."""
    long = world.submit(1, 5, expected_h=4)
    short = world.submit(1, 5, expected_h=1)
    world.pass_time(300)
    assert world.running() == {"1"}, "by itself Slurm starts neither"
    assert world.look() == 1
    assert factors_of(world.noting)[short] > 0
    world.pass_time(10)
    assert world.running() == {"1", short}
    assert world.look() == 0
    assert factors_of(world.noting) == {world.head: 0, long: 0}
    assert (world.starts.raised, world.starts.missed) == (1, 0)
    assert world.store.site_factors() == {}


def test_no_time_of_a_job_is_touched(world: World) -> None:
    world.submit(1, 5, expected_h=1)
    world.pass_time(10)
    world.look()
    assert [line.split()[2].split("=")[0] for line in world.noting.sent] == ["SiteFactor"]


def test_a_job_that_should_start_no_more_gets_back_what_it_had(world: World) -> None:
    """Somebody else has taken the processor between the look and Slurm's own."""
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(5)
    assert world.look() == 1
    taken = world.submit(1, 1)
    world.slurm.run(["scontrol"], f"update JobId={taken} SiteFactor=99999\nquit\n")
    world.pass_time(10)
    assert taken in world.running()
    assert world.look() == 0
    assert factors_of(world.noting)[job] == 0
    assert (world.starts.raised, world.starts.missed) == (1, 0), "it was overtaken"


def test_after_a_miss_a_job_waits_before_it_is_raised_again(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    assert world.look() == 0, "Slurm has not looked yet, which counts as a miss"
    world.pass_time(59)
    assert world.running() == {"1"}
    assert world.look() == 0
    world.pass_time(1)
    assert world.look() == 1
    world.pass_time(10)
    assert job in world.running()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"PriorityType": "priority/basic"}, "PriorityType is priority/basic"),
        ({"PrioritySiteFactorPlugin": "site_factor/x"}, "sets the site factors"),
        ({"Federation": "west"}, "in the federation west"),
        ({"PriorityFlags": "INCR_ONLY,MAX_TRES"}, "INCR_ONLY"),
        ({"SchedulerParameters": "enable_user_top"}, "enable_user_top"),
        ({"PreemptType": "preempt/qos"}, "PreemptType is preempt/qos"),
    ],
)
def test_where_it_does_nothing_or_harm_it_is_refused_and_all_is_given_back(
    world: World, config: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    world.noting.config = config
    assert world.look() == 0
    assert why in world.starts.refused
    assert world.starts.refused in caplog.text
    assert factors_of(world.noting)[job] == 0
    world.noting.config = {}
    assert world.look() == 1
    assert world.starts.refused == ""


@pytest.mark.parametrize(
    ("asked", "raised"),
    [
        ({"licenses": "matlab:1"}, 0),
        ({"required_switches": 1}, 0),
        ({"contiguous": True}, 0),
        ({"burst_buffer": "#BB capacity=1GB"}, 0),
        ({"features": "fast|ib"}, 0),
        ({"tres_per_node": "gres/shard:1"}, 0),
        ({"tres_per_node": ""}, 1),
    ],
)
def test_what_asks_for_more_than_nodes_that_are_known_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object], raised: int
) -> None:
    """Nobody here knows whether there is any left, so it could be raised for nothing."""
    job = world.submit(1, 5, expected_h=1)
    real = world.slurm.run

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        reply: Any = real(argv, stdin)
        if argv[0] == "squeue":
            for each in reply["jobs"]:
                each |= asked if f"{each['job_id']}" == job else {}
        return reply

    monkeypatch.setattr(world.slurm, "run", run)
    world.pass_time(10)
    assert world.look() == raised


def test_as_soon_as_something_is_expected_of_a_job_it_is_started(world: World) -> None:
    """A daemon that has just begun has not learned yet."""
    job = world.submit(1, 5)
    world.pass_time(1)
    assert world.look() == 0
    world.expected_h[job] = 1
    assert world.look() == 1


def test_disabled_it_gives_all_back(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.look()
    world.why_not = "foretime.off exists"
    assert world.look() == 0
    assert factors_of(world.noting)[job] == 0
    assert world.starts.refused == "foretime.off exists"


def test_a_factor_that_somebody_else_set_is_left_alone(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    other = world.submit(1, 5, expected_h=1.5)
    world.slurm.run(["scontrol"], f"update JobId={job} SiteFactor=-7\nquit\n")
    world.pass_time(1)
    assert world.look() == 1
    assert factors_of(world.noting)[job] == -7
    world.pass_time(10)
    assert other in world.running()
    world.look()
    world.starts.give_back()
    assert factors_of(world.noting)[job] == -7


def test_a_factor_that_somebody_sets_on_a_raised_job_stays(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    world.slurm.run(["scontrol"], f"update JobId={job} SiteFactor=-7\nquit\n")
    world.pass_time(1)
    assert world.look() == 0
    world.starts.give_back()
    assert factors_of(world.noting)[job] == -7


@pytest.mark.parametrize(
    "hook",
    [
        {"leave_users": ["ann"]},
        {"enforce_only_accounts": ["other"]},
        {"enforce_share_percent": 0},
    ],
)
def test_whom_the_settings_leave_alone_is_left_alone(world: World, hook: dict[str, Any]) -> None:
    world.hook = HookSettings.model_validate(hook)
    world.exclusions = Exclusions(chosen=world.hook.left_alone)
    world.start()
    world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 0


def test_a_daemon_that_was_killed_finds_what_it_had_raised(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.look()
    world.start()
    world.expected_h.clear()
    assert world.look() == 0
    assert factors_of(world.noting)[job] == 0
    assert world.store.site_factors() == {}


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_has_started_keeps_no_factor_that_it_would_wait_with_once_requeued(
    world: World, *, is_lost: bool
) -> None:
    """Also where the daemon is lost before it sees that the job has started."""
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    world.pass_time(10)
    assert job in world.running()
    if is_lost:
        world.start()
    world.noting.sent.clear()
    world.look()
    assert world.noting.sent == [f"update JobId={job} SiteFactor=0"]
    assert world.store.site_factors() == {}
    world.look()
    assert len(world.noting.sent) == 1


def test_one_that_is_raised_again_and_starts_keeps_no_factor_either(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    assert world.look() == 0, "it was missed, and pauses"
    world.pass_time(61)
    assert world.look() == 1
    world.pass_time(10)
    assert job in world.running()
    world.noting.sent.clear()
    world.look()
    assert world.noting.sent == [f"update JobId={job} SiteFactor=0"]


def test_a_running_job_whose_factor_slurm_does_not_take_back_is_not_forgotten(
    world: World,
) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.look()
    world.pass_time(10)
    world.noting.refuses = True
    world.look()
    with pytest.raises(SchedulerError, match="denied"):
        world.starts.give_back()
    assert set(world.store.site_factors()) == {job}
    world.noting.refuses = False
    world.starts.give_back()
    assert world.store.site_factors() == {}


def test_what_another_order_left_is_given_back_first(world: World) -> None:
    """Its site factors stand in the priorities of that look, and would make others the first."""
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.store.note_site_factors({world.head: 3, job: 900})
    world.slurm.run(
        ["scontrol"], f"update JobId={job} SiteFactor=900\nupdate JobId={world.head} SiteFactor=3\n"
    )
    assert world.look() == 0
    assert set(factors_of(world.noting).values()) == {0}
    assert world.store.site_factors() == {}
    assert world.look() == 1


def test_a_look_makes_all_changes_in_one_request(world: World) -> None:
    """One job is raised as another, which was raised and did not start, loses its factor."""
    first = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == 1
    second = world.submit(1, 5, expected_h=0.5)
    requests: list[str] = []
    run = world.noting.slurm.run

    def noted(argv: Sequence[str], stdin: str | None = None) -> object:
        if stdin is not None:
            requests.append(stdin)
        return run(argv, stdin)

    world.noting.slurm = SimpleNamespace(run=noted)  # type: ignore[assignment]
    assert world.look() == 1
    (request,) = requests
    assert [line.split()[1] for line in request.splitlines()[:-1]] == [
        f"JobId={first}",
        f"JobId={second}",
    ]


def test_a_look_sends_only_what_has_changed(world: World) -> None:
    job = world.submit(1, 1, expected_h=0.5)
    world.submit(1, 9, expected_h=9)
    assert world.look() == 1
    assert [line.split()[1] for line in world.noting.sent] == [f"JobId={job}"]
    world.look()  # it has not started, so it gets back what it had, and pauses
    sent = list(world.noting.sent)
    assert sent[1:] == [f"update JobId={job} SiteFactor=0"]
    world.look()
    assert world.noting.sent == sent


def test_what_is_raised_is_written_down_before_it_is_sent(world: World) -> None:
    job = world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.noting.dies_at_update = True
    with pytest.raises(KeyboardInterrupt):
        world.look()
    assert world.store.site_factors().keys() == {job}


def test_a_refused_change_is_said(world: World) -> None:
    world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    world.noting.refuses = True
    with pytest.raises(SchedulerError, match="Access/permission denied"):
        world.look()


def test_too_many_misses_open_the_breaker(world: World) -> None:
    """Slurm never looks while the daemon does, as if no raised job could start."""
    world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    for _ in range(120):
        world.look()
        world.starts._misses.clear()
    trip = CircuitBreaker(BreakerSettings(), world.store).trip()
    assert trip is not None
    assert trip.reason == (
        "50 of the last 50 jobs that were raised to start at once had not started by the next "
        "look, though they still fitted"
    )


def test_jobs_that_are_overtaken_open_no_breaker_and_do_not_pause(world: World) -> None:
    job = world.submit(1, 5, expected_h=0.5)
    world.pass_time(5)
    for _ in range(60):
        assert world.look() == 1
        taken = world.submit(1, 1 / 60)
        world.slurm.run(["scontrol"], f"update JobId={taken} SiteFactor=99999\nquit\n")
        world.pass_time(10)
        assert taken in world.running()
        assert world.look() == 0
        world.pass_time(60)
    assert CircuitBreaker(BreakerSettings(), world.store).trip() is None
    assert (world.starts.raised, world.starts.missed) == (60, 0)
    assert job not in world.running()


@pytest.mark.parametrize(("late_s", "raised"), [(360, 1), (1800, 0), (2 * HOUR, 0)])
def test_the_later_a_head_job_is_the_more_it_is_protected(
    world: World, late_s: int, raised: int
) -> None:
    """Its start was planned for when the first job's limit was two hours; now that is five."""
    world.look()
    world.slurm.run(["scontrol"], "update JobId=1 TimeLimit=300\nquit\n")
    world.pass_time(2 * HOUR + 3 - 60 + late_s)
    world.submit(1, 5, expected_h=0.5)
    world.pass_time(1)
    assert "1" in world.running()
    assert world.look() == raised


def test_a_job_passes_no_more_others_than_the_settings_allow() -> None:
    """Two wait before it by the site's own priorities: the head job, and one that is as long."""
    for bound, raised in ((0, 1), (1, 0), (2, 1)):
        world = World(most_places_gained=bound)
        world.submit(1, 5, expected_h=4)
        world.submit(1, 5, expected_h=1)
        world.pass_time(1)
        assert world.look() == raised, bound
        world.store.close()


@pytest.mark.parametrize(("most_behind_s", "raised"), [(HOUR, 1), (HOUR - 1, 0)])
def test_only_late_jobs_are_raised_while_others_would_have_started(
    world: World, most_behind_s: int, raised: int
) -> None:
    """The head job has work for an hour of the whole machine, and would have started by now."""
    world.late = LateJobs(HOUR, most_behind_s)
    world.start()
    world.late.note(
        KnownJob(job, NOW, plain_start=NOW + 30)
        for job in world.client.queue().jobs
        if job.request.job_id == world.head
    )
    world.submit(1, 5, expected_h=1)
    world.pass_time(1)
    assert world.look() == raised
    assert world.late.is_behind is (raised == 0)
    world.why_not = "foretime disable"
    world.look()
    assert not world.late.is_behind, "nobody waits for what is not done"
