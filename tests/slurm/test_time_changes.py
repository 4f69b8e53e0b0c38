"""With the hook Slurm answers a change of a job's times as without, and a user's TimeMin stays.

The expected answers are the tables of `tests.support.hooks.time_changes`. Each change is made on a
plain cluster and, with Foretime's table in every state, on one with the hook. There a note in
AdminComment says which TimeMin are Foretime's.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pytest
from foretime_sidecar.table.table import Mode, TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.support.hooks.time_changes import (
    HOLDINGS,
    LIMIT_MIN,
    REFUSED,
    Holding,
    with_hook,
    without_foretime,
    words_of,
)

STATES = ("enforce", "observe", "disabled", "stale", "none")
OWNER, ROOT, SLURM_USER = "alice", "root", "slurm"
CHOSEN = ("none", "user's", "user's since", "user's given back", "ours", "ours over 4", "refined")
OWNERS_CHANGES = (
    "Comment=foretime:off",
    "TimeLimit=25",
    "TimeLimit=15",
    "TimeLimit=10",
    "TimeLimit=5",
    "TimeLimit=3",
    "TimeLimit=0",
    "TimeLimit=UNLIMITED",
    "TimeMin=6",
    "TimeLimit=5,TimeMin=3",
    "TimeLimit=5,TimeMin=7",
)
OTHERS_CHANGES = ("Comment=foretime:off", "TimeLimit=25", "TimeLimit=5", "TimeLimit=3")
RUNNING_CHANGES = ("TimeLimit=15", "TimeLimit=10", "TimeLimit=5", "TimeLimit=3")


@dataclass(frozen=True)
class Case:
    """One change of one job."""

    holding: str
    change: str
    who: str
    running: bool = False


PENDING = [Case(*words, OWNER) for words in itertools.product(CHOSEN, OWNERS_CHANGES)]
BY_OTHERS = [
    Case(*words) for words in itertools.product(CHOSEN, OTHERS_CHANGES, (ROOT, SLURM_USER))
]
RUNNING = [
    Case(*words, running=True)
    for words in itertools.product(CHOSEN, RUNNING_CHANGES, (ROOT, OWNER))
    if words[0] in ("none", "user's", "ours", "ours over 4")
]
CASES = {
    "enforce": (*PENDING, *BY_OTHERS, *RUNNING),
    "observe": (*PENDING, *BY_OTHERS, *RUNNING),
    **dict.fromkeys(("disabled", "stale", "none"), tuple(PENDING)),
}


@dataclass(frozen=True)
class Outcome:
    """What a change came to; times as scontrol shows them."""

    accepted: bool
    limit: str
    time_min: str


def _shown(minutes: str) -> str:
    return f"{int(minutes) // 60:02}:{int(minutes) % 60:02}:00" if minutes.isdecimal() else minutes


def expected(case: Case, cell: str, before: int | None) -> Outcome:
    """What a cell of a table says; ``before``: TimeMin before the change, minutes."""
    accepted = cell != REFUSED
    asked = words_of(case.change).get("TimeLimit") if accepted else None
    limit = _shown(asked or str(LIMIT_MIN))
    if not accepted or case.running:
        cell = "-" if before is None else str(before)
    return Outcome(accepted, limit, "N/A" if cell == "-" else _shown(cell))


def holding_of(case: Case, *, plain: bool) -> Holding:
    holding = HOLDINGS[case.holding]
    return Holding(holding.plain, "", holding.plain) if plain else holding


def make_changes(
    cluster: SlurmCluster, cases: Iterable[Case], *, plain: bool
) -> dict[Case, Outcome]:
    """Submit a job for each case, change it, and look what became of it."""
    ids: dict[Case, str] = {}
    prepared = []
    for case in cases:
        holding = holding_of(case, plain=plain)
        own = [] if holding.time_min is None else [f"--time-min={holding.time_min}"]
        job_id = ids[case] = cluster.sbatch("-n", "1", "-t", str(LIMIT_MIN), "--hold", *own)
        if holding.note:
            prepared.append(f"update JobId={job_id} AdminComment={holding.note}")
        if case.running:
            prepared.append(f"release {job_id}")
    cluster.checked(["scontrol"], stdin="\n".join([*prepared, "quit", ""]))
    running = [ids[case] for case in ids if case.running]
    for job_id in running:
        cluster.wait_for_state(job_id, "RUNNING")
        # Without the soft limit Slurm may have started it with less, by its TimeMin.
        cluster.checked(["scontrol", "update", f"JobId={job_id}", f"TimeLimit={LIMIT_MIN}"])
    accepted = {}
    for case, job_id in ids.items():
        words = [f"{word}={value}" for word, value in words_of(case.change).items()]
        reply = cluster.scontrol("update", f"JobId={job_id}", *words, user=case.who)
        accepted[case] = reply.returncode == 0
    shown = {job["JobId"]: job for job in cluster.jobs()}
    found = {
        case: Outcome(accepted[case], shown[job_id]["TimeLimit"], shown[job_id]["TimeMin"])
        for case, job_id in ids.items()
    }
    cluster.checked(["scancel", f"--user={OWNER}"])
    return found


def change_array(cluster: SlurmCluster, *, plain: bool) -> dict[str, Outcome]:
    """Lower the limit of a whole array, of whose tasks one has a TimeMin of its user's own."""
    ours = Case("ours over 4", "TimeLimit=5", OWNER)
    holding = holding_of(ours, plain=plain)
    array = cluster.sbatch(
        "--array=1-3", "-t", str(LIMIT_MIN), "--hold", f"--time-min={holding.time_min}"
    )
    if holding.note:
        cluster.checked(["scontrol", "update", f"JobId={array}", f"AdminComment={holding.note}"])
    cluster.checked(["scontrol", "update", f"JobId={array}_2", "TimeMin=12"], OWNER)
    reply = cluster.scontrol("update", f"JobId={array}", "TimeLimit=5", user=OWNER)
    return {
        job["ArrayTaskId"]: Outcome(reply.returncode == 0, job["TimeLimit"], job["TimeMin"])
        for job in cluster.jobs(array)
    }


