"""``foretime wait``: ask the daemon when a job will start."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import DaemonError, RefusedError
from foretime_sidecar.answers.forecast_asking import ask_advice, ask_forecast
from foretime_sidecar.answers.wait_report import cheapest, wait_report
from foretime_sidecar.answers.wait_watch import Update, updates
from foretime_sidecar.cli.frame.interruption import INTERRUPTED
from foretime_sidecar.cli.frame.option_groups import with_option_groups
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption, SocketOption, where
from foretime_sidecar.cli.options.job_flags import JobFlags
from foretime_sidecar.cli.options.json_option import error_as_json
from foretime_sidecar.job_options.batch_script import BatchScript, read_script
from foretime_sidecar.job_options.job_request import asked_job, is_job_id
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.printable import printable
from foretime_sidecar.wording.waits import headline

if TYPE_CHECKING:
    from foretime_sidecar.forecast_answer.advice import Alternative
    from foretime_sidecar.forecast_answer.forecast import ForecastAnswer

REFRESH_S = 20.0
"""Pause between two answers of --watch; the daemon looks at the queue once a minute."""
_MOST_SCRIPT_BYTES = 4 << 20  # as slurmctld's own (max_script_size)
_LEAST_WIDTH, _MOST_WIDTH = 40, 100


@with_option_groups
def wait(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB",
            help="A job's id, or a batch script with #SBATCH or #PBS lines (-: on stdin).",
        ),
    ] = None,
    *,
    flags: JobFlags,
    scales: Annotated[
        bool,
        typer.Option(
            "--scales", help="It takes half the time on twice the processors: advise on its size."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Ask again and again, until the job has started.")
    ] = False,
    notify: Annotated[
        Literal["bell", "mail", "daemon", "off"] | None,
        typer.Option(
            help="Tell news of a job in the queue: bell: here, with a bell; mail: to you by this "
            "machine's sendmail, as long as the command runs; daemon: by the site's daemon, the "
            "command ends at once; off: no longer by the daemon."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the daemon's own answer.")] = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Say when a job will start: one in the queue, or one to be submitted.

    The flags are sbatch's. They go over its SBATCH_ variables, and these over a batch script.
    News are: it starts in about 10 min, its start has moved, it has started, it no longer waits.

    Exit codes: 0, 2 for a wrong question, 3 if the daemon does not answer, 130 if interrupted.

    Example: [bold]foretime wait -n 64 -t 2:00:00 -A physics[/bold]

    Example: [bold]foretime wait 4711 --notify bell[/bold]
    """
    question = _question(job, flags.given, where(settings, socket_path))
    question = replace(question, scales=scales)
    if notify is not None:
        if watch:
            raise InputError("--notify watches the job, too: leave --watch out")
        _notify(question, job, notify, as_json=as_json)
    elif watch:
        _watch(question, as_json=as_json)
    elif as_json:
        typer.echo(json.dumps(_plain(question.forecast()), indent=2))
    else:
        say(question.advised())


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of which daemon.

    Attributes
    ----------
    listen
        Where the daemon is.
    path
        Of the forecast.
    parameters
        Of a job that is not submitted; none of one in the queue.
    notes
        What of it is not looked at.
    scales
        Whether it takes half the time on twice the processors.
    """

    listen: str
    path: str
    parameters: Mapping[str, str]
    notes: tuple[str, ...] = ()
    scales: bool = False

    def forecast(self) -> ForecastAnswer:
        """Give the daemon's answer."""
        return ask_forecast(self.listen, self.path, self.parameters)

    def advised(self) -> str:
        """Give the answer in words, with the cheapest change by which the job is done sooner."""
        forecast = self.forecast()
        if forecast.state == "running":
            return self.report(forecast)
        work = dict(self.parameters or _work_of(forecast))
        if self.scales:
            work["scales"] = "true"
        try:
            advised = ask_advice(self.listen, work)
        except (RefusedError, DaemonError) as error:
            # The forecast is what was asked for.
            return self.report(forecast, notes=[f"no advice: {error}"])
        return self.report(forecast, cheapest(advised, forecast), is_advised=True)

    def report(
        self,
        forecast: ForecastAnswer,
        sooner: Alternative | None = None,
        notes: Sequence[str] = (),
        *,
        is_advised: bool = False,
    ) -> str:
        """Put an answer in words."""
        width = min(max(shutil.get_terminal_size().columns, _LEAST_WIDTH), _MOST_WIDTH)
        return wait_report(
            forecast,
            int(time.time()),
            sooner=sooner,
            is_advised=is_advised,
            scales=self.scales,
            begin=int(self.parameters.get("begin", 0)),
            notes=[*self.notes, *notes],
            width=width,
        )


