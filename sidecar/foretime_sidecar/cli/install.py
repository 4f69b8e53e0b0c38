"""``foretime install`` and ``foretime uninstall``: the hook in a scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.errors import ForetimeError
from foretime_sim.plugin_files import plugin_file

from foretime_sidecar import pbs_install
from foretime_sidecar.pbs_server import PbsServer
from foretime_sidecar.settings import Settings, read_settings

install_app = typer.Typer(
    help="Put the hook into a scheduler; without --yes, show how.", no_args_is_help=True
)
uninstall_app = typer.Typer(
    help="Take the hook out of a scheduler; without --yes, show how.", no_args_is_help=True
)

_YES = typer.Option("--yes", help="Do it; else only show what would be done.")
_COMMANDS_DIR = typer.Option(
    "--commands-dir", metavar="DIR", help="Folder of qmgr and the others; the PATH if not given."
)
_JSON = typer.Option("--json", help="Print JSON.")


@install_app.callback()
def _install() -> None:
    pass


@uninstall_app.callback()
def _uninstall() -> None:
    pass


@install_app.command("pbs")
def install_pbs(
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", metavar="FILE", help="The daemon's settings, for where the table is."
        ),
    ] = None,
    yes: Annotated[bool, _YES] = False,
    commands_dir: Annotated[str, _COMMANDS_DIR] = "",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Register the hook in a PBS server, or bring it up to date; all of it or nothing.

    Run it as root on the server's host.

    Example: [bold]foretime install pbs --yes[/bold]
    """
    table = (Settings() if settings is None else read_settings(settings)).table.path
    if yes:
        _say(pbs_install.install(PbsServer(commands_dir), table), as_json)
        return
    config_name = "foretime_hook.CF"
    config = pbs_install.configuration(table)
    directives = pbs_install.install_directives(
        str(plugin_file("pbs/foretime_hook.py")), config_name, pbs_install.registration()
    )
    lines = [f"qmgr -c '{directive}'" for directive in directives]
    if as_json:
        shown = {"files": {config_name: config}, "commands": lines}
        typer.echo(json.dumps(shown, indent=2))
        return
    typer.echo("# As root on the PBS server's host; with --yes this is done at once.")
    typer.echo(f"cat > {config_name} <<'END'\n{config}END")
    typer.echo("\n".join(lines))


@uninstall_app.command("pbs")
def uninstall_pbs(
    yes: Annotated[bool, _YES] = False,
    commands_dir: Annotated[str, _COMMANDS_DIR] = "",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take the hook out of a PBS server, and soft_walltime from the jobs that wait.

    Run it as root on the server's host. Running jobs are not touched.

    Example: [bold]foretime uninstall pbs --yes[/bold]
    """
    if yes:
        _say(pbs_install.uninstall(PbsServer(commands_dir)), as_json)
        return
    lines = pbs_install.uninstall_lines()
    if as_json:
        typer.echo(json.dumps({"commands": lines}, indent=2))
        return
    typer.echo("# As root on the PBS server's host; with --yes this is done at once.")
    typer.echo("\n".join(lines))


_ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


@install_app.command("slurm", hidden=True, context_settings=_ANY)
def install_slurm() -> None:
    """Say how Slurm's hook is installed."""
    raise ForetimeError(
        "Slurm's hook is installed by hand for now, in a few lines: see plugin/README.md"
    )


@uninstall_app.command("slurm", hidden=True, context_settings=_ANY)
def uninstall_slurm() -> None:
    """Say how Slurm's hook is taken out."""
    raise ForetimeError("Slurm's hook is taken out by hand for now: see plugin/README.md")


def _say(outcome: pbs_install.Outcome, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"done": outcome.done, "notes": outcome.notes}, indent=2))
        return
    for line in outcome.done:
        typer.echo(f"done: {line}")
    for note in outcome.notes:
        typer.echo(note)
