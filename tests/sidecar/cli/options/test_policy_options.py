"""--policy, and the options of the guard and of ageing: what reaches the scheduler."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.policies.policy_file import known_policies, parse_policy, read_policy
from foretime_sim.policies.policy_table import PolicyTable

Run = Callable[..., tuple[int, str, str]]
Found = Callable[..., dict[str, Any]]

SITE = """
order = "wfp"
backfill = "easy-sjbf"
correction = "doubling"
correction_steps = 2
guard_s = 600
guard_by = "plain-easy-gradual"
guard_share = 0.5
ageing_s = 3600
"""
THE_SAME = (
    "--order", "wfp", "--backfill", "easy-sjbf", "--correction", "doubling",
    "--correction-steps", "2", "--guard", "10:00", "--guard-by", "plain-easy-gradual",
    "--guard-share", "0.5", "--ageing", "1:00:00",
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    file = tmp_path / "site.toml"
    file.write_text(SITE)
    return file


@pytest.fixture
def found(run: Run, log: Path) -> Found:
    """Run a command on the log; give what JSON says."""

    def call(command: str, *options: object) -> dict[str, Any]:
        code, out, err = run(command, log, "--warm-up", "0", *options, "--json")
        assert (code, err) == (0, "")
        document: dict[str, Any] = json.loads(out)
        return document

    return call


def metrics(document: dict[str, Any]) -> Any:
    policies = document.get("policies")
    return document["metrics"] if policies is None else [one["metrics"] for one in policies]


def test_a_file_simulates_as_the_options(found: Found, site: Path) -> None:
    by_file = found("simulate", "--policy", site, "--estimator", "last-two")
    assert metrics(by_file) == metrics(found("simulate", *THE_SAME, "--estimator", "last-two"))
    said = by_file["options"]
    assert (said["policy"], said["guard by"]) == (str(site), "plain-easy-gradual")
    assert (said["guard"], said["guard share"], said["ageing"]) == ("00:10:00", "0.5", "01:00:00")


def test_a_file_replays_as_the_options(found: Found, site: Path) -> None:
    options = ("--threshold", 3, "--scheme", "user")
    by_file = found("replay", "--policy", site, *options)
    assert metrics(by_file) == metrics(found("replay", *THE_SAME, *options))
    assert by_file["options"]["correction"] == "doubling"  # not the mechanism's
    assert by_file["options"]["ageing"] == "01:00:00"


@pytest.mark.parametrize(
    ("option", "key", "value"),
    [
        (("--guard", "off"), "guard", "off"),
        (("--guard", "off"), "guard by", None),
        (("--guard", "20:00"), "guard", "20:00"),
        (("--guard-by", "plain-easy"), "guard by", "plain-easy"),
        (("--guard-share", "0.25"), "guard share", "0.25"),
        (("--ageing", "off"), "ageing", None),
        (("--ageing", "0:01"), "ageing", "00:00:01"),
        (("--correction-steps", "3"), "correction steps", "3"),
        (("--roles", "110"), "roles", "110"),
        (("--event-order", "per-event"), "event order", "per-event"),
    ],
)
def test_an_option_goes_before_the_file(
    found: Found, site: Path, option: tuple[str, ...], key: str, value: str | None
) -> None:
    assert found("simulate", "--policy", site, *option)["options"].get(key) == value


def test_several_policies_are_crossed(found: Found, site: Path) -> None:
    document = found(
        "simulate", "--policy", f"easy,planning,{site}", "--estimator", "last-two,actual"
    )
    assert [policy["name"] for policy in document["policies"]] == [
        f"{name} {estimator}"
        for name in ("easy", "planning", site)
        for estimator in ("last-two", "actual")
    ]
    orders = [policy["order"] for policy in document["policies"]]
    assert orders == ["fcfs"] * 4 + ["wfp"] * 2
    crossed = found("simulate", "--policy", "easy,planning", "--order", "sjf,ljf")["policies"]
    assert [policy["name"] for policy in crossed] == [
        *("easy sjf", "easy ljf", "planning sjf", "planning ljf"),
    ]
    assert [policy["backfill"] for policy in crossed] == ["easy"] * 2 + ["planning"] * 2


def test_guard_and_ageing_are_for_those_that_have_them(found: Found) -> None:
    options = ("--guard", "10:00", "--guard-by", "plain-easy", "--ageing", "1:00:00")
    backfills = ("none", "easy", "easy-sjbf", "planning")
    estimated = ("--estimator", "last-two")
    document = found("simulate", "--backfill", ",".join(backfills), *options, *estimated)
    alone = {
        "none": ("--guard", "10:00"),
        "easy": options[:4],
        "easy-sjbf": options,
        "planning": (),
    }
    for backfill, policy in zip(backfills, document["policies"], strict=True):
        found_alone = found("simulate", "--backfill", backfill, *alone[backfill], *estimated)
        values = [
            {key: metric["value"] for key, metric in one["metrics"].items()}
            for one in (policy, found_alone["policies"][0])
        ]
        assert values[0] == values[1], backfill


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--policy", "planing"), "no policy is called so; did you mean 'planning'?"),
        (("--policy", "easy,easy"), "--policy easy,easy: easy is given twice"),
        (
            ("--policy", "planning", "--guard", "60"),
            "the starvation guard is for the kinds of easy",
        ),
        (
            ("--guard-by", "plain-easy"),
            "--guard-by is plain-easy, but there is no guard: give --guard as well",
        ),
        (("--guard", "off", "--guard-share", "3"), "--guard-share 3.0: there is no guard under"),
        (
            ("--guard", "off", "--guard-by", "plain-easy"),
            "--guard-by plain-easy: there is no guard",
        ),
        (("--guard", "60", "--guard-by", "easy"), "'easy' is not one of"),
        (("--guard", "60", "--guard-share", "0.5"), "only a guard by a plain EASY"),
        (("--ageing", "60"), "only candidates of easy-sjbf and easy-wspt"),
        (("--ageing", "soon"), "--ageing: 'soon' is not a duration"),
    ],
)
def test_wrong_policies_are_refused_in_one_line(
    run: Run, log: Path, options: tuple[str, ...], says: str
) -> None:
    code, out, err = run("simulate", log, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_a_guard_of_a_policy_file_can_be_turned_off(run: Run, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "guarded.toml"
    file.write_text('guard_s = 60\nguard_by = "plain-easy"\nguard_share = 0.5\n')
    code, out, _ = run("simulate", log, "--policy", file, "--guard", "off")
    assert code == 0
    assert "guard off" in out
    code, _, err = run("replay", log, "--warm-up", "0", "--guard", "off", "--guard-share", "3")
    assert code == 2
    assert "--guard-share 3.0: there is no guard under --guard off; give --guard a time" in err


def test_what_a_file_and_an_option_say_is_told_apart(run: Run, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "slack.toml"
    file.write_text('backfill = "slack"\nslack_factor = 2\n')
    for command in ("simulate", "replay"):
        options = (command, log, "--policy", file, "--warm-up", "0")
        code, _, err = run(*options, "--backfill", "easy")
        assert code == 2
        assert err.startswith("foretime: slack_factor is 2.0: only slack backfilling has a slack")
        code, _, err = run(*options, "--slack-factor", "-1")
        assert code == 2
        assert err.startswith("foretime: --slack-factor is -1.0: give 0 or more average waits")


def test_known_policies_are_printed_as_files(run: Run, tmp_path: Path) -> None:
    code, listed, _ = run("config", "policy")
    assert code == 0
    assert [line.split()[0] for line in listed.splitlines()] == list(known_policies())
    for name in known_policies():
        _, out, _ = run("config", "policy", name)
        file = tmp_path / f"{name}.toml"
        file.write_text(out)
        assert read_policy(file) == read_policy(name)
        assert run("config", "policy", file) == (0, f"{file}: good\n", "")
    file.write_text('order = "sfj"\n')
    code, _, err = run("config", "policy", file)
    assert code == 2
    assert f"{file}:1: order = 'sfj'" in err


def test_rare_options_are_behind_help_all(run: Run) -> None:
    for command in ("replay", "simulate"):
        _, common, _ = run(command, "--help")
        _, whole, _ = run(command, "--help-all")
        for option in ("--guard-by", "--slack-weights", "--columns", "--tau"):
            assert option not in common
            assert option in whole
        assert "--policy" in common
        assert common.rstrip().splitlines()[-1].strip() == (
            f"More options: foretime {command} --help-all"
        )
        assert "More options" not in whole


def test_the_documented_policy_file_is_one(repository: Path) -> None:
    page = (repository / "docs" / "backfilling.md").read_text()
    section = page.partition("## Policy files")[2].partition("\n## ")[0]
    example = section.partition("```toml\n")[2].partition("```")[0]
    assert parse_policy(example, Path("site.toml"))["ageing_s"] == 36_000
    rows = re.findall(r"^\| (`.*?) \| .* \|$", section, flags=re.MULTILINE)
    keys = [key for row in rows[: -len(known_policies())] for key in re.findall(r"`(\w+)`", row)]
    assert sorted(keys) == sorted(PolicyTable.model_fields)
    names = {row.strip("`") for row in rows[-len(known_policies()) :]}
    assert names == set(known_policies())


def test_a_replay_lets_no_job_overrun(run: Run, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "slack.toml"
    file.write_text('backfill = "slack"\noverruns = "extend"\n')
    code, out, err = run("replay", log, "--policy", file, "--mechanism", "rewrite-limit")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert (
        f"overruns is extend: a scheduler kills jobs at their limits; take it out of {file}" in err
    )