def _plain(forecast: ForecastAnswer) -> dict[str, Any]:
    """Give an answer as JSON can hold it."""
    return forecast.model_dump(mode="json")


def _work_of(forecast: ForecastAnswer) -> dict[str, Any]:
    """Give the parameters of a new job with the same work as one in the queue."""
    return {
        "processors": forecast.processors,
        "time": format_duration(forecast.requested_time_s),
        "account": forecast.account,
        "partition": forecast.partition,
        "user": forecast.user,
    }


def _question(job: str | None, flags: Mapping[str, str], listen: str) -> _Question:
    if job is not None and is_job_id(job) and not Path(job).is_file():
        if flags:
            raise InputError(
                f"job {job} is in the queue and --{next(iter(flags))} is for one that is not; "
                "leave the one or the other out"
            )
        return _Question(listen, f"/v1/jobs/{quote(job, safe='')}/forecast", {})
    now = time.time()
    asked = asked_job(flags, os.environ, None if job is None else _script(job), now)
    return _Question(listen, "/v1/forecast", asked.parameters(now), asked.notes)


def _script(name: str) -> BatchScript:
    try:
        if name == "-":
            raw, name = sys.stdin.buffer.read(_MOST_SCRIPT_BYTES + 1), "stdin"
        else:
            with Path(name).open("rb") as file:
                raw = file.read(_MOST_SCRIPT_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{name}: can't read it as a batch script: {error.strerror}; give a script's name, or "
            "a job's id"
        ) from error
    if len(raw) > _MOST_SCRIPT_BYTES:
        raise InputError(f"{name}: more than 4 MiB, which is no batch script; give another file")
    return read_script(raw.decode(errors="replace"), name)


# -- watching --------------------------------------------------------------------------------------


def _watch(question: _Question, *, as_json: bool) -> None:
    """Show the latest answer until the job has started, or Ctrl-C."""
    try:
        found = updates(question.forecast, pause)
        if as_json:
            for update in found:
                said = error_as_json(update.trouble) if update.trouble else _plain(update.forecast)
                typer.echo(json.dumps(said))
        elif sys.stdout.isatty():
            _show_on_screen(question, found)
        else:
            _show_changes(found)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _notify(
    question: _Question,
    job: str | None,
    way: Literal["bell", "mail", "daemon", "off"],
    *,
    as_json: bool,
) -> None:
    """Tell news of a job in the queue, or have them told."""
    from foretime_sidecar.cli.reports.job_news import notify_by_daemon, notify_here

    if question.parameters or job is None:
        raise InputError(
            "--notify is for a job in the queue: give its id, as in foretime wait 4711 --notify "
            f"{way}"
        )
    if way in ("daemon", "off"):
        notify_by_daemon(question.listen, job, stop=way == "off", as_json=as_json)
        return
    try:
        notify_here(updates(question.forecast, pause), job, mail=way == "mail", as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def pause() -> None:
    """Wait until it is worth asking again."""
    time.sleep(REFRESH_S)


def _show_on_screen(question: _Question, found: Iterator[Update]) -> None:
    """Keep one report on the terminal up to date."""
    from rich.live import Live  # takes as long to import as all that a single answer needs
    from rich.text import Text

    with Live(Text(""), auto_refresh=False) as live:
        for update in found:
            shown = f"{_clock()}  {_words(update)}\n\n{question.report(update.forecast)}"
            live.update(Text(printable(shown)))
            live.refresh()


def _show_changes(found: Iterator[Update]) -> None:
    """Write a line whenever there is something new to say."""
    said = None
    for update in found:
        words = _words(update)
        if words != said:
            say(f"{_clock()}  {words}")
            said = words


def _words(update: Update) -> str:
    if update.gone:
        return "The job is no longer in the queue: it has run, or was cancelled."
    if update.trouble is not None:
        return f"{headline(update.forecast, int(time.time()))} Not of now: {update.trouble}"
    return headline(update.forecast, int(time.time()))


def _clock() -> str:
    return spoken_clock(int(time.time()), int(time.time()))
