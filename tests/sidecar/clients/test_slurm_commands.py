"""Running Slurm's commands: what is asked, what is sent, and every way that a command can fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.client import Cursor, JobChange
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.queue_json import parse_queue

Command = Callable[[str, str], Path]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Make a command of a shell script; `$HERE` is its folder."""

    def make(name: str, script: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nHERE='{tmp_path}'\n{script}\n")
        path.chmod(0o755)
        return tmp_path

    return make


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))


def _tries(folder: Path) -> int:
    return len((folder / "tries").read_text().splitlines())


def test_text_and_json_are_told_apart(command: Command) -> None:
    folder = command("squeue", """echo '{"jobs": [], "words": "'"$*"'"}'""")
    run = SubprocessRunner(str(folder))
    assert run(["squeue", "--json"]) == b'{"jobs": [], "words": "--json"}\n'
    assert run(["squeue", "--long"]) == '{"jobs": [], "words": "--long"}\n'


def test_commands_are_found_on_the_path(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(command("sinfo", "echo 1/2/0/3")), prepend=":")
    assert SubprocessRunner()(["sinfo"]) == "1/2/0/3\n"


def test_times_come_as_epoch_seconds_and_arrays_whole(command: Command) -> None:
    folder = command("scontrol", 'echo "$SLURM_TIME_FORMAT $SLURM_BITSTR_LEN"')
    assert SubprocessRunner(str(folder))(["scontrol"]) == "%s 0\n"


def test_a_command_never_waits_for_input(command: Command) -> None:
    folder = command("scontrol", "cat; echo done")
    assert SubprocessRunner(str(folder), timeout_s=20)(["scontrol"]) == "done\n"


def test_bytes_that_are_no_text_do_no_harm(command: Command) -> None:
    folder = command("sinfo", r"printf '1/2/0/3 \377\n'")
    assert SubprocessRunner(str(folder))(["sinfo"]) == "1/2/0/3 �\n"


def test_a_failure_is_tried_again_and_then_told(command: Command) -> None:
    folder = command(
        "sacct", "echo x >>$HERE/tries; echo 'slurmdbd: Connection refused' >&2; exit 3"
    )
    with pytest.raises(SchedulerError) as caught:
        SubprocessRunner(str(folder), attempts=3)(["sacct", "--json"])
    assert str(caught.value) == (
        "sacct failed with exit code 3: slurmdbd: Connection refused; check slurmctld and slurmdbd"
    )
    assert _tries(folder) == 3


def test_what_works_at_last_is_taken(command: Command) -> None:
    folder = command(
        "sacct",
        "echo x >>$HERE/tries; [ $(wc -l <$HERE/tries) -ge 3 ] || exit 1; echo '{\"a\": 1}'",
    )
    assert SubprocessRunner(str(folder), attempts=3)(["sacct", "--json"]) == b'{"a": 1}\n'


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "exit code 1: no message"),
        ("echo out; exit 1", "exit code 1: out"),
        ("kill -9 $$", "exit code -9: no message"),
        (
            "echo 'Could not establish a configuration source' >&2; exit 1",
            "there is no slurm.conf on this machine",
        ),
        (
            "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $n >&2; done; exit 1",
            ": " + " | ".join(f"line {n}" for n in range(1, 11)) + ";",
        ),
    ],
)
def test_what_a_failed_command_said_is_passed_on(script: str, said: str, command: Command) -> None:
    with pytest.raises(SchedulerError, match=re.escape(said)):
        SubprocessRunner(str(command("sacct", script)), attempts=1)(["sacct"])


def test_a_command_that_hangs_is_ended(command: Command) -> None:
    folder = command("squeue", "echo $$ >>$HERE/tries; exec sleep 60")
    with pytest.raises(SchedulerError, match="squeue did not answer within 1 s; check slurmctld"):
        SubprocessRunner(str(folder), timeout_s=1, attempts=2)(["squeue", "--json"])
    assert _tries(folder) == 2
    for pid in (folder / "tries").read_text().split():
        assert not Path(f"/proc/{pid}").exists(), "it still runs"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '{\"jobs\": [' ; exit 1", "squeue failed with exit code 1: {.jobs.: .; check"),
        ("echo slurmctld is down >&2; exit 1", "squeue failed with exit code 1: slurmctld is down"),
        ("head -c 300000 /dev/zero >&2; exit 1", "squeue failed with exit code 1: "),
        ("exec >&- 2>&-; exec sleep 60", "squeue did not answer within 1 s; check slurmctld"),
        ("echo '{\"jobs\": ['; exec sleep 60", "squeue did not answer within 1 s; check slurmctld"),
    ],
)
def test_what_fails_while_the_queue_is_read_is_tried_again_and_then_told(
    script: str, said: str, command: Command
) -> None:
    folder = command("squeue", f"echo $$ >>$HERE/tries; {script}")
    with pytest.raises(SchedulerError, match=said):
        SlurmCommands(SubprocessRunner(str(folder), timeout_s=1, attempts=2)).queue()
    assert _tries(folder) == 2
    for pid in (folder / "tries").read_text().split():
        assert not Path(f"/proc/{pid}").exists(), "it still runs"


