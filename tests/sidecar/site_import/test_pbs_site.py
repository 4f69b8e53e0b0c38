"""A site under PBS imported from saved output: what is read, what is left out, what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.site_import.pbs_site import import_pbs_site
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sim.sites.pbs.site import PbsReservation, PbsSite, ShareGroup
from foretime_sim.sites.site_file import format_site, parse_site
from foretime_sim.workloads.site_clock import zone_of

QUEUES = """\
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
set queue high max_run = [u:PBS_GENERIC=2]
set queue high max_run = [o:PBS_ALL=5]
set queue high max_run_res.mem = "[u:alice=16gb]"
set queue high resources_max.walltime = 01:00:00
set queue high enabled = True
set queue high started = True
create queue route
set queue route queue_type = Route
set queue route route_destinations = workq
"""
SERVER = """\
set server default_queue = workq
set server max_user_run = 4
set server backfill_depth = 3
set server job_sort_formula = "10 * ncpus"
set server eligible_time_enable = True
set server scheduler_iteration = 300
set server resources_default.ncpus = 1
"""
SCHED = """\
create sched default
set sched sched_priv = /var/spool/pbs/sched_priv
set sched preempt_queue_prio = 90
set sched preempt_prio = "express_queue, normal_jobs"
"""
RESERVATION = """\
Resv ID: R0.pbs01
reserve_state = RESV_CONFIRMED
reserve_start = Mon Nov 23 23:59:00 2026
reserve_end = Tue Nov 24 00:59:00 2026
schedselect = 2:ncpus=2:mem=1gb
resv_nodes = (n1:ncpus=2:mem=1048576kb)+(n1:ncpus=1+n3:ncpus=2)

"""
HOOKS = """\
Hook pbs_cgroups
    enabled = false
    event = execjob_begin
Hook foretime
    enabled = true
    event = queuejob
Hook limits
    enabled = true
    event = queuejob,modifyjob
