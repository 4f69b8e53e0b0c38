"""``foretime estimators``: what is printed of the daemon's answers."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.answers.daemon_client import DaemonError, SiteDaemon
from foretime_sidecar.cli.site_commands import estimators as command
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from typer.testing import CliRunner, Result

from tests.support.slurm.mock_site import MockSite

app = typer.Typer()
app.command("estimators")(command.estimators)

CLASSES = [
    {
        "kind": "requested_time",
        "label": "up to 01:00:00",
        "jobs": 30,
        "accuracy": 0.5,
        "under_predicted": 0.1,
    },
    {
        "kind": "user",
        "label": "more than 99 finished jobs",
        "jobs": 70,
        "accuracy": 0.75,
        "under_predicted": 0.1,
    },
]


def row(name: str, accuracy: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in_use": False,
        "jobs": 0 if accuracy is None else 1234,
        "accuracy": accuracy,
        "under_predicted": accuracy and 0.25,
        "covered": accuracy and 0.7,
        "log_error": accuracy and 0.693,
        "error_s": accuracy and 3600.4,
        "pinball_s": accuracy and 90.0,
        "accuracy_interval": accuracy and {"low": accuracy - 0.01, "high": accuracy + 0.01},
        "behind": 0.0,
        "behind_interval": None,
        "as_good": False,
        "eligible": accuracy is not None,
        "set_aside": "",
        "cost_s": 0.0005,
        "classes": CLASSES if accuracy else [],
        **changes,
    }


def board(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "made_at": 1_800_000_000,
        "complete": True,
        "half_life_days": 30,
        "days": 40,
        "users": 9,
        "followed": 3,
        "late": 0,
        "too_many": 0,
        "most_under_predicted": 0.5,
        "best": rows[0]["name"],
        "in_use": "combined",
        "more_accurate": None,
        "scheme": "combined",
        "rows": list(rows),
        **changes,
    }


def printed(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], *options: str) -> Result:
    asked = []

    def ask(
        daemon: SiteDaemon, path: str, question: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        asked.append((path, question))
        return answer

    monkeypatch.setattr(SiteDaemon, "ask", ask)
    result = CliRunner().invoke(app, list(options))
    if result.exception is None:
        ((path, question),) = asked
        switches = "--switches" in options
        assert path == ("/v1/estimators/switches" if switches else "/v1/estimators")
        assert set(question or ()) <= {"since"}
    return result


BEST = row("last-two", 0.62, as_good=True)
ALIKE = row(
    "similar", 0.61, as_good=True, behind=0.01, behind_interval={"low": -0.01, "high": 0.03}
)
USED = row("combined", 0.41, in_use=True, behind=0.21, behind_interval={"low": 0.19, "high": 0.23})
BROKEN = row("recent-maximum", None, set_aside="it takes 0.2 s a job", eligible=False)


def test_the_table_is_shown_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(
        monkeypatch, board(BEST, ALIKE, USED, BROKEN, more_accurate="last-two", too_many=7)
    ).output
    lines = text.splitlines()
    assert lines[0].startswith("1,234 jobs that ended on 40 days")
    best, alike, used, broken = (line.split() for line in lines[2:6])
    assert best[:5] == ["=", "last-two", "62.0%", "[61.0", "to"]
    assert alike[:2] == ["=", "similar"]
    assert used[:2] == ["*", "combined"]
    assert "21.0% [19.0 to 23.0]" in lines[4]
    assert "01:00:00  00:01:30  1,234  0.50 ms" in lines[4]
    assert broken[:3] == ["-", "recent-maximum", "-"]
    assert "recent-maximum: it takes 0.2 s a job" in lines
    assert "7 jobs left out, as there were too many at a time (estimators.most_jobs)." in lines
    assert 'accuracy.scheme = "learned", learned.estimator = "last-two"' in lines[-1]


def test_every_column_is_explained_below_the_table_and_in_the_documentation(
    monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    lines = printed(monkeypatch, board(BEST, USED)).output.splitlines()
    columns = re.split(r"  +", lines[1].strip())[1:]
    assert columns[:3] == ["accuracy", "behind the best", "too short"]
    assert [line.split("  ")[0] for line in lines[4 : 4 + len(columns)]] == columns
    documented = (repository / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    for name in columns:
        assert f"\n| {name} | " in documented


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (board(BEST, USED, complete=False), "Not all jobs that are stored"),
        (board(USED | {"as_good": True}, BEST), "The estimator in use is combined, the best one"),
        (board(BEST, USED | {"as_good": True}), "That last-two is better may be chance"),
        (board(BEST, USED), "It takes more days to tell whether last-two"),
        (
            board(row("user", 0.6), USED, more_accurate="user"),
            'accuracy.scheme = "user", and restart',
        ),
        (board(BROKEN, best=None), "No estimator can be recommended"),
        (
            board(USED, BEST | {"eligible": False}),
            "Too short for more than 50% of jobs (breaker.most_outliving_percent): last-two",
        ),
        (board(BEST, USED, late=1_000), "1,000 jobs seen too late"),
        (board(BEST, USED, days=0), "No job has been scored yet; ask again in a few minutes."),
    ],
)
def test_what_follows_is_said(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], said: str
) -> None:
    assert said in printed(monkeypatch, answer).output


def test_classes_are_shown_by_requested_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, board(BEST, BROKEN), "--classes").output.splitlines()
    assert lines[0].split() == ["requested", "time", "user", "had"]
    assert lines[-2].split() == ["last-two", "50.0%", "75.0%"]
    assert lines[-1].split() == ["jobs", "30", "70"]


def test_by_class_before_anything_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    output = printed(monkeypatch, board(BROKEN, best=None), "--classes").output
    assert output == "No job has been scored yet; ask again in a few minutes.\n"


def test_switches_are_shown_with_their_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        {
            "happened_at": 1_800_000_000,
            "event": "in-use",
            "estimator": "combined",
            "instead_of": None,
            "evidence": {"combined": USED},
        },
        {
            "happened_at": 1_800_600_000,
            "event": "more-accurate",
            "estimator": "last-two",
            "instead_of": "combined",
            "evidence": {"combined": USED, "last-two": BEST},
        },
    ]
    answer = {"switches": found}
    lines = printed(monkeypatch, answer, "--switches").output.splitlines()
    assert lines[1].split()[2:5] == ["in-use", "combined", "-"]
    assert "62.0% [61.0 to 63.0]  41.0% [40.0 to 42.0]  1,234" in lines[2]
    shown = printed(monkeypatch, answer, "--switches", "--json", "--since", "2026-01-01").output
    assert json.loads(shown) == found
    assert "No switches yet" in printed(monkeypatch, {"switches": []}, "--switches").output


def test_json_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = board(BEST, USED)
    assert json.loads(printed(monkeypatch, answer, "--json").output) == answer


@pytest.mark.parametrize(
    "options", [("--classes", "--switches"), ("--since", "1-00"), ("--weeks", "3")]
)
def test_options_that_do_not_go_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    assert isinstance(printed(monkeypatch, board(BEST), *options).exception, InputError)


def test_a_daemon_is_asked_through_its_socket(tmp_path: Path) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, 1_700_000_000)
    for number in range(6):
        slurm.submit(Submission(f"user{number}", "physics", None, 4, 3600, 900))
    slurm.advance(slurm.now + 1000)
    with MockSite(tmp_path, slurm, estimators={"names": ["requested", "last-two"]}) as site:
        scoreboard = site.daemon.sidecar.scoreboard
        assert scoreboard is not None
        until = time.monotonic() + 60
        while scoreboard.board is None or not scoreboard.board.complete:
            assert time.monotonic() < until
            time.sleep(0.01)
        options = ["--socket", str(site.socket_path)]
        text = CliRunner().invoke(app, options).output
        assert text.startswith("6 jobs that ended on 1 day,")
        assert text.splitlines()[-1] == "The estimator in use is combined, the best one."
        shown = CliRunner().invoke(app, [*options, "--switches", "--json"]).output
        assert [one["estimator"] for one in json.loads(shown)] == ["combined"]
    result = CliRunner().invoke(app, options)
    assert isinstance(result.exception, DaemonError)
    assert result.exception.exit_code == 3
