"""What a cell gives is what a direct simulation gives; runs stop, go on and survive failures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.campaigns.campaign import Campaign
from foretime_sim.campaigns.cells import Cell, plan
from foretime_sim.campaigns.execution import LocalProcesses, execute, to_do
from foretime_sim.campaigns.failures import causes
from foretime_sim.campaigns.file import read_campaign
from foretime_sim.campaigns.runs import Record, attempt, run_cell
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.logs.swf import write_swf
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models import lublin2003, tsafrir2005, workload_models
from foretime_sim.policies.families import Backfill, Compression, Conservative, Easy, Slack
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.slack import InsertionOrder, SlackSettings
from foretime_sim.scores.metrics import ScoredSpan, score, scored_span
from foretime_sim.workloads.job_log import log_of_workload, missing_column
from foretime_sim.workloads.workload import Workload

Make = Callable[[str], Campaign]

GRID = """
[grid]
order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
seeds = 3
"""


class InProcess:
    """Runs cells here, and counts them."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, cells: Sequence[Cell]) -> Generator[Record]:
        for cell in cells:
            self.ran.append(cell.id)
            yield attempt(cell)


def figures(record: Record) -> object:
    """Give what must be the same wherever and whenever a cell is run."""
    run = {key: value for key, value in record["run"].items() if key != "simulation_s"}
    return record["metrics"], run


def test_the_log_as_it_is_gives_what_simulate_gives(campaign_of: Make) -> None:
    campaign = campaign_of('[grid]\norder = "sjf"\nbackfill = "easy-sjbf"')
    (cell,) = plan(campaign).cells
    workload = lublin2003.generate(150, processors=32, seed=1, load=0.7)
    policy = Policy(order=Order.SJF, backfill=Backfill.EASY_SJBF)
    schedule = simulate_with_estimator(workload, policy, estimator_of("requested", workload))
    np.testing.assert_array_equal(schedule.start_time, simulate(workload, policy).start_time)
    expected = score(workload, schedule)
    assert run_cell(cell)["metrics"] == expected.to_dict()


def test_estimates_reach_the_simulation(tmp_path: Path) -> None:
    """Of what is generated and of a log without requests, by their seed."""
    made = lublin2003.generate(120, processors=32)
    log = log_of_workload(made)
    log = dataclasses.replace(log, requested_time=missing_column(120))
    write_swf(log, tmp_path / "none.swf")
    path = tmp_path / "estimates.toml"
    path.write_text(
        "[[logs]]\npath = 'none.swf'\nestimates = 'tsafrir'\nlongest_estimate_s = 259_200\n"
        "seed = 3\n[[logs]]\ngenerate = 'lublin2003'\njobs = 120\nprocessors = 32\n"
        "estimates = 'tsafrir'\n[scoring]\nwarm_up_s = 0\n"
    )
    logged, generated = plan(read_campaign(path)).cells
    whole = tsafrir2005.with_estimates(made, tsafrir2005.Tsafrir2005(259_200), seed=3)

    def scores(workload: Workload) -> dict[str, Any]:
        requested = estimator_of("requested", workload)
        schedule = simulate_with_estimator(workload, Policy(), requested)
        return score(workload, schedule).to_dict()

    assert run_cell(logged)["metrics"] == scores(whole)
    drawn = workload_models.generate("lublin2003", jobs=120, processors=32, estimates="tsafrir")
    assert run_cell(generated)["metrics"] == scores(drawn)
    # The seed is a part of what a cell is, of logs, too, where estimates are drawn by it.
    path.write_text(path.read_text().replace("seed = 3", "seed = 4"))
    assert plan(read_campaign(path)).cells[0].id != logged.id
    path.write_text("[[logs]]\npath = 'none.swf'\nlongest_estimate_s = 7_200\n")
    with pytest.raises(InputError, match="this is for estimates"):
        read_campaign(path)
    path.write_text("[[logs]]\npath = 'none.swf'\nseed = 3\n")
    with pytest.raises(InputError, match="this is for generated workloads"):
        read_campaign(path)


