"""The flags of a job to be submitted, as sbatch has them, and qsub's -l."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

import typer

from foretime_sidecar.cli.frame.option_groups import OptionGroup

Flag = str | None


@dataclass(frozen=True)
class JobFlags(OptionGroup):
    """What a job asks for; each field is called as sbatch's flag, but for qsub's ``-l``."""

    panel: ClassVar[str] = "Options"

    nodes: Annotated[Flag, typer.Option("--nodes", "-N", metavar="N|MIN-MAX", help="Nodes.")] = None
    ntasks: Annotated[Flag, typer.Option("--ntasks", "-n", metavar="N", help="Tasks.")] = None
    ntasks_per_node: Annotated[
        Flag, typer.Option("--ntasks-per-node", metavar="N", help="Tasks on each node.")
    ] = None
    cpus_per_task: Annotated[
        Flag, typer.Option("--cpus-per-task", "-c", metavar="N", help="Processors of each task.")
    ] = None
    mem: Annotated[
        Flag, typer.Option("--mem", metavar="SIZE", help="Memory of each node: MiB, or 4G.")
    ] = None
    time: Annotated[
        Flag,
        typer.Option("--time", "-t", metavar="TIME", help="Time limit: minutes, D-HH:MM:SS..."),
    ] = None
    time_min: Annotated[
        Flag, typer.Option("--time-min", metavar="TIME", help="Least time limit that would do.")
    ] = None
    partition: Annotated[
        Flag,
        typer.Option("--partition", "-p", help="Partition, or several with commas; PBS's queue."),
    ] = None
    account: Annotated[
        Flag, typer.Option("--account", "-A", help="Account (project) to charge.")
    ] = None
    qos: Annotated[
        Flag,
        typer.Option(
            "--qos",
            "-q",
            help="Quality of service, on Slurm: its limits and priority count.",
        ),
    ] = None
    gres: Annotated[
        Flag, typer.Option("--gres", metavar="LIST", help="Generic resources: gpu:a100:2.")
    ] = None
    gpus: Annotated[
        Flag, typer.Option("--gpus", "-G", metavar="[TYPE:]N", help="GPUs of the whole job.")
    ] = None
    exclusive: Annotated[
        bool, typer.Option("--exclusive", help="Share its nodes with no other job.")
    ] = False
    begin: Annotated[
        Flag,
        typer.Option("--begin", "-b", metavar="WHEN", help="Not before: now+2hours, 16:00, ..."),
    ] = None
    dependency: Annotated[
        Flag,
        typer.Option("--dependency", "-d", metavar="LIST", help="Jobs before it: afterok:4711."),
    ] = None
    reservation: Annotated[
        Flag, typer.Option("--reservation", metavar="NAME", help="Run in this reservation.")
    ] = None
    resources: Annotated[
        Flag,
        typer.Option(
            "-l",
            metavar="LIST",
            help="On PBS, as for qsub: select=2:ncpus=8,place=scatter.",
        ),
    ] = None
    array: Annotated[
        Flag, typer.Option("--array", "-a", metavar="INDICES", help="Tasks of an array: 0-15%4.")
    ] = None

    @property
    def given(self) -> dict[str, str]:
        """Those that are given, by sbatch's names; of a flag without a value "" is the value."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["exclusive"] = "" if self.exclusive else None
        return {
            name.replace("_", "-"): value for name, value in values.items() if value is not None
        }
