"""`foretime wait` as a command, asking a daemon on a mock Slurm."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.answers.daemon_client import DaemonError, SiteDaemon
from foretime_sidecar.answers.forecast_asking import ask_forecast
from foretime_sidecar.answers.wait_report import cheapest, wait_report
from foretime_sidecar.cli.site_commands.wait import wait
from foretime_sidecar.forecast_answer.advice import Advice, Alternative
from foretime_sidecar.forecast_answer.forecast import ForecastAnswer
from foretime_sidecar.wording.clocks import dated_clock, spoken_clock
from foretime_sidecar.wording.waits import headline
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from typer.testing import CliRunner, Result

from tests.support.forecasts.told_forecasts import told_forecast
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000

app = typer.Typer()
app.command("wait")(wait)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """64 processors, taken for 30 minutes, and one more job that wants them all."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    running = slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    waiting = slurm.submit(Submission("bob", "p", None, 64, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path_factory.mktemp("daemon"), slurm) as site:
        site.running, site.waiting = str(running), str(waiting)
        yield site


def test_a_job_to_come_in_words(site: MockSite) -> None:
    before = ask_forecast(site.listen, "/v1/forecast", {"ntasks": 8, "time": "2:00:00"})
    result = run("-n", "8", "-t", "2:00:00", "--socket", str(site.socket_path))
    assert result.exit_code == 0, result.output
    forecast = ask_forecast(site.listen, "/v1/forecast", {"ntasks": 8, "time": "2:00:00"})
    # 64 processors, taken for at most 29 minutes more, and then for 10 by the one that waits.
    assert forecast.times is not None
    assert 0 < forecast.times.likely_wait_s <= forecast.times.wait_s["0.95"] <= 1740 + 600
    said, table, *_ = result.output.split("\n\n")
    # As time goes by, a wait may be rounded to another number.
    headlines = [headline(each, int(time.time())) for each in (before, forecast)]
    assert " ".join(said.split()) in headlines
    assert table.splitlines()[0].split() == [
        *("sure", "starts", "within", "by", "(UTC)", "done", "by", "(UTC)")
    ]
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["50%", "75%", "90%", "95%"]
    assert "\nJob      8 processors, time limit 02:00:00.\n" in result.output
    assert "\nWhy      waits for 8 processors; 1 job ahead in the queue.\n" in result.output
    assert "\nQueue    read under a minute ago: 1 running, 1 waiting" in result.output


def test_a_job_of_the_queue_is_told_in_words(site: MockSite) -> None:
    result = run(site.waiting, "--socket", str(site.socket_path))
    assert result.exit_code == 0, result.output
    forecast = ask_forecast(site.listen, f"/v1/jobs/{site.waiting}/forecast", {})
    said = " ".join(result.output.split("\n\n")[0].split())
    assert said == headline(forecast, int(time.time()))
    assert "\nJob      64 processors, time limit 00:10:00, partition main.\n" in result.output


def test_a_job_that_runs_is_told_when_it_started(site: MockSite) -> None:
    result = run(site.running, "--socket", str(site.socket_path))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("It started at ")


def test_json_is_the_answer_of_the_daemon_itself(site: MockSite) -> None:
    result = run("-n", "64", "-t", "1-00", "-A", "p", "-p", "main", "--json", "--settings",
                 str(site.settings_path))  # fmt: skip
    answer = json.loads(result.output)
    question = {"ntasks": 64, "time": "1-00", "account": "p", "partition": "main"}
    assert answer == SiteDaemon(site.listen).ask("/v1/forecast", question)
    of_job = json.loads(run(site.waiting, "--json", "--socket", str(site.socket_path)).output)
    assert of_job == SiteDaemon(site.listen).ask(f"/v1/jobs/{site.waiting}/forecast", {})
    assert (of_job["job_id"], of_job["state"]) == (site.waiting, "pending")


def _written(moment: int) -> str:
    return dated_clock(moment).replace(" ", "T")


