"""What the native core makes of the settings of a family."""

from __future__ import annotations

import pytest
from foretime_sim import _core
from foretime_sim.engine.native.engine_core import core_policy
from foretime_sim.policies.families import FAMILIES, Conservative, Easy
from foretime_sim.policies.policy import Policy


def _engine(backfill: str, settings: dict[str, bool | int | float | str]) -> _core.Engine:
    policy = _core.Policy()
    policy.backfill = backfill
    policy.settings = settings
    return _core.Engine(10, policy, 0, [])


@pytest.mark.parametrize(
    ("backfill", "settings", "wrong"),
    [
        ("easy", {"depht": 2}, "no setting depht"),
        ("easy-sjbf", {"ageing_s": "long"}, "the setting ageing_s can't have this value"),
        ("conservative", {"depth": 2}, "no setting depth"),
        ("conservative", {"compression": "two-by-two"}, "the setting compression can't have this"),
        ("slack", {"compression": "one-by-one"}, "no setting compression"),
        ("slack", {"slack_factor": True}, "the setting slack_factor can't have this value"),
    ],
)
def test_the_core_refuses_what_a_family_does_not_have(
    backfill: str, settings: dict[str, bool | int | float | str], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        _engine(backfill, settings)


def test_a_whole_number_will_do_for_a_real_one() -> None:
    _engine("slack", {"slack_factor": 2, "average_wait_s": 600})


@pytest.mark.parametrize("name", FAMILIES)
def test_the_core_knows_every_setting_that_a_family_gives_it(name: str) -> None:
    _core.Engine(10, core_policy(Policy(backfill=FAMILIES[name])), 0, [])


def test_settings_go_over_by_name_and_choices_by_theirs() -> None:
    assert core_policy(Policy(backfill=Easy(depth=3))).settings == {"depth": 3}
    compression = core_policy(Policy(backfill=Conservative())).settings
    assert compression == {"compression": "reservation-order"}
