"""``foretime bgp``: look at a Blue Gene's partitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_sim.machines.bluegene.machine_source import find_bgp_machine

from foretime_sidecar.cli.frame.output_files import check_outputs
from foretime_sidecar.cli.options.json_option import JsonTablesOption
from foretime_sidecar.cli.reports.bgp_report import (
    bgp_partition_json,
    machine_json,
    print_bgp_partition,
    print_machine,
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def _group() -> None:
    """Look at a Blue Gene's partitions.

    Example: foretime bgp show
    """


@app.command()
def show(
    machine: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE", help="intrepid, a TOML description, or a Cobalt configuration (XML)."
        ),
    ] = "intrepid",
    bgp_partition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show this one: midplanes, wires, and what it conflicts with."
        ),
    ] = None,
    schedulable: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Names of the partitions to take of Cobalt's."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the floor as PNG or SVG.")
    ] = None,
    as_json: JsonTablesOption = False,
) -> None:
    """Show a Blue Gene: its partitions by size, the floor, and what can't run together.

    Example: [bold]foretime bgp show intrepid --bgp-partition ANL-R20-1024[/bold]
    """
    check_outputs({"--plot": plot}, {"the machine": Path(machine), "--schedulable": schedulable})
    described = find_bgp_machine(machine, schedulable)
    index = None if bgp_partition is None else described.bgp_partition_index(bgp_partition)
    if plot is not None:
        from foretime_sim.machines.bluegene import plots as bgp_plots  # matplotlib is slow to load
        from foretime_sim.scores import plots

        plots.save(
            bgp_plots.plot_bgp_machine(described)
            if index is None
            else bgp_plots.plot_bgp_partition(described, index),
            plot,
        )
    if as_json:
        shown = machine_json(described) if index is None else bgp_partition_json(described, index)
        typer.echo(json.dumps(shown, indent=2))
        return
    if index is None:
        print_machine(described)
    else:
        print_bgp_partition(described, index)
