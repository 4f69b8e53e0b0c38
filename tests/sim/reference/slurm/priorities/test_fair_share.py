"""Fair share on trees worked out by hand."""

from __future__ import annotations

import math

import pytest
from foretime_sim.machines.machine import Machine
from foretime_sim.reference.slurm.priorities.fair_share import FairShare
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite


def fair_share_of(tree: tuple[Association, ...], *flags: str, damp: int = 1) -> FairShare:
    priority = SlurmPriority(flags=frozenset(flags), dampening_factor=damp)
    fair_share = FairShare(SlurmSite(Machine.flat(8), priority=priority, associations=tree))
    if fair_share.is_fair_tree:
        fair_share.apply_fair_tree()
    else:
        fair_share.begin_classic()
    return fair_share


def factors(fair_share: FairShare) -> dict[str, float]:
    return {
        member.association.user: fair_share.factor_of(place)
        for place, member in enumerate(fair_share.members)
        if member.association.user is not None
    }


# The accounts of Slurm's page on classic fair share ("Multifactor Priority Plugin", sections
# Normalized shares and Effective usage): A 40 with B 30 (user 1: 1 share), C 10 (2: 1, 3: 1 and
# 4, 5), D 60 with E 25 (user 6: 1) and F 35 (7: 1, 8: 1).
CLASSIC = (
    Association("root", raw_usage=1000.0),
    Association("A", parent="root", shares=40, raw_usage=450.0),
    Association("B", parent="A", shares=30, raw_usage=200.0),
    Association("C", parent="A", shares=10, raw_usage=250.0),
    Association("D", parent="root", shares=60, raw_usage=250.0),
    Association("E", parent="D", shares=25, raw_usage=250.0),
    Association("F", parent="D", shares=35),
    Association("B", user="1", shares=1, raw_usage=200.0),
    Association("C", user="2", shares=1, raw_usage=250.0),
    Association("C", user="3", shares=1, raw_usage=0.0),
    Association("E", user="4", shares=1, raw_usage=250.0),
    Association("F", user="5", shares=1),
)


def test_classic_usage_is_the_own_and_a_part_of_that_of_the_account() -> None:
    fair_share = fair_share_of(CLASSIC, "NO_FAIR_TREE")
    effective = {
        (one.association.account, one.association.user): float(fair_share.effective_usage_of(place))
        for place, one in enumerate(fair_share.members)
    }
    assert effective["A", None] == 0.45
    assert effective["B", None] == pytest.approx(0.2 + (0.45 - 0.2) * 30 / 40)  # 0.3875
    assert effective["C", None] == pytest.approx(0.25 + (0.45 - 0.25) * 10 / 40)  # 0.3
    assert effective["B", "1"] == pytest.approx(0.2 + (0.3875 - 0.2) * 1)
    assert effective["C", "2"] == pytest.approx(0.25 + (0.3 - 0.25) / 2)  # 0.275
    assert effective["C", "3"] == pytest.approx(0.0 + (0.3 - 0.0) / 2)
    assert effective["E", None] == pytest.approx(0.25)
    assert effective["F", None] == pytest.approx(0.25 * 35 / 60)
    assert effective["F", "5"] == pytest.approx(0.25 * 35 / 60)


def test_classic_shares_are_products_and_the_factor_a_power_of_two() -> None:
    fair_share = fair_share_of(CLASSIC, "NO_FAIR_TREE", damp=2)
    found = factors(fair_share)
    shares = {"1": 0.4 * 0.75, "2": 0.4 * 0.25 / 2, "5": 0.6 * 35 / 60}
    used = {"1": 0.3875, "2": 0.275, "5": 0.25 * 35 / 60}
    for user, share in shares.items():
        assert found[user] == pytest.approx(math.pow(2, -used[user] / share / 2))


def test_who_used_as_much_as_he_shares_has_one_half() -> None:
    tree = (
        Association("root", raw_usage=100.0),
        Association("root", user="ann", shares=3, raw_usage=75.0),
        Association("root", user="bob", shares=1, raw_usage=25.0),
    )
    assert factors(fair_share_of(tree, "NO_FAIR_TREE")) == {"ann": 0.5, "bob": 0.5}
    assert factors(fair_share_of(tree, "DEPTH_OBLIVIOUS")) == {"ann": 0.5, "bob": 0.5}


