"""``foretime replay`` as a person meets it: its outputs, and one clear line for wrong input."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_export import CSV_COLUMNS, JSON_FORMAT
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import read_table
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import read_swf
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.start_promises import PROMISE_METRICS

JOBS = 300
Run = Callable[..., tuple[int, str, str]]


def undated(log: Path, tmp_path: Path) -> Path:
    """The same log without word of when it began."""
    text = gzip.decompress(log.read_bytes()).decode()
    path = tmp_path / "undated.swf"
    lines = [line for line in text.splitlines() if "UnixStartTime" not in line]
    path.write_text("\n".join(lines) + "\n")
    return path


# Outputs ------------------------------------------------------------------------------------------


def test_the_report_says_the_main_things(run: Run, log: Path) -> None:
    code, out, err = run("replay", log, "--warm-up", "0", "--threshold", "5")
    assert (code, err) == (0, "")
    for words in (
        f"{JOBS:,} jobs, 256 processors",
        "without",
        "with Foretime",
        "wait, mean",
        "wait, maximum",
        "starved",
        "Nobody was killed before the time they asked for",
        "were planned with less than they asked for",
        f"The hook saw {JOBS} submissions",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) <= 100


def test_generate_needs_no_log(run: Run) -> None:
    code, out, err = run("replay", "--generate", "lublin2003", "--jobs", 100, "--warm-up", "0")
    assert (code, err) == (0, "")
    assert "generated, not real" in out


def test_the_json_has_every_metric(run: Run, log: Path) -> None:
    options = ("--head", 100, "--warm-up", "0", "--repeat", 3, "--seed", 9)
    code, out, err = run("replay", log, *options, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["format"] == JSON_FORMAT
    assert found["workload"]["simulated_jobs"] == found["workload"]["scored_jobs"] == 100
    assert set(found["metrics"]) == set(METRICS)
    assert (found["repeats"], found["seed"], found["interval_method"]) == (3, 9, "t")
    assert found["metrics"]["killed_early_jobs"]["adjusted"] == 0
    assert len(found["metrics"]["wait_mean_s"]["adjusted_runs"]) == 3
    assert found["hook"]["submissions"] == 100
    assert found["options"]["queue order"] == "start-now"
    again = json.loads(run("replay", log, *options, "--json")[1])
    for document in (found, again):
        for measured in ("wall_clock_s", "jobs_per_s", "peak_memory_bytes"):
            assert document.pop(measured) > 0
    assert found == again


def test_workers_find_the_same(run: Run, log: Path) -> None:
    common = ("replay", log, "--head", 100, "--warm-up", "0", "--json", "--repeat", 2, "--workers")
    one, two = (json.loads(run(*common, count)[1]) for count in (1, 2))
    assert one["metrics"] == two["metrics"]


def test_the_csv_has_a_row_for_each_metric(run: Run, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    code, _, _ = run("replay", log, "--warm-up", "0", "--csv", path)
    assert code == 0
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = {row["metric"]: row for row in reader}
    assert tuple(reader.fieldnames or ()) == CSV_COLUMNS
    assert set(rows) == set(METRICS)
    found = json.loads(run("replay", log, "--warm-up", "0", "--json")[1])
    for key, row in rows.items():
        for column in ("baseline", "adjusted"):
            value = found["metrics"][key][column]
            assert row[column] == ("" if value is None else str(value))


def test_promised_starts_are_told_under_slack(run: Run, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    options = ("--warm-up", "0", "--backfill", "slack", "--average-wait", "01:00:00")
    code, out, _ = run("replay", log, *options, "--csv", path)
    assert code == 0
    assert "Start no later than" in out
    found = json.loads(run("replay", log, *options, "--json")[1])["promises"]
    assert found["baseline"]["promises_kept"] == found["baseline"]["promised_jobs"] == JOBS
    assert found["adjusted"]["promised_jobs"] == JOBS
    with path.open(newline="") as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    for key in PROMISE_METRICS:
        for column in ("baseline", "adjusted"):
            assert float(rows[key][column]) == found[column][key]
    plain = json.loads(run("replay", log, "--warm-up", "0", "--json")[1])["promises"]
    assert plain == {"baseline": None, "adjusted": None}


def test_the_schedule_as_swf_can_be_read_and_says_the_same(
    run: Run, log: Path, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.swf.gz"
    code, out, _ = run("replay", log, "--warm-up", "0", "--swf-out", path, "--json")
    assert code == 0
    before, _ = workload_of_log(read_log(log))
    written = read_swf(path)
    after, report = workload_of_log(written)
    assert report.jobs_kept == report.jobs_read == JOBS
    for column in ("job_id", "submit_time", "processors", "actual_runtime", "requested_time"):
        np.testing.assert_array_equal(getattr(after, column), getattr(before, column))
    assert after.logged_wait is not None
    assert not np.ma.getmaskarray(after.logged_wait).any()
    mean = json.loads(out)["metrics"]["wait_mean_s"]["adjusted"]
    assert float(after.logged_wait.mean()) == pytest.approx(mean)
    assert "simulated by foretime replay" in gzip.decompress(path.read_bytes()).decode()


def test_the_state_is_kept_where_asked(run: Run, log: Path, tmp_path: Path) -> None:
    code, _, _ = run("replay", log, "--warm-up", "0", "--state-dir", tmp_path / "state")
    assert code == 0
    folder = tmp_path / "state" / "repeat-0"
    assert read_table(folder / "foretime.table").generation >= 1
    store = Store(folder / "foretime.sqlite")
    assert store.finished_count() == JOBS
    store.close()
    code, out, err = run("replay", log, "--warm-up", "0", "--state-dir", tmp_path / "state")
    assert (code, out) == (2, "")
    assert "is there already" in err


def test_plots_are_drawn_in_either_format(run: Run, log: Path, tmp_path: Path) -> None:
    for name, start in (("waits.png", b"\x89PNG"), ("waits.svg", b"<?xml")):
        code, _, _ = run("replay", log, "--warm-up", "0", "--plot", tmp_path / name)
        assert code == 0
        assert (tmp_path / name).read_bytes().startswith(start)


def metrics(run: Run, *arguments: object) -> Any:
    code, out, err = run("replay", *arguments, "--warm-up", "0", "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_options_reach_the_replay(run: Run, log: Path) -> None:
    requested = metrics(run, log, "--scheme", "requested")
    for key in METRICS:
        row = requested["metrics"][key]
        assert row["baseline"] == row["adjusted"], key
    actual = metrics(run, log, "--scheme", "actual", "--order", "wfp", "--backfill", "easy-sjbf")
    assert actual["metrics"]["outlived_jobs"]["adjusted"] == 0
    assert actual["hook"] is None
    for mechanism, correction, roles in (
        ("slurm-soft-limit", "slurm", "111"),
        ("rewrite-limit", "requested", "110"),
        ("pbs-soft-walltime", "pbs", "111"),
    ):
        options = metrics(run, log, "--mechanism", mechanism, "--backfill", "easy")["options"]
        assert (options["correction"], options["roles"]) == (correction, roles)
    options = metrics(
        run, log, "--correction", "doubling", "--roles", "011", "--guard", "off", "--lua", "5.4"
    )["options"]
    assert (options["correction"], options["roles"]) == ("doubling", "011")
    assert options["guard"] == "off"
    assert metrics(run, log, "--guard", "0")["options"]["guard"] == "00:00:00"
    assert metrics(run, log, "--head", "40")["workload"]["simulated_jobs"] == 40


def test_families_replay_with_advance_reservations(run: Run, log: Path, tmp_path: Path) -> None:
    """The guard is off by itself where it has no meaning."""
    for backfill in ("conservative", "planning", "first-fit"):
        options = metrics(run, log, "--backfill", backfill)["options"]
        assert (options["backfill"], options["guard"]) == (backfill, "off")
    assert metrics(run, log, "--depth", "1")["options"]["guard"] == "06:00:00"
    deep = metrics(run, log, "--depth", "3")["options"]
    assert (deep["depth"], deep["guard"]) == ("3", "off")
    one_by_one = ("--backfill", "conservative", "--compression", "one-by-one")
    assert metrics(run, log, *one_by_one)["options"]["compression"] == "one-by-one"

    claims = tmp_path / "maintenance.csv"
    claims.write_text("start,duration,processors\n0,864000,200\n", encoding="utf-8")
    free = metrics(run, log, "--backfill", "first-fit")
    reserved = metrics(run, log, "--backfill", "first-fit", "--reservations", claims)
    assert reserved["options"]["reservations"] == str(claims)
    for run_of in ("baseline", "adjusted"):
        waits = [found["metrics"]["wait_mean_s"][run_of] for found in (free, reserved)]
        assert waits[0] < waits[1]
    claims.write_text("start,duration,processors\n0,864000,2000\n", encoding="utf-8")
    too_much = "advance reservation 0: 2000 processors are claimed at 0 s"
    one_line(run, "replay", log, "--reservations", claims, says=too_much)


def test_the_warm_up_is_not_scored(run: Run, log: Path) -> None:
    workload, _ = workload_of_log(read_log(log))
    code, out, _ = run("replay", log, "--warm-up", "1-00", "--json")
    assert code == 0
    later = workload.submit_time >= workload.submit_time[0] + 86_400
    assert json.loads(out)["workload"]["scored_jobs"] == int(later.sum())


def test_a_split_by_days_or_date_leaves_the_rest_as_history(
    run: Run, log: Path, tmp_path: Path
) -> None:
    workload, _ = workload_of_log(read_log(log))
    by_days = metrics(run, log, "--split", "1.5", "--threshold", "3", "--learn", "history-only")
    assert workload.unix_start_time is not None
    date = np.datetime64(workload.unix_start_time + 129_600, "s")
    by_date = metrics(run, log, "--split", date, "--threshold", "3", "--learn", "history-only")
    assert by_days["metrics"] == by_date["metrics"]
    assert by_days["workload"]["simulated_jobs"] < JOBS
    # A log without a date is placed right before the other, whichever of them has none.
    plain = undated(log, tmp_path)
    for history, replayed in ((plain, log), (log, plain), (plain, plain)):
        found = metrics(
            run, replayed, "--history", history, "--threshold", "3", "--learn", "history-only"
        )
        assert found["hook"]["adjusted"] > 0
        assert found["hook"]["table_generations"] == 1


# Wrong input --------------------------------------------------------------------------------------


def one_line(run: Run, *arguments: object, says: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("foretime: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert says in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "give a log, or --generate"),
        ("LOG --generate lublin2003", "both given: leave one out"),
        ("LOG --jobs 10", "give --head"),
        ("LOG another.swf", "unexpected extra argument"),
        ("LOG --look-takes 2:00", "give less than that"),
        ("LOG --look-interval 0 --look-takes 0:01", "--look-interval more than 0"),
        ("LOG --scheduler pbs --look-takes 0:01", "--look-takes is for Slurm"),
        ("LOG --queue-order none --look-takes 0:01", "give --queue-order start-now"),
        ("LOG --bogus", "No such option: --bogus"),
        ("LOG --order", "requires an argument"),
        ("LOG --order fifo", "unknown queue order 'fifo'; did you mean"),
        ("LOG --order my_own:order", "there is no module 'my_own'"),
        ("LOG --order priority", "a log has no priorities"),
        ("LOG --backfill easyy", "unknown backfilling 'easyy'; did you mean 'easy'?"),
        ("LOG --state-dir LOG", "is a file; name a folder"),
        ("LOG --state-dir /proc/none", "--state-dir /proc/none: can't be made or written into"),
        ("LOG --depth 0", "depth is 0: give 1 or more"),
        ("LOG --backfill planning --depth 2", "the kinds of easy have a depth, not planning"),
        ("LOG --compression one-by-one", "only conservative backfilling compresses, not easy"),
        ("LOG --backfill first-fit --guard 0", "guard is for the kinds of easy"),
        ("LOG --reservations none.csv", "none.csv: there is no such file"),
        ("LOG --mechanism magic", "'magic' is not one of"),
        ("LOG --correction magic", "'magic' is not one of"),
        ("LOG --event-order magic", "'magic' is not one of"),
        ("LOG --learn never", "'never' is not one of"),
        ("LOG --rule magic", "'magic' is not one of"),
        ("LOG --lua 6", "'6' is not one of"),
        ("LOG --format magic", "'magic' is not one of"),
        ("--generate magic", "'magic' is not"),
        ("LOG --scheme magic", "unknown scheme 'magic'"),
        ("LOG --scheme blend", "unknown scheme 'blend'"),
        ("LOG --scheme blend:1.5", "unknown scheme 'blend:1.5'"),
        ("LOG --scheme blend:nan", "unknown scheme 'blend:nan'"),
        ("LOG --roles 12", "unknown roles '12'"),
        ("LOG --roles 0111", "unknown roles '0111'"),
        ("LOG --guard soon", "--guard: 'soon' is not a duration"),
        ("LOG --guard -1", "--guard: '-1' is not a duration"),
        ("LOG --warm-up later", "--warm-up: 'later' is not a duration"),
        (
            "LOG --warm-up 1000-00",
            "left to score after the warm-up of 1000-00:00:00, as all are",
        ),
        ("LOG --publish-interval 0", "--publish-interval: '0' is no time at all"),
        ("LOG --publish-interval x", "--publish-interval: 'x' is not a duration"),
        ("LOG --percentile 0", "--percentile 0: give a share above 0"),
        ("LOG --percentile 80", "--percentile 80: give a share above 0 and at most 1"),
        ("LOG --percentile nan", "--percentile nan"),
        ("LOG --percentile x", "--percentile"),
        ("LOG --threshold 0", "--threshold 0: give at least 1"),
        ("LOG --repeat 0", "0 repeats: give at least 1"),
        ("LOG --repeat -2", "-2 repeats: give at least 1"),
        ("LOG --repeat two", "--repeat"),
        ("LOG --repeat 2 --workers 0", "0 workers: give at least 1"),
        ("LOG --repeat 2 --workers -3", "-3 workers: give at least 1"),
        ("LOG --repeat 2 --swf-out x.swf", "give --repeat 1"),
        ("LOG --seed -1", "seed -1"),
        ("LOG --swf-out LOG", "this is the log; name another file"),
        ("LOG --csv LOG", "this is the log; name another file"),
        ("LOG --csv x --swf-out x", "this is --csv; name another file"),
        ("LOG --history LOG --plot LOG", "name another file"),
        ("LOG --time-zone Mars/X", "--time-zone is for sacct, CSV and PBS"),
        ("LOG --tau 0", "--tau"),
        ("LOG --settings nowhere.toml", "nowhere.toml: can't read the settings"),
        ("LOG --load 0.5", "--load is for --generate"),
        ("--generate pc2 --time-zone Mars/X", "--time-zone says how a log is read"),
        ("--generate pc2 --history LOG --time-zone Mars/X", "--time-zone is for sacct, CSV and"),
        ("LOG --head 0", "--head 0: give at least 1 job"),
        ("LOG --head -4", "--head -4: give at least 1 job"),
        ("LOG --processors 0", "processors"),
        ("LOG --processors -8", "processors"),
        ("LOG --missing-request soon", "--missing-request soon"),
        ("LOG --split 2050-01-01", "no job was submitted after the split"),
        ("LOG --split 1990-01-01", "no job was submitted before the split"),
        ("LOG --split 0", "no job was submitted before the split"),
        ("LOG --split -3", "no job was submitted before the split"),
        ("LOG --split inf", "--split 'inf': give a date"),
        ("LOG --split nan", "--split 'nan': give a date"),
        ("LOG --split tomorrow", "--split 'tomorrow': give a date"),
        ("LOG --split 1.5 --history LOG", "give --history or --split, not both"),
        ("LOG --history LOG", "none of its jobs had ended"),
        ("LOG --history no.swf", "no.swf: there is no such file"),
        ("LOG --learn history-only", "needs a history"),
        ("LOG --classes magic", "--classes magic: take one of"),
        ("LOG --csv no/x.csv", "--csv no/x.csv: can't be written; there is no such folder"),
        ("LOG --swf-out no/x.swf", "--swf-out no/x.swf: can't be written"),
        ("LOG --plot no/x.png", "--plot no/x.png: can't be written"),
        ("LOG --plot x.pdf", "--plot x.pdf: end it in .png or .svg"),
        ("LOG --csv .", "is a folder"),
        ("no.swf", "no.swf: there is no such file"),
        (".", "is a folder"),
        ("--generate lublin2003 --jobs 0", "0 jobs can't be generated"),
        ("--generate lublin2003 --jobs -1", "-1 jobs can't be generated"),
        ("--generate lublin2003 --processors 0", "0 processors"),
        ("--generate lublin2003 --seed -1", "seed -1"),
        ("--generate lublin2003 --jobs 50", "none of 50 jobs is left to score after the warm-up"),
    ],
)
def test_wrong_options_are_refused(
    run: Run,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(log) if word == "LOG" else word for word in options.split()]
    if "--warm-up" not in words and "--jobs 50" not in options:
        words = ["--warm-up", "0", *words]
    one_line(run, "replay", *words, says=says)
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_that_nothing_would_be_scored_is_said_before_the_replay(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Replay, "__call__", lambda *_: pytest.fail("it was replayed"))
    one_line(run, "replay", str(log), "--warm-up", "1000-00", says="none of 300 jobs is left")


GOOD_LINE = "1 0 10 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "bad.swf"),
        (b"\n\n\n", "bad.swf"),
        (b"; MaxProcs: 4\n", "bad.swf"),
        (bytes(range(256)) * 40, "bad.swf"),
        (b"\x1f\x8b\x08\x00garbage", "bad.swf"),
        (b"\xfd7zXZ\x00garbage", "bad.swf"),
        (f"; MaxProcs: 4\n{GOOD_LINE}\n1 2 3\n".encode(), "bad.swf:3"),
        (f"; MaxProcs: 4\n{GOOD_LINE.replace('100', 'abc')}\n".encode(), "bad.swf:2"),
        (f"{GOOD_LINE}\n".encode(), "--processors"),
        (f"; MaxProcs: 0\n{GOOD_LINE}\n".encode(), "bad.swf"),
        (f"; MaxProcs: 2\n{GOOD_LINE}\n".encode(), "bad"),
        (f"; MaxProcs: 4\n{GOOD_LINE.replace(' 100 ', ' -1 ')}\n".encode(), "bad"),
        (f"; MaxProcs: 4\n{GOOD_LINE.replace('1 0 10', '1 99999999999999999999 10')}\n".encode(),
         "bad.swf:2"),
        ("Ünïcödé text\n".encode(), "bad.swf"),
    ],
    ids=[
        "empty", "blank", "no-jobs", "binary", "gzip", "xz", "short-line", "word", "no-size",
        "size-zero", "too-wide", "no-runtime", "overflow", "text",
    ],
)  # fmt: skip
def test_wrong_logs_are_refused_in_one_line(
    run: Run, tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "bad.swf"
    path.write_bytes(content)
    one_line(run, "replay", path, "--warm-up", "0", says=says)


def test_a_log_with_names_in_latin_1_is_replayed(run: Run, tmp_path: Path) -> None:
    """Past the hook in Lua and through the daemon's database, which take no bytes for names."""
    log = tmp_path / "20260101"
    who = "user={0} group=g project=pröj jobname=j queue=wärk"
    what = "Resource_List.ncpus=2 Resource_List.walltime=01:00:00"
    lines = [
        f"01/01/2026 {2 + number % 20:02}:00:00;E;{number}.pbs;{who.format(user)} ctime={at}"
        f" qtime={at} etime={at} start={at + 60} exec_host=n/0*2 {what} end={at + 600}"
        f" Exit_status=0 resources_used.walltime=00:09:00\n"
        for number, user in enumerate(["müller", "möller"] * 20)
        for at in [1_767_225_600 + 600 * number]
    ]
    log.write_bytes("".join(lines).encode("latin-1"))
    words = ("--processors", "2", "--warm-up", "0", "--state-dir", tmp_path / "state")
    code, _, err = run("replay", log, *words)
    assert (code, err) == (0, "")
    store = Store(tmp_path / "state/repeat-0/foretime.sqlite")
    assert {job.request.user for job in store.finished_jobs()} == {"müller", "möller"}
    store.close()


