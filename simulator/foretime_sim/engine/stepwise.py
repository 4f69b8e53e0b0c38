"""The scheduling engine step by step, with Python in the loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim import _core
from foretime_sim.engine.job_view import JobView, Moves
from foretime_sim.engine.native.bgp_core import by_size_and_name, use_bgp_machine
from foretime_sim.engine.native.engine_core import core_counters, core_engine, core_schedule
from foretime_sim.engine.native.node_core import core_request, use_machine
from foretime_sim.engine.native.pbs_core import (
    check_resources,
    use_pbs_site,
    why_pbs_never,
)
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.engine.native.pbs_shares import with_usage
from foretime_sim.engine.native.slurm_core import (
    StepwiseNames,
    slurm_reason,
    use_slurm_site,
    whole_minutes,
    why_slurm_never,
)
from foretime_sim.engine.schedule import Counters, Schedule, StartedBy
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation, NodeReservation
from foretime_sim.policies.advance_reservations import check_node_reservations, of_processors
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls, has_python
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.role_times import JobTimesUpdate
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.workloads.node_request import JobResources, Request, fit_request
from foretime_sim.workloads.site_jobs import SiteJob

State = _core.State


class Engine:
    """A scheduler driven step by step, so that its user decides what is known at each moment.

    Under the event order ``per-timestep``, `advance` up to t leaves out the scheduling pass at t,
    so that jobs submitted at t after a look at what had finished by then still take part in it;
    under ``per-event``, where submissions come first, it leaves out every event at t. What is left
    out happens as soon as the clock moves on, or on `settle`. So driving it from submission to
    submission gives the very schedule of `foretime_sim.engine.engine.simulate`.

    Where a policy in Python fails, the engine stands before the scheduling pass that asked it, with
    everything before that done; going on does that pass again.

    Not for use from two threads at once.

    Parameters
    ----------
    machine_processors
        Size of the flat pool; on a machine of nodes, all its CPUs (``machine.cpus``); on a Blue
        Gene, all its nodes (``machine.nodes``).
    policy
        What the scheduler does; ``None`` for FCFS with EASY.
    now
        The clock's first value, seconds.
    machine
        Nodes in place of a flat pool. Each job then has ``resources`` (by default its processors
        as tasks of one CPU in the default slurm_partition), and running jobs that are added are
        placed by the rule for starting ones. Or a Blue Gene, whose jobs ask for nodes.
    allocation
        Record what each job has of which nodes, for `schedule`.
    reservations
        Processors claimed from outside, see `foretime_sim.engine.engine.simulate`; on a machine of
        nodes, groups of nodes that are set aside.
    epoch_of_zero
        Epoch seconds of the clock's zero, for policies in Python to know the hour and the day.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.engine.stepwise import Engine
    >>> engine = Engine(8, Policy())
    >>> long = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> short = engine.submit(60, 4, actual_runtime=60, requested_time=300)
    >>> engine.finish().finished.tolist()
    [0, 1]
    >>> engine.started_at(long), engine.started_at(short)
    (0, 600)
    """

    def __init__(
        self,
        machine_processors: int,
        policy: Policy | None = None,
        now: int = 0,
        reservations: Sequence[AdvanceReservation | NodeReservation] = (),
        *,
        epoch_of_zero: int = 0,
        machine: Machine | BgpMachine | None = None,
        allocation: bool = False,
    ) -> None:
        self.policy = policy or Policy()
        slurm = self.policy.backfill if isinstance(self.policy.backfill, Slurm) else None
        pbs = self.policy.backfill if isinstance(self.policy.backfill, Pbs) else None
        self._slurm_names = None if slurm is None else StepwiseNames(slurm.site)
        self._pbs_names = None if pbs is None else PbsNames(pbs.site)
        if isinstance(self.policy.backfill, Slurm | Pbs):
            site_machine = self.policy.backfill.site.machine
            if machine not in (None, site_machine):
                raise InputError("machine is another than that of the site: leave it out")
            if reservations:
                raise InputError("reservations are those of the site: leave them out")
            machine = site_machine
        if slurm is not None:
            reservations = slurm.site.reservations
        if isinstance(machine, BgpMachine):
            has, unit = machine.nodes, "nodes"
        elif machine is not None:
            has, unit = machine.cpus, "CPUs"
        else:
            has, unit = machine_processors, "processors"
        if machine_processors != has:
            raise InputError(
                f"machine_processors is {machine_processors}: the machine has {has} {unit}"
            )
        if machine_processors < 1:
            raise InputError(f"machine_processors is {machine_processors}: give at least 1")
        self.machine_processors = machine_processors
        self.policy.check_in(Place.STEPS)
        self.reservations = tuple(reservations)
        self.epoch_of_zero = epoch_of_zero
        self._node_reservations: tuple[NodeReservation, ...] = ()
        if isinstance(machine, Machine):
            names = [group.name for group in machine.node_groups]
            self._node_reservations = check_node_reservations(reservations, names)
            claims: tuple[AdvanceReservation, ...] = ()
        else:
            claims = of_processors(reservations)
        self._calls = (
            PolicyCalls(
                self.policy,
                machine_processors,
                epoch_of_zero=epoch_of_zero,
                reservations=claims,
            )
            if has_python(self.policy)
            else None
        )
        self._core = core_engine(machine_processors, self.policy, now, claims, self._calls)
        self.machine = machine
        self._asked: dict[int, Request] = {}  # by the number that the core has for it
        self._request_numbers: dict[Request, int] = {}
        if isinstance(machine, BgpMachine):
            use_bgp_machine(self._core, machine, self.policy, reserved=bool(claims))
        elif slurm is not None:
            use_slurm_site(self._core, slurm, epoch_of_zero, record=allocation, keep_plans=True)
        elif pbs is not None and self._pbs_names is not None:
            use_pbs_site(self._core, pbs.site, epoch_of_zero, self._pbs_names, record=allocation)
        elif machine is not None:
            use_machine(self._core, machine, self.policy, reserved=False, record=allocation)

    def submit(
        self,
        submit_time: int,
        processors: int,
        actual_runtime: int,
        requested_time: int,
        scheduled_time: int | JobTimesUpdate | None = None,
        time_limit: int | None = None,
        priority: int = 0,
        *,
        resources: JobResources | None = None,
        user: str | None = None,
        project: str | None = None,
        said: SiteJob | None = None,
    ) -> int:
        """Submit a job at the clock's time or later; give its index (0, 1, 2, ...).

        Parameters are those of `foretime_sim.engine.engine.simulate`, for one job; user and project
        are for policies in Python and for sites to look at, ``resources`` for a machine of nodes,
        ``said`` for a site's scheduler.

        Raises
        ------
        InputError
            If it is wider than the machine, is submitted before the clock's time, or a value is
            impossible.
        """
        if submit_time < self._core.now:
            raise InputError(
                f"submit_time {submit_time} is before the clock's time {self._core.now}"
            )
        return self._submit(
            submit_time,
            processors,
            actual_runtime,
            requested_time,
            scheduled_time,
            time_limit,
            priority,
            resources,
            user,
            project,
            said,
        )

    def add_pending(
        self,
        submit_time: int,
        processors: int,
        actual_runtime: int,
        requested_time: int,
        scheduled_time: int | JobTimesUpdate | None = None,
        time_limit: int | None = None,
        priority: int = 0,
        *,
        resources: JobResources | None = None,
        user: str | None = None,
        project: str | None = None,
        said: SiteJob | None = None,
    ) -> int:
        """Add a job waiting since ``submit_time``, to begin from a snapshot; give its index.

        It takes part in the next scheduling pass, with the place that its wait gives it.

        Raises
        ------
        InputError
            If a plain EASY runs beside, it was submitted after the clock's time, is wider than the
            machine, or a value is impossible.
        """
        self.policy.check_in(Place.PENDING_BEFORE)
        if submit_time > self._core.now:
            raise InputError(
                f"submit_time {submit_time} is after the clock's time {self._core.now}"
            )
        return self._submit(
            submit_time,
            processors,
            actual_runtime,
            requested_time,
            scheduled_time,
            time_limit,
            priority,
            resources,
            user,
            project,
            said,
        )

    def _submit(
        self,
        submit_time: int,
        processors: int,
        actual_runtime: int,
        requested_time: int,
        scheduled_time: int | JobTimesUpdate | None,
        time_limit: int | None,
        priority: int,
        resources: JobResources | None,
        user: str | None,
        project: str | None,
        said: SiteJob | None,
    ) -> int:
        processors, request = self._request(resources, processors, requested_time)
        self._check(processors, actual_runtime, requested_time, time_limit)
        queue, backfill, drain = self._roles(requested_time, scheduled_time)
        if request is not None:
            self._core.set_request(len(self._core), request)
        if self._calls is not None:
            self._calls.add_job(user, project)
        self._describe(user, project, resources, request, said)
        return self._core.submit(
            submit_time,
            processors,
            actual_runtime,
            requested_time,
            queue,
            backfill,
            drain,
            self._default_limit(requested_time) if time_limit is None else time_limit,
            priority,
        )

    def add_running(
        self,
        start_time: int,
        processors: int,
        actual_runtime: int,
        requested_time: int,
        scheduled_time: int | JobTimesUpdate | None = None,
        time_limit: int | None = None,
        submit_time: int | None = None,
        *,
        resources: JobResources | None = None,
        user: str | None = None,
        project: str | None = None,
        bgp_partition: str | None = None,
        said: SiteJob | None = None,
    ) -> int:
        """Add a job that started before now, to begin from a snapshot; give its index.

        If its estimate has expired already it has been corrected by the policy's rule. If it should
        have ended already it ends now. On a Blue Gene it has the bgp_partition of that name; one is
        chosen as if it started now where none is named.

        Raises
        ------
        InputError
            If a plain EASY runs beside, or it starts after the clock's time, or there are not
            enough free processors for it, or its bgp_partition is not free, or does not suit its
            size.
        """
        self.policy.check_in(Place.RUNNING_BEFORE)
        processors, request = self._request(resources, processors, requested_time)
        self._check(processors, actual_runtime, requested_time, time_limit)
        if start_time > self._core.now:
            raise InputError(f"start_time {start_time} is after the clock's time {self._core.now}")
        if processors > self._core.free_processors:
            raise InputError(
                f"a running job has {processors} processors, but only"
                f" {self._core.free_processors} of {self.machine_processors} are free"
            )
        if request is not None:
            if not self._core.has_room(request):
                raise InputError("a running job does not fit on what is free of the nodes")
            self._core.set_request(len(self._core), request)
        place = self._bgp_place(processors, bgp_partition)
        _, _, drain = self._roles(requested_time, scheduled_time)
        if self._calls is not None:
            self._calls.add_job(user, project)
        self._describe(user, project, resources, request, said)
        return self._core.add_running(
            start_time if submit_time is None else submit_time,
            start_time,
            processors,
            actual_runtime,
            requested_time,
            drain,
            self._default_limit(requested_time) if time_limit is None else time_limit,
            place,
        )

    def _describe(
        self,
        user: str | None,
        project: str | None,
        resources: JobResources | None,
        request: int | None,
        said: SiteJob | None,
    ) -> None:
        """Tell the core what the next job says to a site's scheduler."""
        if self._slurm_names is not None and request is not None:
            reservation = None if resources is None else resources.reservation
            first = self._slurm_names.first_partition(self._asked[request])
            self._slurm_names.describe(
                self._core, user, project, reservation, first, said or SiteJob()
            )
        elif said is not None:
            raise InputError("said is for a site's scheduler (backfill=Slurm(site)): leave it out")
        if self._pbs_names is not None:
            names = self._pbs_names
            self._core.describe_for_pbs(
                len(self._core), names.code("u", user), names.code("p", project)
            )

    def _default_limit(self, requested_time: int) -> int:
        if self._slurm_names is None:
            return requested_time
        return int(whole_minutes(np.array([requested_time]))[0])

    def _bgp_place(self, processors: int, bgp_partition: str | None) -> int | None:
        """Give where the core has a running job's bgp_partition; ``None`` to let it choose."""
        if not isinstance(self.machine, BgpMachine):
            if bgp_partition is not None:
                raise InputError(f"partition {bgp_partition}: the machine is no Blue Gene")
            return None
        if bgp_partition is None:
            if not self._core.has_room_on_bgp(processors):
                raise InputError(
                    f"a running job has {processors} nodes, but no partition that holds it is free"
                )
            return None
        index = self.machine.bgp_partition_index(bgp_partition)
        has = self.machine.bgp_partitions[index].nodes
        smallest = next((size for size in self.machine.sizes if size >= processors), None)
        if has != smallest:
            raise InputError(
                f"a running job has {processors} nodes, which partitions of {smallest} hold;"
                f" {bgp_partition} has {has}"
            )
        place = int(np.flatnonzero(by_size_and_name(self.machine) == index)[0])
        if not self._core.is_free_on_bgp(place):
            raise InputError(f"a running job has {bgp_partition}, which is not free")
        return place

    def advance(self, until: int) -> Moves:
        """Move the clock to ``until`` and report what started and finished since the last step.

        See the class for what is held back at ``until`` itself.

        Raises
        ------
        InputError
            If ``until`` is before the clock's time.
        """
        if until < self._core.now:
            raise InputError(f"can't go back from {self._core.now} to {until}")
        return Moves(*self._core.advance(until))

    def settle(self) -> Moves:
        """Do all that is left to do at the clock's time, and report it."""
        return Moves(*self._core.settle())

    def finish(self) -> Moves:
        """Run until every submitted job has ended, and report what happened."""
        return Moves(*self._core.finish())

    def update(
        self,
        index: int,
        *,
        scheduled_time: int | JobTimesUpdate | None = None,
        requested_time: int | None = None,
        time_limit: int | None = None,
        actual_runtime: int | None = None,
        priority: int | None = None,
        nice: int | None = None,
        qos: str | None = None,
        site_factor: int | None = None,
    ) -> None:
        """Change a job that has not ended; what is not named stays.

        Pending jobs take their new place in the queue, running jobs their new end and, from now on,
        their new estimate; a scheduling pass follows at the clock's time, but not if the actual
        runtime alone is another, which no scheduler sees. A running job whose limit falls below
        what it has run ends now. A new ``requested_time`` lowers scheduled times above it; it does
        not touch the time limit. ``nice``, ``qos`` and ``site_factor`` are of jobs that wait under
        a site's Slurm.

        Raises
        ------
        InputError
            If there is no such job, it has ended, or a value is impossible.
        """
        job = self._job(index)
        if job.state in (State.FINISHED, State.CANCELLED):
            raise InputError(f"job {index} is {job.state.name.lower()}: it can't be changed")
        requested = job.requested_time if requested_time is None else requested_time
        actual = job.actual_runtime if actual_runtime is None else actual_runtime
        limit = job.time_limit if time_limit is None else time_limit
        self._check(job.processors, actual, requested, limit)
        if scheduled_time is None:
            queue, backfill, drain = (
                min(time, requested) for time in (job.queue_time, job.backfill_time, job.drain_time)
            )
        else:
            queue, backfill, drain = self._roles(requested, scheduled_time)
        self._core.update(
            index,
            actual,
            requested,
            queue,
            backfill,
            drain,
            limit,
            job.priority if priority is None else priority,
        )
        if nice is None and qos is None and site_factor is None:
            return
        what = "nice, qos and site_factor"
        if self._slurm_names is None:
            raise InputError(f"{what} are for a site's Slurm (backfill=Slurm(site))")
        if job.state is State.RUNNING:
            raise InputError(f"job {index} is running: {what} are of jobs that wait")
        self._slurm_names.change(self._core, index, nice, qos, site_factor)

    def slurm_priority(self, index: int) -> int | None:
        """Give the priority of a job that waits under a site's Slurm; ``None`` of others."""
        return None if self._slurm_names is None else self._core.slurm_priority(index)

    def slurm_reason(self, index: int) -> str:
        """Give Slurm's word for the limit that keeps a job waiting; "" if none does."""
        if self._slurm_names is None:
            return ""
        return slurm_reason(self._core, self._slurm_names.site, index)

    def pbs_site(self) -> PbsSite | None:
        """Give the site's PBS with what fair share has charged by now; ``None`` under others."""
        if self._pbs_names is None or not isinstance(self.policy.backfill, Pbs):
            return None
        site = self.policy.backfill.site
        return with_usage(self._core, site, self.epoch_of_zero, self._pbs_names)

    def cancel(self, index: int) -> None:
        """Take a job that has not started out of the queue.

        Raises
        ------
        InputError
            If there is no such job, or it has started.
        """
        job = self._job(index)
        if job.state not in (State.SUBMITTED, State.PENDING):
            raise InputError(f"job {index} is {job.state.name.lower()}: it can't be cancelled")
        self._core.cancel(index)

    @property
    def now(self) -> int:
        """The clock, seconds."""
        return self._core.now

    @property
    def next_event_time(self) -> int | None:
        """When something happens next, seconds; ``None`` if nothing ever does."""
        return self._core.next_event_time

    @property
    def free_processors(self) -> int:
        """Processors that no job uses."""
        return self._core.free_processors

    @property
    def counters(self) -> Counters:
        """What was done so far."""
        return core_counters(self._core)

    def queue(self) -> Int64Array:
        """Give the indices of the pending jobs, first of the queue first."""
        return self._core.queue()

    def running(self) -> Int64Array:
        """Give the indices of the running jobs, in the order of their submission."""
        return self._core.running()

    @property
    def current_order(self) -> Order | None:
        """In which order the queue is now; ``None`` if the policy's is in Python."""
        in_python = isinstance(self.policy.order, PythonOrder)
        return None if in_python else Order(self._core.order)

    def planned_start(self, index: int) -> int | None:
        """When a pending job is planned to start, seconds; ``None`` where it holds no plan.

        The plan is that of the last pass, so after `submit` or `update` it is known once the clock
        has moved on (or on `settle`). Every job holds one under conservative backfilling and
        planning, the first ones of the queue under the kinds of easy. A job that could not start
        when planned, because one past its requested time still runs, is planned for now.

        Raises
        ------
        InputError
            If there is no such job.
        """
        self._job(index)
        return self._core.planned_start(index)

    def job(self, index: int) -> JobView:
        """Look at one job.

        Raises
        ------
        InputError
            If there is no such job.
        """
        job = self._job(index)
        started = job.state in (State.RUNNING, State.FINISHED)
        running = job.state == State.RUNNING
        return JobView(
            state=job.state.name.lower(),
            submit_time=job.submit_time,
            processors=job.processors,
            actual_runtime=job.actual_runtime,
            requested_time=job.requested_time,
            time_limit=job.time_limit,
            queue_time=job.queue_time,
            backfill_time=job.backfill_time,
            drain_time=job.drain_time,
            priority=job.priority,
            start_time=job.start_time if started else None,
            end_time=job.end_time if started else None,
            expected_end=self._core.expected_end(index) if running else None,
            started_by=StartedBy(job.started_by) if started else None,
            corrections=job.corrections,
            killed=job.state == State.FINISHED
            and job.end_time - job.start_time < job.actual_runtime,
            used_up=job.used_up,
        )

    def started_at(self, index: int) -> int:
        """Give when one job that runs or has finished started, seconds.

        Raises
        ------
        InputError
            If there is no such job, or it has not started.
        """
        job = self._job(index)
        if job.state not in (State.RUNNING, State.FINISHED):
            raise InputError(f"job {index} is {job.state.name.lower()}: it has not started")
        return job.start_time

    def is_used_up(self, index: int) -> bool:
        """Say whether Slurm ended a job because a limit's minutes were used up."""
        return self._job(index).used_up

    def ran(self, index: int) -> tuple[int, int]:
        """Give when one job that has finished started and ended, seconds.

        Raises
        ------
        InputError
            If there is no such job, or it has not finished.
        """
        job = self._job(index)
        if job.state != State.FINISHED:
            raise InputError(f"job {index} is {job.state.name.lower()}: it has not finished")
        return job.start_time, job.end_time

    def schedule(self) -> Schedule:
        """Give the schedule of all jobs, in the order of their indices.

        Raises
        ------
        InputError
            If a job has not finished, and may yet: `finish` first.
        """
        states = self._core.states()
        why = self._why_never()
        may_wait_for_ever = why is not None and self.next_event_time is None
        over = [State.FINISHED.value, *([State.PENDING.value] if may_wait_for_ever else [])]
        unfinished = np.flatnonzero(~np.isin(states, over))
        if len(unfinished):
            state = State(int(states[unfinished[0]])).name.lower()
            raise InputError(f"job {unfinished[0]} is {state}: run the engine to its end first")
        return core_schedule(self._core, self.policy, self.machine, why)

    def _why_never(self) -> Callable[[int], str] | None:
        """Give what says of a job why its site never lets it run; ``None`` of no site."""
        if self._slurm_names is not None:
            return why_slurm_never(self._core, self._slurm_names.site)
        return None if self._pbs_names is None else why_pbs_never

    def __len__(self) -> int:
        return len(self._core)

    def _job(self, index: int) -> _core.Job:
        if not 0 <= operator.index(index) < len(self._core):
            raise InputError(f"there is no job {index}: there are {len(self._core)} jobs, from 0")
        return self._core.job(index)

    def _request(
        self, resources: JobResources | None, processors: int, requested_time: int
    ) -> tuple[int, int | None]:
        """Give a job's processors, and on nodes the number that the core has for its request."""
        if not isinstance(self.machine, Machine):
            if resources is not None:
                raise InputError("resources are for a machine of nodes: this engine has none")
            return processors, None
        asked = resources or JobResources()
        if self._pbs_names is not None:
            check_resources(asked)
        request = fit_request(
            self.machine, asked, processors, requested_time, self._node_reservations
        )
        number = self._request_numbers.get(request)
        if number is None:
            number = self._core.add_request(core_request(request))
            self._request_numbers[request], self._asked[number] = number, request
        return request.cpus, number

    def _roles(
        self, requested: int, scheduled: int | JobTimesUpdate | None
    ) -> tuple[int, int, int]:
        if scheduled is None:
            return requested, requested, requested
        if isinstance(scheduled, JobTimesUpdate):
            queue, backfill, drain = scheduled.queue, scheduled.backfill, scheduled.drain
        else:
            roles = self.policy.roles
            queue = scheduled if roles.queue else None
            backfill = scheduled if roles.backfill else None
            drain = scheduled if roles.drain else None

        def held(time: int | None) -> int:
            return requested if time is None else min(max(time, 1), requested)

        return held(queue), held(backfill), held(drain)

    def _check(
        self, processors: int, actual_runtime: int, requested_time: int, time_limit: int | None
    ) -> None:
        if not 1 <= processors <= self.machine_processors:
            raise InputError(
                f"a job needs {processors} processors, the machine has {self.machine_processors}"
            )
        if isinstance(self.machine, BgpMachine) and processors > self.machine.sizes[-1]:
            raise InputError(
                f"a job needs {processors} nodes, the largest partition of"
                f" {self.machine.name} has {self.machine.sizes[-1]}"
            )
        if not 0 <= actual_runtime <= LONGEST_S:
            raise InputError(f"actual_runtime is {actual_runtime} s: give 0 or more")
        if not 1 <= requested_time <= LONGEST_S:
            raise InputError(f"requested_time is {requested_time} s: give 1 or more")
        if time_limit is not None and not 1 <= time_limit <= LONGEST_S:
            raise InputError(f"time_limit is {time_limit} s: give 1 or more")
