"""Which cells a campaign has, and what they are known by."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.campaigns.campaign import Campaign
from foretime_sim.campaigns.cells import Cell, plan
from foretime_sim.campaigns.file import parse_campaign, read_campaign
from foretime_sim.campaigns.runs import policy_of
from foretime_sim.logs.swf import write_swf
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models import lublin2003
from foretime_sim.policies.policy import Correction
from foretime_sim.workloads.job_log import log_of_workload

Make = Callable[[str], Campaign]


def ids(campaign: Campaign) -> list[str]:
    return [cell.id for cell in plan(campaign).cells]


def test_everything_is_crossed(campaign_of: Make) -> None:
    campaign = campaign_of("""
[[logs]]
generate = "lublin2003"
name = "other"
[grid]
order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
interarrival_factor = [1, 0.9]
seeds = [0, 4, 5]
""")
    cells = plan(campaign).cells
    found = {
        (c.axes["log"], c.axes["order"], c.axes["backfill"], c.axes["interarrival_factor"],
         c.axes["seed"])
        for c in cells
    }  # fmt: skip
    assert found == set(
        itertools.product(
            ("made", "other"), ("fcfs", "sjf"), ("none", "easy"), (1.0, 0.9), (0, 4, 5)
        )
    )
    assert len(cells) == len(found) == len({cell.id for cell in cells})
    # Cells of one log, load and seed come together, so that a worker reads and varies once.
    conditions = [(c.axes["log"], c.axes["interarrival_factor"], c.axes["seed"]) for c in cells]
    assert len(list(itertools.groupby(conditions))) == len(set(conditions))


def test_corrections_collapse_where_t_sched_is_the_request(campaign_of: Make) -> None:
    corrections = ", ".join(f'"{c.value}"' for c in Correction)
    planned = plan(
        campaign_of(f"""
[grid]
estimator = ["requested", "actual", "last-two", "combined"]
correction = [{corrections}]
roles = ["111", "110"]
guard_s = ["off", 60]
accuracy_rule = ["production", "tang2010"]
learn = [true, false]
""")
    )
    count = {
        name: sum(cell.axes["estimator"] == name for cell in planned.cells)
        for name in ("requested", "actual", "last-two", "combined")
    }
    assert count == {
        "requested": 1,
        "actual": 2 * 2,
        "last-two": 5 * 2 * 2 * 2,
        "combined": 5 * 2 * 2 * 2 * 2,
    }
    requested = next(c for c in planned.cells if c.axes["estimator"] == "requested")
    assert requested.axes["correction"] is None
    assert requested.axes["learn"] is None
    assert any(
        "79 combinations collapsed" in note and "t_sched is t_req" in note for note in planned.notes
    )


def test_parts_of_backfilling_collapse_where_they_have_no_effect(campaign_of: Make) -> None:
    planned = plan(
        campaign_of("""
[grid]
backfill = ["none", "easy", "easy-sjbf", "conservative", "planning", "first-fit"]
depth = [1, 4]
compression = ["reservation-order", "one-by-one"]
estimator = "last-two"
guard_s = ["off", 600]
""")
    )
    found = [
        tuple(c.axes[axis] for axis in ("backfill", "depth", "compression", "guard_s"))
        for c in planned.cells
    ]
    easy = [(1, None, "off"), (1, None, 600), (4, None, None)]
    assert sorted(found, key=str) == sorted(
        [
            ("none", None, None, None),
            *(("easy", *parts) for parts in easy),
            *(("easy-sjbf", *parts) for parts in easy),
            ("conservative", None, "reservation-order", None),
            ("conservative", None, "one-by-one", None),
            ("planning", None, None, None),
            ("first-fit", None, None, None),
        ],
        key=str,
    )
    for cell in planned.cells:
        assert policy_of(cell).backfill.shown.get("depth") == cell.axes["depth"]


def test_what_is_not_declared_is_not_said_to_collapse(campaign_of: Make) -> None:
    planned = plan(
        campaign_of('[grid]\nestimator = ["requested", "actual"]\ncorrection = ["pbs", "slurm"]')
    )
    assert planned.notes == tuple(
        f"1 combination collapsed: correction has no effect where {because}"
        for because in (
            "t_sched is t_req (estimator requested)",
            "no job outlives t_sched (estimator actual)",
        )
    )


def test_rules_leave_out_and_add(campaign_of: Make) -> None:
    planned = plan(
        campaign_of("""
