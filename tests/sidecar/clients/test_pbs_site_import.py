"""A PBS site read from what a server and its files say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sidecar.clients.pbs.amounts import parse_amount
from foretime_sidecar.clients.pbs.qmgr_text import parse_qmgr
from foretime_sidecar.clients.pbs.resource_group import parse_resource_group, parse_usage
from foretime_sidecar.clients.pbs.sched_config import parse_sched_config
from foretime_sidecar.clients.pbs.site import parse_hosts, parse_site
from foretime_sidecar.clients.pbs.site_limits import parse_entity_limits, parse_limits
from foretime_sim.sites.pbs_scheduler import PbsScheduler
from foretime_sim.sites.pbs_site import ShareGroup

ASSETS = Path(__file__).parents[2] / "assets/pbs/runs"
INSTALLED = (ASSETS / "sched_config").read_text()
SERVER = """\
#
# Create queues and set their attributes.
#
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
create queue high
set queue high queue_type = Execution
set queue high Priority = 100
set queue high max_run = "[u:PBS_GENERIC=2]"
set queue high max_run += "[o:PBS_ALL=5]"
set queue high max_run_res.mem = "[u:alice=16gb]"
set queue high resources_max.walltime = 01:00:00
set queue high enabled = True
set queue high started = True
create queue route
set queue route queue_type = Route
set queue route route_destinations = workq
set server default_queue = workq
set server max_user_run = 4
set server backfill_depth = 3
set server job_sort_formula = "10 * ncpus"
set server eligible_time_enable = True
set server scheduler_iteration = 300
set server resources_default.ncpus = 1
"""
NODES = {
    "timestamp": 1,
    "pbs_version": "23.06.06",
    "pbs_server": "pbs01",
    "nodes": {
        "n1": {
            "state": "free",
            "resources_available": {"ncpus": 8, "mem": "2kb", "host": "n1", "gpu": "True"},
            "sharing": "default_shared",
        },
        "n2": {"state": "down,offline", "resources_available": {"ncpus": 8}},
        "n3": {"state": "job-busy", "resources_available": {"ncpus": 8}, "Priority": 5},
    },
}


def test_a_site_is_read_from_the_words_of_a_server() -> None:
    site = parse_site(
        SERVER,
        json.dumps(NODES),
        INSTALLED,
        resource_group="staff 60 root 40\nalice 61 staff 5\n",
        pbsfs="alice     : Grp: 60     cgrp: 61   Shares: 5      Usage: 120    Perc: 10.000%\n",
        dedicated_time="01/02/2030 10:00 01/02/2030 12:00\n",
    )
    high = site.queue("high")
    assert (high.priority, high.resources_max) == (100, {"walltime": 3600})
    assert high.limits.max_run == {"u:PBS_GENERIC": 2, "o:PBS_ALL": 5}
    assert high.limits.max_run_res == {"mem": {"u:alice": 16 * 2**30}}
    server = site.server
    assert server.limits.max_run == {"u:PBS_GENERIC": 4}
    assert (server.backfill_depth, server.job_sort_formula) == (3, "10 * ncpus")
    assert (server.eligible_time_enable, server.scheduler_iteration_s) == (True, 300)
    assert [queue.name for queue in site.queues] == ["workq", "high"]
    assert [host.name for host in site.hosts] == ["n1", "n3"]
    assert site.hosts[0].resources == {"ncpus": 8, "mem": 2048}
    assert site.hosts[0].labels == {"host": "n1", "gpu": "True"}
    assert site.hosts[1].priority == 5
    assert site.share_groups[1] == ShareGroup("alice", "staff", 5, 120.0)
    [(begins, ends)] = site.dedicated_time
    assert ends - begins == 7200
    assert site.not_modelled == (
        "Host n2 is left out: its state is down,offline.",
        "Queue route is a routing queue; jobs must name the one they end in.",
    )


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


def test_soft_limits_primetime_and_placement_sets_are_named() -> None:
    server = SERVER + (
        'set queue high max_run_soft = "[u:PBS_GENERIC=1]"\nset queue high node_group_key = host\n'
    )
    site = parse_site(
        server, json.dumps(NODES), INSTALLED, holidays="YEAR 2030\nweekday 0600 1730\n"
    )
    told = " ".join(site.not_modelled)
    assert "queue high: the soft limit max_run_soft" in told
    assert "Primetime (holidays)" in told
    assert "Queue high: placement sets" in told
    always = "YEAR 1970\n  weekday all none\n  saturday all none\n"
    site = parse_site(SERVER, json.dumps(NODES), INSTALLED, holidays=always)
    assert "Primetime" not in " ".join(site.not_modelled)


def test_the_formula_is_read_of_server_or_scheduler() -> None:
    plain = SERVER.replace('set server job_sort_formula = "10 * ncpus"\n', "")
    told = 'create sched default\nset sched job_sort_formula = "mem"\n'
    told += "set sched job_sort_formula_threshold = 2.5\nset sched preempt_queue_prio = 90\n"
    site = parse_site(plain, json.dumps(NODES), INSTALLED, print_sched=told)
    assert site.server.job_sort_formula == "mem"
    assert site.server.job_sort_formula_threshold == 2.5
    assert site.scheduler.preempt_queue_prio == 90
    grouped = plain + "set server node_group_enable = True\n"
    site = parse_site(grouped, json.dumps(NODES), INSTALLED)
    assert "Server: placement sets (node_group_enable)." in site.not_modelled


def test_vnodes_of_one_host_are_named() -> None:
    vnodes = {
        name: {"state": "free", "resources_available": {"ncpus": 2, "host": "h"}}
        for name in ("h[0]", "h[1]")
    }
    hosts, _, left_out = parse_hosts(json.dumps({"pbs_version": "1", "nodes": vnodes}))
    assert len(hosts) == 2
    assert "chunks are not split" in left_out[0]


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
    assert parse_entity_limits('[u:"carl smith"=2]', "x") == {"u:carl smith": 2}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: parse_entity_limits("[x:all=5]", "queue q: max_run"), "queue q: max_run"),
        (lambda: parse_entity_limits("[u:PBS_GENERIC=5] nonsense", "w"), "nonsense"),
        (lambda: parse_qmgr("Qmgr: print server"), "line 1 is none of qmgr's"),
        (lambda: parse_sched_config("strict_ordering: perhaps"), "line 1: strict_ordering"),
        (lambda: parse_sched_config("strict_ordering"), "no option with a value"),
        (lambda: parse_sched_config("job_sort_key: ncpus"), "HIGH or LOW"),
        (lambda: parse_sched_config("fairshare_decay_factor: half"), "no number"),
        (lambda: parse_resource_group("alice 60 root"), "line 1"),
        (lambda: parse_resource_group("alice 60 staff 5"), "the parent 'staff'"),
        (lambda: parse_resource_group("a 1 root 5\na 2 root 5"), "line 2: 'a' is there twice"),
        (lambda: parse_site("", json.dumps(NODES), INSTALLED), "set server"),
        (lambda: parse_site("set server scheduling = True\n", json.dumps(NODES), INSTALLED), "one"),
    ],
)
def test_what_cant_be_read_is_named_with_its_place(call: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()


def test_pbsnodes_without_json_is_refused() -> None:
    with pytest.raises(SchedulerError, match="pbsnodes"):
        parse_hosts("n1\n  state = free\n")


def test_usage_is_read_from_pbsfs() -> None:
    text = (ASSETS / "fair_share-1-1.json").read_text()
    lines = "\n".join(json.loads(text)["usage"][-1][1])
    assert set(parse_usage(lines)) == {
        "TREEROOT", "guests", "carol", "staff", "bob", "alice", "unknown",
    }  # fmt: skip
