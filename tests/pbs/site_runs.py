"""Live runs of OpenPBS under the configurations of site_configurations.toml, recorded.

``python -m tests.pbs.site_runs --seed 1 --count 150 [NAME...]`` brings up a server for each
configuration side by side, submits every job at its second and writes
tests/assets/pbs/runs/NAME-SEED-RUN.json as soon as all its jobs have ended. What is already
recorded is left as it is: after an interruption, the same command makes what is missing.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

from tests.pbs.pbs_server import PbsServer
from tests.pbs.site_workload import CPUS_OF_A_HOST, HOSTS, LiveJob, as_rows, live_jobs
from tests.pbs.usage_watch import UsageWatch

CONFIGURATIONS = Path(__file__).with_name("site_configurations.toml")
RUNS = Path(__file__).parents[1] / "assets/pbs/runs"
_QUEUES = (
    "create queue high queue_type=execution, enabled=true, started=true, priority=100",
    "create queue low queue_type=execution, enabled=true, started=true, priority=10",
)
_CYCLE_WITHIN_S = 20
# A job's soft_walltime is in its name.
_HOOK = """
import pbs
job = pbs.event().job
job.Resource_List["soft_walltime"] = pbs.duration(int(str(job.Job_Name)[1:]))
"""


def configurations() -> dict[str, dict[str, Any]]:
    """Give them by name."""
    return tomllib.loads(CONFIGURATIONS.read_text())


def bring_up(configuration: dict[str, Any]) -> PbsServer:
    """Bring up a server of four hosts of four CPUs under a configuration."""
    queues = _QUEUES if configuration.get("queues") else ()
    server = PbsServer(ncpus=0, settings=[*queues, "set sched log_events = 4095"])
    try:
        _add_hosts(server)
        if "resource_group" in configuration:
            path = server.home / "sched_priv/resource_group"
            path.write_text(configuration["resource_group"])
        server.set_sched_config(**configuration.get("sched_config", {}))
        server.qmgr(*configuration.get("qmgr", ()))
        if configuration.get("soft_walltimes"):
            hook = server.folder / "soft.py"
            hook.write_text(_HOOK)
            server.qmgr(
                "create hook soft event = queuejob",
                f"import hook soft application/x-python default {hook}",
            )
        time.sleep(2)
    except BaseException:
        server.stop()
        raise
    return server


def _add_hosts(server: PbsServer) -> None:
    lines = ["$configversion 2"]
    for host in range(HOSTS):
        lines.append(f"vn{host}: resources_available.ncpus = {CPUS_OF_A_HOST}")
        lines.append(f"vn{host}: resources_available.host = vn{host}")
    # MoM sends what a job has used 2 s after it has looked, and never if it looks each second.
    (server.home / "mom_priv/config").write_text("$min_check_poll 3\n$max_check_poll 3\n")
    definition = server.folder / "vnodes"
    definition.write_text("\n".join([*lines, ""]))
    server.checked(["pbs_mom", "-s", "insert", "vnodes", str(definition)])
    server.run(["pkill", "-HUP", "--exact", "pbs_mom"])
    server.wait_for(
        lambda: server.run(["pbsnodes", "-a"]).stdout.count("state = free") == HOSTS + 1, "hosts"
    )


def run_live(name: str, jobs: list[LiveJob], logs_folder: Path | None = None) -> dict[str, Any]:
    """Run jobs on a server of its own; gives the record."""
    configuration = configurations()[name]
    with bring_up(configuration) as server:
        begin = int(time.time()) + 2
        reserved = _reserve(server, configuration, begin)
        ids = []
        with UsageWatch(server.home / "sched_priv/usage") as usage:
            for job in jobs:
                while (wait := begin + job.submit_s + 0.2 - time.time()) > 0:
                    time.sleep(min(wait, 1.0))
                ids.append(_submit(server, job, configuration))
            server.wait_for(lambda: _ended(server) == len(jobs), "all jobs to end", 7200)
        time.sleep(2)
        logs = "".join(p.read_text() for p in sorted((server.home / "sched_logs").iterdir()))
        if logs_folder:
            (logs_folder / f"{name}.sched_log").write_text(logs)
            (logs_folder / f"{name}.accounting").write_text(_accounting(server))
        return {
            "configuration": name,
            "jobs": as_rows(jobs),
            "begin": begin,
            "server": server.run(["qmgr", "-c", "print server"]).stdout,
            "nodes": _nodes(server),
            "decayed_at": _decayed_at(logs),
            "sched": server.run(["qmgr", "-c", "print sched"]).stdout,
            **happened(_accounting(server), logs, ids, begin),
            "charged": [[round(at - begin, 1), used] for at, used in usage.seen],
            **reserved,
        }


def _nodes(server: PbsServer) -> dict[str, Any]:
    """Give what of ``pbsnodes -a -F json`` does not change from moment to moment."""
    reply: dict[str, Any] = json.loads(server.run(["pbsnodes", "-a", "-F", "json"]).stdout)
    kept = ("state", "resources_available", "sharing", "Priority", "queue")
    nodes = {
        name: {key: value for key, value in node.items() if key in kept}
        for name, node in reply["nodes"].items()
    }
    return {**reply, "nodes": nodes}


def _decayed_at(logs: str) -> int | None:
    """Say when pbs_sched last read its settings: from then on it counts the times to decay."""
    found = re.findall(r"(?m)^(.{19});\S+;pbs_sched;Sched;reconfigure;", logs)
    return _moment(found[-1]) if found else None


def top_jobs(logs: str, ids: list[str], begin: int) -> list[list[int]]:
    """Give what pbs_sched said of top jobs: when, of whom, and for when each was planned."""
    said = re.findall(
        r"(?m)^(.{19});\S+;pbs_sched;Job;([^;]*);Job is a top job and will run at (.*)$", logs
    )
    return [
        [
            _moment(when) - begin,
            ids.index(name),
            int(time.mktime(time.strptime(planned, "%a %b %d %H:%M:%S %Y"))) - begin,
        ]
        for when, name, planned in said
    ]


def _reserve(server: PbsServer, configuration: dict[str, Any], begin: int) -> dict[str, Any]:
    """Set aside what a configuration says; gives what was set aside, in epoch seconds."""
    found: dict[str, Any] = {}
    if "dedicated_time" in configuration:
        # The file knows minutes.
        span = [(begin + later) // 60 * 60 for later in configuration["dedicated_time"]]
        words = [time.strftime("%m/%d/%Y %H:%M", time.localtime(moment)) for moment in span]
        (server.home / "sched_priv/dedicated_time").write_text(f"{' '.join(words)}\n")
        server.run(["pkill", "-HUP", "--exact", "pbs_sched"])
        found["dedicated_time"] = [span]
    if "reservation" in configuration:
        told = configuration["reservation"]
        span = [begin + told["from_s"], begin + told["to_s"]]
        words = [time.strftime("%Y%m%d%H%M.%S", time.localtime(moment)) for moment in span]
        asked = ["-R", words[0], "-E", words[1], "-l", f"select={told['select']}"]
        name = server.checked(["pbs_rsub", *asked], "manager").split()[0]
        server.wait_for(
            lambda: "RESV_CONFIRMED" in server.checked(["pbs_rstat", "-f", name]), "a reservation"
        )
        text = server.checked(["pbs_rstat", "-f", name])
        nodes = text.split("resv_nodes = ")[1].splitlines()[0]
        found["reservations"] = [{"name": name, "span": span, "nodes": nodes}]
    return found


def _submit(server: PbsServer, job: LiveJob, configuration: dict[str, Any]) -> str:
    options = [f"-lselect={job.chunks}:ncpus={job.ncpus}", f"-lwalltime={job.walltime_s}"]
    if configuration.get("soft_walltimes"):
        options.append(f"-Ns{job.soft_walltime_s}")
    if configuration.get("queues"):
        options.append(f"-q{job.queue}")
    return server.qsub(*options, user=job.user, script=f"exec sleep {job.runtime_s}")


def _accounting(server: PbsServer) -> str:
    folder = server.home / "server_priv/accounting"
    return "".join(path.read_text() for path in sorted(folder.iterdir()))


def _ended(server: PbsServer) -> int:
    time.sleep(1)
    return len(re.findall(r"(?m)^[^;]*;E;", _accounting(server)))


def happened(accounting: str, logs: str, ids: list[str], begin: int) -> dict[str, Any]:
    """Give seconds from the beginning, as server and scheduler saw them, and in which order.

    A job ends when the server has written that it did, and starts when that happened after which
    pbs_sched started it: a submission or an end. On a busy machine, that is a second or two from
    what MoM says of it.
    """
    numbers = {name: number for number, name in enumerate(ids)}
    submitted: list[int | None] = [None] * len(ids)
    started, ended = submitted.copy(), submitted.copy()
    hosts = [""] * len(ids)
    order, start_order, moments, start_cycles = [], [], [], []
    for line in accounting.splitlines():
        when, kind, name, rest = line.split(";", 3)
        if name not in numbers:
            continue
        if kind == "Q":
            submitted[numbers[name]] = _moment(when) - begin
        elif kind == "E":
            ended[numbers[name]] = _moment(when) - begin
        elif kind == "S":
            hosts[numbers[name]] = rest.split("exec_vnode=")[1].split()[0]
        if kind in "QE":
            order.append(f"{kind}{numbers[name]}")
            moments.append(_moment(when) - begin)
    began = re.findall(r"(?m)^(.{19});.*;Starting Scheduling Cycle$", logs)
    of_cycle = events_of_cycles([_moment(when) - begin for when in began], moments)
    for cycle, text in enumerate(logs.split("Starting Scheduling Cycle")[1:]):
        for name in re.findall(r"(?m);pbs_sched;Job;([^;]*);Job run$", text):
            event = of_cycle[cycle]
            started[numbers[name]] = moments[event]
            start_order.append(numbers[name])
            start_cycles.append(event)
    return {
        "submitted": submitted,
        "started": started,
        "ended": ended,
        "hosts": hosts,
        "start_order": start_order,
        "start_cycles": start_cycles,
        "happened": order,
        "top_jobs": top_jobs(logs, ids, begin),
    }


def events_of_cycles(cycles: list[int], events: list[int]) -> list[int]:
    """Say after which event each cycle was: nearly always there is one for each, in their order.

    Two events may share a cycle, and a cycle may have another cause, as the beginning of a
    reservation; it then follows the event before it. The assignment is taken that has fewest of
    these and, of those, the shortest time from events to their cycles.
    """
    best: list[dict[int, tuple[float, int]]] = []
    for number, event in enumerate(events):
        here: dict[int, tuple[float, int]] = {}
        for cycle, when in enumerate(cycles):
            if not event <= when <= event + _CYCLE_WITHIN_S:
                continue
            lag = (when - event) / 1000
            if number == 0:
                here[cycle] = (lag, -1)
                continue
            for before in range(max(0, cycle - 3), cycle + 1):
                if before in best[-1]:
                    cost = best[-1][before][0] + lag + abs(cycle - before - 1)
                    here[cycle] = min(here.get(cycle, (cost, before)), (cost, before))
        best.append(here)
    chosen = min(best[-1], key=lambda cycle: best[-1][cycle][0])
    of_cycle = [-1] * len(cycles)
    for number in range(len(events) - 1, -1, -1):
        if of_cycle[chosen] < 0:  # the last of those that share it
            of_cycle[chosen] = number
        chosen = best[number][chosen][1]
    for cycle in range(1, len(cycles)):
        if of_cycle[cycle] < 0:
            of_cycle[cycle] = of_cycle[cycle - 1]
    return of_cycle


def _moment(text: str) -> int:
    return int(time.mktime(time.strptime(text, "%m/%d/%Y %H:%M:%S")))


def main() -> None:
    """Record what is missing."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=150)
    arguments.add_argument("--logs", type=Path, help="where the scheduler's logs are left")
    arguments.add_argument("--run", type=int, default=1)
    given = arguments.parse_args()
    jobs = live_jobs(given.seed, given.count)
    RUNS.mkdir(exist_ok=True)

    def record(name: str) -> None:
        path = RUNS / f"{name}-{given.seed}-{given.run}.json"
        if not path.exists():
            text = json.dumps(run_live(name, jobs, given.logs), separators=(",", ":"))
            path.write_text(text + "\n")
            print(time.strftime("%H:%M:%S"), path.name, flush=True)

    threads = [
        threading.Thread(target=record, args=(name,)) for name in given.names or configurations()
    ]
    for thread in threads:
        thread.start()
        time.sleep(3)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
