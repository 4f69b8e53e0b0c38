"""The stand-in for the pbs module behaves as the documented one; see its own docstring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.mocks.pbs.hook import PbsHook, PbsReply, PbsSite
from foretime_sim.mocks.pbs.values import BadResourceValueError, Duration, Environment, Size

JOB: dict[str, Any] = {
    "id": "7.pbs",
    "Job_Owner": "alice@login",
    "queue": "workq",
    "Variable_List": "A=1,B=x\\,y",
    "Resource_List": {"walltime": "1:00:00", "mem": "2gb", "ncpus": 4},
}


def run(folder: Path, body: str, event: str = "queuejob", site: PbsSite | None = None) -> PbsReply:
    script = folder / "hook.py"
    script.write_text(f"import pbs\ne = pbs.event()\nj = e.job\nr = j.Resource_List\n{body}\n")
    hook = PbsHook(script, site=site)
    if event == "modifyjob":
        return hook.modifyjob({"Resource_List": {"ncpus": 8}}, JOB, "alice", 1_000)
    if event == "runjob":
        return hook.runjob(JOB, 1_000)
    return hook.queuejob(JOB, "alice", 1_000)


def test_durations_are_read_compared_and_added_as_by_pbs() -> None:
    assert [int(Duration(text)) for text in ("90", "1:30", "0:01:30", "90.4", 90)] == [90] * 5
    assert [int(Duration(text)) for text in ("89.5", "1:29.999", 89.5)] == [90] * 3
    assert [int(Duration(text)) for text in ("", "0", "00:00:00", "0.4", "0.")] == [0] * 5
    assert str(Duration("1:30")) == "1:30"
    assert str(Duration(90)) == "90"
    assert Duration("1:00:00") + 60 == 3_660
    assert Duration("2:00") > Duration(60) == 60
    for wrong in ("x", "1:2:3:4", "-5", "1::2", ".5", "1.x", "1e3"):
        with pytest.raises(BadResourceValueError):
            Duration(wrong)


def test_sizes_are_compared_and_added_as_by_pbs() -> None:
    assert Size("10gb") + Size("10mb") == Size("10250mb")
    assert str(Size("10gb") + "10mb") == "10250mb"
    assert str(Size("10gb") - Size("1gb")) == "9gb"
    assert Size("1kb") == 1024
    assert Size("2kw") == Size("16kb")
    assert Size(100) < Size("1kb") <= Size("1024b")
    for wrong in ("", "gb", "1xb", "1.5gb"):
        with pytest.raises(BadResourceValueError):
            Size(wrong)


def test_variables_are_read_with_their_escapes() -> None:
    variables = Environment("A=1,B=x\\,y,C")
    assert variables == {"A": "1", "B": "x\\,y"}
    assert str(variables) == "A=1,B=x\\,y"
    assert Environment({"A": 1})["A"] == "1"


def test_accept_and_reject_end_the_script(tmp_path: Path) -> None:
    assert run(tmp_path, "e.accept()\n1/0").accepted
    reply = run(tmp_path, "e.reject('no such thing')\n1/0")
    assert (reply.accepted, reply.message) == (False, "no such thing")
    assert run(tmp_path, "pass").accepted  # without either, it is accepted
    late = run(tmp_path, "try:\n    e.accept()\nexcept SystemExit:\n    r['ncpus'] = 1")
    assert "readonly" in late.message


def test_what_gets_out_rejects(tmp_path: Path) -> None:
    for body in ("1/0", "raise KeyboardInterrupt", "r['nonsense'] = 1", "r['ncpus'] = 'x'"):
        reply = run(tmp_path, body)
        assert not reply.accepted, body
        assert reply.message
        assert reply.changes == {}


def test_what_is_set_is_converted(tmp_path: Path) -> None:
    reply = run(
        tmp_path,
        "r['SOFT_walltime'] = '0:30:00'\nr.mem = '1gb'\nr['ncpus'] = None\nj.Priority = '5'\n"
        "j.Job_Name = 'x'\nj.comment = None",
    )
    assert reply.changes == {
        "Resource_List.soft_walltime": 1_800,
        "Resource_List.mem": "1gb",
        "Resource_List.ncpus": None,
        "Priority": 5,
        "Job_Name": "x",
        "comment": None,
    }


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("r['walltime']", "1:00:00"),
        ("r['walltime'] * 2", "7200"),
        ("r['mem'] > pbs.size('1gb')", "True"),
        ("r['cput']", "None"),
        ("'walltime' in r, 'nonsense' in r", "(True, False)"),
        ("sorted(r.keys())", "['mem', 'ncpus', 'walltime']"),
        ("str(r)", "walltime=1:00:00,mem=2gb,ncpus=4"),
        ("j.queue.name, str(j.queue), j.queue.queue_type", "('workq', 'workq', 1)"),
        ("j.Variable_List['A']", "1"),
        ("j.Account_Name", "None"),
        ("hasattr(j, 'nonsense')", "False"),
        ("str(j)", "7.pbs"),
        ("e.requestor, e.hook_name", "('alice', 'foretime')"),
        ("e.type == pbs.QUEUEJOB", "True"),
        ("pbs.server().name, str(pbs.server())", "('pbs', 'pbs')"),
        ("str(pbs.server().default_queue)", "workq"),
        ("pbs.server().queue('none')", "None"),
        ("[q.name for q in pbs.server().queues()]", "['workq']"),
        ("pbs.server().job('8.pbs').Resource_List['ncpus']", "2"),
        ("pbs.server().job('9.pbs')", "None"),
        ("pbs.hook_config_filename", "None"),
        ("__import__('time').time()", "1000.0"),
    ],
)
def test_what_a_hook_reads(tmp_path: Path, expression: str, value: str) -> None:
    site = PbsSite(jobs={"8.pbs": {"Resource_List": {"ncpus": 2}}})
    reply = run(tmp_path, f"pbs.logmsg(pbs.EVENT_DEBUG, str(({expression})))", site=site)
    assert reply.accepted, reply.message
    assert [(line.event_class, line.text) for line in reply.log] == [(0x80, value)]


@pytest.mark.parametrize(
    ("event", "body", "error"),
    [
        ("queuejob", "j.nonsense = 1", "UnsetAttributeNameError"),
        ("queuejob", "j.interactive = 'perhaps'", "BadAttributeValueError"),
        ("queuejob", "r['walltime'] = 'x'", "BadResourceValue"),
        ("queuejob", "r.nonsense = 1", "UnsetResourceNameError"),
        ("queuejob", "e.job_o", "EventIncompatibleError"),
        ("queuejob", "e.job = 1", "BadAttributeValueError"),
        ("queuejob", "e.nonsense = 1", "UnsetAttributeNameError"),
        ("queuejob", "j.queue.Priority = 1", "BadAttributeValueError"),
        ("queuejob", "pbs.server().scheduling = True", "BadAttributeValueError"),
        ("queuejob", "pbs.server().queue('a@b')", "AssertionError"),
        ("queuejob", "pbs.server().job('8.pbs').Priority = 1", "BadAttributeValueError"),
        ("modifyjob", "e.job_o.Priority = 1", "BadAttributeValueError"),
        ("modifyjob", "e.job_o.Resource_List['ncpus'] = 1", "BadResourceValueError"),
    ],
)
def test_what_pbs_forbids_raises_its_error(
    tmp_path: Path, event: str, body: str, error: str
) -> None:
    site = PbsSite(jobs={"8.pbs": {}})
    reply = run(tmp_path, body, event, site)
    assert not reply.accepted
    assert error in reply.message


def test_a_modification_shows_what_is_asked_and_what_is(tmp_path: Path) -> None:
    body = (
        "pbs.logjobmsg(j.id, '%s %s %s' % (r['ncpus'], r['mem'], e.job_o.Resource_List['ncpus']))"
    )
    reply = run(tmp_path, body, "modifyjob")
    assert [(line.job_id, line.text) for line in reply.log] == [("7.pbs", "8 None 4")]


def test_a_modification_shows_what_is_taken_away_and_the_jobs_variables(tmp_path: Path) -> None:
    """As a running OpenPBS does: no text, and Variable_List also where nobody asked for it."""
    script = tmp_path / "hook.py"
    script.write_text(
        "import pbs\ne = pbs.event()\nr = e.job.Resource_List\n"
        "pbs.logmsg(pbs.EVENT_DEBUG, '%r %r %s %s' % "
        "(r['walltime'], r['soft_walltime'], list(r.keys()), dict(e.job.Variable_List)))\n"
    )
    request = {"Resource_List": {"walltime": ""}}
    shown = []
    for job in (JOB, {"id": "8.pbs"}):
        reply = PbsHook(script).modifyjob(request, job, "alice", 1_000)
        assert (reply.accepted, reply.changes) == (True, {})
        shown.append(reply.log[0].text)
    assert shown == ["'' None ['walltime'] {'A': '1', 'B': 'x\\\\,y'}", "'' None ['walltime'] {}"]


@pytest.mark.parametrize("value", ["0", "'0.4'", "pbs.duration('00:00:00')", "pbs.duration(0.4)"])
def test_what_pbs_sched_would_die_of_raises(tmp_path: Path, value: str) -> None:
    """pbs_server takes it, so it must not look as if it were unset."""
    for event in ("queuejob", "modifyjob", "runjob"):
        with pytest.raises(
            InputError, match=r"hook\.py: a soft_walltime of 0 s.*pbs_sched divides"
        ):
            run(tmp_path, f"r['soft_walltime'] = {value}", event)
    assert run(tmp_path, f"r['cput'] = {value}").changes == {"Resource_List.cput": 0}
    assert run(tmp_path, "r['soft_walltime'] = '0.5'").changes == {"Resource_List.soft_walltime": 1}


def test_a_release_without_a_name_raises_on_it(tmp_path: Path) -> None:
    site = PbsSite(without=frozenset({"QTYPE_ROUTE"}))
    reply = run(tmp_path, "pbs.QTYPE_ROUTE", site=site)
    assert "QTYPE_ROUTE" in reply.message


def test_a_script_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't load the hook"):
        PbsHook(tmp_path / "none.py")
    (tmp_path / "bad.py").write_text("def")
    with pytest.raises(InputError, match="can't load the hook"):
        PbsHook(tmp_path / "bad.py")
