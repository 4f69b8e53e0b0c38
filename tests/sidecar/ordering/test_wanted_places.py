"""The order kept beside heavy factors of the site's own, which drift."""

from __future__ import annotations

from itertools import pairwise

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.ordering.wanted_places import Place, heads_of, places_of, wanted_factors
from foretime_sidecar.queue.site_factors import name_of
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm.ordered_slurm import Noting, factors_of

NOW = 1_800_000_000
HOUR = 3600
FAIR_SHARE = 100_000


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, FAIR_SHARE), st.sampled_from([0, 0, 500, 300_000]), st.integers(-9, 9)
        ),
        min_size=1,
        max_size=12,
    ),
    highest=st.integers(100, 10**6),
)
def test_jobs_stand_in_order_whatever_else_weighs(
    rows: list[tuple[int, int, int]], highest: int
) -> None:
    places = {f"{n}": Place(*row) for n, row in enumerate(rows)}
    names = list(places)
    changed = wanted_factors(names, places, highest)
    assert list(changed) == [name for name in names if name in changed], "the first is sent first"
    after = []
    for name in names:
        place = places[name]
        ours = changed[name] - place.earlier if name in changed else place.ours
        assert ours > 0, "or it could not be told from none"
        after.append(place.base + ours)
    assert all(one > other for one, other in pairwise(after))
    stand = {
        name: Place(place.base, level - place.base, place.earlier)
        for (name, place), level in zip(places.items(), after, strict=True)
    }
    assert wanted_factors(names, stand, highest) == {}


def _waits(job_id: str, priority: int, queue: str = "main", reason: str = "Priority") -> QueuedJob:
    request = JobRequest(job_id, "ann", None, 1, HOUR, NOW - 60, queue)
    return QueuedJob(
        request, QueueState.PENDING, priority=priority, eligible_time=NOW - 60, reason=reason
    )


def test_the_first_of_each_partition_is_by_the_sites_own_priorities() -> None:
    jobs = [
        _waits("1", 500),
        _waits("2", 90_600),
        _waits("3", 700, "fat,main"),
        _waits("4", 900, reason="QOSMaxJobsPerUserLimit"),
        _waits("5", 650, "fat"),
        _waits("6", 9999),
    ]
    factors = {"1": 0, "2": 90_050, "3": 0, "4": 0, "5": 7}
    places = places_of(jobs, factors, {"2": {90_050: 50}, "5": {9: 0}})
    assert places["2"] == Place(600, 90_000, 50)
    assert places["5"] == Place(650, 0, 7), "somebody has changed it since"
    assert "6" not in places, "its priority is fixed"
    assert heads_of(jobs, places, NOW) == ["3"]
    assert heads_of([jobs[0], jobs[4]], places, NOW) == ["5", "1"]


def test_the_order_holds_beside_fair_share_that_drifts() -> None:
    """A day of jobs of five accounts, whose fair share weighs 100,000 and decays."""
    machine = Machine.flat(16)
    accounts = tuple(
        Association(f"a{n}", user, parent=None if user else "root", shares=1 + n)
        for n in range(5)
        for user in (None, f"u{n}")
    )
    priority = SlurmPriority(weight_fair_share=FAIR_SHARE, weight_age=5000, decay_half_life_s=HOUR)
    site = SlurmSite(machine, priority=priority, associations=(Association("root"), *accounts))
    slurm = MockSlurm(SlurmSetup(16, machine=machine), Policy(backfill=Slurm(site)), None, NOW)
    world = Noting(slurm)
    settings = Settings.model_validate({"queue_order": {"order": "sjf"}})
    store = Store(":memory:")
    sidecar = Sidecar(settings, SlurmCommands(world, 0), store)
    own_orders, sent, looks = set(), 0, 0
    for number in range(70):
        asked = HOUR * (1 + number * 7 % 5) + 60 * number
        user = f"{number % 5}"
        slurm.submit(Submission(f"u{user}", f"a{user}", None, 1 + number % 16, asked, asked // 2))
        slurm.advance(slurm.now + 1200)
        before = {name_of(job): job for job in _waiting(world)}
        sidecar.look(slurm.now)
        jobs, factors = _waiting(world), factors_of(world)
        shortest = sorted(jobs, key=lambda job: job.request.requested_time)
        assert [job.request.job_id for job in jobs] == [job.request.job_id for job in shortest]
        own = sorted(jobs, key=lambda job: factors[job.request.job_id] - job.priority)
        own_orders.add(tuple(job.request.job_id for job in own) == tuple(before))
        looks += len(jobs)
        sent += len(world.sent)
        world.sent.clear()
    assert looks > 500
    assert sent < looks / 2, "few are changed at each look"
    sidecar.end()
    store.close()
    assert set(factors_of(world).values()) == {0}


def _waiting(world: Noting) -> list[QueuedJob]:
    jobs = [j for j in SlurmCommands(world).queue().jobs if j.state is QueueState.PENDING]
    return sorted(jobs, key=lambda job: -job.priority)