def test_every_axis_reaches_the_simulation(campaign_of: Make) -> None:
    campaign = campaign_of("""
tau_s = 60
cool_down_share = 0.2
jitter_s = 30
[grid]
order = "wfp"
backfill = "easy"
estimator = "last-two"
correction = "doubling"
roles = "110"
guard_s = 600
interarrival_factor = 0.5
seeds = [3]
""")
    (cell,) = plan(campaign).cells
    workload = lublin2003.generate(150, processors=32, seed=1, load=0.7)
    span = scored_span(workload, cool_down_share=0.2)
    first = int(workload.submit_time[0])
    assert span.end_time is not None
    end = first + round((span.end_time - first) * 0.5)
    workload = workload.with_interarrival_factor(0.5)
    rng = np.random.default_rng([1, 2])
    workload = workload.jittered(rng, 30).shuffled_ties(rng)
    roles = Roles(True, True, False)
    policy = Policy(Order.WFP, Easy(guard=Guard(600)), Correction.DOUBLING, roles=roles)
    schedule = simulate_with_estimator(workload, policy, estimator_of("last-two", workload))
    expected = score(workload, schedule, campaign.scoring.settings, ScoredSpan(None, end))
    record = run_cell(cell)
    assert record["metrics"] == expected.to_dict()
    assert record["run"]["guard_activations"] == schedule.guard_activations


@pytest.mark.parametrize(
    ("grid", "policy", "reservations"),
    [
        ("depth = 3", Policy(backfill=Easy(depth=3)), ()),
        ('backfill = "planning"\norder = "sjf"', Policy(Order.SJF, Backfill.PLANNING), ()),
        (
            'backfill = "conservative"\ncompression = "one-by-one"',
            Policy(backfill=Conservative(Compression.ONE_BY_ONE)),
            (),
        ),
        (
            'backfill = "slack"\nslack_factor = 9\naverage_wait_s = 60\ninsertion_order = "dp"',
            Policy(backfill=Slack(SlackSettings(9, 60, insertion_order=InsertionOrder.DP))),
            (),
        ),
        ('backfill = "slack"', Policy(backfill=Backfill.SLACK), ()),
        (
            'backfill = "first-fit"\nreservations = "closed.csv"',
            Policy(backfill=Backfill.FIRST_FIT),
            (AdvanceReservation(86_400, 36_000, 32),),
        ),
    ],
)
def test_every_family_and_reservations_reach_the_engine(
    campaign_of: Make,
    tmp_path: Path,
    grid: str,
    policy: Policy,
    reservations: tuple[AdvanceReservation, ...],
) -> None:
    (tmp_path / "closed.csv").write_text("start,duration,processors\n86400,36000,32\n")
    (cell,) = plan(campaign_of(f"check = true\n[grid]\n{grid}")).cells
    workload = lublin2003.generate(150, processors=32, seed=1, load=0.7)
    estimator = estimator_of("requested", workload)
    schedule = simulate_with_estimator(workload, policy, estimator, reservations=reservations)
    assert run_cell(cell)["metrics"] == score(workload, schedule).to_dict()


def test_policies_of_the_users_own_are_found_in_the_campaigns_folder(
    campaign_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "campaign_policies_here.py").write_text(
        "def shortest(queue, now):\n    return -queue.scheduled_time\n"
        "def broken(queue, now):\n    return queue.nothing\n"
    )
    monkeypatch.chdir("/")
    planned = plan(
        campaign_of(
            '[grid]\norder = ["sjf", "campaign_policies_here:shortest",'
            ' "campaign_policies_here:broken"]\nestimator = "last-two"'
        )
    )
    built_in, own, broken = (attempt(cell) for cell in planned.cells)
    assert built_in["metrics"] == own["metrics"]
    assert broken["status"] == "failed"
    assert "campaign_policies_here" in broken["error"]


@pytest.mark.parametrize("correction", list(Correction))
def test_what_is_said_to_have_no_effect_has_none(correction: Correction) -> None:
    workload = lublin2003.generate(400, processors=32, seed=5, load=0.9)
    plain = simulate(workload, Policy())
    for estimator in ("requested", "actual"):
        base = simulate_with_estimator(workload, Policy(), estimator_of(estimator, workload))
        policies = [Policy(correction=correction)]
        if estimator == "requested":
            policies.append(Policy(correction=correction, roles=Roles(False, True, False)))
            policies.append(Policy(backfill=Easy(guard=Guard(0)), correction=correction))
        for policy in policies:
            other = simulate_with_estimator(workload, policy, estimator_of(estimator, workload))
            np.testing.assert_array_equal(other.start_time, base.start_time)
            np.testing.assert_array_equal(other.end_time, base.end_time)
    assert (plain.start_time > workload.submit_time).any()


