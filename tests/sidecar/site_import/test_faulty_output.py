"""Saved output that is cut off, empty or another command's: what, where, what to do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli import main
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site


@pytest.fixture(params=["22.05", "26.05"])
def saved(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Path:
    folder = repository / "tests/assets/slurm" / request.param / "site"
    ignored = shutil.ignore_patterns("*-lines.txt", "dump.txt")
    return shutil.copytree(folder, tmp_path / "saved", ignore=ignored)


def import_folder(folder: Path) -> None:
    import_site(read_folder(folder), UTC)


def cut(name: str, share: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        (folder / name).write_text(text[: int(len(text) * share)] + "\n")

    return change


def cut_without_end(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text((folder / name).read_text()[:-1])

    return change


def written(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


def gone(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def without_users(folder: Path) -> None:
    lines = (folder / "sshare.txt").read_text().splitlines(keepends=True)
    left = [line for line in lines if line.split("|")[1] in ("", "User")]
    (folder / "sshare.txt").write_text("".join(left))


FAULTS = {
    "half of config": (cut("config.txt", 0.5), r"config\.txt: .*cut off; save it again: scontrol"),
    "most of config": (cut("config.txt", 0.95), r"config\.txt: it ends before WaitTime: it is cut"),
    "half of nodes": (cut("nodes.txt", 0.5), r"nodes\.txt: node \w+ .*cut off.*scontrol show node"),
    "a node": (cut("nodes.txt", 0.05), r"nodes\.txt: node b1 has no State: the output is cut off"),
    "half of partitions": (cut("partitions.txt", 0.4), r"partitions\.txt: partition \w+ of node"),
    "half of qos": (cut("qos.txt", 0.8), r"qos\.txt: .*cut off.*; save it again: sacctmgr show q"),
    "half of assoc": (cut("assoc.txt", 0.6), r"assoc\.txt: line \d+ has \d+ columns and the head"),
    "a line of assoc": (
        replaced("assoc.txt", "lab|physics|alice||3|||||||20||||||high,low,normal|normal|\n", ""),
        r"assoc\.txt: alice in physics, of whom sshare tells, is not there: the output is cut off",
    ),
    "half of sshare": (cut("sshare.txt", 0.6), r"sshare\.txt: line \d+ has \d+ columns"),
    "half of reservations": (
        cut("reservations.txt", 0.02),
        r"reservations\.txt: .*scontrol show r",
    ),
    "an empty file": (written("qos.txt", ""), r"qos\.txt: the file is empty; name another saved"),
    "another output": (
        written("qos.txt", "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"),
        r"qos\.txt: is no output of a command that is read: 'JOBID PARTITION.*; take it out of the",
    ),
    "twice": (
        written("more.txt", "Account|User|RawShares|RawUsage\n"),
        r"sshare\.txt: is an output of 'sshare -a -l -P', as .*more\.txt; keep one",
    ),
    "an error": (
        written("qos.txt", "sacctmgr: error: Problem talking to the database\n"),
        r"qos\.txt: is the error of a command: 'sacctmgr: error.*run it where Slurm answers",
    ),
    "without -P": (
        written("qos.txt", "   Cluster    Account       User  Partition     Share\n"),
        r"qos\.txt: is a table without \|: .*; save it with -P",
    ),
    "no nodes": (
        gone("nodes.txt"),
        r"no output of 'scontrol show node --all --future --oneliner' is there",
    ),
    "no qos": (gone("qos.txt"), r"'sacctmgr show assoc -P', and none of 'sacctmgr show qos -P'"),
    "no tree": (gone("sshare.txt"), r"assoc\.txt: it does not tell which account is above which"),
    "without users": (
        without_users,
        r"sshare\.txt: it tells of no users: run it with -a",
    ),
    "another cluster": (
        replaced("config.txt", "ClusterName             = lab", "ClusterName             = moon"),
        r"assoc\.txt: it has associations of lab, and none of cluster moon",
    ),
    "a qos that is gone": (
        replaced("qos.txt", "\nlow|", "\nslow|"),
        r"qos\.txt: QOS high preempts low, which is not in the output",
    ),
    "usage": (
        replaced("sshare.txt", "|root|1|0.027778|0|", "|root|1|0.027778|many|"),
        r"sshare\.txt: line 3: RawUsage is 'many', which is no number",
    ),
    "a limit": (
        replaced("assoc.txt", "cpu=100000", "cpu=much"),
        r"assoc\.txt: line \d+: grptresmins is 'cpu=much': 'cpu=much' is no kind and number",
    ),
    "a preempt mode": (
        replaced("qos.txt", "|requeue|", "|requ|"),
        r"qos\.txt: line \d: QOS high: REQU is no PreemptMode",
    ),
    "a last line": (cut_without_end("assoc.txt"), r"assoc\.txt: its last line is cut off; save it"),
    "half of licenses": (cut("licenses.txt", 0.15), r"licenses\.txt: license ansys: Total is ''"),
    "licenses in words": (
        replaced("licenses.txt", "Total=5", "Total=five"),
        r"license matlab: Total is 'five', no number; save it again: scontrol show licenses",
    ),
    "a license twice": (
        lambda folder: written("licenses.txt", (folder / "licenses.txt").read_text() * 2)(folder),
        r"licenses\.txt: license ansys is there twice",
    ),
    "end of a reservation": (
        lambda folder: replaced("reservations.txt", " State=INACTIVE", "")(folder),
        r"reservations\.txt: reservation upkeep has no State: the output is cut off",
    ),
    "end of a partition": (
        lambda folder: replaced("partitions.txt", "TRES=cpu=40", "cpu=40")(folder),
        r"partitions\.txt: partition main has no TRES: the output is cut off",
    ),
    "a state": (
        replaced("partitions.txt", "State=UP", "State=SIDEWAYS"),
        r"partition main: State is 'SIDEWAYS', which Slurm never says; save it",
    ),
    "nodes in words": (
        replaced("partitions.txt", "MinNodes=0", "MinNodes=few"),
        r"partition main: MinNodes is 'few', which Slurm never says",
    ),
    "a tier": (
        replaced("partitions.txt", "PriorityTier=1 ", "PriorityTier=70000 "),
        r"partitions\.txt: .*priority_tier is 70000: give 0 to 65,533",
    ),
    "two defaults": (
        replaced("partitions.txt", "Default=NO", "Default=YES"),
        r"partitions\.txt: .*more than one is marked as default",
    ),
    "memory below 0": (
        lambda folder: replaced("nodes.txt", "RealMemory=", "RealMemory=-")(folder),
        r"nodes\.txt: node b1: RealMemory is '-\d+', which Slurm never says",
    ),
    "memory that is set aside": (
        lambda folder: replaced("nodes.txt", "RealMemory=", "MemSpecLimit=99999999 RealMemory=")(
            folder
        ),
        r"nodes\.txt: node b1: MemSpecLimit=99999999 is more than its RealMemory",
    ),
    "no release": (
        replaced("config.txt", "SLURM_VERSION           = 2", "SLURM_VERSION = new; was "),
        r"config\.txt: SLURM_VERSION is 'new; was \d.*no release; save it again",
    ),
    "a limit on time": (
        replaced("config.txt", "OverTimeLimit           = ", "OverTimeLimit = some "),
        r"config\.txt: OverTimeLimit = some .*: is no whole number",
    ),
    "limits of partitions": (
        replaced("config.txt", "EnforcePartLimits       = ", "EnforcePartLimits = SOME"),
        r"config\.txt: EnforcePartLimits = SOME.*: is none of YES, NO, ANY, ALL",
    ),
    "a period of 0": (
        lambda folder: replaced(
            "config.txt",
            next(
                line
                for line in (folder / "config.txt").read_text().splitlines()
                if line.startswith("PriorityCalcPeriod")
            ),
            "PriorityCalcPeriod = 00:00:00",
        )(folder),
        r"config\.txt: PriorityCalcPeriod = 00:00:00: is no time above 0",
    ),
    "small jobs": (
        replaced("config.txt", "PriorityFavorSmall      = ", "PriorityFavorSmall = un"),
        r"config\.txt: PriorityFavorSmall = un.*: is neither yes nor no",
    ),
    "a priority below 0": (
        replaced("qos.txt", "\nhigh|1000|", "\nhigh|-5|"),
        r"qos\.txt: line 3: QOS high: priority is '-5': is no whole number",
    ),
    "a time of grace": (
        replaced("qos.txt", "\nlow|10|00:00:00", "\nlow|10|soon"),
        r"qos\.txt: line 4: QOS low: time: 'soon' is not a duration",
    ),
    "a usage factor": (
        replaced("qos.txt", "|0.500000|", "|-0.5|"),
        r"qos\.txt: line 4: QOS low: usagefactor is '-0.5': is no number of 0 or more",
    ),
    "shares below 0": (
        replaced("assoc.txt", "|biology|||5|", "|biology|||-5|"),
        r"assoc\.txt: line 4: share is '-5': is no whole number",
    ),
    "endless usage": (
        replaced("sshare.txt", "|root|1|0.027778|0|", "|root|1|0.027778|1e999|"),
        r"sshare\.txt: line 3: RawUsage is '1e999', which is no number",
    ),
    "a folder": (
        lambda folder: (folder / "more").mkdir(),
        r"more: is a folder; take it out of the folder of saved output",
    ),
    "a link to nothing": (
        lambda folder: (folder / "more").symlink_to("nowhere"),
        r"more: is no file; take it out",
    ),
    "no text": (
        lambda folder: (folder / "more").write_bytes(bytes(range(128, 256))),
        r"more: is no text, or was damaged; take it out of the folder",
    ),
    "a node twice": (
        lambda folder: written("nodes.txt", (folder / "nodes.txt").read_text() * 2)(folder),
        r"nodes\.txt: NodeName=b1 is there twice; save it again",
    ),
    "a weight": (
        replaced("config.txt", "cpu=10,mem=0.5", "cpu=ten,mem=0.5"),
        r"config\.txt: PriorityWeightTRES = cpu=ten.*: 'cpu=ten' is no kind and number",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_file_and_command(saved: Path, fault: str) -> None:
    change, said = FAULTS[fault]
    import_folder(saved)
    change(saved)
    with pytest.raises(InputError, match=re.compile(said, re.DOTALL)):
        import_folder(saved)


@pytest.mark.parametrize("name", ["config", "nodes", "partitions", "assoc", "qos", "sshare"])
def test_no_cut_ends_otherwise_than_with_a_message(saved: Path, name: str) -> None:
    path = saved / f"{name}.txt"
    text = path.read_text()
    for share in range(0, 100, 4):
        path.write_text(text[: len(text) * share // 100])
        with suppress(InputError):
            import_folder(saved)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--from .*gone: can't be read: No such file"):
        import_folder(tmp_path / "gone")


def test_the_command_ends_with_2_and_one_line(
    saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (saved / "nodes.txt").unlink()
    monkeypatch.setattr("sys.argv", ["foretime", "site", "import", "--from", str(saved)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