def test_nobody_without_shares_has_any() -> None:
    tree = (
        Association("root", raw_usage=10.0),
        Association("a", parent="root", shares=0, raw_usage=10.0),
        Association("a", user="ann", raw_usage=10.0),
        Association("root", user="bob", shares=0),
    )
    assert factors(fair_share_of(tree, "NO_FAIR_TREE")) == {"ann": 0.0, "bob": 0.0}


def test_users_with_the_shares_of_the_parent_have_its_factor() -> None:
    tree = (
        Association("root", raw_usage=100.0),
        Association("a", parent="root", shares=1, raw_usage=50.0),
        Association("a", user="ann", shares=None, raw_usage=50.0),
        Association("a", user="bob", shares=None),
        Association("b", parent="root", shares=1, raw_usage=50.0),
    )
    assert factors(fair_share_of(tree, "NO_FAIR_TREE")) == {"ann": 0.5, "bob": 0.5}


def test_fair_tree_ranks_accounts_before_their_users() -> None:
    """The example of Slurm's page on Fair Tree: all of a better account go before all others."""
    tree = (
        Association("root", raw_usage=100.0),
        Association("A", parent="root", shares=40, raw_usage=60.0),
        Association("A", user="a1", shares=1, raw_usage=0.0),
        Association("A", user="a2", shares=1, raw_usage=60.0),
        Association("B", parent="root", shares=60, raw_usage=40.0),
        Association("B", user="b1", shares=9, raw_usage=39.0),
        Association("B", user="b2", shares=1, raw_usage=1.0),
    )
    # A: 0.4 / 0.6, B: 0.6 / 0.4; of B b2 (0.1 / 0.025) is before b1 (0.9 / 0.975).
    assert factors(fair_share_of(tree)) == {"b2": 1.0, "b1": 0.75, "a1": 0.5, "a2": 0.25}


def test_tied_users_have_one_rank_and_the_next_what_is_left() -> None:
    tree = (
        Association("root", raw_usage=90.0),
        Association("root", user="a", shares=1, raw_usage=30.0),
        Association("root", user="b", shares=2, raw_usage=60.0),
        Association("root", user="c", shares=1, raw_usage=0.0),
        Association("root", user="d", shares=0, raw_usage=0.0),
    )
    found = factors(fair_share_of(tree))
    assert found == {"c": 1.0, "a": 0.75, "b": 0.75, "d": 0.25}


def test_tied_accounts_are_not_merged() -> None:
    """Slurm's page says that they are; its code and a live 22.05 and 26.05 do not."""
    tree = (
        Association("root"),
        Association("x", parent="root"),
        Association("x", user="x1", shares=1),
        Association("x", user="x0", shares=0),
        Association("y", parent="root"),
        Association("y", user="y1", shares=1),
        Association("y", user="y0", shares=0),
    )
    # Merged it would be x1 = y1 = 4 of 4, x0 = y0 = 2.
    assert factors(fair_share_of(tree)) == {"x1": 1.0, "x0": 0.75, "y1": 0.75, "y0": 0.25}


def test_an_account_with_the_shares_of_its_parent_lends_it_its_users() -> None:
    tree = (
        Association("root", raw_usage=100.0),
        Association("old", parent="root", shares=None, raw_usage=80.0),
        Association("old", user="ann", shares=1, raw_usage=80.0),
        Association("root", user="bob", shares=1, raw_usage=20.0),
    )
    fair_share = fair_share_of(tree)
    assert factors(fair_share) == {"bob": 1.0, "ann": 0.5}
    assert [member.shares_norm for member in fair_share.members[2:]] == [0.5, 0.5]


def test_usage_goes_up_the_tree() -> None:
    fair_share = fair_share_of(CLASSIC, "NO_FAIR_TREE")
    fair_share.charge(8, 10.0)  # user 2
    raw = [float(member.usage_raw) for member in fair_share.members]
    assert [raw[0], raw[1], raw[2], raw[3], raw[8], raw[4]] == [1010, 460, 200, 260, 260, 250]
    fair_share.decay(0.5)
    assert float(fair_share.members[0].usage_raw) == 505
    fair_share.reset()
    assert not any(float(member.usage_raw) for member in fair_share.members)
