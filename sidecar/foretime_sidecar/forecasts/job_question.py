"""A job that nobody has submitted yet, as it is asked about: sbatch's options as parameters.

On PBS, qsub's select and place besides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.machines.machine import Machine
from foretime_sim.workloads.node_request import HostChunk
from pydantic import BaseModel, ConfigDict, Field

from foretime_sidecar.clients.cluster import AskedChunks, AskedNodes
from foretime_sidecar.clients.pbs.select import parse_asked
from foretime_sidecar.job_options.begin_time import parse_begin
from foretime_sidecar.job_options.sbatch_values import checked, node_range
from foretime_sidecar.wording.durations import parse_duration

Value = TypeVar("Value")

_LONGEST_S = 365 * 86_400
_RESOURCES_UNSEEN = "memory and GPUs asked for are not looked at"

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Text = Annotated[str, Field(min_length=1, max_length=64)]
Chunks = Annotated[str, Field(min_length=1, max_length=4096)]


class JobParameters(BaseModel):
    """Parameters of a question: sbatch's long options, and qsub's select and place."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    ntasks: Count | None = None
    """Tasks. Without it `nodes` x `ntasks_per_node`."""
    processors: Count | None = None
    """CPUs, instead of nodes, tasks and CPUs of each."""
    nodes: Text | None = None
    """Nodes. Of `2-4` two are taken."""
    ntasks_per_node: Count | None = None
    """Tasks on each node."""
    cpus_per_task: Count = 1
    """CPUs of each task."""
    mem: Text | None = None
    """Memory of each node, such as `4G`."""
    gres: Text | None = None
    """GPUs of each node, such as `gpu:2`."""
    gpus: Text | None = None
    """GPUs of the whole job."""
    select: Chunks | None = None
    """On PBS: chunks as for `qsub -l`, such as `2:ncpus=8:mem=4gb+1`."""
    place: Name | None = None
    """On PBS: `scatter`, `pack` or `excl`."""
    time: Text = Field(examples=["2:00:00"])
    """Time limit, as for `sbatch`: minutes, HH:MM:SS, D-HH:MM:SS."""
    time_min: Text | None = None
    """Least time limit, as for `sbatch`."""
    partition: Name | None = None
    """Slurm partition or PBS queue, or several with commas."""
    account: Name | None = None
    """Whose history is used besides the user's."""
    project: Name | None = None
    """The same as `account`."""
    qos: Name | None = None
    """On Slurm: whose limits and priority the job has."""
    reservation: Name | None = None
    """Is not looked at, as `assumptions` says."""
    begin: Text | None = None
    """Not before: `now+2hours`, `16:00`, `2026-11-21T16:00` or epoch seconds."""
    exclusive: bool = False
    """Whether whole nodes are asked for."""
    dependency: Name | None = None
    """Is not looked at, as `assumptions` says."""
    scales: bool = False
    """Whether it takes half the time on twice the processors: then other sizes are advised."""
    user: Name | None = None
    """Whose history is used; the caller's own if left out. Operators may name anybody."""


