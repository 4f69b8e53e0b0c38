"""The mock PBS and its stand-in for the hook's server say what a real one said.

``tests/assets/pbs/openpbs/answers.json`` has what OpenPBS answered, with the hook, to the forms of
``tests/pbs/forms.toml``, where all are planned with a fifth.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.table.table import Mode, Table, TableRow, TableSettings, write_table
from foretime_sim.mocks.pbs.hook import PbsHook, PbsSite
from foretime_sim.mocks.pbs.mock_pbs import MANAGER, MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.policy import Policy

from tests.pbs.answers import SETTINGS, Form, forms, read_recorded

NOW = int(time.time())
USERS = ("alice", "bob", "carol", "manager")
SOFT = "Resource_List.soft_walltime"
# What qsub's options are at queuejob.
ATTRIBUTES = {
    "-A": "Account_Name",
    "-P": "project",
    "-u": "User_List",
    "-q": "queue",
    "-N": "Job_Name",
    "-r": "Rerunable",
    "-p": "Priority",
    "-S": "Shell_Path_List",
    "-h": "Hold_Types",
    "-J": "array_indices_submitted",
}
RECORDED = read_recorded()


def seconds(text: str | None) -> int | None:
    if text is None:
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


@pytest.fixture
def hook(tmp_path: Path) -> PbsHook:
    """The shipped hook in a server with the queues that the recorded one had."""
    queues: dict[str, dict[str, Any]] = {"workq": {"queue_type": "Execution"}}
    for line in SETTINGS:
        if made := re.match(r"create queue (\w+) queue_type=(\w)", line):
            kind = {"e": "Execution", "r": "Route"}[made[2]]
            queues[made[1]] = {"queue_type": kind}
        if had := re.match(r"set queue (\w+) (resources_\w+)\.(\w+)=(\d+)", line):
            queues[had[1]].setdefault(had[2], {})[had[3]] = had[4]
    table = Table(
        1,
        NOW,
        NOW + 86_400,
        TableSettings(
            mode=Mode.ENFORCE, minimum_adjustment=0.0, minimum_scheduled_time_s=1, rounding_s=1
        ),
        rows=tuple(TableRow("user", user, 0, 200_000) for user in USERS),
    )
    write_table(tmp_path / "table", table)
    config = tmp_path / "config"
    config.write_text(f'{{"table": "{tmp_path}/table", "disable_file": null}}')
    server = {"name": "pbs01", "default_queue": "workq", "default_chunk": {"ncpus": 1}}
    site = PbsSite(queues=queues, server=server, resources={"licences": int})
    return PbsHook(config=config, site=site)


def request(form: Form) -> dict[str, Any] | None:
    """Give a form as queuejob shows it; ``None`` if it has options that no attribute stands for."""
    job: dict[str, Any] = {"Resource_List": {}, "Variable_List": {}}
    words = [word for part in shlex.split(form.qsub) for word in (part[:2], part[2:]) if word]
    for option, value in zip(words[::2], words[1::2], strict=False):
        if option == "-l":
            for each in value.split(","):
                name, _, wanted = each.partition("=")
                job["Resource_List"][name] = wanted
        elif option == "-v":
            job["Variable_List"] = dict(each.split("=", 1) for each in value.split(","))
        elif option in ATTRIBUTES:
            job[ATTRIBUTES[option]] = value
        else:
            return None
    return None if "{" in form.qsub or "#PBS" in form.script or len(words) % 2 else job


QUEUED = [
    form
    for form in forms()
    if not form.steps and request(form) is not None and RECORDED[form.name]["replies"][0][0] == 0
]


@pytest.mark.parametrize("form", QUEUED, ids=lambda form: form.name)
def test_the_hook_decides_at_submission_as_in_a_real_server(form: Form, hook: PbsHook) -> None:
    job, was = request(form), RECORDED[form.name]
    assert job is not None
    reply = hook.queuejob(job, form.user, NOW)
    assert reply.accepted
    assert reply.changes.get(SOFT) == seconds(was["soft_walltime"])
    logged = dict(word.split("=", 1) for word in reply.log[-1].text.split()[1:] if "=" in word)
    assert f"{logged['decision']} {logged['reason']}" == was["decision"]


def alterations(form: Form) -> list[tuple[str, dict[str, int | None]]] | None:
    """Give a form's steps as the mock takes them; ``None`` if it can't."""
    steps = []
    for step in form.steps:
        asked = re.fullmatch(
            r"(alice|manager|root) qalter -l((?:soft_)?walltime)=(\d*) \{job\}", step
        )
        if not asked:
            return None
        value = int(asked[3]) if asked[3] else None
        steps.append(("alice" if asked[1] == "alice" else MANAGER, {asked[2]: value}))
    return steps


ALTERED = [
    form
    for form in forms()
    if form.steps
    and alterations(form) is not None
    and form.qsub in ("", "-lwalltime=1000", "-lmin_walltime=100,max_walltime=1000")
    and form.ends != "F"
]


@pytest.mark.parametrize("form", ALTERED, ids=lambda form: form.name)
def test_the_mock_answers_a_change_as_a_real_server(form: Form, hook: PbsHook) -> None:
    was = RECORDED[form.name]
    pbs = MockPbs(PbsSetup(8), Policy(), hook, NOW)
    if not form.runs:
        pbs.submit(submission(8, 1000))
        pbs.advance(NOW + 1)
    listed = dict(word.split("=") for word in form.qsub.removeprefix("-l").split(",") if word)
    walltime = listed.pop("walltime", None)
    name = pbs.submit(submission(1, None if walltime is None else int(walltime), listed))
    pbs.advance(NOW + 2)
    for (requestor, change), (exit_code, said) in zip(
        alterations(form) or (), was["replies"][1:], strict=True
    ):
        assert (exit_code, said) == altered(pbs, name, change, requestor, exit_code)
    resources = pbs.job_at(pbs.index_of(name)).resources
    assert resources.get("walltime") == seconds(was["resources"].get("walltime"))
    assert resources.get("soft_walltime") == seconds(was["soft_walltime"])


def altered(
    pbs: MockPbs, name: str, change: dict[str, int | None], requestor: str, refusal: int
) -> tuple[int, str]:
    """Give what qalter would answer: the mock tells no exit code but that it was refused."""
    try:
        pbs.alter(name, change, requestor)
    except SchedulerError as refused:
        return refusal or 1, str(refused).replace(name, "JOB.pbs01")
    return 0, ""


def test_there_are_enough_of_both() -> None:
    assert len(QUEUED) >= 50
    assert len(ALTERED) >= 15


def submission(
    processors: int, walltime: int | None, more: Mapping[str, int | str] | None = None
) -> PbsSubmission:
    return PbsSubmission(
        user="alice",
        account=None,
        queue="workq",
        processors=processors,
        requested_time=walltime,
        actual_runtime=500,
        resources=dict(more or {}),
    )
