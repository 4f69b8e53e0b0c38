"""soft_walltime in the line resources: of sched_config: put in, looked for, taken out."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from foretime_sidecar.install.pbs_scheduler import (
    PbsScheduler,
    pbs_home,
    resources_line,
)
from foretime_sidecar.install.steps import Outcome

from tests.support.processes.roots_rights import without_roots_rights

BEFORE = b'# x\nby_queue: True ALL\nresources: "ncpus, mem"\nload_balancing: false\n'
AFTER = BEFORE.replace(b"mem", b"mem, soft_walltime")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "sched_priv"
    folder.mkdir()
    (folder / "sched_config").write_bytes(BEFORE)
    (folder / "sched_config").chmod(0o640)
    return tmp_path


def config(home: Path) -> Path:
    return home / "sched_priv/sched_config"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'resources: "ncpus, mem"', b'resources: "ncpus, mem, soft_walltime"'),
        (b"resources: 'ncpus'", b"resources: 'ncpus, soft_walltime'"),
        (b" resources :ncpus,mem all # x", b' resources :"ncpus,mem, soft_walltime" all # x'),
        (b'resources: ""', b'resources: "soft_walltime"'),
        (b'resources: "ncpus,\\\n\tmem "', b'resources: "ncpus,\\\n\tmem, soft_walltime"'),
        (b'resources: "a"\nresources: "b"', b'resources: "a"\nresources: "b, soft_walltime"'),
        (b'resources: "soft_walltime,a"\nresources: "b"', None),
        (b'resources: "a, soft_walltime"', None),
        (b'resources: "my_soft_walltime"', b'resources: "my_soft_walltime, soft_walltime"'),
    ],
)
def test_the_line_as_pbs_sched_reads_it(line: bytes, wanted: bytes | None) -> None:
    found = resources_line(b"# resources: z\n" + line + b"\nx: y\n")
    assert found is not None
    assert found.content == b"# resources: z\n" + (wanted or line) + b"\nx: y\n"
    assert found.missing is (wanted is not None)


@pytest.mark.parametrize("text", [b"", b'# resources: "a"\n', b"my_resources: a\n"])
def test_without_a_line_nothing_is_put_in(home: Path, text: bytes) -> None:
    config(home).write_bytes(text)
    outcome = Outcome()
    PbsScheduler(home).install(outcome)
    assert (config(home).read_bytes(), outcome.done) == (text, [])
    assert "no resources: line" in outcome.notes[0]


def test_the_file_keeps_its_mode_and_comes_back(home: Path) -> None:
    scheduler, outcome = PbsScheduler(home), Outcome()
    scheduler.install(outcome)
    assert config(home).read_bytes() == AFTER
    assert stat.S_IMODE(config(home).stat().st_mode) == 0o640
    backup = home / "sched_priv/sched_config.before-foretime"
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (BEFORE, 0o640)
    assert '"ncpus, mem" -> resources: "ncpus, mem, soft_walltime"' in outcome.done[0]
    again = Outcome()
    scheduler.install(again)
    assert (again.done, again.notes) == ([], [])
    scheduler.uninstall(Outcome())
    assert config(home).read_bytes() == BEFORE
    assert not backup.exists()


def test_what_somebody_changed_since_stays(home: Path) -> None:
    scheduler = PbsScheduler(home)
    scheduler.install(Outcome())
    config(home).write_bytes(AFTER.replace(b"True", b"False") + b"fair_share: true ALL\n")
    scheduler.uninstall(Outcome())
    assert (
        config(home).read_bytes() == BEFORE.replace(b"True", b"False") + b"fair_share: true ALL\n"
    )


def test_a_word_that_was_there_before_stays(home: Path) -> None:
    config(home).write_bytes(AFTER)
    scheduler, outcome = PbsScheduler(home), Outcome()
    scheduler.install(outcome)
    scheduler.uninstall(outcome)
    assert (config(home).read_bytes(), outcome.done) == (AFTER, [])


@pytest.mark.parametrize("known", [False, True])
def test_on_another_host_it_says_what_to_do(tmp_path: Path, known: bool) -> None:
    scheduler, outcome = PbsScheduler(tmp_path if known else None), Outcome()
    scheduler.install(outcome)
    scheduler.uninstall(outcome)
    (note,) = outcome.notes
    assert "is not on this host" in note
    assert "add soft_walltime to the line resources:" in note
    assert outcome.done == []
    (shown,) = scheduler.commands()
    assert shown == f"# {note}"


def test_without_rights_it_says_what_to_do(folder: Path) -> None:
    private = config(folder).parent
    private.mkdir()
    config(folder).write_bytes(BEFORE)
    private.chmod(0o555)
    outcome = Outcome()
    with without_roots_rights(private, config(folder)):
        PbsScheduler(folder).install(outcome)
    private.chmod(0o755)
    assert config(folder).read_bytes() == BEFORE
    assert "be root" in outcome.notes[0]


def test_pbs_sched_alone_is_told(home: Path, tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    scheduler = PbsScheduler(home)
    for name, is_told in (("pbs_sched", True), ("other", False)):
        shutil.copy(sleep, tmp_path / name)
        # Whoever runs the tests under nohup hands on a SIGHUP that ends nobody.
        heeds = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
        with subprocess.Popen([str(tmp_path / name), "1000"], preexec_fn=heeds) as process:
            until = time.monotonic() + 60
            comm = Path(f"/proc/{process.pid}/comm")
            while comm.read_text().strip() != name:
                assert time.monotonic() < until
            (home / "sched_priv/sched.lock").write_text(f"{process.pid}\n")
            config(home).write_bytes(BEFORE)
            outcome = Outcome()
            scheduler.install(outcome)
            if not is_told:
                process.kill()
            ended = process.wait(60)
        assert ended == (-signal.SIGHUP if is_told else -signal.SIGKILL)
        assert any("kill -HUP" in line for line in outcome.done) is is_told
        assert bool(outcome.notes) is not is_told


def test_where_pbs_home_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "pbs.conf"
    conf.write_text("PBS_EXEC=/opt/pbs\nPBS_HOME=/var/spool/other\n")
    monkeypatch.delenv("PBS_HOME", raising=False)
    monkeypatch.setenv("PBS_CONF_FILE", str(conf))
    assert pbs_home() == Path("/var/spool/other")
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "none"))
    assert pbs_home() is None
