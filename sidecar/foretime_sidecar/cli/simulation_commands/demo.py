"""``foretime demo``: the daemon and its page beside a log, without a scheduler."""

from __future__ import annotations

import logging
import socket
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.cli.frame.interruption import leave_threads_behind, terminable
from foretime_sidecar.cli.frame.log_lines import log_to_stderr
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.workload_options import (
    OptionalLogArgument,
    ProcessorsOption,
    WorkloadOptions,
)
from foretime_sidecar.cli.options.workload_source import WorkloadSource
from foretime_sidecar.replays.demonstration import Demonstration
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.wording.counts import counted

_LOOK_EVERY_S = 7200  # a look runs the queue forward many times, for seconds
_GENERATED_LOAD = 0.9


def demo(
    log: OptionalLogArgument = None,
    processors: ProcessorsOption = None,
    days: Annotated[
        int, typer.Option(min=0, help="Days that the daemon has looked on before it answers.")
    ] = 2,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Of the page, on this machine alone.")
    ] = 8642,
    socket_path: Annotated[
        Path | None,
        typer.Option(
            "--socket", metavar="PATH", help="Listen on this unix socket, and not on the port."
        ),
    ] = None,
) -> None:
    """Try `foretime wait` and the page without a scheduler: on a mock Slurm that lives a log.

    It schedules as Slurm does by default. A busy moment of the log (a generated workload, if none
    is given) is now; its later jobs come as the log has them. Nothing is written but into a
    temporary folder. It ends on Ctrl-C, within seconds: exit code 0 once it answers, 130 before.

    Example: [bold]foretime demo KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    log_to_stderr(logging.WARNING)
    if socket_path is None:
        _check_port(port)
    elif not socket_path.parent.is_dir():
        raise InputError(
            f"--socket {socket_path}: there is no such folder; make {socket_path.parent} first"
        )
    if socket_path is not None:
        _check_socket(socket_path)
    options = WorkloadOptions(
        log=log,
        generate=None if log is not None else "lublin2003",
        load=None if log is not None else _GENERATED_LOAD,
        processors=processors,
        lenient=log is not None,
    )
    workload, notes = WorkloadSource(options).read()
    for note in notes:
        say(note, err=True)
    with terminable(), tempfile.TemporaryDirectory(prefix="foretime-demo-") as name:
        folder = Path(name)
        listen = f"127.0.0.1:{port}" if socket_path is None else f"unix:{socket_path.absolute()}"
        shown = Demonstration(workload, folder, listen, days)
        settings = folder / "foretime.toml"
        settings.write_text(to_toml(shown.settings), encoding="utf-8")
        if days:
            before = f"{counted(days, 'day')} before, in a minute or more"
            say(f"First the daemon looks on for {before}.", err=True)
        with progress_bar("what came before", days * DAY_S, "s") as progress:
            shown.rehearse(_LOOK_EVERY_S, progress)
        where = f"--settings {settings}" if socket_path is None else f"--socket {socket_path}"
        if socket_path is None:
            say(f"The page: http://{listen}/")
            say("          There nobody is known; with --socket in its place you see all jobs.")
        tasks = min(16, workload.machine_processors)
        say(f"Ask:      foretime wait -n {tasks} -t 2:00:00 {where}")
        say(f"See:      foretime status --settings {settings}")
        say("Ctrl-C ends it, within seconds.")
        shown.serve()
    leave_threads_behind()


def _check_socket(path: Path) -> None:
    """Refuse at once a socket that somebody listens on."""
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX) as tried:
        tried.settimeout(1)
        if tried.connect_ex(str(path)) == 0:
            raise InputError(
                f"--socket {path}: another process listens there; give another --socket"
            )


def _check_port(port: int) -> None:
    """Refuse at once a port that can't be listened on, and not once the log has been lived."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"--port {port}: can't be listened on: {error.strerror}; give another --port"
            ) from error
