"""``foretime site``: import, show and check."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.sites.site_file import parse_site, read_site
from foretime_sim.sites.slurm.site import SlurmSite

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def saved(repository: Path) -> Path:
    return repository / "tests/assets/slurm/26.05/site"


@pytest.fixture
def commands(saved: Path, tmp_path: Path) -> Path:
    """Slurm's commands, which print what was recorded."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for name, cases in {
        "scontrol": {
            "config": "config", "node": "nodes", "partition": "partitions",
            "reservation": "reservations", "licenses": "licenses",
        },
        "sacctmgr": {"assoc": "assoc", "qos": "qos", "user": "users"},
    }.items():  # fmt: skip
        lines = [f"*\\ show\\ {word}*) cat {saved}/{file}.txt;;" for word, file in cases.items()]
        (folder / name).write_text(f'#!/bin/sh\ncase " $*" in\n{chr(10).join(lines)}\nesac\n')
    for name in ("sshare", "sdiag"):
        (folder / name).write_text(f"#!/bin/sh\ncat {saved}/{name}.txt\n")
    for path in folder.iterdir():
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def test_a_file_is_written_and_what_is_not_modelled_is_said(
    run: Run, saved: Path, tmp_path: Path
) -> None:
    file = tmp_path / "site.toml"
    code, out, err = run("site", "import", "--from", saved, "--output", file)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Slurm 26.05: 7 nodes, 72 CPUs, 4 partitions, 4 QOS, 5 accounts, 6 users"
    assert lines[1] == "Not modelled:"
    assert "  - job_submit plug-ins (all_partitions): what they change in jobs or refuse." in lines
    refused = lines.index("A simulation refuses the site as it is:")
    assert lines[refused + 1].startswith("  - PreemptType=preempt/qos with PreemptMode=REQUEUE is")
    assert lines[-1] == f"Written to {file}."
    site = read_site(file)
    assert isinstance(site, SlurmSite)
    assert site.qos["high"].priority == 1000


def test_without_output_the_file_is_printed(run: Run, saved: Path) -> None:
    code, out, err = run("site", "import", "--from", saved)
    assert code == 0
    assert parse_site(out, source="printed").machine.nodes == 7
    assert err.startswith("Slurm 26.05: 7 nodes")


def test_a_live_slurm_is_asked_with_the_columns_it_needs(
    run: Run, saved: Path, commands: Path, tmp_path: Path
) -> None:
    live, from_files = tmp_path / "live.toml", tmp_path / "saved.toml"
    assert run("site", "import", "--commands-dir", commands, "--output", live)[0] == 0
    assert run("site", "import", "--from", saved, "--output", from_files)[0] == 0
    assert live.read_text() == from_files.read_text()


