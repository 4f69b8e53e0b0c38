"""Record what a live OpenPBS answers and logs, for ``tests/assets/pbs/recorded``.

``python -m tests.pbs.record_replies`` (as root, from the repository) brings up a server with the
hook, lets jobs of every kind happen to it, and keeps what the client's own questions are answered,
the accounting and server logs. It takes about a minute. ``python -m tests.pbs.answers`` records
what each form of submission is answered.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer

ASSETS = Path(__file__).resolve().parents[1] / "assets/pbs/recorded"
QUESTIONS = {
    "qstat.json": ["qstat", "-t", "-f", "-F", "json"],
    "qstat-x.json": ["qstat", "-x", "-t", "-f", "-F", "json"],
    "qstat-B.json": ["qstat", "-B", "-f", "-F", "json"],
    "pbsnodes.json": ["pbsnodes", "-a", "-F", "json"],
    "pbs_rstat.txt": ["pbs_rstat", "-f"],
    "qmgr-list-hook.txt": ["qmgr", "-c", "list hook"],
}


def let_jobs_happen(server: PbsServer) -> None:
    """Have jobs of every kind on eight CPUs."""
    ended = {
        "completed": server.qsub("-lwalltime=100", "-Aphysics", script="sleep 5"),
        "failed": server.qsub("-lwalltime=100", user="bob", script="exit 3"),
        "killed": server.qsub("-lwalltime=5", user="carol"),
        "array": server.qsub("-lwalltime=100", "-J1-3", user="bob", script="sleep 2"),
        "unlimited": server.qsub(script="sleep 1"),
    }
    for job in ended.values():
        server.wait_for_state(job, "F")
    deleted, again = server.qsub("-lwalltime=100"), server.qsub("-lwalltime=100", "-ry")
    never = server.qsub("-lwalltime=100", "-h")
    for job in (deleted, again):
        server.wait_for_state(job, "R")
    server.checked(["qdel", deleted, never], "alice")
    server.checked(["qrerun", again])
    server.wait_for_state(deleted, "F")
    server.cycle()
    server.wait_for_state(again, "R")

    running = server.qsub("-lselect=1:ncpus=4", "-lwalltime=2000", "-Pphysics")
    paused = server.qsub("-lselect=1:ncpus=2", "-lwalltime=2000", user="bob")
    for job in (running, paused):
        server.wait_for_state(job, "R")
    server.checked(["qsig", "-ssuspend", paused])
    server.wait_for_state(paused, "S")
    server.checked(["pbs_rsub", "-R203001010000", "-D3600", "-lselect=1:ncpus=8"], "carol")
    server.wait_for(
        lambda: "RESV_CONFIRMED" in server.run(["pbs_rstat", "-f"]).stdout, "a reservation"
    )
    whole = ["-lselect=1:ncpus=8", "-lwalltime=1000"]
    server.qsub(*whole, "-A", 'say"so', user="carol")
    server.qsub(*whole, "-J1-9:2", user="bob")
    server.qsub(*whole, "-h")
    server.qsub(*whole, f"-Wdepend=afterok:{running}")
    server.qsub(*whole, "-a203001010000")
    server.qsub("-lselect=1:ncpus=8", "-lmin_walltime=600,max_walltime=1000", user="bob")
    server.qsub("-lselect=1:ncpus=8", "-vA=005,B=.123,C='x y'", user="carol")
    server.cycle()
    server.wait_for(
        lambda: any("comment" in job for job in server.jobs().values() if job["job_state"] == "Q"),
        "the scheduler to have looked",
    )


def record() -> None:
    """Record all."""
    with PbsServer() as server:
        InstalledForetime(server).install()
        let_jobs_happen(server)

        def tidy(text: str) -> str:
            return text.replace(str(server.folder), "/lab")

        shutil.rmtree(ASSETS, ignore_errors=True)
        ASSETS.mkdir(parents=True)
        for name, argv in QUESTIONS.items():
            reply = server.namespaces.run(argv, environment={"TZ": "UTC0"})
            if reply.returncode:
                raise RuntimeError(f"{argv} answered {reply.returncode}: {reply.stderr}")
            (ASSETS / name).write_text(tidy(reply.stdout))
        for name, kept in (("server_priv/accounting", ""), ("server_logs", ";Hook;")):
            folder = ASSETS / Path(name).name
            folder.mkdir()
            for path in sorted((server.home / name).iterdir()):
                lines = path.read_text(errors="replace").splitlines(keepends=True)
                text = tidy("".join(line for line in lines if kept in line))
                (folder / path.name).write_text(text)


if __name__ == "__main__":
    record()