"""
NODES: dict[str, dict[str, Any]] = {
    "n1": {
        "state": "free",
        "resources_available": {"ncpus": 8, "mem": "2gb", "host": "n1", "gpu": "True"},
        "sharing": "default_shared",
    },
    "n2": {"state": "down,offline", "resources_available": {"ncpus": 8}},
    "n3": {"state": "job-busy", "resources_available": {"ncpus": 8}, "Priority": 5},
}
NOW = 1_795_398_953
SCHED_CONFIG = (Path(__file__).parents[2] / "assets/pbs/runs/sched_config").read_text()


def pbsnodes(**nodes: dict[str, Any]) -> str:
    reply = {"timestamp": NOW, "pbs_version": "23.06.06", "nodes": nodes or NODES}
    return json.dumps(reply) + "\n"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    folder.mkdir()
    for name, text in {
        "print-server": QUEUES + SERVER,
        "print-sched": SCHED,
        "nodes.json": pbsnodes(),
        "rstat": "",
        "hooks": HOOKS,
        "pbsfs": "Fairshare usage units are in: cput\n"
        "alice     : Grp: 60     cgrp: 61   Shares: 5      Usage: 120    Perc: 10.000%\n",
        "sched_config": SCHED_CONFIG,
        "resource_group": "# shares\nstaff 60 root 40\nalice 61 staff 5\n",
        "dedicated_time": "04/15/1998 12:00 04/15/1998 15:30\n01/02/2030 10:00 01/02/2030 12:00\n",
        "holidays": "# YEAR 1970\n# weekday 0600 1730\n",
    }.items():
        (folder / name).write_text(text)
    return folder


def site_of(folder: Path, zone: str = "UTC") -> PbsSite:
    return import_pbs_site(read_folder(folder), zone_of(zone), zone_of(zone))


def test_a_site_is_read_from_the_words_of_a_server_and_its_files(saved: Path) -> None:
    site = site_of(saved)
    high = site.queue("high")
    assert (high.priority, high.resources_max) == (100, {"walltime": 3600})
    assert high.limits.max_run == {"u:PBS_GENERIC": 2, "o:PBS_ALL": 5}
    assert high.limits.max_run_res == {"mem": {"u:alice": 16 * 2**30}}
    server = site.server
    assert server.limits.max_run == {"u:PBS_GENERIC": 4}
    assert (server.backfill_depth, server.job_sort_formula) == (3, "10 * ncpus")
    assert (server.eligible_time_enable, server.scheduler_iteration_s) == (True, 300)
    assert site.scheduler.preempt_queue_prio == 90
    assert [queue.name for queue in site.queues] == ["workq", "high"]
    assert [host.name for host in site.hosts] == ["n1", "n2", "n3"]
    assert site.hosts[0].resources == {"ncpus": 8, "mem": 2 * 2**30}
    assert site.hosts[0].labels == {"host": "n1", "vnode": "n1", "gpu": "True"}
    assert site.hosts[2].priority == 5
    assert site.share_groups == (
        ShareGroup("staff", "root", 40, 121.0),
        ShareGroup("alice", "staff", 5, 120.0),
    )
    [(begins, ends)] = site.dedicated_time
    assert ends - begins == 7200
    assert site.version == "23.06.06"
    assert site.not_modelled == (
        "Hosts that take no jobs now are counted as if they did: n2.",
        "Queue route is a routing queue; jobs must name the one they end in.",
        "Hook limits (modifyjob, queuejob): what it changes in jobs or refuses.",
    )
    assert parse_site(format_site(site), source="made") == site


def test_reservations_are_read_in_the_sites_time_zone(saved: Path) -> None:
    (saved / "rstat").write_text(RESERVATION)
    has = {"n1": {"ncpus": 3, "mem": 2**30}, "n3": {"ncpus": 2}}
    assert site_of(saved).reservations == (PbsReservation("R0.pbs01", 1795478340, 1795481940, has),)
    here, there = site_of(saved), site_of(saved, "Europe/Stockholm")
    assert here.reservations[0].start - there.reservations[0].start == 3600
    assert here.dedicated_time[0][0] - there.dedicated_time[0][0] == 3600


def test_a_reservation_that_is_over_or_has_no_hosts_is_none(saved: Path) -> None:
    def with_(old: str, new: str) -> PbsSite:
        (saved / "rstat").write_text(RESERVATION.replace(old, new))
        return site_of(saved)

    assert with_("2026", "2025").reservations == ()
    assert with_("RESV_CONFIRMED", "RESV_UNCONFIRMED").reservations == ()
    site = with_("n1:", "gone:").reservations
    assert site[0].hosts == {"n3": {"ncpus": 2}}
    site_without = with_("resv_nodes", "nodes")
    assert site_without.reservations == ()
    told = "Reservation R0.pbs01 is left out: it has no hosts that are here."
    assert told in site_without.not_modelled


NOT_MODELLED = {
    'set queue high max_run_soft = "[u:PBS_GENERIC=1]"': "Queue high: the soft limit max_run_soft",
    "set queue high node_group_key = host": "Queue high: placement sets",
    "set server node_group_enable = True": "Server: placement sets (node_group_enable).",
    "set server resources_default.place = scatter": "Server: resources_default.place = scatter.",
    "set server default_chunk.mem = 2gb": "Server: default_chunk.mem = 2gb; jobs ask for what",
    "set queue high acl_user_enable = True": "Queue high: acl_user_enable: nobody is refused.",
    "set queue high partition = P1": "Queue high is left out: its partition P1 is another",
    "set server default_queue = route": "Jobs that name no queue go to route, a routing queue;",
    "unset server default_queue": None,
}


@pytest.mark.parametrize("line", NOT_MODELLED)
def test_what_is_not_modelled_is_named(saved: Path, line: str) -> None:
    (saved / "print-server").write_text(f"{QUEUES}{SERVER}{line}\n")
    said = NOT_MODELLED[line]
    told = [each for each in site_of(saved).not_modelled if said and each.startswith(said)]
    assert len(told) == bool(said)


def test_attributes_of_the_scheduler_that_are_not_modelled_are_named(saved: Path) -> None:
    (saved / "print-sched").write_text(
        SCHED + "set sched do_not_span_psets = True\nset sched preempt_prio = express_queue\n"
    )
    told = site_of(saved).not_modelled
    assert "Scheduler: preempt_prio = express_queue." in told
    assert "Scheduler: do_not_span_psets = True." in told


def test_what_fair_share_lacks_is_said(saved: Path) -> None:
    def said() -> list[str]:
        return [each for each in site_of(saved).not_modelled if each.startswith("Fair share")]

    (saved / "pbsfs").unlink()
    assert said() == []
    (saved / "sched_config").write_text(
        SCHED_CONFIG.replace("fair_share: false", "fair_share: true")
    )
    assert said() == ["Fair share: no output of pbsfs -p was given, so nobody has used anything."]
    (saved / "resource_group").write_text("# nobody\n")
    assert said() == ["Fair share: there is no resource_group, so all have the unknown shares."]


def test_primetime_is_named_where_there_is_any(saved: Path) -> None:
    (saved / "holidays").write_text("YEAR 2030\nweekday 0600 1730\n")
    assert "Primetime (holidays)" in " ".join(site_of(saved).not_modelled)
    (saved / "holidays").write_text("YEAR 1970\n  weekday all none\n  saturday all none\n")
    assert "Primetime" not in " ".join(site_of(saved).not_modelled)


def test_the_formula_is_read_of_the_scheduler_as_well(saved: Path) -> None:
    plain = SERVER.replace('set server job_sort_formula = "10 * ncpus"\n', "")
    (saved / "print-server").write_text(QUEUES + plain)
    told = 'set sched job_sort_formula = "mem"\nset sched job_sort_formula_threshold = -2.5\n'
    (saved / "print-sched").write_text(SCHED + told)
    server = site_of(saved).server
    assert (server.job_sort_formula, server.job_sort_formula_threshold) == ("mem", -2.5)


def test_hosts_that_are_not_as_others_are_named(saved: Path) -> None:
    def node(state: str = "free", host: str = "", **rest: str) -> dict[str, Any]:
        return {"state": state, "resources_available": {"ncpus": 2, "host": host}, **rest}

    nodes = {f"h[{number}]": node(host="h") for number in range(2)}
    nodes |= {"old": node("down,stale"), "other": node(partition="P1")}
    nodes |= {"own": node(sharing="force_excl", host="own")}
    (saved / "nodes.json").write_text(pbsnodes(**nodes))
    site = site_of(saved)
    assert [host.name for host in site.hosts] == ["h[0]", "h[1]", "own"]
    assert site.not_modelled[:4] == (
        "Vnodes in the state stale are left out: old.",
        "Hosts of another scheduler's partition are left out: other.",
        "Hosts with another sharing than default_shared give themselves as others do: own.",
        "Vnodes that share a host: h[0],h[1]; chunks are not split over vnodes.",
    )


def test_files_of_comments_and_what_is_not_needed_may_be_left_out(saved: Path) -> None:
    for name in ("resource_group", "dedicated_time", "holidays", "rstat", "hooks", "pbsfs"):
        (saved / name).write_text("# nothing\n")
    with_comments = site_of(saved)
    for name in ("resource_group", "dedicated_time", "holidays", "rstat", "hooks", "pbsfs"):
        (saved / name).unlink()
    assert site_of(saved) == with_comments
    assert with_comments.share_groups == ()


def test_the_first_vnode_of_a_machine_may_have_nothing(saved: Path) -> None:
    empty: dict[str, object] = {"resources_available": {"host": "n5"}, "Mom": "n5"}
    whole: dict[str, object] = {"resources_available": {"host": "vn5", "ncpus": 4}, "Mom": "n5"}
    (saved / "nodes.json").write_text(pbsnodes(**NODES, n5=empty, vn5=whole))
    assert not any("without ncpus" in sentence for sentence in site_of(saved).not_modelled)


def test_what_is_amiss_and_passed_over_is_named(saved: Path) -> None:
    with (saved / "dedicated_time").open("a") as file:
        file.write("# a remark\ntomorrow noon\n01/02/2031 12:00 01/02/2031 10:00\n")
    (saved / "sched_config").write_text(
        'by_queue: true\nby_queue: false\nnode_sort_key: "mem LOW"\n'
    )
    (saved / "rstat").write_text(RESERVATION.replace("+n3:", "+n9:"))
    (saved / "nodes.json").write_text(pbsnodes(**NODES, n4={"resources_available": {}}))
    (saved / "pbs.conf").write_text("PBS_SERVER=pbs01\n")
    said = site_of(saved).not_modelled
    for sentence in (
        "sched_config: by_queue is there twice: the last counts.",
        "sched_config: it says nothing of preemptive_sched, resources: PBS's own values count.",
        "dedicated_time: line 4 is no time, and passed over: 'tomorrow noon'.",
        "dedicated_time: line 5 is no time, and passed over: '01/02/2031 12:00 01/02/2031 10:00'.",
        "Reservation R0.pbs01: its hosts n9 are not here.",
        "Hosts without ncpus run no jobs: n4.",
        "Files that were not read: pbs.conf.",
    ):
        assert sentence in said


def written(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


FAULTS = {
    "no server": (
        gone("print-server"),
        r"no output of 'qmgr -c \"print server\"' is there: save it there: qmgr .* > server.txt",
    ),
    "no hosts": (gone("nodes.json"), r"no output of 'pbsnodes -a -F json' is there: save it there"),
    "no sched_config": (
        gone("sched_config"),
        r"is there: save it there: cp PBS_HOME/sched_priv/sched_config \.$",
    ),
    "half a line": (
        written("print-server", QUEUES + SERVER[:-7]),
        r"print-server: its last line is cut off; save it again: qmgr -c \"print server\"",
    ),
    "queues alone": (
        written("print-server", QUEUES),
        r'print-server: there is no line "set server ...": it is cut off; save it again: qmgr',
    ),
    "half of the hosts": (
        written("nodes.json", pbsnodes()[:200] + "\n"),
        r"nodes\.json: pbsnodes .* did not answer with PBS's JSON.*; save it again: pbsnodes",
    ),
    "nodes of qmgr": (
        written("nodes", "create node n1\nset node n1 state = free\n"),
        r"nodes: is no output of a command that is read: 'create node n1'; take it out",
    ),
    "no host": (
        written("nodes.json", '{"pbs_version": "23", "nodes": {}}\n'),
        r"the outputs contradict each other: a site of PBS needs at least one host",
    ),
    "no queue": (
        written("print-server", SERVER),
        r"print-server: there is no execution queue: nothing can run",
    ),
    "a queue that is gone": (
        written("nodes.json", pbsnodes(n1=NODES["n1"] | {"queue": "hihg"})),
        r"contradict each other: \[\[hosts\]\] n1: queue: .* did you mean 'high'",
    ),
    "a limit": (
        written("print-server", QUEUES + SERVER + "set queue high max_run = 5 each\n"),
        r"print-server: queue high: max_run: '5 each' is no limit: give such as",
    ),
    "an option": (
        written("sched_config", "by_queue: perhaps\n"),
        r"sched_config: line 1: by_queue: 'perhaps' is neither True nor False; save it again: cp",
    ),
    "a share": (
        written("resource_group", "staff 60 root 40\nalice 61 staf 5\n"),
        r"resource_group: line 2: the parent 'staf' has no line above this one",
    ),
    "times of a reservation": (
        written("rstat", RESERVATION.replace("23:59:00 2026", "soon")),
        r"rstat: R0\.pbs01: its times can't be read: .*; save it again: pbs_rstat -f",
    ),
    "twice": (
        written("more", SERVER),
        r"print-server: is an output of 'qmgr -c \"print server\"', as .*more; keep one",
    ),
    "another command": (
        written("qstat", "Server  Max  Tot\n"),
        r"qstat: is no output of a command that is read: 'Server  Max  Tot'; take it out",
    ),
    "when an option holds": (
        written("sched_config", "by_queue: true sometimes\n"),
        r"sched_config: line 1: 'sometimes' is none of PRIME, NON_PRIME and ALL",
    ),
    "a decay all the time": (
        written("sched_config", "fairshare_decay_time: 00:00:00\n"),
        r"sched_config: line 1: fairshare_decay_time: '00:00:00' is no time above 0",
    ),
    "more than an option": (
        written("sched_config", "by_queue: true ALL and more\n"),
        r"sched_config: line 1: .* is no option with a value",
    ),
    "a queue that nobody creates": (
        written("print-server", "set queue moon started = True\n" + QUEUES + SERVER),
        r"print-server: line 1: no line above creates the queue moon: it is cut off",
    ),
    "neither True nor False": (
        written("print-server", QUEUES + SERVER + "set queue high started = maybe\n"),
        r"queue high: started is 'maybe', neither True nor False; save it again",
    ),
    "a kind of queue": (
        written("print-server", QUEUES + SERVER + "set queue high queue_type = Sideways\n"),
        r"queue high: queue_type is 'Sideways': neither Execution nor Route",
    ),
    "CPUs in words": (
        written("nodes.json", pbsnodes(n1={"resources_available": {"ncpus": "eight"}})),
        r"nodes\.json: n1: ncpus: 'eight' is no whole number from 0 on",
    ),
    "parts of a CPU": (
        written("nodes.json", pbsnodes(n1={"resources_available": {"ncpus": 8.5}})),
        r"nodes\.json: n1: ncpus: '8\.5' is no whole number from 0 on",
    ),
    "a vnode twice": (
        written("nodes.json", '{"nodes": {"n1": {}, "n2": {}, "n1": {}}}\n'),
        r"nodes\.json: n1 is there twice; save it again: pbsnodes",
    ),
    "no vnode": (
        written("nodes.json", '{"nodes": {"n1": "yes"}}\n'),
        r"nodes\.json: n1 is 'yes': that is nothing of a vnode's; save it again: pbsnodes",
    ),
    "no resources": (
        written("nodes.json", pbsnodes(n1={"resources_available": [1, 2]})),
        r"n1: resources_available is '\[1, 2\]': that is nothing of a vnode's",
    ),
    "no JSON": (
        written("nodes.json", "n1\n     Mom = n1\n     ntype = PBS\n"),
        r"nodes\.json: is an output of pbsnodes that is no JSON; save it again: pbsnodes -a -F",
    ),
    "usage": (
        written("pbsfs", "Fairshare usage units are in: cput\ncarol : Grp: what\n"),
        r"pbsfs: line 2: 'carol : Grp: what' tells nobody's usage; save it again: pbsfs -p",
    ),
    "a group of PBS's own": (
        written("resource_group", "staff 60 root 40\nroot 61 staff 5\n"),
        r"resource_group: line 2: PBS has 'root' by itself: leave it out",
    ),
    "a folder": (lambda folder: (folder / "more").mkdir(), r"more: is a folder; take it out"),
    "output of Slurm": (
        written("licenses.txt", "No licenses configured\n"),
        r"licenses\.txt is of Slurm, and .* of PBS: keep those of one",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_file_and_command(saved: Path, fault: str) -> None:
    change, said = FAULTS[fault]
    site_of(saved)
    change(saved)
    with pytest.raises(InputError, match=said):
        site_of(saved)


@pytest.mark.parametrize("name", ["print-server", "nodes.json", "sched_config", "resource_group"])
def test_no_cut_ends_otherwise_than_with_a_message(saved: Path, name: str) -> None:
    text = (saved / name).read_text()
    for share in range(0, 100, 4):
        (saved / name).write_text(text[: len(text) * share // 100])
        with suppress(InputError):
            import_pbs_site(read_folder(saved), UTC, UTC)
