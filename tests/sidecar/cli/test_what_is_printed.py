"""What a person reads: tables on terminals of several widths, counts, and why a file can't be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.cli.reports.whole_tables import print_uncut, print_whole
from rich.table import Table
from rich.text import Text

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("columns", [30, 60, 80, 132])
def test_a_machine_is_shown_whole(
    run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = run("machine", cluster)
    assert code == 0
    assert "…" not in out
    for value in ("0-04:00:00", "7-00:00:00", "2-00:00:00", "1,024,000", "5,300"):
        assert value in out
    if columns >= 80:
        assert max(len(line) for line in out.splitlines()) <= columns


@pytest.mark.parametrize(
    ("command", "figures"),
    [
        (
            "replay LOG --warm-up 0",
            ["bounded slowdown, mean", "with Foretime", "loss of capacity, a job fits"],
        ),
        ("bgp show intrepid", ["40,960", "24,576", "nodes", "together"]),
        ("traces list", ["KTH-SP2-1996-2.1-cln", "28,476"]),
    ],
)
def test_no_figure_is_cut_on_narrow_terminals(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch, command: str, figures: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = run(*(log if word == "LOG" else word for word in command.split()))
    assert code == 0
    assert "…" not in out
    assert [figure for figure in figures if figure not in out] == []


def test_columns_are_chosen_by_the_width_that_is_printed(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a terminal with TERM=dumb rich prints 80 columns, whatever a console was made with.
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, out, _ = run("simulate", log, "--backfill", "easy,conservative", "--repeat", "3")
    assert code == 0
    assert "Left out for want of columns: " in out
    assert max(len(line) for line in out.splitlines()) <= 80
    for table in out.split("\n\n")[1:3]:
        assert "conservative" in table, table
    assert "…" not in out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_can_not_be_shown_is_replaced(log: Path, encoding: str) -> None:
    foretime = "import sys; from foretime_sidecar.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", foretime, "replay", str(log), "--warm-up", "0"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=True,
    )
    out = done.stdout.decode(encoding)
    assert ("–" in out) == (encoding == "utf-8")
    assert "?" not in out
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("columns", [60, 80, 100, 132])
def test_comparisons_are_shown_whole(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    policies = ("--order", "fcfs,sjf,ljf", "--backfill", "easy,conservative,none")
    code, out, _ = run("simulate", log, *policies, "--repeat", "3", "--classes", "wait_mean_s")
    assert code == 0
    assert "…" not in out
    assert max(len(line) for line in out.splitlines()) <= columns
    assert len(re.findall(r"[+-][\d,.]+% to [+-][\d,.]+%", out)) >= 8, "a gain has its interval"
    by_class = out[out.index("wait, mean:") :]
    for order in ("fcfs", "sjf", "ljf"):
        for backfill in ("easy", "conservative", "none"):
            assert f"{order} {backfill}" in by_class


def test_what_is_left_out_is_named_as_in_the_table(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = run("simulate", log, "--order", "fcfs,sjf", "--repeat", "3")
    figures, gains = re.findall(r"Left out for want of columns: (.*?); --json", out, re.DOTALL)
    assert " ".join(figures.split()).endswith("mean slowdown, utilization, makespan")
    assert gains.endswith("utilization")


def test_counts_of_one_are_in_the_singular(run: Run, cluster: Path) -> None:
    generated = ("--generate", "lublin2003", "--jobs", "50", "--warm-up", "0")
    for command in ("simulate", "replay"):
        code, out, err = run(command, *generated, "--head", "1")
        assert code == 0, err
        assert ": 1 job, 256 processors" in out
        assert "--head 1: the first 1 of 50 jobs run." in out
    cluster.write_text(
        "[node_groups.n]\nnodes = 1\ncpus = 1\n[slurm_partitions.p]\nnode_groups = ['n']\n",
        encoding="utf-8",
    )
    _, out, err = run("machine", cluster)
    assert "1 node, 1 CPU; counted" in out, err


def test_left_out_jobs_are_told_by_limit(run: Run, log: Path, cluster: Path) -> None:
    """One entry for each limit, and the counts add up."""
    code, out, err = run("simulate", log, "--machine", cluster)
    assert code == 0, err
    text = " ".join(out.split())
    told = re.search(r"([\d,]+) jobs left out that could never run on the machine: (.*?)\.", text)
    assert told is not None
    parts = [re.match(r"([\d,]+) above (.*)", part) for part in told[2].split("; ")]
    counts = [int(part[1].replace(",", "")) for part in parts if part is not None]
    limits = [part[2] for part in parts if part is not None]
    assert limits[0] == "max_time of 0-04:00:00 in partition short"
    assert len(set(limits)) == len(limits) == len(parts)
    assert sum(counts) == int(told[1].replace(",", ""))


def test_reasons_of_outputs(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    for path, says in (
        (file / "x.csv", f"{file} is a file; name a folder"),
        (tmp_path / "no" / "x.csv", f"there is no such folder; make {tmp_path / 'no'} first"),
    ):
        code, _, err = run("simulate", log, "--csv", path)
        assert code == 2
        assert says in err
    with monkeypatch.context() as patched:  # nothing is forbidden to root
        patched.setattr("os.access", lambda _, mode: mode != os.W_OK)
        _, _, err = run("simulate", log, "--csv", file)
        assert f"--csv {file}: can't be written; you may not change this file" in err
        _, _, err = run("simulate", log, "--plot", tmp_path / "x.png")
        assert f"can't be written; you may not write into {tmp_path};" in err
    code, _, err = run("config", "show", tmp_path / "nope.toml")
    assert code == 2
    assert "No such file or directory; name a TOML file (foretime config show prints one" in err


EVIL = "ann\x1b]0;x\x07\x9b2J\x7f"
SHOWN = "ann\\x1b]0;x\\x07\\x9b2J\\x7f"


def test_tables_show_control_characters_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("user", "jobs", title="Ann\x1b[2J")
    table.add_row(EVIL, "1")
    table.add_row("x" * len(SHOWN), "2")
    print_whole(table)
    print_uncut(Text(EVIL))
    title, *rows, text = capsys.readouterr().out.splitlines()
    assert title.strip() == r"Ann\x1b[2J"
    assert text == SHOWN.replace(r"\x07", "")  # which rich takes out of its texts
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not any(row != "".join(filter(str.isprintable, row)) for row in rows)


def test_messages_show_control_characters_and_json_is_exact(run: Run, tmp_path: Path) -> None:
    log, site = tmp_path / "log.txt", tmp_path / "site.toml"
    log.write_text(
        "JobID|User|Account|Partition|Submit|Start|End|Elapsed|State|NCPUS|Timelimit\n"
        f"1|{EVIL}|physics|main|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00"
        "|01:00:00|COMPLETED|4|02:00:00\n"
    )
    name = "".join(f"\\u{ord(letter):04x}" for letter in EVIL)
    site.write_text(
        "[slurm]\nAccountingStorageEnforce = ['associations']\n"
        "[node_groups.a]\nnodes = 1\ncpus = 8\n[partitions.main]\nnode_groups = ['a']\n"
        f'[accounts.root]\n[accounts."{name}"]\nParent = "root"\nFairshare = 7\n'
    )
    code, _, err = run("simulate", log, "--site", site)
    assert code == 2
    assert SHOWN in err
    _, out, _ = run("site", "show", site)
    assert SHOWN in out
    assert EVIL not in out
    _, out, _ = run("site", "show", site, "--json")
    assert EVIL in {each["account"] for each in json.loads(out)["associations"]}


def test_what_is_for_people_goes_through_say(repository: Path) -> None:
    exact = re.compile(r"json\.dumps|nl=False|get_help\(\)|printable\(")
    for folder in ("sidecar/foretime_sidecar/cli", "simulator/studies"):
        for path in (repository / folder).rglob("*.py"):
            for line in path.read_text().splitlines():
                assert "typer.echo(" not in line or exact.search(line), f"{path}: {line}"
