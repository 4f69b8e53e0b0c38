"""How a scheduler's users speak of what they submit: sbatch's options, or qsub's."""

from __future__ import annotations

from typing import Literal, Protocol

from foretime_sidecar.wording.durations import format_duration


class SubmitWords(Protocol):
    """The words of one scheduler; times are seconds."""

    @property
    def command(self) -> str:
        """What submits jobs."""

    @property
    def queue(self) -> str:
        """What a job is submitted to."""

    @property
    def limit(self) -> str:
        """What a job is killed at."""

    def duration(self, time_s: int) -> str:
        """Write a time so that it can be submitted."""

    def with_limit(self, time_s: int) -> str:
        """Give the options for a limit."""

    def in_queue(self, name: str) -> str:
        """Give the options for a queue."""

    def with_size(self, nodes: int | None, tasks: int, cpus_per_task: int) -> str:
        """Give the options for a size; ``nodes`` is ``None`` where any would do."""

    def part(self, cpus_per_task: int) -> str:
        """Say what a job without a number of nodes is made of."""


class _Slurm:
    command, queue, limit = "sbatch", "partition", "time limit"

    def duration(self, time_s: int) -> str:
        return format_duration(time_s)

    def with_limit(self, time_s: int) -> str:
        return f"--time={self.duration(time_s)}"

    def in_queue(self, name: str) -> str:
        return f"--partition={name}"

    def with_size(self, nodes: int | None, tasks: int, cpus_per_task: int) -> str:
        del cpus_per_task  # stays as it was
        if nodes is None:
            return f"--ntasks={tasks}"
        return f"--nodes={nodes}" + ("" if tasks == nodes else f" --ntasks={tasks}")

    def part(self, cpus_per_task: int) -> str:
        del cpus_per_task  # a task, however many it has
        return "task"


class _Pbs:
    command, queue, limit = "qsub", "queue", "walltime"

    def duration(self, time_s: int) -> str:
        # PBS knows no days.
        minutes, seconds = divmod(time_s, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"

    def with_limit(self, time_s: int) -> str:
        return f"-l walltime={self.duration(time_s)}"

    def in_queue(self, name: str) -> str:
        return f"-q {name}"

    def with_size(self, nodes: int | None, tasks: int, cpus_per_task: int) -> str:
        if nodes is None:
            return f"-l select={tasks}:ncpus={cpus_per_task}"
        each, more = divmod(tasks, nodes)
        chunks = [(more, each + 1), (nodes - more, each)]
        select = "+".join(
            f"{count}:ncpus={of_each * cpus_per_task}" for count, of_each in chunks if count
        )
        return f"-l select={select} -l place=scatter"

    def part(self, cpus_per_task: int) -> str:
        return "processor" if cpus_per_task == 1 else "chunk"


def submit_words(kind: Literal["slurm", "pbs"]) -> SubmitWords:
    """Give the words of a scheduler's kind."""
    return _Slurm() if kind == "slurm" else _Pbs()
