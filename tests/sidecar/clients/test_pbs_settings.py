"""Settings of PBS's scheduler and server, in their files and in what qmgr prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.pbs.amounts import parse_amount
from foretime_sidecar.clients.pbs.qmgr_text import parse_qmgr
from foretime_sidecar.clients.pbs.resource_group import parse_resource_group, parse_usage
from foretime_sidecar.clients.pbs.sched_config import parse_sched_config
from foretime_sidecar.clients.pbs.site_limits import parse_limits
from foretime_sim.sites.pbs.scheduler import PbsScheduler

ASSETS = Path(__file__).parents[2] / "assets/pbs/runs"
INSTALLED = (ASSETS / "sched_config").read_text()


def test_the_sched_config_that_pbs_installs_gives_the_defaults() -> None:
    assert parse_sched_config(INSTALLED) == (PbsScheduler(), ())


def test_a_sched_config_that_says_nothing_is_not_the_installed_one() -> None:
    """As config::config() in parse.cpp has it."""
    found, _ = parse_sched_config("")
    assert (found.by_queue, found.preemptive_sched, found.resources) == (False, False, ())


def test_sched_config_is_read_by_its_options() -> None:
    text = (
        'strict_ordering: True ALL\njob_sort_key: "ncpus HIGH" ALL\njob_sort_key: "mem LOW"\n'
        "by_queue: True prime\nby_queue: False non_prime\nfairshare_decay_time: 12:00:00\n"
        '# a comment\nserver_dyn_res: "lic !/bin/true"\nstrange: 5\n'
    )
    found, left_out = parse_sched_config(
        text, {"preempt_queue_prio": "120", "opt_backfill_fuzzy": "med"}
    )
    assert found.strict_ordering
    assert found.job_sort_key == (("ncpus", True), ("mem", False))
    assert (found.fairshare_decay_time_s, found.preempt_queue_prio) == (43_200, 120)
    assert found.opt_backfill_fuzzy_s == 600
    assert left_out == (
        "sched_config: resources that a program counts (server_dyn_res).",
        "sched_config: strange is unknown to Foretime.",
        "sched_config: by_queue differs out of primetime; its value in primetime is taken.",
    )


def test_amounts_are_counts_sizes_and_times() -> None:
    words = {"12": 12, "2kb": 2048, "1mw": 8 * 2**20, "01:30:00": 5400, "3.7": 3, "5b": 5}
    assert {word: parse_amount(word, "x") for word in words} == words
    with pytest.raises(InputError, match="server: max_run: 'many' is no amount"):
        parse_amount("many", "server: max_run")


def test_limits_are_read_in_old_and_new_words() -> None:
    limits = parse_limits(
        {
            "max_running": "9",
            "max_group_run": "3",
            "max_user_res.ncpus": "64",
            "max_queued": "[o:PBS_ALL=100], [g:physics=5]",
        },
        "server",
    )
    assert limits.max_run == {"o:PBS_ALL": 9, "g:PBS_GENERIC": 3}
    assert limits.max_run_res == {"ncpus": {"u:PBS_GENERIC": 64}}
    assert limits.max_queued == {"o:PBS_ALL": 100, "g:physics": 5}
    quoted = parse_limits({"max_run": '[u:"carl smith"=2]'}, "x")
    assert quoted.max_run == {"u:carl smith": 2}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: parse_limits({"max_run": "[x:all=5]"}, "queue q"), "queue q: max_run: '.x:all"),
        (lambda: parse_limits({"max_run": "[o:PBS_ALL=5] nonsense"}, "q"), "nonsense"),
        (lambda: parse_limits({"max_run": "[u:a=5],[u:a=6]"}, "q"), "u:a is there twice"),
        (lambda: parse_qmgr("Qmgr: print server"), "line 1 is none of qmgr's"),
        (lambda: parse_sched_config("strict_ordering: perhaps"), "line 1: strict_ordering"),
        (lambda: parse_sched_config("strict_ordering"), "no option with a value"),
        (lambda: parse_sched_config("job_sort_key: ncpus"), "HIGH or LOW"),
        (lambda: parse_sched_config("fairshare_decay_factor: half"), "no number from 0 to 1"),
        (lambda: parse_sched_config("fairshare_decay_factor: nan"), "no number from 0 to 1"),
        (lambda: parse_amount("9" * 5000 + "kb", "x"), "no amount"),
        (lambda: parse_amount("-1", "x"), "give an amount of 0 to"),
        (lambda: parse_resource_group("alice 60 root"), "line 1"),
        (lambda: parse_resource_group("alice 60 staff 5"), "the parent 'staff'"),
        (lambda: parse_resource_group("a 1 root 5\na 2 root 5"), "line 2: 'a' is there twice"),
    ],
)
def test_what_cant_be_read_is_named_with_its_place(call: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()


def test_usage_is_read_from_pbsfs() -> None:
    text = (ASSETS / "fair_share-1-1.json").read_text()
    lines = "\n".join(json.loads(text)["usage"][-1][1])
    assert set(parse_usage(lines)) == {
        "TREEROOT", "guests", "carol", "staff", "bob", "alice", "unknown",
    }  # fmt: skip