@dataclass(frozen=True, slots=True)
class JobQuestion:
    """A job that is asked about.

    Attributes
    ----------
    request
        As it would be submitted.
    nodes, tasks, cpus_per_task
        How its processors are made up; ``nodes`` is ``None`` where it leaves them to the scheduler.
    time_min_s
        ``--time-min``, seconds, ``None`` if not given.
    begin
        ``--begin``, epoch seconds, ``None`` if not given.
    memory_per_node_mib, gpus_per_node, gpu_type
        ``--mem``, ``--gres=gpu`` or ``--gpus``; ``None`` if not given.
    exclusive
        Whether it asks for whole nodes.
    select
        Its chunks, where nodes and tasks do not say them; ``None``: they do.
    qos
        On Slurm, ``--qos``; ``None`` if not given.
    dependency
        ``--dependency``, such as ``afterok:4711``; "" if not given.
    scales
        Whether its user says that it takes half the time on twice the processors.
    not_modelled
        What of the question no forecast looks at, in words.
    """

    request: JobRequest
    nodes: int | None
    tasks: int
    cpus_per_task: int
    time_min_s: int | None = None
    begin: int | None = None
    memory_per_node_mib: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    exclusive: bool = False
    select: AskedChunks | None = None
    qos: str | None = None
    dependency: str = ""
    scales: bool = False
    not_modelled: tuple[str, ...] = ()

    @property
    def chunks(self) -> AskedChunks:
        """What it asks of PBS's hosts."""
        if self.select is not None:
            return self.select
        parts: tuple[tuple[int, int], ...] = ((self.tasks, 1),)
        if self.nodes is not None:
            each, more = divmod(max(self.tasks, self.nodes), self.nodes)
            parts = (more, each + 1), (self.nodes - more, each)
        return AskedChunks(
            tuple(HostChunk(number, of * self.cpus_per_task) for number, of in parts if number),
            "free" if self.nodes is None else "scatter",
            self.exclusive,
        )

    @property
    def asked(self) -> AskedNodes:
        """What it asks of nodes."""
        return AskedNodes(
            nodes=self.nodes,
            tasks=max(self.tasks, self.nodes or 1),
            cpus_per_task=self.cpus_per_task,
            memory_per_node_mib=self.memory_per_node_mib,
            gpus_per_node=self.gpus_per_node,
            constraint=() if self.gpu_type is None else (f"gpu:{self.gpu_type}",),
            exclusive=self.exclusive,
        )

    def left_out_of_a_pool(self) -> tuple[str, ...]:
        """Say what of the question is not looked at where nodes are not known."""
        said = []
        of_chunks = any(chunk.memory_bytes or chunk.gpus for chunk in self.chunks.chunks)
        if self.memory_per_node_mib or self.gpus_per_node or of_chunks:
            said.append(_RESOURCES_UNSEEN)
        if self.exclusive:
            said.append("whole nodes are not looked at: as many processors as asked for are enough")
        return tuple(said)

    def left_out_of_hosts(self) -> tuple[str, ...]:
        """Say what of the question is not looked at on PBS's hosts."""
        unsaid = self.select is None and (self.memory_per_node_mib or self.gpus_per_node)
        return (_RESOURCES_UNSEEN,) if unsaid else ()

    def left_out_of_nodes(self, machine: Machine) -> tuple[str, ...]:
        """Say what of the question is not looked at on nodes."""
        if self.memory_per_node_mib and not all(group.memory_mib for group in machine.node_groups):
            return ("memory asked for is not looked at on nodes that do not tell theirs",)
        return ()


def question_of(parameters: JobParameters, user: str | None, now: int) -> JobQuestion:
    """Read a question.

    Parameters
    ----------
    parameters
        As they were given.
    user
        Whose job it would be.
    now
        Epoch seconds.

    Raises
    ------
    InputError
        Naming the parameter, if a value can't be read, or two don't go together.
    """
    if parameters.dependency is not None:
        checked("dependency", parameters.dependency, "dependency")
    select = _select(parameters)
    nodes = _nodes(parameters.nodes)
    gpus, gpu_type, unseen = _gpus(parameters, nodes)
    cpus_per_task, exclusive = parameters.cpus_per_task, parameters.exclusive
    if select is None:
        tasks = _tasks(parameters, nodes)
    else:
        nodes, tasks, cpus_per_task = _size_of(select, parameters)
        exclusive |= select.exclusive
        select = replace(select, exclusive=exclusive)
    requested_time = _time(parameters.time, "time")
    time_min_s = None
    if parameters.time_min is not None:
        time_min_s = _time(parameters.time_min, "time_min")
        if time_min_s > requested_time:
            raise InputError(
                f"time_min = {parameters.time_min!r} is more than time = {parameters.time!r}; "
                "give less"
            )
    project = _one_of("account", parameters.account, "project", parameters.project)
    processors = max(tasks * cpus_per_task, nodes or 1)
    if processors > 2**31 - 1:
        raise InputError(f"ntasks x cpus_per_task is {processors} processors; ask for less")
    question = JobQuestion(
        JobRequest("", user, project, processors, requested_time, now, parameters.partition),
        nodes,
        tasks,
        cpus_per_task,
        time_min_s,
        None if parameters.begin is None else _begin(parameters.begin, now),
        _memory_mib(parameters.mem),
        gpus,
        gpu_type,
        exclusive,
        qos=parameters.qos.split(",")[0] if parameters.qos else None,
        dependency=parameters.dependency or "",
        scales=parameters.scales,
        not_modelled=(*unseen, *_not_modelled(parameters, select)),
    )
    plain = select is None or replace(select, not_modelled=()) == question.chunks
    return question if plain else replace(question, select=select)


def _select(parameters: JobParameters) -> AskedChunks | None:
    """Read select and place."""
    if parameters.select is None:
        if parameters.place is not None:
            raise InputError(f"place = {parameters.place!r} is of chunks; give select, too")
        return None
    for name in ("mem", "gres", "gpus"):
        if getattr(parameters, name) is not None:
            raise InputError(
                f"{name} beside select: chunks say it themselves; write select=2:ncpus=8:mem=4gb,"
                " or :ngpus=1"
            )
    return parse_asked(parameters.select, parameters.place)