def test_the_queue_is_read_anew_after_a_failure(command: Command, repository: Path) -> None:
    reply = repository / "tests/assets/slurm/26.05/squeue.json"
    command("sinfo", "echo 1/2/0/3")
    folder = command(
        "squeue",
        f"cat '{reply}'; echo x >>$HERE/tries; [ $(wc -l <$HERE/tries) -ge 3 ] || exit 1",
    )
    jobs = SlurmCommands(SubprocessRunner(str(folder), attempts=3)).queue().jobs
    assert jobs == parse_queue(reply.read_bytes())


@pytest.mark.parametrize("printed", ["", "slurm_load_jobs error", '{"jobs": [', "[1,]"])
def test_what_is_not_json_is_told(printed: str, command: Command) -> None:
    folder = command("squeue", f"printf '%s' '{printed}'")
    with pytest.raises(SchedulerError, match=r"squeue --json did not print JSON \(.*serializer\?"):
        SlurmCommands(SubprocessRunner(str(folder), attempts=1)).queue()


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    run = SubprocessRunner(str(tmp_path), attempts=1)
    with pytest.raises(SchedulerError, match=r"can't run .*/sacct: No such file.*commands_dir"):
        run(["sacct"])
    (tmp_path / "sacct").write_text("#!/bin/sh\n")
    with pytest.raises(SchedulerError, match=r"can't run .*/sacct: Permission denied"):
        run(["sacct"])


def test_changes_are_sent_once_even_if_they_fail(command: Command) -> None:
    folder = command("scontrol", "echo x >>$HERE/tries; cat >$HERE/sent; echo refused >&2; exit 1")
    client = SlurmCommands(SubprocessRunner(str(folder), attempts=4))
    with pytest.raises(SchedulerError, match="exit code 1: refused"):
        client.update([JobChange("7", time_limit=60)])
    assert _tries(folder) == 1
    assert (folder / "sent").read_text() == "update JobId=7 TimeLimit=1\nquit\n"


class Noted:
    """A runner that notes what it is asked."""

    def __init__(self, reply: object = "") -> None:
        self.reply = reply
        self.asked: list[tuple[list[str], str | None]] = []

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        self.asked.append((list(argv), stdin))
        return self.reply


def test_changes_go_in_one_batch_as_lines_of_whole_minutes() -> None:
    noted = Noted()
    SlurmCommands(noted).update(
        [
            JobChange("1", time_limit=3600),
            JobChange("2_7", time_min=61, site_factor=-5),
            JobChange("3"),
            JobChange("4", time_min=0),
            JobChange("5", time_limit=59, time_min=60, site_factor=0),
        ]
    )
    lines = (
        "update JobId=1 TimeLimit=60\n"
        "update JobId=2_7 TimeMin=2 SiteFactor=-5\n"
        "update JobId=4 TimeMin=0\n"
        "update JobId=5 TimeLimit=1 TimeMin=1 SiteFactor=0\n"
        "quit\n"
    )
    assert noted.asked == [(["scontrol"], lines)]


@pytest.mark.parametrize("changes", [[], [JobChange("1")]])
def test_no_changes_run_nothing(changes: list[JobChange]) -> None:
    noted = Noted()
    SlurmCommands(noted).update(changes)
    assert noted.asked == []


@pytest.mark.parametrize(
    ("cursor", "until", "since", "end"),
    [
        (10_000_000, None, "uts9996400", "uts4102444800"),
        (10_000_000, 12_000_000, "uts9996400", "uts12000000"),
        (0, None, "uts1000000", "uts4102444800"),  # Slurm takes no earlier time
    ],
)
def test_finished_jobs_are_asked_for_with_an_overlap(
    cursor: int, until: int | None, since: str, end: str
) -> None:
    noted = Noted({"jobs": []})
    _, after = SlurmCommands(noted, overlap_s=3600).finished_since(Cursor(cursor), until)
    ((argv, _),) = noted.asked
    assert argv[:2] == ["sacct", "--json"]
    assert {f"--starttime={since}", f"--endtime={end}", "--allusers", "--duplicates"} <= set(argv)
    assert after == Cursor(max(cursor, until or 0))


def test_json_where_text_should_be_is_told() -> None:
    with pytest.raises(SchedulerError, match="answered dict, not text"):
        SlurmCommands(Noted({})).configuration()
    with pytest.raises(SchedulerError, match="did not name SLURM_VERSION"):
        SlurmCommands(Noted("slurmctld is down")).configuration()


def test_a_large_reply_comes_whole(command: Command, tmp_path: Path) -> None:
    (tmp_path / "reply").write_text(json.dumps({"jobs": ["x" * 100] * 20_000}))
    folder = command("sacct", "cat $HERE/reply")
    reply = SubprocessRunner(str(folder))(["sacct", "--json"])
    assert isinstance(reply, bytes)
    assert len(json.loads(reply)["jobs"]) == 20_000