def test_a_file_with_changes_is_not_written_over(run: Run, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text("# mine\n")
    code, _, err = run("site", "import", "--from", saved, "--output", file)
    assert code == 2
    assert "is there already, and changes in it would be lost" in err
    assert file.read_text() == "# mine\n"
    assert run("site", "import", "--from", saved, "--output", file, "--force")[0] == 0
    assert read_site(file).machine.nodes == 7


def test_a_scheduler_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    code, out, err = run("site", "import", "--commands-dir", tmp_path)
    assert (code, out) == (2, "")
    assert f"neither scontrol nor qmgr is in {tmp_path}: name the folder" in err
    code, out, err = run("site", "import", "--commands-dir", tmp_path, "--scheduler", "slurm")
    assert (code, out) == (1, "")
    assert f"can't run {tmp_path}/scontrol" in err


def test_saved_output_is_not_written_over(run: Run, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    for file in ("config.txt", "nodes.txt", "partitions.txt"):
        shutil.copy(saved / file, tmp_path / "copy")
    nodes = tmp_path / "copy/nodes.txt"
    code, out, err = run("site", "import", "--from", nodes.parent, "-o", nodes, "--force")
    assert (code, out) == (2, "")
    assert "is in the folder of saved output" in err
    assert nodes.read_text() == (saved / "nodes.txt").read_text()


def test_both_sources_are_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("site", "import", "--from", tmp_path, "--commands-dir", tmp_path)
    assert code == 2
    assert "--from and --commands-dir: give one of them" in err


def test_an_unknown_time_zone_is_refused(run: Run, saved: Path) -> None:
    code, _, err = run("site", "import", "--from", saved, "--time-zone", "Mars")
    assert code == 2
    assert "time zone 'Mars' is unknown" in err


def test_dates_are_read_in_the_sites_time_zone(run: Run, saved: Path) -> None:
    def start(*options: str) -> int:
        code, out, _ = run("site", "import", "--from", saved, "--json", *options)
        assert code == 0
        told: int = json.loads(out)["site"]["reservations"][0]["start"]
        return told

    assert start() - start("--time-zone", "Europe/Stockholm") == 3600


def test_show_has_what_the_file_says(run: Run, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    run("site", "import", "--from", saved, "--output", file)
    code, out, err = run("site", "show", file)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    for words in (
        "bf_window 2880",
        "PriorityWeightTRES cpu=10,mem=0.5,gres/gpu=3000",
        "licenses matlab 5",
        "short PriorityJobFactor=100; QOS=shortpart",
        "MaxJobsPerUser=4; MaxSubmitJobsPerUser=100",
        "science 30",
        "course 2026-11-24",
        "Not modelled:",
    ):
        assert words in said
    assert re.search(r"^ {4}physics ", out, re.MULTILINE), "below science, below root"


def test_show_as_json(run: Run, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    run("site", "import", "--from", saved, "--output", file)
    code, out, _ = run("site", "show", file, "--json")
    site = json.loads(out)
    assert code == 0
    assert site["machine"]["selection"] == "CR_CPU_Memory"
    assert site["qos"]["high"]["limits"]["max_tres_per_user"] == {"cpu": 24, "gres/gpu": 2}
    assert site["enforced"] == ["associations", "limits", "qos", "safe"]


def test_check_names_the_first_mistake(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    text = '[node_groups.a]\nnodes = 4\ncpus = 8\n[partitions.p]\nnode_groups = ["a"]\n'
    file.write_text(text)
    code, out, _ = run("site", "check", file)
    assert code == 0
    assert out.startswith(f"{file}: good; Slurm 26.05: 4 nodes, 32 CPUs, 1 partition")
    file.write_text(text + 'QOS = "short"\n')
    code, out, err = run("site", "check", file)
    assert (code, out) == (2, "")
    assert f"{file}: [partitions.p]: QOS: there is no QOS 'short'; there are none" in err


@pytest.mark.parametrize(
    "text",
    [
        '[node_groups.a]\nnodes = 20_000\ncpus = {}\n[partitions.p]\nnode_groups = ["a"]\n',
        (
            'scheduler = "pbs"\n[queues.workq]\n[[hosts]]\nname = "n00001"\nlast = "n20000"\n'
            "resources_available = {{ ncpus = {} }}\n"
        ),
    ],
)
def test_a_site_is_no_larger_than_a_simulation_takes(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "site.toml"
    file.write_text(text.format(5_000))
    assert run("site", "check", file)[0] == 0
    file.write_text(text.format(5_001))
    code, out, err = run("site", "check", file)
    assert (code, out) == (2, "")
    assert f"{file}: the nodes have 100,020,000 CPUs in all, and a machine at most" in err


def test_what_a_simulation_refuses_is_said_and_no_mistake(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    text = '[node_groups.a]\nnodes = 4\ncpus = 8\n[partitions.p]\nnode_groups = ["a"]\n'
    preempting = '[slurm]\nPreemptType = "preempt/partition_prio"\nPreemptMode = "{}"\n'

    def said(command: str, mode: str) -> str:
        file.write_text(text + preempting.format(mode))
        code, out, err = run("site", command, file)
        assert (code, err) == (0, "")
        return out

    for command in ("check", "show"):
        assert "A simulation refuses" not in said(command, "OFF")
        refused = said(command, "SUSPEND,GANG")
        assert "A simulation refuses the site as it is:\n  - PreemptMode=SUSPEND,GANG" in refused
        assert refused.endswith("Set PreemptMode to OFF to see the site without it.\n")
        assert "with PreemptMode=REQUEUE is not simulated" in said(command, "REQUEUE")


def test_what_a_simulation_refuses_is_in_the_json(run: Run, saved: Path) -> None:
    code, out, _ = run("site", "import", "--from", saved, "--json")
    assert code == 0
    assert json.loads(out)["refused"][0].startswith("PreemptType=preempt/qos")


def test_the_documented_file_is_good(repository: Path) -> None:
    text = (repository / "docs/site.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    site = parse_site(block[1], source="site.md")
    assert isinstance(site, SlurmSite)
    assert (site.machine.nodes, site.parameters.bf_window) == (440, 7 * 86_400)
    assert site.qos["normal"].limits.max_tres_per_user == {"cpu": 4096}
