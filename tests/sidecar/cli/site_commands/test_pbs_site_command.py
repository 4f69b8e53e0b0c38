"""``foretime site`` for a site under PBS: import, show and check."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.site_file import parse_site, read_site

from tests.support.pbs.usage_files import DECAYED_AT, usage_file

Run = Callable[..., tuple[int, str, str]]
SERVER = """\
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
set queue workq resources_max.walltime = 48:00:00
set queue workq max_run = "[u:PBS_GENERIC=20]"
create queue express
set queue express queue_type = Execution
set queue express Priority = 160
set queue express enabled = True
set queue express started = True
set server default_queue = workq
set server backfill_depth = 5
"""
NODES = {
    f"n{number:02}": {
        "state": "free",
        "resources_available": {"ncpus": 64, "mem": "256gb", "host": f"n{number:02}"},
    }
    for number in range(1, 13)
}
EXPRESS = (
    "  - queue express: priority 160 makes it an express queue, whose jobs preempt others, which is"
    " not modelled: lower it below 150 or set preemptive_sched to False."
)
RESERVATION = """\
Resv ID: R0.pbs01
reserve_state = RESV_CONFIRMED
reserve_start = Mon Nov 23 23:59:00 2026
reserve_end = Tue Nov 24 00:59:00 2026
resv_nodes = (n01:ncpus=2)

"""


@pytest.fixture
def saved(tmp_path: Path, repository: Path) -> Path:
    """Output of a PBS, as an administrator saves it."""
    folder = tmp_path / "saved"
    folder.mkdir()
    priv = tmp_path / "sched_priv"
    priv.mkdir()
    config = (repository / "tests/assets/pbs/runs/sched_config").read_text()
    config = config.replace("strict_ordering: false", "strict_ordering: true")
    nodes = {"timestamp": 1_795_398_953, "pbs_version": "23.06.06", "nodes": NODES}
    texts = {
        "server": SERVER,
        "sched": f"create sched default\nset sched sched_priv = {priv}\n",
        "hosts": json.dumps(nodes) + "\n",
        "rstat": RESERVATION,
        "hooks": "Hook limits\n    enabled = true\n    event = queuejob\n",
        "usage": "Fairshare usage units are in: cput\n"
        "ann  : Grp: 60     cgrp: 61   Shares: 5      Usage: 120    Perc: 10.000%\n",
        "sched_config": config,
        "resource_group": "staff 60 root 40\nann 61 staff 5\n",
        "dedicated_time": "01/02/2030 10:00 01/02/2030 12:00\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        if name in ("sched_config", "resource_group", "dedicated_time"):
            (priv / name).write_text(text)
    (priv / "usage").write_bytes(usage_file(ann=120.0))
    return folder


@pytest.fixture
def commands(saved: Path, tmp_path: Path) -> Path:
    """PBS's commands, which print what was saved."""
    cases = "".join(
        f"*{word}*) cat {saved}/{file};;\n"
        for word, file in {"server": "server", "sched": "sched", "hook": "hooks"}.items()
    )
    scripts = {
        "bin/qmgr": f'case "$*" in\n{cases}esac\n',
        "bin/pbsnodes": f"cat {saved}/hosts\n",
        "bin/pbs_rstat": f'[ "$TZ" = UTC0 ] && cat {saved}/rstat\n',
    }
    for name, lines in scripts.items():
        path = tmp_path / "pbs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}")
        path.chmod(0o755)
    return tmp_path / "pbs/bin"


@pytest.fixture
def in_stockholm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Stockholm")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_file_is_written_and_what_is_not_modelled_is_said(
    run: Run, saved: Path, tmp_path: Path
) -> None:
    file = tmp_path / "site.toml"
    code, out, err = run("site", "import", "--from", saved, "--output", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "PBS 23.06.06: 12 hosts, 768 CPUs, 2 queues, 2 in the fair-share tree",
        "Not modelled:",
        "  - Hook limits (queuejob): what it changes in jobs or refuses.",
        "A simulation refuses the site as it is:",
        EXPRESS,
        f"Written to {file}.",
    ]
    text = file.read_text()
    for lines in (
        'scheduler = "pbs"\nversion = "23.06.06"',
        "dedicated_time = [[2030-01-02T10:00:00Z, 2030-01-02T12:00:00Z]]",
        '[server]\ndefault_queue = "workq"\nbackfill_depth = 5',
        "strict_ordering = true",
        '[queues.workq]\nresources_max = { walltime = "48:00:00" }\nmax_run = "[u:PBS_GENERIC=20]"',
        'name = "n01"\nlast = "n12"\nresources_available = { ncpus = 64, mem = "256gb" }',
        'ann = { shares = 5, parent = "staff", usage = 120.0 }',
        '[reservations."R0.pbs01".hosts]\nn01 = { ncpus = 2 }',
    ):
        assert f"\n{lines}\n" in text


def test_a_live_pbs_is_found_and_asked_as_its_output_is_saved(
    run: Run, saved: Path, commands: Path, tmp_path: Path, in_stockholm: None
) -> None:
    live, from_files = tmp_path / "live.toml", tmp_path / "saved.toml"
    code, _, err = run("site", "import", "--commands-dir", commands, "--output", live)
    assert (code, err) == (0, "")
    # Commands are asked for UTC; the scheduler's files are in the machine's own time.
    later = RESERVATION.replace("Tue Nov 24 00:59", "Tue Nov 24 01:59")
    (saved / "rstat").write_text(later.replace("Mon Nov 23 23:59", "Tue Nov 24 00:59"))
    there = ("--time-zone", "Europe/Stockholm")
    assert run("site", "import", "--from", saved, "--output", from_files, *there)[0] == 0
    # pbsfs, whose output is saved, does not tell when usage was so, and when it was decayed.
    told = live.read_text().splitlines()
    times = [line for line in told if line.startswith(("usage_at = ", "decayed_at = "))]
    assert times[1] == f"decayed_at = {datetime.fromtimestamp(DECAYED_AT, UTC):%FT%TZ}"
    assert [line for line in told if line not in times] == from_files.read_text().splitlines()