def test_a_split_gives_the_estimator_a_history(campaign_of: Make, tmp_path: Path) -> None:
    text = (
        "[grid]\nestimator = 'last-two'\nlearn = [true, false]\n"
        "[report]\nbaseline = {learn = true}\n"
    )
    campaign = campaign_of(text)
    path = tmp_path / "small.toml"
    path.write_text(path.read_text().replace("jobs = 150", "jobs = 150\nsplit = 1"))
    before = [run_cell(cell) for cell in plan(campaign).cells]
    after = [run_cell(cell) for cell in plan(read_campaign(path)).cells]
    history, rest = lublin2003.generate(150, processors=32).split(86_400)
    assert before[0]["run"]["simulated_jobs"] == 150
    assert after[0]["run"]["simulated_jobs"] == len(rest) < 150
    for record, learn in zip(after, (True, False), strict=True):
        schedule = simulate_with_estimator(
            rest, Policy(), estimator_of("last-two", rest), learn=learn, history=history
        )
        assert record["metrics"] == score(rest, schedule).to_dict()


def test_what_was_interrupted_goes_on_without_repeating(campaign_of: Make, tmp_path: Path) -> None:
    planned, store = plan(campaign_of(GRID)), CampaignStore(tmp_path / "out")
    first, second, third = InProcess(), InProcess(), InProcess()

    def stop(_: Cell, __: Record) -> None:
        if len(first.ran) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(planned, store, first, progress=stop)
    assert len(store.records()) == 5
    outcome = execute(planned, store, second)
    assert outcome.executed == 7
    assert first.ran + second.ran == [cell.id for cell in planned.cells]
    assert execute(planned, store, third).executed == 0
    assert not third.ran
    whole = execute(planned, CampaignStore(tmp_path / "other"), InProcess())
    for cell in planned.cells:
        assert figures(outcome.records[cell.id]) == figures(whole.records[cell.id])


@pytest.mark.parametrize("kept", [b'{"format":1,"id":"a', b"\0\0\0", b"7"])
def test_a_last_line_that_was_cut_short_is_taken_out(
    campaign_of: Make, tmp_path: Path, kept: bytes
) -> None:
    planned, store = plan(campaign_of(GRID)), CampaignStore(tmp_path / "out")
    execute(planned, store, InProcess())
    whole = store.path.read_bytes()
    first, _, after = whole.partition(b"\n")
    # Of the last record only the end of its line is missing: it is whole.
    store.path.write_bytes(after + first)
    assert execute(planned, store, InProcess()).executed == 0
    assert store.path.read_bytes() == after + first + b"\n"
    store.path.write_bytes(after + kept)
    assert len(store.records()) == 11
    assert execute(planned, store, InProcess()).executed == 1
    assert kept not in store.path.read_bytes().splitlines()
    assert len(store.records()) == 12


@pytest.mark.parametrize(
    "damage", [b'{"format":1,"id":"a', b"\0\0", b"7", b'{"format":1}', b"\xff"]
)
def test_a_damaged_line_is_told(campaign_of: Make, tmp_path: Path, damage: bytes) -> None:
    planned, store = plan(campaign_of(GRID)), CampaignStore(tmp_path / "out")
    execute(planned, store, InProcess())
    lines = store.path.read_bytes().splitlines()
    lines[2] = damage
    store.path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match=r"cells\.jsonl:3: the line is damaged"):
        execute(planned, store, InProcess())
    # What is told to do helps.
    store.path.write_bytes(b"\n".join([*lines[:2], *lines[3:]]) + b"\n")
    assert execute(planned, store, InProcess()).executed == 1


def test_records_of_another_version_are_passed_over(tmp_path: Path) -> None:
    store = CampaignStore(tmp_path)
    store.path.write_text('{"format":0,"id":"a"}\n{"format":1,"id":"b"}\n')
    assert store.records() == {"b": {"format": 1, "id": "b"}}


def test_only_what_is_new_is_run_when_a_campaign_grows(campaign_of: Make, tmp_path: Path) -> None:
    store = CampaignStore(tmp_path / "out")
    execute(plan(campaign_of(GRID)), store, InProcess())
    grown = InProcess()
    outcome = execute(plan(campaign_of(GRID.replace("3", "4"))), store, grown)
    assert len(grown.ran) == 4
    assert len(outcome.records) == 16


def test_processes_give_what_one_process_gives(campaign_of: Make, tmp_path: Path) -> None:
    planned = plan(campaign_of(GRID))
    here = execute(planned, CampaignStore(tmp_path / "here"), InProcess()).records
    there = execute(planned, CampaignStore(tmp_path / "there"), LocalProcesses(2)).records
    assert here.keys() == there.keys() == {cell.id for cell in planned.cells}
    for identity, record in here.items():
        assert figures(record) == figures(there[identity])
    left = [" ".join(child.cmdline()) for child in psutil.Process().children()]
    assert not [line for line in left if "spawn_main" in line]


