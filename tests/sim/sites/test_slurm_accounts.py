"""Which association and QOS a job goes by, and what can't be a tree."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.site import SlurmSite

TREE = (
    Association("root", default_qos="normal"),
    Association("a", parent="root", shares=None),
    Association("b", parent="a", shares=None),
    Association("b", user="ann", shares=1, qos=("only",)),
    Association("a", user="ann", default=True, default_qos="high"),
    Association("a", user="ann", slurm_partition="gpu"),
)
QOS = {name: Qos(name) for name in ("normal", "high", "only")}


def accounts(*tree: Association) -> Accounts:
    return Accounts(SlurmSite(Machine.flat(8), associations=tree, qos=QOS))


def test_shares_stand_with_the_nearest_account_that_has_its_own() -> None:
    found = accounts(*TREE)
    assert found.parents == (None, 0, 1, 2, 1, 1)
    assert found.fair_parents == (None, 0, 0, 0, 0, 0)


def test_a_job_goes_by_its_account_and_by_its_partition_first() -> None:
    found = accounts(*TREE)
    assert found.association_of("ann", None, ("main",)) == 4
    assert found.association_of("ann", "b", ("main",)) == 3
    assert found.association_of("ann", "a", ("gpu", "main")) == 5
    assert found.association_of("ann", "c", ("main",)) is None
    assert found.association_of("bob", None, ("main",)) is None
    assert found.association_of(None, "a", ("main",)) is None


def test_the_first_account_is_a_users_default_where_none_is_marked() -> None:
    found = accounts(
        TREE[0], TREE[1], Association("a", user="bob"), Association("root", user="bob")
    )
    assert found.association_of("bob", None, ()) == 2


def test_a_job_without_a_qos_has_the_default() -> None:
    found = accounts(*TREE)
    assert found.qos_of(4, None) == "high"
    assert found.qos_of(3, None) == "only"
    assert found.qos_of(5, None) == "normal"
    assert found.qos_of(None, "high") == "high"
    assert Accounts(SlurmSite(Machine.flat(8))).qos_of(None, None) is None
    with pytest.raises(InputError, match=r"there is no 'hihg'\. There are: high, normal, only"):
        found.qos_of(4, "hihg")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ((Association("a", user="ann"),), "is the first; put the account 'root' before it"),
        ((TREE[0], Association("a", user="ann")), "belongs to the account 'a', which is not"),
        ((TREE[0], TREE[2]), "account='b' belongs to the account 'a', which is not before it"),
        ((TREE[0], TREE[1], TREE[1]), "account='a' is there twice"),
    ],
)
def test_what_is_no_tree_is_refused(tree: tuple[Association, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        accounts(*tree)