def test_files_that_cant_be_read_are_named(run: Run, commands: Path, tmp_path: Path) -> None:
    (tmp_path / "sched_priv/sched_config").unlink()
    code, out, err = run("site", "import", "--commands-dir", commands)
    assert (code, out) == (1, "")
    assert f"{tmp_path}/sched_priv/sched_config: there is no such file; do this on the host" in err


def test_a_server_without_hooks_and_shares_is_imported(
    run: Run, commands: Path, tmp_path: Path
) -> None:
    qmgr = (commands / "qmgr").read_text()
    refusal = "*hook*) echo 'qmgr obj= svr=default: hook not found' >&2; exit 1;;"
    (commands / "qmgr").write_text(qmgr.replace("*hook*)", f"{refusal}\n*hooks*)"))
    (tmp_path / "sched_priv/resource_group").write_text("# nobody\n")
    (tmp_path / "sched_priv/usage").unlink()
    code, out, err = run("site", "import", "--commands-dir", commands)
    assert code == 0
    assert "Hook" not in err
    assert "resource_group" not in out


def test_of_both_schedulers_it_is_the_daemons_or_the_one_that_is_named(
    run: Run, commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (commands / "scontrol").write_text("#!/bin/sh\n")
    (commands / "scontrol").chmod(0o755)
    code, _, err = run("site", "import", "--commands-dir", commands)
    assert code == 2
    assert "the commands of Slurm and of PBS are here: give --scheduler slurm or pbs" in err
    assert run("site", "import", "--commands-dir", commands, "--scheduler", "pbs")[0] == 0
    settings = tmp_path / "foretime.toml"
    settings.write_text('[scheduler]\nkind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"\n')
    monkeypatch.setenv("FORETIME_SETTINGS", str(settings))
    assert run("site", "import", "--commands-dir", commands)[0] == 0


def test_another_scheduler_than_that_of_the_output_is_refused(run: Run, saved: Path) -> None:
    code, _, err = run("site", "import", "--from", saved, "--scheduler", "slurm")
    assert code == 2
    assert f"--scheduler slurm: {saved} has output of pbs: leave the option out" in err
    assert run("site", "import", "--from", saved, "--scheduler", "pbs")[0] == 0


def test_dates_are_read_in_the_sites_time_zone(run: Run, saved: Path) -> None:
    def times(*options: str) -> list[int]:
        code, out, _ = run("site", "import", "--from", saved, "--json", *options)
        assert code == 0
        site = json.loads(out)["site"]
        return [site["reservations"][0]["start"], site["dedicated_time"][0][0]]

    there = times("--time-zone", "Europe/Stockholm")
    assert [here - far for here, far in zip(times(), there, strict=True)] == [3600, 3600]


def test_show_has_what_the_file_says(run: Run, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    run("site", "import", "--from", saved, "--output", file)
    code, out, err = run("site", "show", file)
    assert (code, err) == (0, "")
    said = "".join(out.split())
    for words in (
        "backfill_depth 5",
        "strict_ordering true",
        "n01 12 64 262,144",
        "workq default; resources_max={ walltime",
        "max_run=[u:PBS_GENERIC=20]",
        "staff 40 121 ann 5 120",
        "dedicated time 2030-01-02 10:00:00Z",
        "R0.pbs01 2026-11-23 23:59:00Z",
        "Not modelled:",
        "A simulation refuses the site as it is:",
    ):
        assert "".join(words.split()) in said
    assert json.loads(run("site", "show", file, "--json")[1])["server"]["backfill_depth"] == 5


def test_check_names_the_first_mistake(run: Run, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    run("site", "import", "--from", saved, "--output", file)
    text = file.read_text().replace("Priority = 160", "Priority = 120")
    file.write_text(text)
    code, out, _ = run("site", "check", file)
    assert code == 0
    good, heading, *sentences = out.splitlines()
    assert good == (
        f"{file}: good; PBS 23.06.06: 12 hosts, 768 CPUs, 2 queues, 2 in the fair-share tree"
    )
    assert heading == "Not modelled:"
    assert sentences == [f"  - {sentence}" for sentence in read_site(file).not_modelled]
    site = read_site(file)
    assert isinstance(site, PbsSite)
    assert site.queue("express").priority == 120
    file.write_text(text.replace("strict_ordering", "strict_order"))
    code, out, err = run("site", "check", file)
    assert (code, out) == (2, "")
    assert f"{file}: [sched_config]: 'strict_order' is unknown; did you mean 'strict_" in err


def test_the_documented_file_is_good(repository: Path) -> None:
    text = (repository / "docs/site.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```toml\n(scheduler = \"pbs\".*?)```", text, re.DOTALL)
    site = parse_site(block, source="site.md")
    assert isinstance(site, PbsSite)
    assert (site.machine.nodes, site.machine.cpus) == (448, 448 * 64)
    assert site.share_groups[1].usage == 120_000
