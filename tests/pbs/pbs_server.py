"""A live OpenPBS on this machine for a test: server, database, scheduler, comm and one MoM.

Everything is in one folder below /tmp and in namespaces of its own (`OwnNamespaces`), so any number
of servers run side by side and none leaves anything. Inside, PBS is where its documentation has it:
/etc/pbs.conf, PBS_HOME in /var/spool/pbs; the machine's own /etc and /var are not touched.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from tests.pbs.first_home import READY_S, first_home
from tests.pbs.pbs_folder import HOST, copy, enter, new_folder, start_daemon

# A test waits that long for what takes a moment on an idle machine.
WAIT_S = 300
_POLL_S = 0.1
_DAEMONS = ("pbs_comm", "pbs_mom", "pbs_sched", "pbs_server")


class PbsServer:
    """A running server; `stop` ends it and removes all of it.

    Parameters
    ----------
    ncpus
        CPUs that its one host pretends to have.
    settings
        Lines for qmgr.

    Attributes
    ----------
    folder
        Its folder.
    home
        PBS_HOME as it is seen from outside.
    """

    def __init__(self, *, ncpus: int = 8, settings: Sequence[str] = ()) -> None:
        template = first_home()
        with new_folder() as self.folder:
            self.home = self.folder / "spool/pbs"
            copy(template, self.home)
            self.namespaces = enter(self.folder)
        try:
            self.start()
            self.qmgr(f"set node {HOST} resources_available.ncpus = {ncpus}", *settings)
        except BaseException:
            self.stop()
            raise

    # Bringing it up -------------------------------------------------------------------------------

    def start(self, *daemons: str) -> None:
        """Start its daemons, or some, and wait until the server answers and the host is free."""
        for daemon in daemons or _DAEMONS:
            start_daemon(self.namespaces, self.folder, daemon)
        self.wait_for(self._host_is_free, "the host to be free", READY_S)

    def _host_is_free(self) -> bool:
        return "state = free" in self.run(["pbsnodes", HOST]).stdout

    def stop_daemon(self, daemon: str) -> None:
        """End pbs_sched, pbs_mom or pbs_server, and wait until it is gone; jobs stay."""
        place = {"pbs_server": "server", "pbs_sched": "sched", "pbs_mom": "mom"}[daemon]
        if daemon == "pbs_server":
            self.checked(["qterm", "-t", "quick"])
        else:
            pid = (self.home / f"{place}_priv/{place}.lock").read_text().strip()
            self.run(["kill", pid])
        self.wait_for(lambda: not self.runs(daemon), f"{daemon} to end", READY_S)

    def runs(self, daemon: str) -> bool:
        """Say whether a daemon is alive."""
        name = "pbs_server.bin" if daemon == "pbs_server" else daemon
        return bool(self.run(["pgrep", "--exact", name]).stdout.strip())

    def stop(self) -> None:
        """End every process of the server and remove its folder."""
        self.namespaces.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Using it -------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        stdin: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user on the server's host."""
        home = "/root" if user == "root" else str(self.folder / "home" / user)
        return self.namespaces.run(
            argv, user, stdin=stdin, environment={"HOME": home, **(environment or {})}
        )

    def checked(self, argv: Sequence[str], user: str = "root", stdin: str | None = None) -> str:
        """Run a command that must succeed; gives its output."""
        reply = self.run(argv, user, stdin=stdin)
        if reply.returncode:
            raise RuntimeError(
                f"{' '.join(argv)} as {user} answered {reply.returncode}:"
                f" {reply.stdout}{reply.stderr}\n{self.log_tail()}"
            )
        return reply.stdout

    def qmgr(self, *lines: str) -> str:
        """Run lines of qmgr as root, which must all succeed."""
        return self.checked(["qmgr"], stdin="\n".join([*lines, ""])) if lines else ""

    def try_qsub(
        self, *options: str, user: str = "alice", script: str = "exec sleep 3600"
    ) -> subprocess.CompletedProcess[str]:
        """Submit a job that may be refused."""
        return self.run(
            ["qsub", "-koed", "-o/dev/null", "-e/dev/null", *options], user, stdin=f"{script}\n"
        )

    def qsub(self, *options: str, user: str = "alice", script: str = "exec sleep 3600") -> str:
        """Submit a job that must be accepted; gives its id."""
        reply = self.try_qsub(*options, user=user, script=script)
        if reply.returncode:
            raise RuntimeError(
                f"qsub answered {reply.returncode}: {reply.stderr}\n{self.log_tail()}"
            )
        return reply.stdout.strip()

    def job(self, job_id: str) -> dict[str, Any]:
        """Give all that ``qstat -xf`` says of a job, even one that has finished; {}: of none."""
        return self.jobs(job_id).get(job_id, {})

    def jobs(self, *job_ids: str) -> dict[str, dict[str, Any]]:
        """Give it of all jobs, or of these, by id; subjobs apart."""
        text = self.run(["qstat", "-xtf", "-F", "json", *job_ids]).stdout
        found: dict[str, dict[str, Any]] = json.loads(text).get("Jobs", {}) if text.strip() else {}
        return found

    def resource(self, job_id: str, name: str) -> str | None:
        """Give what a job has of ``Resource_List``."""
        value = self.job(job_id).get("Resource_List", {}).get(name)
        return None if value is None else str(value)

    def wait_for(
        self, condition: Callable[[], object], what: str, timeout_s: float = WAIT_S
    ) -> None:
        """Wait until a condition holds.

        Raises
        ------
        TimeoutError
            If it doesn't in time; with the end of the server's log.
        """
        until = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"waited {timeout_s} s for {what}\n{self.log_tail()}")
            time.sleep(_POLL_S)

    def wait_for_state(
        self, job_id: str, *states: str, timeout_s: float = WAIT_S
    ) -> dict[str, Any]:
        """Wait until a job is in one of PBS's states (R, Q, H, F, ...); gives it."""
        self.wait_for(
            lambda: self.job(job_id).get("job_state") in states,
            f"job {job_id} to be {' or '.join(states)}",
            timeout_s,
        )
        return self.job(job_id)

    def log(self) -> str:
        """Give the server's log of all days."""
        return "".join(
            path.read_text(errors="replace")
            for path in sorted((self.home / "server_logs").iterdir())
        )

    def log_tail(self, lines: int = 30) -> str:
        """Give the end of the server's log."""
        return "\n".join(self.log().splitlines()[-lines:])

    def set_sched_config(self, **values: str) -> None:
        """Change lines of sched_config, and have pbs_sched read it."""
        path = self.home / "sched_priv/sched_config"
        text = path.read_text()
        for name, value in values.items():
            text = re.sub(rf"(?m)^{name}\s*:.*\n", "", text) + f"{name}: {value}\n"
        path.write_text(text)
        self.run(["pkill", "-HUP", "--exact", "pbs_sched"])

    def cycle(self) -> None:
        """Have pbs_sched look at the queue."""
        self.qmgr("set server scheduling = true")
