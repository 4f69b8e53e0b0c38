"""The settings of switching between queue orders, and what a policy says to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.order_tuning import tune_order
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.families import Backfill, Planning, with_settings
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import (
    Decider,
    PolicySwitching,
    Quality,
)
from foretime_sim.policies.switching_counters import SwitchingCounters


def test_the_papers_settings_are_the_defaults() -> None:
    dynp = PolicySwitching()
    assert dynp.decider is Decider.ADVANCED
    assert dynp.orders == (Order.FCFS, Order.SJF, Order.LJF)
    assert dynp.weighted_qualities == ((Quality.ARTWW, 1.0),)
    assert dynp.asked_from == 2
    assert PolicySwitching(Decider.BASIC).asked_from == 5
    assert PolicySwitching(Decider.BASIC, least_waiting=3).asked_from == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"orders": (Order.FCFS,)}, "orders are fcfs: give two or more"),
        ({"orders": (Order.SJF, Order.SJF)}, "each once"),
        ({"decider": Decider.BASIC, "orders": (Order.FCFS, Order.XF)}, "decider basic switches"),
        ({"decider": Decider.VOTING, "orders": (Order.FCFS, Order.XF)}, "decider voting switches"),
        ({"lower_bound_s": 0}, "lower_bound_s is 0"),
        ({"upper_bound_s": 7199}, "upper_bound_s is 7199, below lower_bound_s, 7200"),
        ({"least_waiting": 0}, "least_waiting is 0"),
        ({"slackness": 1.0}, "slackness is 1.0"),
        ({"slackness": -0.1}, "slackness is -0.1"),
        ({"first_starts": 20, "horizon_s": 21600}, "one of them"),
        ({"first_starts": 0}, "first_starts is 0"),
        ({"horizon_s": -1}, "horizon_s is -1"),
        ({"slowdown_bound_s": 0}, "slowdown_bound_s is 0"),
        ({"interactive_s": 0}, "interactive_s is 0"),
        ({"saturation": math.inf}, "saturation is inf"),
        ({"one_list": True, "decider": Decider.BASIC}, "one_list: only of the deciders simple"),
        ({"one_list": True, "orders": (Order.SJF, Order.FCFS)}, "one_list: only of the deciders"),
        ({"quality": ()}, "give one, or several"),
        ({"quality": ((Quality.ART, 1.0), (Quality.ART, 2.0))}, "each once"),
        ({"quality": ((Quality.ART, 0.0),)}, "weight of art is 0.0"),
        ({"quality": ((Quality.ART, math.nan),)}, "weight of art is nan"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PolicySwitching(**settings)


def test_only_planning_switches_and_begins_with_one_of_its_orders() -> None:
    Policy(Order.SJF, Planning(PolicySwitching()))
    with pytest.raises(InputError, match="only under the backfilling planning, not easy"):
        Policy(backfill=with_settings(Backfill.EASY, switching=PolicySwitching()))
    with pytest.raises(InputError, match="order is wfp: begin with one of those"):
        Policy(Order.WFP, Planning(PolicySwitching()))


def test_qualities_are_read_with_weights() -> None:
    assert Quality.parse_weighted("artww") is Quality.ARTWW
    both = ((Quality.ARTWW, 2.0), (Quality.MAKESPAN, 1.0))
    assert Quality.parse_weighted("2*artww+makespan") == both
    with pytest.raises(InputError, match="unknown quality 'artw'; did you mean 'artww'"):
        Quality.parse_weighted("artw")
    with pytest.raises(InputError, match="the weight 'x' of art is no number"):
        Quality.parse_weighted("x*art+makespan")
    with pytest.raises(InputError, match=r"the weight of art is 0\.0: give one above 0"):
        Quality.parse_weighted("0*art")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dynp-advanced-artww", PolicySwitching()),
        ("dynp-basic", PolicySwitching(Decider.BASIC)),
        ("dynp-voting/saturation=0.9", PolicySwitching(Decider.VOTING, saturation=0.9)),
        ("dynp-simple-artww/one-list", PolicySwitching(Decider.SIMPLE, one_list=True)),
        (
            "dynp-simple-2*artww+makespan/orders=fcfs+xf/slackness=0.05/horizon-s=21600",
            PolicySwitching(
                Decider.SIMPLE,
                (Order.FCFS, Order.XF),
                ((Quality.ARTWW, 2.0), (Quality.MAKESPAN, 1.0)),
                slackness=0.05,
                horizon_s=21600,
            ),
        ),
    ],
)
def test_names_are_read_and_written(name: str, settings: PolicySwitching) -> None:
    assert str(settings) == name
    assert PolicySwitching.parse(name.upper()) == settings


def test_what_a_short_name_leaves_out_is_at_its_default() -> None:
    assert PolicySwitching.parse("dynp") == PolicySwitching()
    assert PolicySwitching.parse("dynp-simple") == PolicySwitching(Decider.SIMPLE)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dyn", "'dyn': no dynp; write dynp-DECIDER"),
        ("dynp-advance", "'dynp-advance': unknown decider 'advance'; did you mean 'advanced'"),
        ("dynp-basic-art", "the decider basic looks at no quality"),
        ("dynp/slack=1", "unknown setting 'slack'; there are orders, lower-bound-s"),
        ("dynp/slackness=x", "slackness=x: give a number"),
        ("dynp/one-list=2", "one-list=2: write one-list without a value"),
        ("dynp/horizon-s=1.5", "horizon-s=1.5: give a whole number"),
        ("dynp/orders=fcfs", "orders are fcfs: give two or more"),
    ],
)
def test_bad_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PolicySwitching.parse(name)


def test_one_list_is_of_whole_runs_alone() -> None:
    one_list = PolicySwitching(one_list=True)
    policy = Policy(backfill=Planning(one_list))
    with pytest.raises(InputError, match="no one-list step by step, only in whole runs"):
        Engine(4, policy)
    snapshot = Snapshot.of(Engine(4, Policy(backfill=Backfill.PLANNING)))
    with pytest.raises(InputError, match="no one-list in forward runs"):
        forward_runs(snapshot, policy, np.zeros((1, 0), np.int64))
    with pytest.raises(InputError, match="a snapshot does not say how the queue was left"):
        tune_order(snapshot, one_list, Order.FCFS)


def test_a_policy_is_put_in_another_order() -> None:
    planning = Policy(Order.LJF, Backfill.PLANNING)
    switching = PolicySwitching(orders=(Order.XF, Order.SJF))
    dynp = planning.in_order(switching)
    assert (dynp.order, dynp.switching) == (Order.XF, switching)
    assert dynp.order_name == "dynp-advanced-artww/orders=xf+sjf"
    assert dynp.in_order(Order.LJF) == planning


def test_counters_add_up() -> None:
    counted = SwitchingCounters(
        PolicySwitching().orders, np.array([0, 1, 1, 2, 1], np.int8), 8, (1, 2, 0), 40, None
    )
    assert counted.same_policy == 5
    assert counted.mean_backlog == 5
    assert counted.jobs_started.tolist() == [1, 3, 1]
