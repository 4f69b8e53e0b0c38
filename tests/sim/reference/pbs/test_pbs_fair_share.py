"""PBS's fair share, worked out by hand."""

from __future__ import annotations

import pytest
from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.reference.pbs.run import run_pbs
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsServer, ShareGroup

from tests.support.pbs.pbs_sites import job, site_of

GROUPS = (
    ShareGroup("staff", shares=40),
    ShareGroup("guests", shares=20),
    ShareGroup("alice", "staff", 30),
    ShareGroup("bob", "staff", 10),
    ShareGroup("carol", "guests", 10),
)
SETTINGS = PbsScheduler(
    fair_share=True, fairshare_usage_res="ncpus*walltime", fairshare_decay_time_s=100
)


def tree(**settings: object) -> FairShare:
    return FairShare(GROUPS, SETTINGS, 0)


def test_shares_are_parts_of_the_group_above() -> None:
    """As pbsfs printed it on a live server: 66.667%, 50%, 16.667%, 33.333%."""
    parts = {name: entity.part for name, entity in tree().by_name.items()}
    assert parts == pytest.approx(
        {"root": 1, "unknown": 0, "staff": 2 / 3, "guests": 1 / 3}
        | {"alice": 1 / 2, "bob": 1 / 6, "carol": 1 / 3}
    )


def test_usage_is_charged_from_cycle_to_cycle_while_a_job_runs() -> None:
    found = tree()
    ann = job(0, 4, 100, user="alice")
    found.begin_cycle([], 0)
    found.end_cycle([(ann, 0)])
    found.begin_cycle([(ann, 10)], 10)
    found.end_cycle([(ann, 10)])
    used = {name: entity.usage for name, entity in found.by_name.items()}
    assert (used["alice"], used["staff"], used["root"], used["bob"]) == (41, 41, 41, 1)
    # It has ended by the next cycle: what it used since is charged to nobody.
    found.begin_cycle([], 50)
    assert found.by_name["alice"].usage == 41


def test_usage_decays_once_a_span_and_never_below_1() -> None:
    found = tree()
    found.by_name["alice"].usage = 41.0
    for now, usage in ((100, 41.0), (101, 20.5), (200, 20.5), (250, 10.25)):
        found.begin_cycle([], now)
        assert found.by_name["alice"].usage == usage, now
    assert found.by_name["bob"].usage == 1


def test_who_has_used_least_by_share_in_the_first_group_that_differs_stands_first() -> None:
    found = tree()
    by_user = {user: job(0, 1, 10, user=user) for user in ("alice", "bob", "carol")}
    found.begin_cycle([], 0)
    # All have used 1: staff by 2/3 is less than guests by 1/3; alice by 1/2 less than bob by 1/6.
    assert found.compare(by_user["alice"], by_user["carol"]) == -1
    assert found.compare(by_user["bob"], by_user["alice"]) == 1
    # A job that starts counts at once with what it asks for, in this cycle alone.
    found.started(job(1, 4, 10, user="alice"))
    assert found.compare(by_user["alice"], by_user["carol"]) == 1
    assert found.compare(by_user["bob"], by_user["alice"]) == -1
    found.begin_cycle([], 1)
    assert found.compare(by_user["bob"], by_user["alice"]) == 1


def test_who_has_no_shares_never_runs_unless_that_is_allowed() -> None:
    told = {"fair_share": True, "fairshare_usage_res": "ncpus*walltime"}
    jobs = [job(0, 1, 10, user="dave"), job(1, 1, 10, user="alice")]
    site = site_of(scheduler=told, share_groups=GROUPS)
    assert run_pbs(site, jobs).start == {1: 1}
    site = site_of(scheduler={**told, "fairshare_enforce_no_shares": False}, share_groups=GROUPS)
    assert run_pbs(site, jobs).start == {0: 0, 1: 1}
    site = site_of(scheduler={**told, "unknown_shares": 5}, share_groups=GROUPS)
    assert run_pbs(site, jobs).start == {0: 0, 1: 1}


def test_users_take_turns_by_their_shares() -> None:
    told = {"fair_share": True, "fairshare_usage_res": "ncpus*walltime"}
    site = site_of(scheduler=told, share_groups=GROUPS)
    users = ["carol", "alice", "alice", "bob", "carol", "carol"]
    jobs = [job(i, 4, 100, user=user) for i, user in enumerate(users)]
    # Job 0 is carol's, and charged to its last cycle, at 5: 20. Then alice, who has used nothing;
    # she, too, is charged at no cycle while job 1 runs. staff is charged nothing until job 1 ends.
    assert run_pbs(site, jobs).start_order == [0, 1, 2, 3, 4, 5]


def test_formulas_know_shares_and_usage() -> None:
    found = tree()
    found.by_name["alice"].usage = found.by_name["staff"].usage = found.root.usage = 9.0
    found.begin_cycle([], 0)
    factors = found.factors(job(0, 1, 10, user="alice"))
    # staff has used all; alice all of it, drawn towards staff's by her 3/4: it stays all.
    assert factors["fairshare_tree_usage"] == pytest.approx(1.0)
    assert factors["fairshare_factor"] == pytest.approx(2.0**-2)
    assert factors["fairshare_perc"] == pytest.approx(0.5)
    site = site_of(share_groups=GROUPS, server=PbsServer(job_sort_formula="100 * fairshare_perc"))
    jobs = [job(0, 4, 10, user="bob"), job(1, 4, 10, user="carol"), job(2, 4, 10, user="alice")]
    assert run_pbs(site, jobs).start_order == [0, 2, 1]
