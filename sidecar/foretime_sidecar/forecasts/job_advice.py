"""Other ways to run a job: another size, limit, time_min, or partition or queue.

Every shape says what is assumed of the work. No limit is suggested that would have killed a job of
the user's that was like it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

from foretime_sidecar.forecasts.job_question import JobQuestion
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.submit_words import SubmitWords

# Of a user's own like jobs, before a shorter limit is suggested, and how many are looked at.
FEWEST_LIKE_JOBS = 20
MOST_LIKE_JOBS = 200
# What a suggested limit leaves above the longest of them, and whole multiples of it are suggested.
_MARGIN = 1.15
_ROUNDING_S = 600
# A limit that is not shorter by this is not worth a word.
_WORTH = 0.8
_YEAR_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Shape:
    """The work in another shape.

    Attributes
    ----------
    change
        Parameters of ``/v1/forecast`` that are others than asked for.
    text
        In words, with what is assumed.
    options
        What to give sbatch or qsub.
    question
        The job in that shape.
    planned_s
        What it could be planned with, seconds; ``None``: as any job of its kind.
    runtime_factor
        How many times as long as asked about it takes.
    """

    change: dict[str, int | str]
    text: str
    options: str
    question: JobQuestion
    planned_s: int | None = None
    runtime_factor: float = 1.0

    @property
    def processor_seconds(self) -> int:
        """What is asked for: processors x time limit."""
        return self.question.request.processors * self.question.request.requested_time


def shapes(
    question: JobQuestion,
    like: Sequence[FinishedJob],
    *,
    elsewhere: Sequence[str] = (),
    machine_processors: int,
    longest_s: int | None,
    soft_limit: bool,
    takes_time_min: bool,
    words: SubmitWords,
) -> Iterator[Shape]:
    """Give other shapes, those first that change least; other sizes only of work that scales.

    Parameters
    ----------
    question
        The job as asked about.
    like
        The user's own like jobs that have finished, latest first (see `like_jobs`).
    elsewhere
        Other slurm_partitions that the user has run jobs in.
    machine_processors
        What is up.
    longest_s
        MaxTime of its slurm_partition, seconds; ``None`` if there is none.
    soft_limit
        Whether the scheduler takes time_min as a soft limit.
    takes_time_min
        Whether users can set it.
    words
        The scheduler's.
    """
    safe_s = safe_limit(question.request, like)
    if safe_s is not None:
        if takes_time_min and not soft_limit and question.time_min_s is None:
            yield _with_time_min(question, safe_s, len(like))
        yield _with_limit(question, safe_s, len(like), words)
    for queue in elsewhere:
        yield Shape(
            {"partition": queue},
            f"in {words.queue} {queue}, where you have run jobs",
            words.in_queue(queue),
            replace(question, request=replace(question.request, queue=queue)),
        )
    for numerator, denominator in ((1, 2), (1, 4), (2, 1)) if question.scales else ():
        resized = _resized(question, numerator, denominator, machine_processors, longest_s, words)
        if resized is not None:
            yield resized


def like_jobs(jobs: Sequence[FinishedJob], request: JobRequest) -> list[FinishedJob]:
    """Give those of a user's finished jobs that say how long this one may take, latest first.

    Jobs of the same size and project that asked for at least half as much time and at most twice
    as much, and ran.
    """
    return [
        job
        for job in jobs
        if job.start_time is not None
        and job.request.processors == request.processors
        and job.request.project == request.project
        and request.requested_time / 2 <= job.request.requested_time <= 2 * request.requested_time
    ][:MOST_LIKE_JOBS]


def safe_limit(request: JobRequest, like: Sequence[FinishedJob]) -> int | None:
    """Give a shorter limit that none of the like jobs would have been killed at, seconds.

    ``None`` with too few of them, if one of them was ended at its limit or before its time, so that
    nobody knows how long it would have run, or if it would be hardly shorter.
    """
    cut = (Ending.TIMED_OUT, Ending.NODE_FAILED, Ending.PREEMPTED, Ending.REQUEUED)
    if len(like) < FEWEST_LIKE_JOBS or any(job.ending in cut for job in like):
        return None
    longest = max(job.actual_runtime for job in like)
    limit = -(-int(longest * _MARGIN) // _ROUNDING_S) * _ROUNDING_S
    limit = max(limit, _ROUNDING_S)
    return limit if limit <= _WORTH * request.requested_time else None


def _with_limit(question: JobQuestion, limit_s: int, jobs: int, words: SubmitWords) -> Shape:
    request = replace(question.request, requested_time=limit_s)
    time_min_s = None if question.time_min_s is None else min(question.time_min_s, limit_s)
    return Shape(
        {"time": format_duration(limit_s)},
        f"with a {words.limit} of {words.duration(limit_s)}; your last {jobs} jobs of this kind "
        "took less, but one that takes longer is killed",
        words.with_limit(limit_s),
        replace(question, request=request, time_min_s=time_min_s),
    )


def _with_time_min(question: JobQuestion, limit_s: int, jobs: int) -> Shape:
    time = format_duration(limit_s)
    return Shape(
        {"time_min": time},
        f"with --time-min={time}: Slurm may lower its time limit to that to start it sooner; your "
        f"last {jobs} jobs of this kind took less",
        f"--time-min={time}",
        replace(question, time_min_s=limit_s),
        planned_s=limit_s,
    )


def _resized(
    question: JobQuestion,
    numerator: int,
    denominator: int,
    machine_processors: int,
    longest_s: int | None,
    words: SubmitWords,
) -> Shape | None:
    """Give the job on numerator / denominator of its nodes or tasks; ``None`` if that can't be."""
    if question.select is not None:  # chunks of several kinds
        return None
    parts = question.tasks if question.nodes is None else question.nodes
    scaled, left = divmod(parts * numerator, denominator)
    tasks, tasks_left = divmod(question.tasks * numerator, denominator)
    requested = question.request.requested_time
    # Slurm counts in minutes.
    time_s = -(-requested * denominator // (numerator * 60)) * 60
    processors = max(tasks * question.cpus_per_task, scaled)
    if left or tasks_left or not scaled or not tasks or processors > machine_processors:
        return None
    if time_s > (longest_s or _YEAR_S) or time_s < 60:
        return None
    name = "ntasks" if question.nodes is None else "nodes"
    part = words.part(question.cpus_per_task) if question.nodes is None else "node"
    change: dict[str, int | str] = {name: scaled, "time": format_duration(time_s)}
    if name == "nodes" and tasks != scaled:
        change["ntasks"] = tasks
    size = words.with_size(
        None if question.nodes is None else scaled, tasks, question.cpus_per_task
    )
    return Shape(
        change,
        f"on {scaled} {part}{'' if scaled == 1 else 's'} instead of {parts}, with a "
        f"{words.limit} of {words.duration(time_s)}",
        f"{size} {words.with_limit(time_s)}",
        replace(
            question,
            request=replace(question.request, processors=processors, requested_time=time_s),
            nodes=scaled if name == "nodes" else None,
            tasks=tasks,
            time_min_s=None,
        ),
        runtime_factor=denominator / numerator,
    )
