"""On PBS Foretime speaks of walltimes, queues and qsub, and finds jobs by their short ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import AskedChunks
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.daemon.poll_rate import PollRate, why_busy
from foretime_sidecar.forecast_answer.forecast import ForecastAnswer, Reason
from foretime_sidecar.forecasts.forecast_board import JobForecast
from foretime_sidecar.forecasts.job_advice import shapes
from foretime_sidecar.forecasts.job_question import JobParameters, JobQuestion, question_of
from foretime_sidecar.forecasts.wait_reasons import wait_reason
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.web.api.private_answers import coarse_forecast
from foretime_sidecar.web.auth.callers import caller_of
from foretime_sidecar.web.server import Daemon
from foretime_sidecar.wording.submit_words import submit_words
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.node_request import HostChunk
from typer.testing import CliRunner

from tests.sidecar.web.test_page import ROOT
from tests.support.slurm.mock_site import running

NOW = 1_800_000_000
OF_SLURM = re.compile(r"sbatch|slurm|squeue|scontrol|partition|QOS|--time|--ntasks", re.IGNORECASE)


class Site:
    """A daemon for a full PBS with a job and an array that wait."""

    def __init__(self, folder: Path) -> None:
        pbs = MockPbs(PbsSetup(16, {}, folder / "accounting"), Policy(), None, NOW)
        pbs.submit(PbsSubmission("ann", None, None, 8, 7200, 7200))
        self.wide = pbs.submit(PbsSubmission("bob", None, None, 16, 600, 600))
        self.tasks = [
            pbs.submit(PbsSubmission("bob", None, None, 16, 600, 600, array_id=9)) for _ in range(3)
        ]
        pbs.advance(NOW + 60)
        chosen = Settings.model_validate(
            {
                "scheduler": {"kind": "pbs", "history_days": 1, "poll_interval_s": 3600},
                "hook": {"mechanism": "pbs-soft-walltime"},
                "store": {"path": str(folder / "store")},
                "table": {"path": str(folder / "table")},
                "api": {"listen": f"unix:{folder}/s"},
            }
        )
        client = PbsCommands(pbs.run, folder / "accounting")
        self.daemon = Daemon(chosen, client, clock=lambda: pbs.now)
        self.daemon.poll_once()
        self.daemon.forecasts.refresh()
        self.socket = f"{folder}/s"

    def ask(self, path: str, **question: str) -> Any:
        return SiteDaemon(self.daemon.address).ask(path, question)

    def run(self, *words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--socket", self.socket])
        if isinstance(result.exception, Exception):
            raise result.exception
        return result.output


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("pbs"))
    with running(site.daemon):
        yield site


def test_wait_advises_what_qsub_takes(site: Site) -> None:
    advised = site.ask("/v1/advice", ntasks="16", time="10", scales="1")
    cheapest = advised["alternatives"][advised["cheapest"]]
    assert cheapest["command"] == "qsub -l select=8:ncpus=1 -l walltime=00:20:00"
    for job in (["-n", "16", "-t", "10"], [site.wide]):
        said = site.run("wait", *job, "--scales")
        assert f"\n         {cheapest['command']}\n" in said
        assert "on 8 processors instead of 16" in said
        assert not OF_SLURM.search(said), said


@pytest.mark.parametrize(
    ("asked", "commands"),
    [
        (
            {"ntasks": 4, "cpus_per_task": 8, "time": "60"},
            [
                "-l select=2:ncpus=8 -l walltime=02:00:00",
                "-l select=1:ncpus=8 -l walltime=04:00:00",
                "-l select=8:ncpus=8 -l walltime=00:30:00",
            ],
        ),
        (
            {"nodes": "4", "ntasks": 12, "time": "1-00:00:00"},
            [
                "-l select=2:ncpus=3 -l place=scatter -l walltime=48:00:00",
                "-l select=1:ncpus=3 -l place=scatter -l walltime=96:00:00",
                "-l select=8:ncpus=3 -l place=scatter -l walltime=12:00:00",
            ],
        ),
        (
            {"nodes": "2", "ntasks": 10, "cpus_per_task": 2, "time": "60"},
            [
                "-l select=1:ncpus=10 -l place=scatter -l walltime=02:00:00",
                "-l select=4:ncpus=10 -l place=scatter -l walltime=00:30:00",
            ],
        ),
    ],
)
def test_sizes_are_chunks(asked: dict[str, object], commands: list[str]) -> None:
    question = question_of(JobParameters.model_validate(asked | {"scales": True}), "ann", NOW)
    found = shapes(
        question, [], elsewhere=["night"], machine_processors=96, longest_s=None, soft_limit=True,
        takes_time_min=False, words=submit_words("pbs"),
    )  # fmt: skip
    queue, *sizes = found
    assert (queue.text, queue.options) == ("in queue night, where you have run jobs", "-q night")
    assert [each.options for each in sizes] == commands


def asked_chunks(**parameters: object) -> JobQuestion:
    asked = {"time": "60", "scales": True, **parameters}
    return question_of(JobParameters.model_validate(asked), "ann", NOW)


@pytest.mark.parametrize(
    ("asked", "chunks", "command"),
    [
        ({"select": "4:ncpus=8"}, AskedChunks((HostChunk(4, 8),)), "-l select=2:ncpus=8"),
        (
            {"select": "4:ncpus=2", "place": "scatter:excl", "ntasks": 8},
            AskedChunks((HostChunk(4, 2),), "scatter", exclusive=True),
            "-l select=2:ncpus=2 -l place=scatter",
        ),
        ({"ntasks": 4, "cpus_per_task": 8}, AskedChunks((HostChunk(4, 8),)), "-l select=2:ncpus=8"),
        (
            {"nodes": "2", "ntasks": 3, "exclusive": True},
            AskedChunks((HostChunk(1, 2), HostChunk(1, 1)), "scatter", exclusive=True),
            None,
        ),
        (
            {"select": "1:ncpus=4:mem=2gb+4:ncpus=1", "place": "pack"},
            AskedChunks((HostChunk(1, 4, 2**31), HostChunk(4, 1)), "pack"),
            None,
        ),
        (
            {"select": "2:ncpus=4:ngpus=1", "exclusive": True},
            AskedChunks((HostChunk(2, 4, 0, 1),), exclusive=True),
            None,
        ),
    ],
)
def test_a_question_is_of_chunks(
    asked: dict[str, object], chunks: AskedChunks, command: str | None
) -> None:
    question = asked_chunks(**asked)
    assert question.chunks == chunks
    assert question.request.processors == sum(each.number * each.cpus for each in chunks.chunks)
    found = shapes(
        question, [], machine_processors=96, longest_s=None, soft_limit=True, takes_time_min=False,
        words=submit_words("pbs"),
    )  # fmt: skip
    # The same work on half as many; chunks of several kinds, or with memory, are not resized.
    sizes = [each.options.rpartition(" -l walltime")[0] for each in found]
    assert (sizes[0] if sizes else None) == command or "nodes" in asked


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"select": "2:ncpus=8", "ntasks": 4}, "asks for 16 CPUs, and ntasks or processors for 4"),
        ({"select": "2:ncpus=8", "mem": "4G"}, "mem beside select: chunks say it themselves"),
        ({"select": "2:ncpus=8", "gpus": "1"}, "gpus beside select"),
        ({"ntasks": 4, "place": "scatter"}, "place = 'scatter' is of chunks; give select, too"),
        ({"select": "2:ncpus=x"}, "select = '2:ncpus=x'"),
        ({"select": "2:ncpus=2", "place": "here"}, "'here' is no place"),
    ],
)
def test_chunks_that_say_another_thing_are_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked_chunks(**asked)


def test_wait_takes_what_qsub_takes(site: Site, tmp_path: Path) -> None:
    chunks = "select=1:ncpus=4:mem=2gb+4:ncpus=1:host=n1,place=pack,walltime=600"
    script = tmp_path / "job.pbs"
    script.write_text(f"#PBS -l {chunks}\n")
    for words in (["-l", chunks], [str(script)]):
        said = " ".join(site.run("wait", *words).split())
        assert "8 processors, walltime 00:10:00" in said
        assert (
            "Host of chunks is not looked at" in said or "host of chunks is not looked at" in said
        )
    with pytest.raises(InputError, match="'scater' is no place; write free, pack"):
        site.run("wait", "-l", "select=2:ncpus=2,place=scater,walltime=600")


def test_the_page_takes_chunks(site: Site) -> None:
    from starlette.testclient import TestClient

    app = site.daemon.app
    app.dependency_overrides[caller_of] = lambda: ROOT
    try:
        client = TestClient(app, base_url="http://localhost")
        good = client.get("/?select=2:ncpus=4&place=scatter&time=10").text
        bad = client.get("/?select=2:ncpus=4&place=scater&time=10").text
    finally:
        app.dependency_overrides.clear()
    assert 'value="2:ncpus=4"' in good
    assert 'id="wrong"' not in good
    assert "is no place." in bad
    assert "Write free, pack, scatter" in bad
    assert 'aria-invalid="true"' in bad


def test_chunks_of_two_sizes_make_up_what_nodes_do_not_share_evenly() -> None:
    words = submit_words("pbs")
    assert words.with_size(4, 6, 2) == "-l select=2:ncpus=4+2:ncpus=2 -l place=scatter"


def test_the_page_speaks_of_queues(site: Site) -> None:
    from starlette.testclient import TestClient

    app = site.daemon.app
    app.dependency_overrides[caller_of] = lambda: ROOT
    try:
        client = TestClient(app, base_url="http://localhost")
        asked = "ntasks=16&time=10&scales=1"
        page = client.get(f"/?{asked}").text
    finally:
        app.dependency_overrides.clear()
    assert "qsub -l select=8:ncpus=1" in page
    shown = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert not OF_SLURM.search(shown), OF_SLURM.findall(shown)


@pytest.mark.parametrize(("ahead", "code"), [(0, "Resources"), (3, "Priority")])
def test_a_comment_of_pbs_is_no_code(ahead: int, code: str) -> None:
    request = JobRequest("185.pbs01", "ann", None, 4, 600, NOW, "workq")
    comment = "Not Running: Insufficient amount of resource: ncpus (R: 4 A: 0 T: 8)"
    job = QueuedJob(request, QueueState.PENDING, reason=comment)
    reason = wait_reason(JobForecast(job, request, None, ahead))
    assert reason["code"] == code
    assert reason["text"].startswith("waits for 4 processors; ")


@pytest.mark.parametrize("code", ["Resources", "Priority", "None"])
def test_nobody_is_told_how_many_jobs_go_first_who_may_not_see_them(site: Site, code: str) -> None:
    answer = ForecastAnswer.model_validate(site.ask(f"/v1/jobs/{site.wide}/forecast"))
    reason = Reason(code=code, text="waits for 4 processors; 3 jobs ahead in the queue")
    told = coarse_forecast(answer.model_copy(update={"reason": reason}), "jobs are hidden")
    assert told.reason.text == "waits for 4 processors"


def test_who_is_not_known_is_told_of_no_token_of_slurms(site: Site) -> None:
    with pytest.raises(InputError) as told:
        site.ask("/v1/jobs/4711/forecast")
    assert not OF_SLURM.search(str(told.value))


def test_jobs_and_tasks_are_found_by_their_short_ids(site: Site) -> None:
    number = site.wide.partition(".")[0]
    array, _, server = site.tasks[0].partition(".")
    array = array.partition("[")[0]
    said = site.run("explain", number)
    assert said.startswith(f"Job {site.wide} of bob asks for 00:10:00")
    assert site.run("explain", site.wide) == said
    whole = site.run("explain", f"{array}[]")
    assert whole.startswith(f"Job {array}[].{server} of bob")
    for task in (f"{array}[1]", f"{array}[1].{server}"):
        assert site.run("explain", task) == whole
        assert site.run("wait", task) == site.run("wait", f"{array}[]")
    for unknown in ("99", f"{number}.other", f"{number}[]"):
        with pytest.raises(InputError, match="nothing is known of job"):
            site.run("explain", unknown)
    for unknown in (f"{array}[77]", f"{array}-77"):
        with pytest.raises(InputError, match="no job"):
            site.ask(f"/v1/jobs/{unknown}/forecast")


def test_a_long_pause_is_told_with_its_reason() -> None:
    """PBS does not tell how busy it is: the pause is long as it was slow to answer."""
    rate = PollRate(Settings().scheduler)
    pause = rate.adapt(why_busy(None, Settings().scheduler), 10.0)
    assert pause.seconds == 120
    assert pause.reason.startswith("the scheduler took 10.0 s to answer the last requests")
    assert rate.adapt("", 0.0).seconds == 60
    assert Settings().scheduler.poll_interval_s == 60
