"""A site kept fresh: read when due, kept over whatever goes wrong, refused with a reason."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.saved_output import kind_of
from foretime_sidecar.site_import.site_sources import SiteFile, live_slurm
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
from foretime_sim.sites.site_file import format_site
from foretime_sim.sites.slurm.site import SlurmSite

Command = Callable[[str], str]


class RecordedSlurm:
    """Answers the commands of an import as a live Slurm has; what is in ``broken`` goes wrong.

    Attributes
    ----------
    asked
        Commands so far.
    broken
        What the answer becomes, by the kind of output.
    now
        Seconds.
    """

    def __init__(self, folder: Path) -> None:
        self.texts: dict[str, str] = {}
        for path in folder.iterdir():
            kind = kind_of(path.read_text())
            if kind is not None:
                self.texts.setdefault(kind, path.read_text())
        self.broken: dict[str, Command] = {}
        self.asked: list[str] = []
        self.now = 1_000.0
        self.source = live_slurm(self.run)
        self.kept = KeptSite(self.source, 900, lambda: 5_000 + self.now, lambda: self.now)

    def run(self, argv: Sequence[str]) -> str:
        words = " ".join(argv)
        self.asked.append(words)
        kinds = {
            "show config": "config",
            "show node": "nodes",
            "show partition": "partitions",
            "show reservation": "reservations",
            "show licenses": "licenses",
            "sdiag": "sdiag",
            "show assoc": "assoc",
            "show qos": "qos",
            "show user": "users",
            "sshare": "sshare",
        }
        kind = next(kind for part, kind in kinds.items() if part in words)
        text = self.texts[kind]
        return self.broken[kind](text) if kind in self.broken else text

    def after(self, seconds: float) -> int:
        """Let time pass and the keeper work; give how many commands it ran."""
        self.now += seconds
        before = len(self.asked)
        assert not self.kept.refresh()
        return len(self.asked) - before


@pytest.fixture
def slurm(repository: Path) -> RecordedSlurm:
    """Of 26.05, with accounting."""
    return RecordedSlurm(repository / "tests/assets/slurm/26.05/site")


def failing(_: str) -> str:
    raise SchedulerError("scontrol did not answer within 30 s; check slurmctld")


def half(text: str) -> str:
    return text[: len(text) // 2]


def test_it_is_read_at_the_start_and_then_at_intervals(slurm: RecordedSlurm) -> None:
    assert slurm.kept.standing.why_not == "it has not been read yet"
    assert slurm.after(0) == 11
    site = slurm.kept.site
    assert site is None  # it preempts
    standing = slurm.kept.standing
    assert (standing.version, standing.slurm_partitions, standing.read_at) == ("26.05", 4, 6_000)
    assert [slurm.after(60) for _ in range(14)] == [0] * 14
    assert slurm.after(60) == 11


def simulable(slurm: RecordedSlurm) -> None:
    """Take out what a simulation refuses."""
    config = slurm.texts["config"]
    slurm.texts["config"] = re.sub(r"(PreemptMode\s+= )\S+", r"\g<1>OFF", config)


def test_what_can_not_be_simulated_is_refused_with_the_reason(
    slurm: RecordedSlurm, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.after(0)
    sites = [slurm.kept.site]
    assert "PreemptMode" in slurm.kept.standing.why_not
    assert "can't run the queue as this site schedules: Preempt" in caplog.text
    assert slurm.kept.standing.problem == ""
    simulable(slurm)
    slurm.after(900)
    sites.append(slurm.kept.site)
    assert [site is None for site in sites] == [True, False]
    assert slurm.kept.standing.why_not == ""


def test_a_change_that_a_look_sees_is_read_soon_and_once(slurm: RecordedSlurm) -> None:
    simulable(slurm)
    slurm.kept.looked("as it was")
    assert slurm.after(0) == 11
    slurm.kept.looked("as it was")
    assert slurm.after(61) == 0
    slurm.kept.looked("another")
    assert slurm.after(1) == 11
    slurm.kept.looked("yet another")
    assert slurm.after(30) == 0  # a minute apart at least
    assert slurm.after(31) == 11
    assert slurm.after(61) == 0


def test_a_busy_slurmctld_is_spared_for_a_while(slurm: RecordedSlurm) -> None:
    assert slurm.after(0) == 11
    slurm.kept.looked("another", busy=True)
    assert slurm.after(3_000) == 0
    assert slurm.after(601) == 11


def test_what_takes_long_is_read_seldom(slurm: RecordedSlurm) -> None:
    def slow(text: str) -> str:
        slurm.now += 100
        return text

    slurm.broken["nodes"] = slow
    assert slurm.after(0) == 11
    slurm.kept.looked("another")
    # A hundred seconds are a twentieth of two thousand.
    assert slurm.after(1_800) == 0
    assert slurm.after(200) == 11


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("config", failing),
        ("nodes", failing),
        ("nodes", half),
        ("partitions", half),
        ("config", half),
        ("qos", half),
        ("assoc", lambda _: "sacctmgr: error: Problem talking to the database"),
        ("config", lambda _: "\x00\ufffd rubbish"),
        ("nodes", lambda _: "NodeName=x CPUTot=many State=IDLE RealMemory=1 Weight=1"),
        ("partitions", lambda _: ""),
        ("sshare", lambda _: "|||\n|||"),
    ],
)
def test_the_last_good_one_stays_whatever_goes_wrong(
    slurm: RecordedSlurm, caplog: pytest.LogCaptureFixture, kind: str, wrong: Command
) -> None:
    simulable(slurm)
    slurm.after(0)
    good = slurm.kept.site
    assert good is not None
    slurm.broken[kind] = wrong
    slurm.after(900)
    assert slurm.kept.site is good
    assert (slurm.kept.failures, slurm.kept.last_failure) != (0, "")
    assert slurm.kept.standing.problem == slurm.kept.last_failure
    assert slurm.kept.standing.why_not == ""
    assert "forecasts go by what was read before" in caplog.text
    # Tried again, less and less often; said once.
    tried = [slurm.after(30) > 0 for _ in range(20)]
    assert [at for at, was in enumerate(tried) if was] == [1, 5, 13]
    assert caplog.text.count("was not read") == 1
    slurm.broken.clear()
    slurm.after(3_600)
    assert (slurm.kept.last_failure, slurm.kept.standing.problem) == ("", "")
    assert "was read again" in caplog.text


def test_before_the_first_good_one_there_is_none(slurm: RecordedSlurm) -> None:
    slurm.broken["config"] = failing
    slurm.after(0)
    assert slurm.kept.site is None
    assert slurm.kept.standing.why_not.startswith("scontrol did not answer")
    assert slurm.kept.standing.read_at is None


def test_what_is_changed_while_it_is_read_is_not_taken(slurm: RecordedSlurm) -> None:
    simulable(slurm)
    slurm.after(0)
    good, calls = slurm.kept.site, []

    def reconfigured(text: str) -> str:
        calls.append(text)
        return text if len(calls) % 2 else text.replace("bf_window=", "bf_window=9")

    slurm.broken["config"] = reconfigured
    slurm.after(900)
    assert slurm.kept.last_failure == "Slurm was configured anew while its site was read"
    assert slurm.kept.site is good


def test_why_the_queue_is_not_run_so_is_shown(slurm: RecordedSlurm) -> None:
    simulable(slurm)
    slurm.after(0)
    slurm.kept.note_runs("a run of 20,000 jobs takes 9.0 s")
    told = slurm.kept.standing.as_json(7_000)
    assert told == {
        "source": "Slurm",
        "version": "26.05",
        "slurm_partitions": 4,
        "queues": 0,
        "read_at": 6_000,
        "age_s": 1_000,
        "problem": "",
        "why_not": "a run of 20,000 jobs takes 9.0 s",
    }


def test_a_file_is_read_again_when_it_is_written(slurm: RecordedSlurm, tmp_path: Path) -> None:
    simulable(slurm)
    slurm.after(0)
    site = slurm.kept.site
    assert isinstance(site, SlurmSite)
    path, now = tmp_path / "site.toml", [0.0]
    path.write_text(format_site(site))
    kept = KeptSite(SiteFile(str(path)), 900, lambda: 5_000, lambda: now[0])
    kept.refresh()
    assert kept.site == site
    assert kept.standing.source == str(path)
    parameters = replace(site.parameters, bf_window=7 * 86_400)
    path.write_text(format_site(replace(site, parameters=parameters)))
    os.utime(path, ns=(1, 1))
    now[0] = 61
    kept.refresh()
    assert isinstance(kept.site, SlurmSite)
    assert kept.site.parameters.bf_window == 7 * 86_400
    before = kept.site
    path.write_text("[slurm]\nSchedulerTyp = 1\n")
    now[0] = 122
    kept.refresh()
    assert kept.site is before
    assert "SchedulerTyp" in kept.standing.problem
    path.write_text(format_site(PbsSite((PbsHost("n1", {"ncpus": 8}),), (PbsQueue("workq"),))))
    now[0] = 183
    kept.refresh()
    assert kept.site is before
    assert "is a site under PBS" in kept.standing.problem


def test_what_is_said_is_a_warning(slurm: RecordedSlurm, caplog: pytest.LogCaptureFixture) -> None:
    slurm.broken["nodes"] = failing
    slurm.after(0)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "forecasts do without: scontrol did not answer" in record.message
