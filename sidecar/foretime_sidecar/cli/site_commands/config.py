"""``foretime config``: show and check settings and policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.daemon_address import parse_listen
from foretime_sidecar.settings.settings_file import origins, read_settings, to_markdown, to_toml

config_app = typer.Typer(
    help="Show or check settings and policies.\n\nExample: foretime config show",
    no_args_is_help=True,
)


@config_app.command("show")
def show(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Settings to show; else the defaults.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the settings' documentation instead.")
    ] = False,
) -> None:
    """Print every setting with its meaning, at its default or as a file sets it, and where.

    Example: [bold]foretime config show > foretime.toml[/bold]
    """
    if markdown and file is not None:
        raise InputError("--markdown describes every setting: give it without FILE")
    if markdown:
        typer.echo(to_markdown(), nl=False)
    elif file is None:
        typer.echo(to_toml(), nl=False)
    else:
        typer.echo(to_toml(read_settings(file), origins(file)), nl=False)


@config_app.command("policy")
def policy(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[POLICY]", help="A known policy, or a policy file. Default: list the known."
        ),
    ] = None,
) -> None:
    """Print a known policy as a TOML file for --policy, or check a policy file.

    Example: [bold]foretime config policy planning > policy.toml[/bold]
    """
    from foretime_sim.policies.policy_file import known_policies, read_policy  # slow to load

    known = known_policies()
    if name is None:
        for known_name, text in known.items():
            say(f"{known_name:12}{text.splitlines()[0].removeprefix('# ')}")
        return
    read_policy(name)
    if Path(name).exists():
        say(f"{name}: good")
    else:
        typer.echo(known[name], nl=False)


@config_app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of settings.")],
) -> None:
    """Check a file of settings, and the site file that it names; the first mistake is told.

    Example: [bold]foretime config check /etc/foretime/foretime.toml[/bold]
    """
    settings, where = read_settings(file), origins(file)
    try:
        parse_listen(settings.api.listen)
    except InputError as error:
        raise InputError(f"{where['api', 'listen']}: {error}") from error
    if settings.scheduler.client == "slurmrestd":
        from foretime_sidecar.clients.slurm.rest_connection import base_url  # slow to load

        try:
            base_url(settings.scheduler.slurmrestd)
        except InputError as error:
            raise InputError(f"{where['scheduler', 'slurmrestd']}: {error}") from error
    if settings.forecast.site_file:
        from foretime_sidecar.site_import.site_sources import SiteFile  # slow to load

        try:
            SiteFile(settings.forecast.site_file, settings.scheduler.kind).read()
        except InputError as error:
            at = where["forecast", "site_file"]
            raise InputError(f"{at}: forecast.site_file: {error}") from error
    unset = "" if where else "; it sets nothing: every setting is at its default"
    say(f"{file}: good{unset}")
    if settings.scheduler.kind == "pbs":
        for key, default in BesideSettings().model_dump().items():
            if getattr(settings.beside, key) != default:
                at = where["beside", key]
                say(f"{at}: beside.{key} changes nothing: under PBS nothing is run beside")