def bring_about(cluster: SlurmCluster, state: str) -> None:
    """Have Foretime's table be in a state."""
    cluster.disable_file.unlink(missing_ok=True)
    mode = Mode.OBSERVE if state == "observe" else Mode.ENFORCE
    settings = replace(cluster.default_settings(), mode=mode)
    now = int(time.time())
    valid_until = now - 1 if state == "stale" else now + 86_400
    # Who submits would be planned, were that not switched off.
    rows = [] if state == "enforce" else [TableRow("user", OWNER, 0, 200_000)]
    cluster.publish(rows, settings, written_at=now - 60, valid_until=valid_until)
    if state == "none":
        cluster.table.unlink()
    elif state == "disabled":
        cluster.disable_file.touch()


@dataclass(frozen=True)
class Found:
    """What came of all changes, by the state of Foretime's table, "plain" without the hook."""

    changes: Mapping[str, Mapping[Case, Outcome]]
    arrays: Mapping[str, Mapping[str, Outcome]]


def EXPERIMENT(release: SlurmRelease) -> Found:  # noqa: N802
    parameters = {"time_min_as_soft_limit": None} if release.soft_limit else {}
    changes, arrays = {}, {}
    with SlurmCluster(release, cpus=64, scheduler_parameters=parameters) as plain:
        changes["plain"] = make_changes(plain, CASES["observe"], plain=True)
        arrays["plain"] = change_array(plain, plain=True)
    with SlurmCluster(release, cpus=64, scheduler_parameters=parameters) as hooked:
        hooked.install_hook()
        for state in STATES:
            bring_about(hooked, state)
            changes[state] = make_changes(hooked, CASES[state], plain=False)
            arrays[state] = change_array(hooked, plain=False)
    return Found(changes, arrays)


def test_plain_slurm_answers_as_the_table_says(experiment: Found) -> None:
    for case, found in experiment.changes["plain"].items():
        holding = HOLDINGS[case.holding]
        cell = without_foretime(holding, case.change)
        assert found == expected(case, cell, holding.plain), case


@pytest.mark.parametrize("state", STATES)
def test_the_hook_changes_no_answer_and_nothing_of_a_users(experiment: Found, state: str) -> None:
    for case, found in experiment.changes[state].items():
        holding = HOLDINGS[case.holding]
        plain = experiment.changes["plain"][case]
        assert (found.accepted, found.limit) == (plain.accepted, plain.limit), case
        if not holding.is_ours:
            assert found == plain, case
        cell = with_hook(holding, case.change)
        assert found == expected(case, cell, holding.time_min), case


@pytest.mark.parametrize("state", ["plain", *STATES])
def test_each_task_of_an_array_is_judged_by_itself(experiment: Found, state: str) -> None:
    refused = Outcome(False, "00:20:00", "00:12:00")
    for task, found in experiment.arrays[state].items():
        assert found == (refused if task == "2" else Outcome(False, "00:05:00", "00:04:00"))
