"""What a replay found: the comparison, and what the hook and the sidecar did on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_sim.scores.comparison import Comparison
from foretime_sim.scores.shortening import Shortening
from foretime_sim.scores.start_promises import StartPromises


@dataclass(frozen=True, slots=True)
class HookStatistics:
    """What the hook did with the submissions that it saw.

    Attributes
    ----------
    submissions
        Calls of the hook for new jobs.
    adjusted
        Those that it gave a t_sched below t_req.
    errors
        Calls that failed; the job went through untouched.
    table_generations
        Accuracy tables that the sidecar published.
    """

    submissions: int
    adjusted: int
    errors: int = 0
    table_generations: int = 0


@dataclass(frozen=True, slots=True)
class OrderingStatistics:
    """What putting the queue in order through site factors came to in one adjusted run.

    Attributes
    ----------
    looks
        At the queue.
    tries, failures
        How often dynP was asked for the best order, and could not answer; 0 under other orders.
    switches
        To each order, by name.
    bounds, bounds_kept
        Jobs that had a bound which they were to start no later than, and how many did.
    raised, missed
        How often a job was raised to start at once, and how often it had not by the next look.
    """

    looks: int
    tries: int
    failures: int
    switches: Mapping[str, int]
    bounds: int = 0
    bounds_kept: int = 0
    raised: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """All that the report, JSON and CSV tell of a replay.

    Attributes
    ----------
    workload_name, machine_processors
        Which log, on which machine.
    simulated_jobs
        Jobs run, scored or not, in each run.
    workload_notes
        What the filters did to the log, one sentence each.
    options
        The options in effect as a person would write them, such as ``{"order": "fcfs"}``.
    comparison
        Without and with Foretime.
    hook
        Of the first repeat; ``None`` where no hook was in the loop.
    guard_activations
        Jobs of the adjusted run, first repeat, for which the starvation guard became active.
    promises
        How promised starts fared in the first repeat, without and with Foretime; ``None`` each if
        the policy promises nothing.
    wall_clock_s
        Seconds that the replay took, reading included.
    peak_memory_bytes
        Largest resident size, ``None`` where not measured.
    beside
        By name, the comparison of an estimator in the hook's place with the same runs without it.
    ordering
        Of the first repeat; ``None`` where the sidecar did not put the queue in order.
    never_ran
        How many jobs the site never let run in the first repeat, by the reason, without and with
        Foretime.
    """

    workload_name: str
    machine_processors: int
    simulated_jobs: int
    workload_notes: tuple[str, ...]
    options: Mapping[str, str]
    comparison: Comparison
    hook: HookStatistics | None
    guard_activations: int
    wall_clock_s: float
    peak_memory_bytes: int | None = None
    promises: tuple[StartPromises | None, StartPromises | None] = (None, None)
    beside: Mapping[str, Comparison] = field(default_factory=dict)
    ordering: OrderingStatistics | None = None
    never_ran: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})

    @property
    def jobs_per_s(self) -> float:
        """Jobs simulated (two runs a repeat and comparison) per second of wall clock."""
        runs = 2 * len(self.comparison.repeats) * (1 + len(self.beside))
        return runs * self.simulated_jobs / self.wall_clock_s

    @property
    def shortening(self) -> Shortening:
        """How far t_sched lay below t_req for the scored jobs of the first repeat."""
        return self.comparison.repeats[0].shortening