def test_a_cell_that_fails_is_told_and_the_others_go_on(campaign_of: Make, tmp_path: Path) -> None:
    (tmp_path / "broken.swf").write_text("; MaxProcs: 8\n1 2 3\n")
    planned = plan(campaign_of('[[logs]]\npath = "broken.swf"\n' + GRID))
    store, count = CampaignStore(tmp_path / "out"), InProcess()
    outcome = execute(planned, store, count)
    assert len(outcome.failed) == 12
    assert sum(record["status"] == "done" for record in outcome.records.values()) == 12
    for record in outcome.failed:
        assert record["axes"]["log"] == "broken"
        assert "broken.swf:2" in record["error"]
        assert record["traceback"] is None
    # Failed cells are done with, unless they are asked for.
    assert execute(planned, store, count).executed == 0
    assert len(to_do(planned, store.records(), retry_failed=True)) == 12
    assert execute(planned, store, count, retry_failed=True).executed == 12
    assert len(store.records()) == 24


def test_a_worker_that_dies_fails_one_cell_only(campaign_of: Make, tmp_path: Path) -> None:
    (tmp_path / "deadly_order_here.py").write_text(
        "import multiprocessing, os, signal\n"
        "if multiprocessing.parent_process() is not None:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "def order(queue, now):\n    return queue.submit_time\n"
    )
    text = GRID.replace('"sjf"', '"deadly_order_here:order"').replace("3", "1")
    planned = plan(campaign_of(text))
    outcome = execute(planned, CampaignStore(tmp_path / "out"), LocalProcesses(2))
    assert len(outcome.records) == 4
    assert [record["axes"]["order"] for record in outcome.failed] == ["deadly_order_here:order"] * 2
    for record in outcome.failed:
        assert "killed by SIGKILL" in record["error"]
        assert "memory" in record["error"]


def test_two_runs_do_not_write_into_one_folder(campaign_of: Make, tmp_path: Path) -> None:
    planned, store = plan(campaign_of("")), CampaignStore(tmp_path / "out")
    with store.writing(), pytest.raises(InputError, match="a campaign is running into this folder"):
        execute(planned, store, InProcess())
    assert execute(planned, store, InProcess()).executed == 1


def test_a_line_that_was_cut_short_is_run_again(campaign_of: Make, tmp_path: Path) -> None:
    planned, store = plan(campaign_of(GRID)), CampaignStore(tmp_path / "out")
    execute(planned, store, InProcess())
    whole = store.path.read_bytes()
    for cut in (2, 40, len(whole) // 2):
        store.path.write_bytes(whole[:-cut])
        kept = whole[:-cut].count(b"\n")
        again = InProcess()
        outcome = execute(planned, store, again)
        assert len(again.ran) == 12 - kept
        assert len(outcome.records) == 12
    for line in store.path.read_text().splitlines()[-2:]:
        json.loads(line)


def test_a_folder_that_can_not_be_written(campaign_of: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.*: can't write the results: (File|Not)"):
        execute(plan(campaign_of("")), CampaignStore(tmp_path / "file"), InProcess())


def test_an_older_foretime_on_a_worker_is_told(
    campaign_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = plan(campaign_of("")).cells
    monkeypatch.setattr("foretime_sim.campaigns.runs.foretime_version", lambda: "0.0.1")
    record = attempt(cell)
    assert record["status"] == "failed"
    assert "has foretime 0.0.1" in record["error"]


def test_failures_are_counted_by_their_cause() -> None:
    def failed(error: str) -> dict[str, Any]:
        return {"error": error}

    same = "order m:f failed at 2001-01-0{0}T00:00:0{0} (-{0} s) with {0}0 waiting: m.py:18: f(): E"
    records = [
        failed(same.format(1)),
        failed("log1.swf:7: wrong"),
        failed(same.format(2)),
        failed(same.format(3).replace(":18", ":19")),
        failed("log2.swf:7: wrong"),
        failed("log2.swf:7: wrong"),
    ]
    found = causes(records)
    assert [cause.cells for cause in found] == [2, 1, 1, 2]
    assert [records.index(cause.example) for cause in found] == [0, 1, 3, 4]
    assert causes([]) == []
