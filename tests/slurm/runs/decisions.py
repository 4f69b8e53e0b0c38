"""Every run of the two loops by itself: would the model have decided the same?

A schedule is chaotic: a start that comes two seconds later may change all that follow. So the model
is put into the state of the live cluster before each run of a loop, as slurmctld's log has it, runs
its own loop, and is put right again afterwards. What is counted is what it started, where, and what
its backfill planned.

``python -m tests.slurm.runs.decisions default --release 26.05 --differences 20``
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretime_sim.reference.slurm.jobs.job import Allocation
from foretime_sim.reference.slurm.jobs.jobs_of_workload import slurm_jobs
from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.reference.slurm.limits.limits import Limits
from foretime_sim.reference.slurm.loops.backfill_loop import BackfillCycle
from foretime_sim.reference.slurm.loops.controller import Controller
from foretime_sim.reference.slurm.loops.interfaces import NoLimits
from foretime_sim.reference.slurm.loops.main_loop import MainLoop
from foretime_sim.reference.slurm.loops.submission import submit
from foretime_sim.reference.slurm.priorities.epoch_priorities import EpochPriorities
from foretime_sim.reference.slurm.priorities.priorities import Priorities

from tests.slurm.runs.loop_events import LoopEvent, read_events
from tests.slurm.runs.recorded_runs import RESULTS, RecordedRun, model_input, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS
from tests.slurm.runs.run_job import parts_of


def node_numbers(text: str) -> frozenset[int]:
    """Read ``n[1-3,7]`` or ``n4``; numbers from 0."""
    numbers: set[int] = set()
    for span in text.removeprefix("n").strip("[]").split(","):
        first, _, last = span.partition("-")
        numbers |= set(range(int(first) - 1, int(last or first)))
    return frozenset(numbers)


_NODES_FREED_S = 0.05
"""A job that has ended has its nodes until they have answered: some milliseconds, here at most."""


@dataclass
class Tally:
    """How many decisions of the model were those of the live cluster.

    Attributes
    ----------
    runs, same_runs
        Runs of a loop that started anything, live or in the model; those that started the same.
    completing
        Runs that are not judged: jobs had ended some milliseconds before, and Slurm starts none on
        nodes that complete.
    both, live_only, model_only
        Starts; none of runs that came milliseconds after an end.
    same_nodes
        Of ``both``, those on the same nodes.
    plans, same_plans, same_plan_nodes
        Plans of the live backfill; those with the same start (2 s), and also on the same nodes.
    differences
        The runs that differ, a line each.
    """

    runs: int = 0
    same_runs: int = 0
    completing: int = 0
    both: int = 0
    live_only: int = 0
    model_only: int = 0
    same_nodes: int = 0
    plans: int = 0
    same_plans: int = 0
    same_plan_nodes: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = (
            f"{self.same_runs} of {self.runs} runs start the same; starts: {self.both} of both"
            f" ({self.same_nodes} on the same nodes), {self.live_only} live only,"
            f" {self.model_only} model only"
        )
        if self.completing:
            text += f"; {self.completing} not judged, as nodes completed"
        if self.plans:
            text += f"; plans: {self.same_plans} of {self.plans} at the same second"
        return text


class LoggedPriorities:
    """Priorities as backfill's log has them, so that the loops are judged by themselves.

    A job that backfill has not looked at has that of its submission.
    """

    next_tick = 2**62

    def __init__(self) -> None:
        self.logged: dict[tuple[int, str], int] = {}

    def note(self, indices: Mapping[int, Sequence[int]], event: LoopEvent) -> None:
        """Take up what a cycle, or a submission, said."""
        self.logged |= self.of_cycle(indices, event)

    @staticmethod
    def of_cycle(
        indices: Mapping[int, Sequence[int]], event: LoopEvent
    ) -> dict[tuple[int, str], int]:
        """Give what a cycle, or a submission, said."""
        return {
            (index, name): priority
            for number, priority, name in event.tested
            for index in indices.get(number, ())
        }

    def priority_of(self, job: Any, slurm_partition: str, now: int) -> int:
        """Give the last one seen."""
        del now
        first = self.logged.get((job.index, ""), 1)
        return self.logged.get((job.index, slurm_partition), first)

    def submitted(self, job: Any, now: int) -> None:
        """Nothing to do."""

    def started(self, job: Any, tres: Mapping[str, int], now: int) -> None:
        """Nothing to do."""

    def ended(self, job: Any, now: int) -> None:
        """Nothing to do."""

    def tick(self, now: int) -> None:
        """Nothing to do."""


class LoopReplay:
    """The model beside the log of one live run.

    Parameters
    ----------
    name, run, events
        Of the configuration, the run's outcome, and what its log says.
        Priorities are those of the log, limits the model's.
    """

    def __init__(
        self,
        name: str,
        run: RecordedRun,
        events: Sequence[LoopEvent],
    ) -> None:
        configuration = CONFIGURATIONS[name]
        workload, site, site_jobs = model_input(configuration, [run])
        self.jobs = slurm_jobs(workload, site, site_jobs)
        self.priorities = LoggedPriorities()
        self.controller = Controller(
            site,
            self.jobs,
            self.priorities,
            Limits(site) if site.enforced else NoLimits(),
            workload.epoch_of_zero,
        )
        began = run.slurmctld_started(site.parameters.bf_interval) + workload.epoch_of_zero
        self.own_priorities = EpochPriorities(Priorities(site, began), workload.epoch_of_zero)
        self.run = run
        self.events = events
        self.index_of = {row[0]: index for index, row in enumerate(run.outcome["jobs"])}
        self.parts: dict[int, list[int]] = {}
        for index, (number, _) in enumerate(parts_of(configuration.jobs())):
            self.parts.setdefault(number, []).append(index)
        self.submitted = 0
        self.ended: list[tuple[float, Any]] = []
        self.indices: dict[int, list[int]] = {}
        self.main, self.backfill = Tally(), Tally()

    def replay(self) -> tuple[Tally, Tally]:
        """Go through the log; give the tallies of the main loop and of backfill."""
        for event in self.events:
            # What a cycle in a second's last milliseconds starts may start in the next one.
            starts = [int(self.run.start[self.index_of[number]]) for number in event.started]
            self.controller.now = max(int(event.at), *starts, 0)
            if self.own_priorities.next_tick + self.run.fractions.tick <= event.at:
                self.own_priorities.tick(self.own_priorities.next_tick)
            if event.kind == "submit":
                self._submit(event)
            elif event.kind == "end":
                self._end(event)
            else:
                self._loop(event)
        return self.main, self.backfill

    def _submit(self, event: LoopEvent) -> None:
        rows = self.run.outcome["jobs"]
        while any(rows[index][0] is None for index in self.parts[self.submitted]):
            self.submitted += 1  # it was refused
        self.indices[event.job] = self.parts[self.submitted]
        self.priorities.note(self.indices, event)
        for index in self.parts[self.submitted]:
            submit(self.controller, self.jobs[index])
            self.own_priorities.submitted(self.jobs[index], self.controller.now)
        self.submitted += 1

    def _end(self, event: LoopEvent) -> None:
        job = self.jobs[self.index_of[event.job]]
        if job.run is not None and job.run in self.controller.running:
            self.controller.finish(job.run)
            self.own_priorities.ended(job, self.controller.now)
            self.ended.append((event.at, job))

    def _loop(self, event: LoopEvent) -> None:
        self.priorities.note(self.indices, event)
        live = {self.index_of[number] for number in event.started}
        tally = self.main if event.kind == "main" else self.backfill
        mine = self._starts(event)
        if mine != live and event.kind == "main":
            mine = self._by_newer_priorities(event, mine, live)
        just_ended = [job for at, job in self.ended if event.at - at < _NODES_FREED_S]
        if mine != live and just_ended:
            self._take_all_back(mine)
            for job in just_ended:
                self._return(job)
            mine = self._starts(event)
            for job in just_ended:
                self.controller.finish(job.run)
            tally.completing += mine != live
        self.ended = [(at, job) for at, job in self.ended if event.at - at < _NODES_FREED_S]
        if mine == live or not just_ended:
            self._count(event, tally, mine, live, nodes_known=not just_ended)
        self._take_all_back(mine - live)
        for index in sorted(live):
            self._put_on(self.jobs[index], event.kind)
            self._note_start(self.jobs[index])

    def _by_newer_priorities(self, event: LoopEvent, mine: set[int], live: set[int]) -> set[int]:
        """Judge a main loop by priorities that the log does not have yet; give whom it starts.

        They are worked out anew between cycles, and which were valid is not logged: the next
        cycle's, and for jobs that this one does not look at any more the model's own.
        """
        logged = self.priorities.logged
        of_next = self.priorities.of_cycle(self.indices, self._next_cycle(event) or event)
        for other in (of_next, self._own_priorities()):
            self._take_all_back(mine)
            self.priorities.logged = logged | other
            mine = self._starts(event)
            if mine == live:
                return mine
        self._take_all_back(mine)
        self.priorities.logged = logged
        return self._starts(event)

    def _own_priorities(self) -> dict[tuple[int, str], int]:
        own, now = self.own_priorities, self.controller.now
        return {
            (job.index, name): own.priority_of(job, name, now)
            for job in self.controller.pending
            for name in job.slurm_partitions
        }

    def _next_cycle(self, event: LoopEvent) -> LoopEvent | None:
        later = self.events[self.events.index(event) + 1 :]
        return next((each for each in later if each.kind == "backfill" and each.tested), None)

    def _starts(self, event: LoopEvent) -> set[int]:
        """Let the model run its loop; give whom it started."""
        waiting = list(self.controller.pending)
        if event.kind == "main":
            MainLoop(self.controller, full=event.full).run()
        else:
            BackfillCycle(self.controller).run()
        return {job.index for job in waiting if job.run is not None}

    def _return(self, job: Any) -> None:
        """Give an ended job its nodes again."""
        controller, run = self.controller, job.run
        # Backfill plans with its nodes from the next second on, as of a job over its limit.
        run.limit_end = controller.now - controller.parameters.kill_wait_s
        controller.use.add(run.allocation, run.partition_index)
        controller.running.append(run)
        controller.running.sort(key=lambda other: other.job.index)
        controller.limits.submitted(job, controller.now)
        controller.limits.started(job, run.allocation.tres, controller.now)

    def _count(
        self, event: LoopEvent, tally: Tally, mine: set[int], live: set[int], *, nodes_known: bool
    ) -> None:
        if mine or live:
            tally.runs += 1
            tally.same_runs += mine == live
        if not nodes_known:  # where jobs start, and what is planned, hangs on nodes that complete
            return
        tally.both += len(mine & live)
        tally.live_only += len(live - mine)
        tally.model_only += len(mine - live)
        where = [i for i in mine & live if self._nodes(i) == self._live_nodes(i)]
        tally.same_nodes += len(where)
        said = []
        if mine != live:
            said.append(f"live starts {sorted(live - mine)}, model {sorted(mine - live)}")
        for index in sorted((mine & live) - set(where)):
            where_live, mine_on = sorted(self._live_nodes(index)), sorted(self._nodes(index))
            said.append(f"job {index} live on {where_live}, model {mine_on}")
        for number, (start, _, nodes) in event.plans.items():
            index = self.index_of[number]
            if index in live:  # planned in one partition, started in another
                continue
            estimate = self.jobs[index].estimate
            tally.plans += 1
            same = estimate is not None and abs(estimate - start) <= 2
            tally.same_plans += same
            if not same:
                said.append(f"job {index} planned at {start} on {nodes}, model {estimate}")
        if said:
            tally.differences.append(f"{event.at:9.3f} {event.kind}: " + "; ".join(said))

    def _nodes(self, index: int) -> frozenset[int]:
        run = self.jobs[index].run
        assert run is not None
        return run.allocation.nodes

    def _live_nodes(self, index: int) -> frozenset[int]:
        return node_numbers(self.run.nodes[index] or "")

    def _take_all_back(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._take_back(self.jobs[index])

    def _take_back(self, job: Any) -> None:
        run = job.run
        self.controller.finish(run)
        job.run = None
        self.controller.limits.submitted(job, self.controller.now)
        self.controller.pending.append(job)

    def _note_start(self, job: Any) -> None:
        """Let usage count from now, and limits from the start that slurmctld wrote down.

        As a second begins it may take the one before for now, as its clock ticks in milliseconds.
        """
        if job.run is not None:
            self.own_priorities.started(job, job.run.allocation.tres, self.controller.now)
            late_s = job.run.start - int(self.run.start[job.index])
            job.run.start -= late_s
            job.run.limit_end -= late_s

    def _put_on(self, job: Any, kind: str) -> None:
        """Let a job run where it ran live."""
        nodes = self._live_nodes(job.index)
        if job.run is not None:
            if job.run.allocation.nodes == nodes:
                return
            self._take_back(job)
        partition = self.run.outcome["jobs"][job.index][6]
        number = job.slurm_partitions.index(partition)
        choice = self.controller.choice(job, number)
        allocation = choice.choose(nodes, self.controller.use)
        if allocation is None or allocation.nodes != nodes:
            free = {node: max(1, choice.cpus_for_job(node, self.controller.use)) for node in nodes}
            allocation = choice.lay_out(dict(sorted(free.items())))
        if allocation is None:  # cores were given out otherwise than the model thinks
            each = -(-job.min_cpus // len(nodes))
            allocation = Allocation(dict.fromkeys(sorted(nodes), each))
        loop = Loop.MAIN if kind == "main" else Loop.BACKFILL
        self.controller.start(job, number, allocation, loop)


def events_of_run(name: str, run: str) -> list[LoopEvent]:
    """Give the recorded events of a run."""
    return read_events(RESULTS / name / f"{run}.events.json.gz")


def _print(names: Iterable[str], releases: Sequence[str], *, differences: int) -> None:
    for name in names:
        for release in releases:
            for run in recorded_runs(name, release):
                replay = LoopReplay(name, run, events_of_run(name, run.name))
                main, backfill = replay.replay()
                print(f"{name} {run.name}\n  main: {main}\n  backfill: {backfill}")
                for line in (main.differences + backfill.differences)[:differences]:
                    print(f"    {line}")


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configurations", nargs="*", help="all, unless named")
    parser.add_argument("--release", nargs="+", default=["26.05", "22.05"])
    parser.add_argument("--differences", type=int, default=0, help="print so many")
    arguments = parser.parse_args()
    names = arguments.configurations or CONFIGURATIONS
    _print(names, arguments.release, differences=arguments.differences)


if __name__ == "__main__":
    main()