def test_it_says_before_when_a_job_does_not_start(site: MockSite) -> None:
    begin = int(time.time()) // 86_400 * 86_400 + 2 * 86_400
    asked = ("-n", "8", "-t", "60", "-p", "main", "--socket", str(site.socket_path))
    words = f"partition main, not before {spoken_clock(begin, int(time.time()))}."
    assert words in " ".join(run(*asked, "-b", _written(begin)).output.split())
    assert "not before" not in run(*asked, "-b", "now").output


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_flags_go_before_a_batch_script(site: MockSite, tmp_path: Path, how: str) -> None:
    text = "#!/bin/sh\n#SBATCH -n 99 --time=2:00:00\n#SBATCH --constraint=fast -p main\nsleep 1\n"
    script = tmp_path / "job.sh"
    script.write_text(text)
    name = str(script) if how == "file" else "-"
    stdin = None if how == "file" else text
    result = run(name, "-n", "8", "--socket", str(site.socket_path), stdin=stdin)
    assert result.exit_code == 0, result.output
    assert "Job      8 processors, time limit 02:00:00, partition main.\n" in result.output
    place = script if how == "file" else "stdin"
    assert f"notlookedat:{place}:3:--constraint=fast." in "".join(result.output.split())


def test_a_script_for_pbs_is_read(site: MockSite, tmp_path: Path) -> None:
    script = tmp_path / "job.pbs"
    script.write_text("#!/bin/sh\n#PBS -l select=2:ncpus=4,walltime=1:30:00\n#PBS -A p\n")
    result = run(str(script), "--json", "--socket", str(site.socket_path))
    answer = json.loads(result.output)
    assert (answer["processors"], answer["requested_time_s"]) == (8, 5400)
    assert answer["account"] == "p"


def test_what_the_daemon_refuses_is_a_wrong_question(site: MockSite) -> None:
    result = run("-n", "65", "-t", "60", "--socket", str(site.socket_path))
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "processors = 65: only 64 processors are up now; ask for less"


