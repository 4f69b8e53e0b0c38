"""Policy files: what is written comes back, what is wrong is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import (
    Backfill,
    Candidates,
    Compression,
    Conservative,
    Easy,
    Slack,
)
from foretime_sim.policies.guard import Guard, GuardBy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.policy_file import known_policies, parse_policy, read_policy
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.policies.policy_table import PolicyTable, policy_of
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackSettings

SLACK = SlackSettings(
    2.0, 60, 1.0, 0.5, 0.0, 1.0, insertion_order=InsertionOrder.DC, overruns=Overruns.EXTEND
)
WRITTEN: dict[str, tuple[dict[str, Any], Policy]] = {
    "nothing": ({}, Policy()),
    "a guarded EASY": (
        {
            "order": "wfp",
            "backfill": "easy-sjbf",
            "correction": "incremental",
            "correction_steps": 2,
            "roles": "110",
            "guard_s": 3600,
            "guard_by": "plain-easy",
            "guard_share": 0.5,
            "ageing_s": 7200,
            "scheduling_interval_s": 10,
        },
        Policy(
            order=Order.WFP,
            backfill=Easy(
                Candidates.SJBF, guard=Guard(3600, GuardBy.PLAIN_EASY, 0.5), ageing_s=7200
            ),
            correction=Correction.INCREMENTAL,
            correction_steps=2,
            roles=Roles(drain=False),
            scheduling_interval_s=10,
        ),
    ),
    "all off": (
        {
            "guard_s": "off",
            "guard_by": "plain-easy",
            "guard_share": 0.5,
            "ageing_s": "off",
            "correction_steps": "off",
            "depth": 3,
        },
        Policy(backfill=Easy(depth=3)),
    ),
    "conservative": (
        {"backfill": "conservative", "compression": "one-by-one"},
        Policy(backfill=Conservative(Compression.ONE_BY_ONE)),
    ),
    "dynP": (
        {"backfill": "planning", "order": "dynp-simple-artww/slackness=0.05"},
        Policy(backfill=Backfill.PLANNING).in_order(
            PolicySwitching.parse("dynp-simple-artww/slackness=0.05")
        ),
    ),
    "slack": (
        {
            "backfill": "slack",
            "slack_factor": 2,
            "average_wait_s": 60,
            "insertion_order": "dc",
            "slack_weights": "1,.5,0,1",
            "overruns": "extend",
        },
        Policy(backfill=Slack(SLACK)),
    ),
}


def text_of(values: dict[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written_is_read(case: str, tmp_path: Path) -> None:
    values, policy = WRITTEN[case]
    file = tmp_path / "mine.toml"
    file.write_text(text_of(values))
    read = read_policy(file)
    assert read == values
    assert policy_of(read) == policy
    file.write_text(text_of(read))
    assert read_policy("mine.toml", tmp_path) == read


def test_every_default_is_the_policys_own() -> None:
    defaults = PolicyTable.model_validate({}, context={"folder": None}).model_dump()
    slack = ("slack_factor", "average_wait_s", "insertion_order", "slack_weights", "overruns")
    assert policy_of({key: v for key, v in defaults.items() if key not in slack}) == Policy()
    of_slack = {"backfill": "slack"} | {key: defaults[key] for key in slack}
    assert policy_of(of_slack) == Policy(backfill=Backfill.SLACK)


def test_every_known_policy_is_read_by_its_name() -> None:
    assert set(known_policies()) == {"cobalt", "easy", "pbs-strict", "planning"}
    for name, text in known_policies().items():
        assert text.startswith("# ")
        assert read_policy(name) == parse_policy(text, Path(name))
    assert policy_of(read_policy("easy")) == Policy()
    assert policy_of(read_policy("planning")).backfill is Backfill.PLANNING
    assert policy_of(read_policy("cobalt")).order is Order.WFP


def test_who_asks_for_slurm_is_told_what_to_give(tmp_path: Path) -> None:
    told = "is now called planning.*give planning, or for Slurm's rules --site.*--scheduler slurm"
    with pytest.raises(InputError, match=told):
        read_policy("slurm")
    (tmp_path / "slurm").write_text('order = "sjf"\n')
    assert read_policy("slurm", tmp_path) == {"order": "sjf"}


def test_a_file_goes_before_a_known_name(tmp_path: Path) -> None:
    (tmp_path / "easy").write_text('order = "sjf"\n')
    assert read_policy("easy", tmp_path) == {"order": "sjf"}


def test_policies_in_python_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "beside_a_file.py").write_text("def mine(queue, now):\n    return -queue.wait\n")
    (tmp_path / "mine.toml").write_text('order = "beside_a_file:mine"\n')
    policy = policy_of(read_policy("mine.toml", tmp_path), tmp_path)
    assert policy.order_name == "beside_a_file:mine"


WRONG = {
    "not TOML": ("order = sjf", ["mine.toml:1: not TOML", "(column 9)"]),
    "unknown key": (
        'order = "sjf"\nbackfil = "easy"',
        ["mine.toml:2: backfil: there is no such key", "did you mean 'backfill'?", "guard_s"],
    ),
    "a campaign's table": ('[grid]\norder = "sjf"', ["mine.toml:1: grid: there is no such key"]),
    "unknown value": ('\norder = "sfj"', ["mine.toml:2: order = 'sfj'", "did you mean 'sjf'?"]),
    "a list": ('order = ["sjf"]', ["mine.toml:1: order = ['sjf']", "give a text"]),
    "a duration": ('guard_s = "6:00:00"', ["mine.toml:1: guard_s = '6:00:00'", 'or "off"']),
    "weights": ('slack_weights = "1,1"', ["mine.toml:1: slack_weights = '1,1'", "four numbers"]),
    "no priorities": ('order = "priority"', ["mine.toml:1: order = 'priority'", "no priorities"]),
    "what does not go together": (
        'backfill = "planning"\nguard_s = 60',
        ["mine.toml: guard_s is 60: the starvation guard is for the kinds of easy"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_place(case: str, tmp_path: Path) -> None:
    text, told = WRONG[case]
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_policy(file)
    assert str(error.value).startswith(str(file))
    for words in told:
        assert words in str(error.value)


def test_a_policy_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no policy is called so; did you mean 'planning'\?"):
        read_policy("planing", tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_policy("bytes.toml", tmp_path)
