"""``foretime brought``, and its lines in ``foretime status``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import typer
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.reports.brought_tables import brought_line
from foretime_sidecar.cli.reports.status_report import _brought
from foretime_sidecar.cli.site_commands import brought as command
from foretime_sidecar.plain_beside.account import account_of
from foretime_sidecar.plain_beside.beside import BesideStanding
from foretime_sidecar.store.plain_starts import JudgedJob
from typer.testing import CliRunner, Result

HOUR = 3600
app = typer.Typer()
app.command("brought")(command.brought)


def job(day: int, user: str, with_us: bool) -> JudgedJob:
    """A job that waited one hour with us, and two without, in the model half an hour more."""
    at = day * DAY_S
    one, two, half = at + HOUR, at + 2 * HOUR, HOUR // 2
    if with_us:
        return JudgedJob(user, 8, at, one, two + half, one + half, True)
    return JudgedJob(user, 8, at, two, two + half, one + half, False)


def answer(
    *jobs: JudgedJob,
    why_not: str = "",
    late_jobs: int = 0,
    behind_s: int = 0,
    model_is_off: bool = False,
) -> dict[str, Any]:
    standing = asdict(BesideStanding(why_not, 9, 8, 3, 1_800_000_000, model_is_off))
    account = asdict(account_of(jobs, 0, "user"))
    late = {"late_jobs": late_jobs, "behind_s": behind_s, "is_behind": behind_s > 0}
    return {"user": None, **account, "standing": {**standing, **late}}


def run(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], *arguments: str
) -> tuple[Result, dict[str, Any]]:
    asked: dict[str, Any] = {}

    def ask(_: SiteDaemon, path: str, parameters: dict[str, Any]) -> dict[str, Any]:
        assert path == "/v1/brought"
        asked.update(parameters)
        return found

    monkeypatch.setattr(SiteDaemon, "ask", ask)
    return CliRunner().invoke(app, arguments), asked


def test_it_says_what_was_saved_and_how_sure_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer(*(job(day, user, True) for day in range(4) for user in ("ann", "bob")))
    result, asked = run(monkeypatch, found, "--by", "user")
    assert result.exit_code == 0, result.output
    assert asked["by"] == "user"
    lines = result.output.splitlines()
    assert lines[0] == (
        "Foretime saved 12.0 h of waiting (-60%), between 2.0 h and 22.0 h; 8 jobs on 4 days."
    )
    assert lines[1].split() == [
        *("user", "jobs", "hours", "without", "with", "saved", "at", "least", "at", "most")
    ]
    assert lines[2].split() == ["ann", "4", "10.0", "4.0", "6.0", "1.0", "11.0"]
    assert lines[-1] == (
        "The model's waits were +50.0% off the real ones, and 0% more or less from day to day "
        "(8 jobs on 4 days)."
    )


def test_in_observe_it_says_what_it_would_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, answer(job(0, "ann", False), late_jobs=2, behind_s=30_000))
    lines = result.output.splitlines()
    assert lines[0] == (
        "Without Foretime at work it would have saved 0.5 h of waiting (-25%); 1 job on 1 day."
    )
    assert "2 jobs now wait longer than beside.most_late_s" in result.output
    assert "have 8.3 h of work for the nodes that they wait for" in result.output


def test_it_says_where_the_model_is_too_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(day, "ann", True) for day in range(4)]
    for off in (True, False):
        result, _ = run(monkeypatch, answer(*jobs, model_is_off=off))
        assert ("nobody counts as late by the model" in " ".join(result.output.split())) is off


def test_without_anything_to_tell_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, answer(why_not="a plain PBS is not run beside yet"))
    assert result.output.splitlines() == [
        "Nothing can be told yet: a day is compared when it is over.",
        "The plain scheduler is not run beside now: a plain PBS is not run beside yet.",
        "How far the model is from the scheduler is not known yet.",
    ]


def test_as_json_it_is_the_daemons_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer(job(0, "ann", True))
    result, _ = run(monkeypatch, found, "--json", "--since", "1970-01-02")
    assert json.loads(result.output) == json.loads(json.dumps(found))


def test_status_has_it_in_a_line_each() -> None:
    both = answer(job(0, "ann", True), job(1, "ann", False))
    assert _brought(both) == [
        "saved 1.5 h of waiting (-60%); 1 job on 1 day",
        "would have saved 0.5 h of waiting (-25%); 1 job on 1 day",
    ]
    assert _brought(answer()) == ["nothing can be told yet"]
    assert _brought(answer(why_not="no site")) == ["nothing can be told: no site"]
    assert _brought(None) == [], "the daemon does not answer"


def test_what_was_lost_is_told_as_such() -> None:
    lost = JudgedJob("ann", 8, 0, 2 * HOUR, HOUR, None, True)
    said = brought_line(answer(lost)["brought"])
    assert said == "cost 1.0 h of waiting (+100%); 1 job on 1 day"
