"""Record live runs, several side by side; a run that is recorded is not made again.

``python -m tests.slurm.runs.record --releases 26.05 --runs 1 --parallel 6`` as root, from the
repository's root. Ends when all are done; start it anew to go on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.loop_events import events_of, write_events
from tests.slurm.runs.run_configurations import CONFIGURATIONS, RunConfiguration
from tests.slurm.runs.site_files import files_of

RESULTS = Path(__file__).resolve().parents[2] / "assets/slurm/runs"
_BETWEEN_STARTS_S = 15
# A cycle of so few jobs takes some milliseconds.
_STALLED_S = 2.0


def write_outcome(path: Path, outcome: Mapping[str, Any]) -> None:
    """Write an outcome, a job a line."""
    lines = []
    for key, value in outcome.items():
        if key == "jobs":
            inner = ",\n".join(f"  {json.dumps(each)}" for each in value)
            lines.append(f"{json.dumps(key)}: [\n{inner}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    new = path.with_name(path.name + ".new")
    new.write_text("{" + ",\n ".join(lines) + "}\n", encoding="utf-8")
    new.replace(path)


def write_configuration(configuration: RunConfiguration, folder: Path) -> None:
    """Write what was run beside its results, for people."""
    files = files_of(configuration.site)
    told = {
        "name": configuration.name,
        "about": configuration.about,
        "slurm_conf": {**files.values, **files.accounting_values},
        "scheduler_parameters": dict(files.scheduler_parameters),
        "nodes": files.node_settings,
        "slurm_partitions": files.slurm_partitions,
        "sacctmgr": [" ".join(words) for words in files.sacctmgr],
        "reservations": [str(each) for each in configuration.site.reservations],
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(told, indent=1)
    (folder / "configuration.json").write_text(text + "\n", encoding="utf-8")
    if configuration.shipped_jobs:
        lines = ",\n".join(json.dumps(job.as_json()) for job in configuration.jobs())
        (folder / "jobs.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def record_one(configuration: RunConfiguration, release: SlurmRelease, number: int) -> None:
    """Make one run and write its outcome."""
    folder = RESULTS / configuration.name
    write_configuration(configuration, folder)
    name = f"{release.name}-{number}"
    mark = folder / f"{name}.running"
    mark.write_text(str(os.getpid()))
    logs = Path(os.environ.get("FORETIME_RUN_LOGS", "/tmp/foretime-run-logs"))
    log_folder = logs / configuration.name / name
    outcome, samples = LiveRun(configuration, release, log_folder).run()
    longest = max(end - begin for begin, end, _ in outcome["backfill_cycles"])
    if longest > _STALLED_S:
        raise RuntimeError(f"{configuration.name} {name}: the machine stood still for {longest} s")
    packed = gzip.compress(json.dumps(samples).encode(), mtime=0)
    (folder / f"{name}.samples.json.gz").write_bytes(packed)
    log = (log_folder / "slurmctld.log").read_text(errors="replace")
    write_events(folder / f"{name}.events.json.gz", events_of(log, outcome["zero"]))
    write_outcome(folder / f"{name}.json", outcome)
    mark.unlink()


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    for number in arguments.runs:
        for release in arguments.releases:
            for name in arguments.configurations or CONFIGURATIONS:
                if name not in CONFIGURATIONS:
                    raise SystemExit(f"no configuration {name!r}: {', '.join(CONFIGURATIONS)}")
                if CONFIGURATIONS[name].soft_limit and release < "23.11":
                    continue
                yield name, release, number


def _taken(run: tuple[str, str, int]) -> bool:
    """Whether a run is recorded, or being recorded by a process that lives."""
    name, release, number = run
    folder = RESULTS / name
    if (folder / f"{release}-{number}.json").exists():
        return True
    mark = folder / f"{release}-{number}.running"
    command = Path(f"/proc/{mark.read_text().strip()}/cmdline") if mark.exists() else mark
    return command.exists() and __spec__.name in command.read_text()


def _record_all(arguments: argparse.Namespace) -> int:
    """Make each run in a process of its own, the next when one has ended."""
    left = list(_wanted(arguments))
    running: dict[tuple[str, str, int], subprocess.Popen[bytes]] = {}
    failed = 0
    while left or running:
        for run, process in list(running.items()):
            if process.poll() is not None:
                del running[run]
                failed += process.returncode != 0
                print(time.strftime("%H:%M:%S"), *run, "ended", process.returncode, flush=True)
        if left and len(running) < arguments.parallel:
            run = left.pop(0)
            if _taken(run):
                continue
            name, release, number = run
            words = ["--one", name, "--releases", release, "--runs", str(number)]
            running[run] = subprocess.Popen([sys.executable, "-m", __spec__.name, *words])
            print(time.strftime("%H:%M:%S"), *run, "begun", os.getloadavg(), flush=True)
            time.sleep(_BETWEEN_STARTS_S)
        time.sleep(1)
    return 1 if failed else 0


def main() -> int:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configurations", nargs="*", help="all, unless named")
    parser.add_argument("--releases", nargs="+", default=["26.05", "22.05"])
    parser.add_argument("--runs", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--one", help="make one run of this configuration here and now")
    arguments = parser.parse_args()
    if not arguments.one:
        return _record_all(arguments)
    release = next(each for each in RELEASES if each.name == arguments.releases[0])
    record_one(CONFIGURATIONS[arguments.one], release, arguments.runs[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
