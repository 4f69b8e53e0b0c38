"""The `foretime` command and its sub-commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from foretime_sidecar.cli.replay import replay
from foretime_sidecar.cli.workload import app as workload_app

app = typer.Typer(
    name="foretime",
    help="Makes Slurm and PBS plan with how long jobs really take, and tells people how long they "
    "will wait.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"foretime {version('foretime')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    pass


app.command("replay")(replay)
app.add_typer(workload_app, name="workload")
