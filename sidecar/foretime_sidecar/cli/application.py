"""The `foretime` command, and in which module each of its sub-commands is."""

from __future__ import annotations

from typing import Annotated

import typer

from foretime_sidecar.cli.frame.lazy_commands import CommandModule, add_commands
from foretime_sidecar.cli.frame.printable_text import say

SIMULATION_PACKAGES = frozenset({"lupa", "matplotlib", "pandas"})
"""What the extra ``sim`` installs."""

COMMANDS = {
    "replay": CommandModule(
        "foretime_sidecar.cli.simulation_commands.replay",
        "replay",
        "Replay a log without and with Foretime: the real hook, sidecar and engine.",
    ),
    "simulate": CommandModule(
        "foretime_sidecar.cli.simulation_commands.simulate",
        "simulate",
        "Schedule a log under one or several policies, and compare them.",
    ),
    "campaign": CommandModule(
        "foretime_sidecar.cli.simulation_commands.campaign",
        "app",
        "Run many simulations from one TOML file, and report them.",
    ),
    "machine": CommandModule(
        "foretime_sidecar.cli.simulation_commands.machine",
        "machine",
        "Show the nodes and partitions that a file for --machine describes.",
    ),
    "site": CommandModule(
        "foretime_sidecar.cli.site_commands.site",
        "site_app",
        "Import what a site's Slurm or PBS goes by into one file; show and check such a file.",
    ),
    "bgp": CommandModule(
        "foretime_sidecar.cli.simulation_commands.bgp",
        "app",
        "Look at a Blue Gene's partitions.",
    ),
    "serve": CommandModule(
        "foretime_sidecar.cli.site_commands.serve",
        "serve",
        "Run the daemon: learn from finished jobs, publish the table, answer questions.",
    ),
    "demo": CommandModule(
        "foretime_sidecar.cli.simulation_commands.demo",
        "demo",
        "Try `foretime wait` and the page without a scheduler: on a mock Slurm that lives a log.",
    ),
    "watchdog": CommandModule(
        "foretime_sidecar.cli.site_commands.watchdog",
        "watchdog",
        "Restore the requested limits of Slurm's jobs if the daemon is not responding.",
    ),
    "wait": CommandModule(
        "foretime_sidecar.cli.site_commands.wait",
        "wait",
        "Say when a job will start: one in the queue, or one to be submitted.",
    ),
    "explain": CommandModule(
        "foretime_sidecar.cli.site_commands.decisions",
        "explain",
        "Say what Foretime did with a job of yours, and why.",
    ),
    "status": CommandModule(
        "foretime_sidecar.cli.site_commands.status",
        "status",
        "Say how Foretime stands: mode, daemon, table, breaker, switch, queue order, gains.",
    ),
    "decisions": CommandModule(
        "foretime_sidecar.cli.site_commands.decisions",
        "decisions",
        "Show the audit: what each job was planned with instead of what was asked for, and why.",
    ),
    "estimators": CommandModule(
        "foretime_sidecar.cli.site_commands.estimators",
        "estimators",
        "Show how well every estimator predicts the site's runtimes, the best one first.",
    ),
    "brought": CommandModule(
        "foretime_sidecar.cli.site_commands.brought",
        "brought",
        "Say how many hours of waiting Foretime has saved, or would save where it only observes.",
    ),
    "forget": CommandModule(
        "foretime_sidecar.cli.site_commands.forget",
        "forget",
        "Erase what the daemon has stored of a user, or show it.",
    ),
    "report": CommandModule(
        "foretime_sidecar.cli.site_commands.report",
        "report_app",
        "Report what planning has done to the site's jobs.",
    ),
    "disable": CommandModule(
        "foretime_sidecar.cli.site_commands.switch",
        "disable",
        "Plan no more jobs from the next submission on, and clear those that wait.",
    ),
    "enable": CommandModule(
        "foretime_sidecar.cli.site_commands.switch",
        "enable",
        "Plan jobs again: after foretime disable, or once the circuit breaker has opened.",
    ),
    "doctor": CommandModule(
        "foretime_sidecar.cli.site_commands.doctor",
        "doctor",
        "Check the table, the scheduler and the hook, and suggest fixes.",
    ),
    "workload": CommandModule(
        "foretime_sidecar.cli.simulation_commands.workload",
        "app",
        "Look at job logs, convert them to SWF, or generate one.",
    ),
    "traces": CommandModule(
        "foretime_sidecar.cli.simulation_commands.traces",
        "app",
        "Fetch job logs from the Parallel Workloads Archive.",
    ),
    "study": CommandModule(
        "foretime_sidecar.cli.simulation_commands.study",
        "app",
        "Run published studies again, and compare.",
    ),
    "config": CommandModule(
        "foretime_sidecar.cli.site_commands.config",
        "config_app",
        "Show or check settings and policies.",
    ),
    "install": CommandModule(
        "foretime_sidecar.cli.site_commands.install",
        "install_app",
        "Install Foretime on a scheduler's host; without --yes, show how.",
    ),
    "uninstall": CommandModule(
        "foretime_sidecar.cli.site_commands.install",
        "uninstall_app",
        "Take Foretime out of a scheduler; without --yes, show how.",
    ),
}

app = typer.Typer(
    name="foretime",
    help="Makes Slurm and PBS plan with how long jobs really take, and tells people how long "
    "they will wait.\n\nExample: foretime replay --generate lublin2003",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_commands(app, COMMANDS)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # slow to import, and seldom asked for

        say(f"foretime {version('foretime')}")
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