[[logs]]
generate = "lublin2003"
name = "other"
[grid]
order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
seeds = 2
[[exclude]]
order = "sjf"
backfill = ["none", "easy-sjbf"]
[[exclude]]
log = "other"
order = "sjf"
[[include]]
log = "other"
order = ["wfp", "fcfs"]
backfill = "easy"
seeds = [9]
""")
    )
    found = {
        (c.axes["log"], c.axes["order"], c.axes["backfill"], c.axes["seed"]) for c in planned.cells
    }
    both = {(log, "fcfs", b, s) for log in ("made", "other") for b in ("none", "easy")
            for s in (1, 2)}  # fmt: skip
    made = {("made", "sjf", "easy", 1), ("made", "sjf", "easy", 2)}
    added = {("other", "wfp", "easy", 9), ("other", "fcfs", "easy", 9)}
    assert found == both | made | added
    assert planned.notes[0] == ("4 combinations left out by order sjf, backfill none or easy-sjbf")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[exclude]]\norder = "sjf"',
            [":10: [[exclude]] number 1", "order sjf", "no combination"],
        ),
        ('[[exclude]]\norder = "fcfs"', ["the rules leave no combination"]),
        (
            '[grid]\norder = ["fcfs", "sjf"]\n[[exclude]]\norder = "fcfs"',
            ["the baseline (order fcfs, backfill easy", "baseline = {...} in [report]"],
        ),
    ],
)
def test_rules_that_leave_nothing_are_refused(
    campaign_of: Make, text: str, told: list[str]
) -> None:
    with pytest.raises(InputError) as error:
        plan(campaign_of(text))
    for words in told:
        assert words in str(error.value)


def test_a_plan_can_be_of_some_logs_only(campaign_of: Make) -> None:
    planned = plan(campaign_of('[[logs]]\ngenerate = "lublin2003"\nname = "other"'))
    assert [cell.axes["log"] for cell in planned.of_logs(["other"]).cells] == ["other"]
    assert planned.of_logs([]).cells == planned.cells
    with pytest.raises(InputError, match=r"no log 'outher'; it has made, other"):
        planned.of_logs(["outher"])


BASE = """
[grid]
order = ["fcfs", "sjf"]
estimator = "combined"
accuracy_rule = "mine"
seeds = 2
[accuracy.mine]
percentile = 0.9
"""


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("", "", 4),
        ('"sjf"', '"wfp"', 2),
        ("seeds = 2", "seeds = 3", 4),
        ("percentile = 0.9", "percentile = 0.8", 0),
        ("[accuracy.mine]", '[report]\nmetrics = "wait_max_s"\n[accuracy.mine]', 4),
        ("[accuracy.mine]", 'guard_s = 60\n[accuracy.mine]', 0),
    ],
)  # fmt: skip
def test_a_cell_is_known_by_what_decides_its_result(
    campaign_of: Make, old: str, new: str, kept: int
) -> None:
    before = ids(campaign_of(BASE))
    after = ids(campaign_of(BASE.replace(old, new, 1)))
    assert len(before) == 4
    assert len(set(before) & set(after)) == kept


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('name = "made"', 'name = "called otherwise"', True),
        ("jobs = 150", "jobs = 151", False),
        ("processors = 32", "processors = 64", False),
        ("warm_up_s = 0", "warm_up_s = 1", False),
        ("warm_up_s = 0", "warm_up_s = 0\ntau_s = 60", False),
        ("warm_up_s = 0", "warm_up_s = 0\ncheck = true", True),
    ],
)
def test_names_and_checks_do_not_make_another_cell(
    campaign_of: Make, tmp_path: Path, old: str, new: str, same: bool
) -> None:
    before = ids(campaign_of(""))
    text = (tmp_path / "small.toml").read_text()
    after = ids(parse_campaign(text.replace(old, new), tmp_path / "small.toml"))
    assert (before == after) is same


def test_a_log_counts_by_its_content(tmp_path: Path) -> None:
    log = tmp_path / "a.swf"
    write_swf(log_of_workload(lublin2003.generate(20, processors=8)), log)
    path = tmp_path / "c.toml"
    path.write_text('[[logs]]\npath = "a.swf"\n')
    before = ids(read_campaign(path))
    os.utime(log, (1, 1))
    log.rename(tmp_path / "b.swf")
    path.write_text('[[logs]]\npath = "b.swf"\n')
    assert ids(read_campaign(path)) == before
    with (tmp_path / "b.swf").open("a") as file:
        file.write("; Note: another\n")
    assert ids(read_campaign(path)) != before


def test_an_order_of_the_users_own_counts_by_its_code(tmp_path: Path, campaign_of: Make) -> None:
    (tmp_path / "site_orders_here.py").write_text("def widest(queue, now):\n    return 1\n")
    text = '[grid]\norder = "site_orders_here:widest"'
    before = ids(campaign_of(text))
    assert ids(campaign_of(text)) == before
    (tmp_path / "site_orders_here.py").write_text("def widest(queue, now):\n    return 2\n")
    assert ids(campaign_of(text)) != before


def test_another_version_is_another_cell(
    campaign_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_version(number: str) -> Cell:
        monkeypatch.setattr("foretime_sim.campaigns.cells.foretime_version", lambda: number)
        return plan(campaign_of("")).cells[0]

    assert of_version("1.0").id != of_version("1.1").id


def test_reservations_are_read_and_count_by_what_they_say(
    campaign_of: Make, tmp_path: Path
) -> None:
    claims = tmp_path / "maintenance.csv"
    claims.write_text("start,duration,processors\n86400,3600,32\n")
    text = '[grid]\nreservations = ["none", "maintenance.csv"]'
    none, closed = plan(campaign_of(text)).cells
    assert (none.reservations, closed.reservations) == (
        (),
        (AdvanceReservation(86_400, 3_600, 32),),
    )
    claims.rename(tmp_path / "closed.csv")
    (other,) = plan(campaign_of('[grid]\nreservations = "closed.csv"')).cells
    assert other.id == closed.id != none.id
    (tmp_path / "closed.csv").write_text("start,duration,processors\n86400,3600,31\n")
    assert plan(campaign_of('[grid]\nreservations = "closed.csv"')).cells[0].id != closed.id
    (tmp_path / "closed.csv").write_text("start,duration,processors\n86400,x,31\n")
    with pytest.raises(InputError, match=r"\[grid\] reservations: .*closed.csv:2: duration is 'x'"):
        campaign_of('[grid]\nreservations = "closed.csv"')
    with pytest.raises(InputError, match=r"\[\[include\]\] number 1 reservations: .*nowhere.csv"):
        campaign_of('[[include]]\nreservations = "nowhere.csv"')


def test_orders_are_switched_under_planning_alone(campaign_of: Make) -> None:
    planned = plan(
        campaign_of("""
[grid]
order = ["fcfs", "dynp", "dynp-simple-art/slackness=0.05"]
backfill = ["easy", "planning"]
""")
    )
    found = {(c.axes["order"], c.axes["backfill"]) for c in planned.cells}
    switched = {"dynp-advanced-artww", "dynp-simple-art/slackness=0.05"}
    assert found == {
        ("fcfs", "easy"),
        *itertools.product({"fcfs", *switched}, ["planning"]),
    }
    assert any("orders are only switched under planning" in note for note in planned.notes)
    for cell in planned.cells:
        assert policy_of(cell).order_name == cell.axes["order"]
    with pytest.raises(InputError, match='add backfill = "planning"'):
        plan(campaign_of('[grid]\norder = ["dynp", "sjf"]'))