def test_wrong_words_are_refused_in_one_line(run: Run) -> None:
    one_line(run, "repaly", says="No such command 'repaly'")
    one_line(run, "--bogus", says="No such option: --bogus")
    one_line(run, "workload", "describe", says="Missing argument")
    one_line(run, "workload", "generate", "magic", "-o", "x", says="'magic'")


def test_help_and_version_are_printed(run: Run) -> None:
    for words in (["--help"], ["-h"], ["replay", "-h"], ["workload", "generate", "--help"]):
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        assert "Usage: foretime" in out
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out.startswith("foretime ")
    code, out, _ = run()
    assert code == 2
    assert "replay" in out


def test_ctrl_c_is_no_traceback(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foretime_sidecar.cli.simulation_commands.replay.compare", interrupted)
    code, out, err = run("replay", log, "--warm-up", "0")
    assert (code, out.strip(), err.strip()) == (130, "", "")


def test_the_sites_own_rule_is_replayed(run: Run, log: Path, tmp_path: Path) -> None:
    settings = tmp_path / "foretime.toml"
    rule = '[accuracy]\nscheme = "user"\nthreshold = 1000000\n[queue_order]\norder = "none"\n'
    settings.write_text(rule)
    code, out, _ = run("replay", log, "--warm-up", "0", "--settings", settings, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["options"]["scheme"] == "user"
    assert told["shortening"]["shortened_jobs"] == 0
    one_line(run, "replay", log, "--settings", settings, "--rule", "production", says="not both")


def test_settings_of_a_pbs_are_not_replayed_under_slurm(
    run: Run, log: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "foretime.toml"
    settings.write_text(
        '[scheduler]\nkind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"\n', encoding="utf-8"
    )
    words = ("replay", log, "--warm-up", "0", "--settings", settings)
    one_line(run, *words, says="this is a replay under Slurm: give --scheduler pbs")
    assert run(*words, "--scheduler", "pbs")[0] == 0


def test_tau_bounds_the_slowdown(run: Run, log: Path) -> None:
    def mean(*options: str) -> float:
        _, out, _ = run(
            "replay", log, "--warm-up", "0", "--scheme", "requested", *options, "--json"
        )
        return float(json.loads(out)["metrics"]["bounded_slowdown_mean"]["baseline"])

    assert mean("--tau", "100000") < mean() == mean("--tau", "10")


def test_a_log_is_not_converted_onto_itself(run: Run, log: Path) -> None:
    before = log.read_bytes()
    one_line(run, "workload", "convert", log, log, says="this is the log itself")
    assert log.read_bytes() == before


def test_a_full_output_is_one_line(log: Path) -> None:
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "workload", "describe", str(log)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "foretime: can't write the output: No space left on device\n",
    )