def _size_of(select: AskedChunks, parameters: JobParameters) -> tuple[int | None, int, int]:
    """Give nodes, tasks and CPUs of each task that chunks come to."""
    cpus = sum(chunk.number * chunk.cpus for chunk in select.chunks)
    number = sum(chunk.number for chunk in select.chunks)
    tasks = parameters.ntasks or parameters.processors
    if tasks is not None and tasks * parameters.cpus_per_task != cpus:
        raise InputError(
            f"select = {parameters.select!r} asks for {cpus:,} CPUs, and ntasks or processors for"
            f" {tasks * parameters.cpus_per_task:,}; give one of them"
        )
    nodes = number if select.place == "scatter" else None
    each = {chunk.cpus for chunk in select.chunks}
    return (nodes, number, each.pop()) if len(each) == 1 else (nodes, cpus, 1)


def _nodes(text: str | None) -> int | None:
    """Give the fewest nodes that would do."""
    if text is None:
        return None
    try:
        return node_range(text)[0]
    except InputError as error:
        raise InputError(f"nodes = {text!r}: {error}") from None


def _tasks(parameters: JobParameters, nodes: int | None) -> int:
    if parameters.processors is not None and parameters.ntasks is None:
        if parameters.cpus_per_task > 1:
            raise InputError("processors = N are CPUs; give ntasks together with cpus_per_task")
        return parameters.processors
    tasks = _one_of("ntasks", parameters.ntasks, "processors", parameters.processors)
    if tasks is None and nodes is not None:
        tasks = nodes * (parameters.ntasks_per_node or 1)
    if tasks is None:
        raise InputError("processors is missing; give ntasks, nodes or processors")
    return tasks


def _one_of(name: str, value: Value, alias: str, other: Value) -> Value:
    if value is not None and other is not None and value != other:
        raise InputError(f"{name} = {value!r} and {alias} = {other!r} mean the same; give one")
    return other if value is None else value


def _time(text: str, name: str) -> int:
    seconds = parse_duration(text, name)
    if seconds > _LONGEST_S:
        raise InputError(f"{name}: {text!r} is more than a year; a plain number is minutes")
    return seconds


def _begin(text: str, now: int) -> int:
    """Read ``--begin``; a plain number is epoch seconds."""
    epoch = re.fullmatch(r"\d{9,12}", text, re.ASCII)
    try:
        return parse_begin(f"uts{text}" if epoch else text, now)
    except InputError as error:
        raise InputError(f"begin = {text!r}: {error}") from None


def _memory_mib(text: str | None) -> int | None:
    """Give ``--mem`` in MiB, rounded up; ``None`` for none, and for all of a node's (0)."""
    if text is None:
        return None
    amount = checked("mem", text, "mem")
    kib = int(amount[:-1]) * 1024 ** "KMGT".index(amount[-1])
    return -(-kib // 1024) or None


def _gpus(
    parameters: JobParameters, nodes: int | None
) -> tuple[int | None, str | None, tuple[str, ...]]:
    """Give GPUs of each node, their type if one is named, and what of it is not looked at."""
    gres = parameters.gres and checked("gres", parameters.gres, "gres")
    total = parameters.gpus and checked("gpus", parameters.gpus, "gpus")
    if gres:
        names = [part.replace("=", ":").split(":") for part in gres.split(",")]
        of_gpus = [name for name in names if name[0] == "gpu"]
        if total or len(of_gpus) != 1 or len(names) > 1:
            return None, None, (f"gres {gres!r} is not looked at",)
        words = of_gpus[0][1:]
    elif total:
        words = total.replace("=", ":").split(":")
    else:
        return None, None, ()
    count = int(words.pop()) if words and words[-1].isdigit() else 1
    gpu_type = words[0] if words else None
    if "," in (total or "") or (total and count % (nodes or 1)):
        return None, None, (f"how GPUs {total!r} lie on the nodes is not looked at",)
    said: tuple[str, ...] = ()
    if total and nodes is None and count > 1:
        said = ("its GPUs are taken to be on one node",)
    return count // (nodes or 1) if total else count, gpu_type, said


def _not_modelled(parameters: JobParameters, select: AskedChunks | None) -> tuple[str, ...]:
    said = [f"{words} is not looked at" for words in (select.not_modelled if select else ())]
    if parameters.qos and "," in parameters.qos:
        said.append(f"of the QOS {parameters.qos!r} the first is looked at alone")
    if parameters.reservation:
        said.append(f"reservation {parameters.reservation!r} is not looked at")
    return tuple(said)
