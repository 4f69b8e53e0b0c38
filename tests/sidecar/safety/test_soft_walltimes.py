"""Plans that the daemon, or foretime disable, takes back on the mock PBS."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.clients.pbs.dedicated_time import parse_dedicated_times, read_dedicated_times
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.safety import planning_switch
from foretime_sidecar.safety.planning_switch import give_back
from foretime_sidecar.safety.soft_walltimes import given_back
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.decisions import Decisions
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.policy import Correction, Policy

START = 1_800_000_000 // 60 * 60
HOUR = 3600
LOGGED = "took soft_walltime from"


class Site:
    """A mock PBS of eight processors, whose jobs a manager has planned with 10 minutes."""

    def __init__(self, folder: Path, mode: str = "enforce") -> None:
        self.pbs = MockPbs(PbsSetup(8), Policy(correction=Correction.PBS), None, START)
        self.file = folder / "dedicated_time"
        self.client = PbsCommands(self.pbs.run, dedicated_time=str(self.file))
        settings = Settings.model_validate(
            {
                "scheduler": {"kind": "pbs", "history_days": 1},
                "table": {"path": str(folder / "table")},
                "hook": {"mode": mode, "mechanism": "pbs-soft-walltime"},
            }
        )
        self.store = Store(folder / "store")
        self.sidecar = Sidecar(settings, self.client, self.store)

    def submit(self, walltime: int | None, *, processors: int = 1, **more: Any) -> str:
        job = PbsSubmission("ann", None, None, processors, walltime, 5 * HOUR, **more)
        name = self.pbs.submit(job)
        self.pbs.alter(name, {"soft_walltime": 600})
        return name

    def advance(self, seconds: int) -> None:
        self.pbs.advance(START + seconds)

    def look(self) -> None:
        self.sidecar.look(self.pbs.now)

    def dedicate(self, begin: int, end: int) -> None:
        words = [time.strftime("%m/%d/%Y %H:%M", time.localtime(at)) for at in (begin, end)]
        self.file.write_text(f"# from to\n{' '.join(words)}\n")

    def soft(self, name: str) -> int | None:
        found = self.pbs.job_at(self.pbs.index_of(name)).resources.get("soft_walltime")
        return None if found is None else int(found)

    def said_of(self, name: str) -> list[tuple[str, str]]:
        found = Decisions(self.store).find(job_ids=(name,), user=None, since=None, limit=9)
        return [(each.action, each.reason) for each in found]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_dedicated_time_announced_later_takes_plans_back(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    running = site.submit(6 * HOUR, processors=8)
    waiting, short = site.submit(5 * HOUR), site.submit(2 * HOUR)
    site.advance(60)
    site.look()
    assert [site.soft(name) for name in (running, waiting, short)] == [600] * 3
    site.dedicate(START + 4 * HOUR, START + 5 * HOUR)
    with caplog.at_level(logging.WARNING, "foretime"):
        site.look()
        site.look()
    assert [site.soft(name) for name in (running, waiting, short)] == [6 * HOUR, 5 * HOUR, 600]
    assert f"{LOGGED} 2 jobs before a reservation: {running}, {waiting}" in caplog.text
    assert caplog.text.count(LOGGED) == 1
    for name in (running, waiting):
        assert site.said_of(name) == [("planned", "-"), ("cleared", "reservation")]
    # In time: before a job that starts until the look after the next could cross it.
    pause_s = site.sidecar.pause.seconds
    site.advance(2 * HOUR - 2 * pause_s)
    site.look()
    assert site.soft(short) == 600
    site.advance(2 * HOUR - 2 * pause_s + 1)
    site.look()
    assert site.soft(short) == 2 * HOUR


def test_a_running_job_is_judged_by_its_own_end(site: Site) -> None:
    running = site.submit(4 * HOUR, processors=8)
    site.advance(3 * HOUR)
    site.dedicate(START + 4 * HOUR, START + 5 * HOUR)
    site.look()
    assert site.soft(running) == 600
    site.dedicate(START + 4 * HOUR - 60, START + 5 * HOUR)
    site.look()
    assert site.soft(running) == 4 * HOUR


def test_a_job_without_a_walltime_loses_soft_walltime(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    running, waiting = site.submit(None, processors=8), site.submit(None)
    site.advance(60)
    with caplog.at_level(logging.WARNING, "foretime"):
        site.look()
    assert [site.soft(name) for name in (running, waiting)] == [None, None]
    assert f"{LOGGED} 2 jobs without a time limit" in caplog.text


def test_no_running_subjob_is_asked_for(site: Site) -> None:
    """PBS changes none by itself."""
    subjob = site.submit(None, processors=8, array_id=3)
    site.advance(60)
    site.look()
    assert site.soft(subjob) == 600


def test_what_was_submitted_while_nobody_was_planned_is_others(tmp_path: Path) -> None:
    site = Site(tmp_path, mode="observe")
    before = site.submit(None, processors=8)  # the site's own: no table has let jobs be planned
    site.sidecar.poll(site.pbs.now)
    site.advance(60)
    name = site.submit(None)
    site.look()
    assert [site.soft(before), site.soft(name)] == [600, 600]


def test_a_plan_is_taken_back_though_no_more_are_planned(tmp_path: Path) -> None:
    site = Site(tmp_path, mode="observe")
    planned = site.submit(None, processors=8)
    site.advance(60)
    later = site.submit(None)
    site.store.begin_generation(START, START, "enforce", 1)
    site.look()
    assert [site.soft(planned), site.soft(later)] == [None, 600]


def test_while_pbs_refuses_no_job_is_planned(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    name = site.submit(None)
    site.sidecar.poll(site.pbs.now)  # a table that lets jobs be planned
    alter = site.pbs.alter

    def refuse(*_: Any, **__: Any) -> None:
        raise SchedulerError(f"qalter: Unauthorized Request {name}")

    monkeypatch.setattr(site.pbs, "alter", refuse)
    with pytest.raises(SchedulerError, match="Unauthorized"):
        site.look()
    assert "manager of PBS" in site.sidecar.scheduler.why_not_enforced()
    monkeypatch.setattr(site.pbs, "alter", alter)
    site.look()
    assert (site.soft(name), site.sidecar.scheduler.why_not_enforced()) == (None, "")


def test_an_unreadable_file_of_dedicated_times_is_told_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.file.mkdir()
    with caplog.at_level(logging.WARNING, "foretime"):
        assert site.client.reservations() == site.client.reservations() == []
    assert caplog.text.count("scheduler.pbs_dedicated_time_file") == 1


def test_lines_of_dedicated_time(tmp_path: Path) -> None:
    text = (
        "# MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM\n\n"
        "04/10/2027 15:30 04/11/2027 23:50 # power\n"
        "4/10/2027 15:30\nthe 10th of May\n13/40/2027 15:30 04/11/2027 23:50 1\n"
        "05/01/2027 10:00 05/01/2027 10:00\n"
    )
    (found,) = parse_dedicated_times(text)
    begin = time.mktime((2027, 4, 10, 15, 30, 0, 0, 0, -1))
    assert (found.start_time, found.end_time - found.start_time) == (begin, 32 * HOUR + 20 * 60)
    assert read_dedicated_times(tmp_path / "none") == []


# foretime disable


def switched_off(site: Site, until: int | None = None) -> list[str]:
    return give_back(
        lambda: given_back(site.client.queue().jobs, until), site.client.update, "a manager"
    )


def test_waiting_jobs_get_their_plan_back(site: Site) -> None:
    running = site.submit(6 * HOUR, processors=8)
    waiting = [site.submit(HOUR), site.submit(2 * HOUR)]
    site.advance(60)
    later = site.submit(HOUR)
    assert sorted(switched_off(site, START)) == waiting
    assert [site.soft(name) for name in (running, *waiting, later)] == [600, HOUR, 2 * HOUR, 600]
    assert switched_off(site) == [later]


def test_what_pbs_refuses_keeps_no_other_from_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning_switch, "_PAUSE_S", 0.0)
    site.submit(6 * HOUR, processors=8)
    site.advance(1)
    names = [site.submit(HOUR) for _ in range(3)]
    alter = site.pbs.alter

    def refuse(name: str, resources: Any, requestor: str = "root") -> None:
        if name == names[1]:
            raise SchedulerError(f"qalter: Request invalid for state of job {name}")
        alter(name, resources, requestor)

    monkeypatch.setattr(site.pbs, "alter", refuse)
    with pytest.raises(SchedulerError) as caught:
        switched_off(site)
    assert f"1 waiting jobs are still planned short: {names[1]} (" in str(caught.value)
    assert f"Request invalid for state of job {names[1]}" in str(caught.value)
    assert "2 others got back what was asked for; run this again, as a manager" in str(caught.value)
    assert [site.soft(name) for name in names] == [HOUR, 600, HOUR]