def test_the_cheapest_change_by_which_it_is_done_sooner_is_offered(tmp_path: Path) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 32, 1800, 1800))
    wide = slurm.submit(Submission("bob", "p", None, 64, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path, slurm) as site:
        result = run("-n", "64", "-t", "10", "--scales", "--socket", str(site.socket_path))
        question = {"ntasks": 64, "time": "10", "scales": "true"}
        advised = SiteDaemon(site.listen).ask("/v1/advice", question)
        of_job = run(str(wide), "--scales", "--socket", str(site.socket_path))
        unsaid = SiteDaemon(site.listen).ask("/v1/advice", {"ntasks": 64, "time": "10"})
    assert (unsaid["alternatives"], unsaid["cheapest"]) == ([], None), "it may not scale"
    # Beside the one that runs half of the machine is free, for as long.
    change = advised["alternatives"][advised["cheapest"]]
    assert change["forecast"]["likely_wait_s"] == 0
    for each in (result, of_job):
        assert each.exit_code == 0, each.output
        assert f"\n         {change['command']}\n" in each.output
        words = " ".join(each.output.split("\nSooner")[1].split())
        assert words.startswith(f"{change['text']}: likely done ")
        assert " sooner, started " in words
        assert "for the same processor-time." in words


def test_with_scales_it_says_that_no_other_size_is_sooner(tmp_path: Path) -> None:
    """One job has the whole machine: on half of it this one would only take twice as long."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 1800, 1800))
    slurm.advance(NOW + 60)
    asked = ("-n", "64", "-t", "2:00:00")
    with MockSite(tmp_path, slurm) as site:
        sized = run(*asked, "--scales", "--socket", str(site.socket_path))
        plain = run(*asked, "--socket", str(site.socket_path))
    assert "Sooner   No other size is surely sooner, nor any other way to run it." in sized.output
    assert "Sooner   No other way to run it is known that is surely done sooner." in plain.output


@pytest.mark.parametrize(
    ("likely_s", "bound_s", "offered"),
    [(900, 3600, True), (900, 3601, False), (1000, 3600, False), (None, None, False)],
)
def test_no_change_is_offered_that_may_be_done_later(
    likely_s: int | None, bound_s: int | None, offered: bool
) -> None:
    def forecast(likely_s: int | None, bound_s: int | None) -> ForecastAnswer:
        ends = None if bound_s is None else {"0.5": likely_s, "0.95": bound_s}
        return ForecastAnswer.model_construct(likely_wait_s=50, end_s=ends)

    here = forecast(1000, 3600)
    change = Alternative.model_construct(forecast=forecast(likely_s, bound_s))
    found = cheapest(Advice.model_construct(asked=here, alternatives=[change], cheapest=0), here)
    assert (found is not None) is offered


def test_a_job_that_is_not_there_is_said_to_be_in_no_queue(site: MockSite) -> None:
    result = run("4711", "--socket", str(site.socket_path))
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("no job 4711 is in the queue")


def test_no_daemon_is_one_line_and_its_own_exit_code(tmp_path: Path) -> None:
    result = run("-n", "1", "-t", "60", "--socket", str(tmp_path / "none"))
    assert isinstance(result.exception, DaemonError)
    assert result.exception.exit_code == 3
    assert str(result.exception) == (
        f"no foretime daemon answers at unix:{tmp_path}/none; is it running "
        "(systemctl status foretime)?"
    )
    with pytest.raises(DaemonError, match="no foretime daemon answers at 127"):
        SiteDaemon("127.0.0.1:9").ask("/v1/forecast", {})


def test_a_daemon_that_restarts_is_asked_again(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pauses = tmp_path / "s", []

    def restart(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            path.symlink_to(site.socket_path)

    clock = "foretime_sidecar.answers.api_client.time"
    monkeypatch.setattr(clock, SimpleNamespace(sleep=restart))
    assert SiteDaemon(f"unix:{path}").ask("/healthz", {})["status"] == "ok"
    assert len(pauses) == 2


@contextlib.contextmanager
def answering(path: Path, said: bytes) -> Iterator[str]:
    """Say the same to whoever connects and asks; give where."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        if connection.recv(4096):
                            connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"unix:{path}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(30)


@pytest.mark.parametrize(
    "said",
    [
        b"not http at all",
        b"HTTP/1.0 200 OK\r\n\r\n<p>hello",
        b"HTTP/1.0 200 OK\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
    ],
)
def test_an_answer_that_is_no_daemons_is_refused(tmp_path: Path, said: bytes) -> None:
    with (
        answering(tmp_path / "s", said) as listen,
        pytest.raises(DaemonError, match="no foretime daemon"),
    ):
        SiteDaemon(listen).ask("/v1/forecast", {"processors": 1, "time": "1"})


def test_the_answer_of_another_version_is_refused(tmp_path: Path) -> None:
    said = b'HTTP/1.0 200 OK\r\n\r\n{"job_id": 4711}'
    with (
        answering(tmp_path / "s", said) as listen,
        pytest.raises(DaemonError) as caught,
    ):
        ask_forecast(listen, "/v1/jobs/4711/forecast", {})
    assert str(caught.value) == (
        f"the foretime daemon at {listen} answers otherwise than expected: job_id: Input should be "
        "a valid string; is it of the same version as this command?"
    )


@pytest.mark.usefixtures("stockholm")
@pytest.mark.parametrize(
    ("scheduler", "line"),
    [
        ("slurm", "\nSlurm    Slurm's own plan: 23:43 (squeue --start). It expects every job"),
        ("pbs", "\nPBS      PBS's own plan: 23:43 (qstat -T). It expects every job to use all"),
    ],
)
def test_what_the_scheduler_plans_itself_stands_beside_the_forecast(
    scheduler: str, line: str
) -> None:
    told = told_forecast(scheduler=scheduler, scheduler_start_time=NOW + 1800)
    assert line in wait_report(told, NOW)
    assert "own plan: now (" in wait_report(told, NOW + 1800)
    assert "own plan" not in wait_report(told_forecast(), NOW)


def test_how_often_bounds_held_is_said_once_it_is_known() -> None:
    done = {"forecasts_scored": 1234, "days": 30}
    unknown = told_forecast(calibration={**done, "within_95": None})
    assert "So far" not in wait_report(unknown, NOW)
    known = told_forecast(calibration={**done, "within_95": 0.9512})
    assert (
        "So far   95.1% of 1,234 jobs in the last 30 days started within their 95% bound."
        in wait_report(known, NOW)
    )


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["-n", "1", "-t", "soon"], "command line: --time = 'soon': is not a duration"),
        (["-n", "1", "-t", "60", "--socket", "a", "--settings", "b"], "give one"),
        (["-n", "1", "-t", "60", "--settings", "/none"], "can't read the settings"),
        (["-n", "1"], "the time limit is missing; give --time"),
        (["123", "-n", "4"], "job 123 is in the queue and --ntasks is for one that is not"),
        (["/none/job.sh"], "/none/job.sh: can't read it as a batch script: No such file"),
        (["/"], "/: can't read it as a batch script: Is a directory"),
        (["-N", "3-2", "-t", "60"], "command line: --nodes = '3-2': the most nodes"),
        (["-n", "1", "-t", "60", "-A", "m\udcfcller"], "is not UTF-8 text; write it in UTF-8"),
    ],
)
def test_wrong_questions_are_refused(arguments: list[str], what: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


def test_a_script_that_is_too_long_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_bytes(b"#!/bin/sh\n" + b"#" * (4 << 20))
    result = run(str(script))
    assert "more than 4 MiB, which is no batch script" in str(result.exception)


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[MockSite]:
    """Two processors: one job for half an hour, another that waits for it."""
    slurm = MockSlurm(SlurmSetup(2), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 2, 1800, 1800))
    waiting = slurm.submit(Submission("bob", "p", None, 2, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path, slurm) as site:
        site.waiting = str(waiting)
        yield site


def watch(
    site: MockSite,
    monkeypatch: pytest.MonkeyPatch,
    *between: Callable[[], None],
    json: bool = False,
) -> Result:
    """Watch the job that waits; between two questions something happens."""
    todo = iter(between)

    monkeypatch.setattr("foretime_sidecar.cli.site_commands.wait.pause", lambda: next(todo)())
    options = ["--watch", "--socket", str(site.socket_path)] + ["--json"] * json
    return run(site.waiting, *options)


def test_watching_ends_when_the_job_has_started(
    own_site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [lambda: own_site.advance(600), lambda: None, lambda: own_site.advance(1200)]
    result = watch(own_site, monkeypatch, *steps)
    assert result.exit_code == 0, result.output
    # The same answer is not written again.
    first, later, started = (line.split("  ", 1)[1] for line in result.output.splitlines())
    assert first.startswith("Likely ")
    assert later.startswith("Likely ")
    assert first != later
    assert started.startswith("It started at ")


def test_watching_as_json_prints_an_answer_a_line(
    own_site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [lambda: own_site.advance(600), lambda: own_site.advance(1200)]
    result = watch(own_site, monkeypatch, *steps, json=True)
    answers = [json.loads(line) for line in result.output.splitlines()]
    assert [answer["state"] for answer in answers] == ["pending", "pending", "running"]
    assert all(
        (answer["likely_wait_s"] is None) == (answer["state"] == "running") for answer in answers
    )


def test_watching_outlives_a_restart_of_the_daemon(
    own_site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [own_site.end, own_site.start, lambda: own_site.advance(1800)]
    # Between, the client tries some times before it says that nobody answers.
    result = watch(own_site, monkeypatch, *steps)
    assert result.exit_code == 0, result.output
    first, away, again, started = result.output.splitlines()
    assert "Not of now: no foretime daemon answers" in away
    assert "Not of now" not in first + again
    assert "It started at " in started


def test_watching_ends_when_a_job_vanishes(
    own_site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel() -> None:
        own_site.slurm.cancel(int(own_site.waiting))
        own_site.advance(1)

    result = watch(own_site, monkeypatch, cancel)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].endswith(
        "The job is no longer in the queue: it has run, or was cancelled."
    )


def test_ctrl_c_ends_watching(own_site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    result = watch(own_site, monkeypatch, interrupt)
    assert result.exit_code == 130
    assert len(result.output.splitlines()) == 1


def test_help_has_an_example() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "Example: foretime wait " in result.output
