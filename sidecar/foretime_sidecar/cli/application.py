"""The `foretime` command and its sub-commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer
from foretime_estimators.errors import ForetimeError

from foretime_sidecar.cli.config import config_app
from foretime_sidecar.cli.machine import machine
from foretime_sidecar.cli.serve import serve
from foretime_sidecar.cli.wait import wait

SIMULATION_PACKAGES = frozenset({"lupa", "matplotlib", "pandas"})
"""What the extra ``sim`` installs."""

_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    name="foretime",
    help="Makes Slurm plan with how long jobs really take, and tells people how long they "
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


try:
    from foretime_sidecar.cli.replay import replay
    from foretime_sidecar.cli.workload import app as workload_app
except ModuleNotFoundError as error:
    if error.name not in SIMULATION_PACKAGES:
        raise

    missing = error.name

    # A service node's install goes without them: there, these two commands say what they need.
    @app.command("replay", context_settings=_ANY_ARGUMENTS)
    @app.command("workload", context_settings=_ANY_ARGUMENTS)
    def _needs_simulation() -> None:
        """Needs the packages of foretime[sim], which are not installed."""
        raise ForetimeError(f"this needs {missing}: pip install 'foretime[sim]'")
else:
    app.command("replay")(replay)
    app.add_typer(workload_app, name="workload")
app.command("machine")(machine)
app.command("serve")(serve)
app.command("wait")(wait)
app.add_typer(config_app, name="config")
