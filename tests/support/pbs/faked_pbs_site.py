"""A PBS site whose commands are fakes, for tests of its administration."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from foretime_sidecar.clients.pbs.server import HOOK, PbsServer
from foretime_sidecar.install import pbs_install
from foretime_sidecar.install.doctor.checkup import Finding, examine
from foretime_sidecar.install.doctor.pbs import pbs_checks
from foretime_sidecar.install.pbs_scheduler import PbsScheduler, pbs_home
from foretime_sidecar.install.steps import Outcome, all_or_nothing
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import Mode, Table, TableSettings, write_table

# Stands for qmgr, qstat, qselect and qalter; what it knows is in a JSON file beside it.
FAKE = r"""
import json, os, shlex, sys
path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "state.json")
with open(path) as file:
    state = json.load(file)
command, words = os.path.basename(sys.argv[0]), sys.argv[1:]
state["log"].append([command, *words])

def leave(code, message=""):
    with open(path, "w") as file:
        json.dump(state, file)
    if message:
        print(message, file=sys.stderr if code else sys.stdout)
    sys.exit(code)

if any(part in " ".join([command, *words]) for part in state["fail"]):
    leave(1, "qmgr: Error (15010) returned from server")
if command == "qstat":
    if "-B" in words:
        print(json.dumps({"timestamp": state["time"], "pbs_version": state["version"],
                          "pbs_server": "pbs", "Server": {"pbs": state["server"]}}))
    else:
        print(json.dumps({"timestamp": state["time"], "Queue": state["queues"]}))
    leave(0)
if command == "qselect":
    each = words[0] == "-T"
    assert words[each::2] == ["-s", "-l"] and words[-1] == "soft_walltime.ge.0", words
    for name, job in state["jobs"].items():
        subjob = "[" in name and "[]" not in name
        if job["state"] in words[each + 1] and job["soft"] and subjob <= each:
            print(name)
    leave(0)
if command == "qalter":
    assert words[:2] == ["-l", "soft_walltime="], words
    job = state["jobs"][words[2]]
    if job.get("gone"):
        job["state"] = "E"
    if job.get("stuck") or job.get("gone"):
        leave(153, "qalter: Request invalid for state of job " + words[2])
    job["soft"] = ""
    leave(0)
if not state["manager"]:
    leave(1, "user@host is unauthorized to access hooks data from server host")
hooks = state["hooks"]
directive = words[1]
if directive.startswith("set hook"):
    directive = directive.replace("=", " = ")
verb, kind, *rest = shlex.split(directive)
assert kind == "hook"
if verb == "list":
    if not hooks:
        leave(1, "qmgr obj= svr=default: hook not found")
    for name, hook in hooks.items():
        print("Hook " + name)
        for key, value in hook["attributes"].items():
            print("    %s = %s" % (key, value))
        print()
    leave(0)
name = rest[0]
if verb == "create":
    if name in hooks:
        leave(1, "qmgr obj=%s svr=default: hook error: hook name already registered" % name)
    hooks[name] = {"attributes": {"type": "site", "enabled": "true", "event": '""', "alarm": "30",
                                  "order": "1"}}
elif name not in hooks:
    leave(1, "qmgr obj=%s svr=default: hook not found" % name)
elif verb == "delete":
    del hooks[name]
elif verb == "set":
    key, value = rest[1], rest[3]
    hooks[name]["attributes"][key] = value
elif verb == "import":
    with open(rest[3]) as file:
        hooks[name][rest[1]] = file.read()
elif verb == "export":
    if rest[1] not in hooks[name]:
        leave(1, "qmgr obj=%s svr=default: hook error: no content" % name)
    print(hooks[name][rest[1]], end="")
leave(0)
"""


LINE = 'resources: "ncpus, mem, arch, host, vnode, aoe, eoe"'
PLAIN_CONFIG = f"# backfill_prime: true ALL\n# resources: x\n{LINE}\n"


class FakeServer(PbsServer):
    """The same without a process for each command."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._script = folder / "fake"
        self._code = compile(FAKE, str(self._script), "exec")

    def _spawn(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        if not Path(command[0]).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        said, complained = io.StringIO(), io.StringIO()
        before, code = sys.argv, 0
        sys.argv = command
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
                exec(self._code, {"__file__": str(self._script)})
        except SystemExit as left:
            code = int(str(left.code))
        finally:
            sys.argv = before
        return subprocess.CompletedProcess(command, code, said.getvalue(), complained.getvalue())


class Site:
    """A PBS server's host."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.state_file = self.bin / "state.json"
        script = self.bin / "fake"
        script.write_text(f"#!{sys.executable} -S\n{FAKE}")
        script.chmod(0o755)
        for name in ("qmgr", "qstat", "qselect", "qalter"):
            (self.bin / name).symlink_to(script)
        self.change(
            hooks={},
            jobs={},
            queues={},
            server={},
            manager=True,
            fail=[],
            log=[],
            version="23.06.06",
            time=int(time.time()),
        )
        self.server = FakeServer(self.bin)
        # A table that only root and we could replace, as far as a test can say so.
        self.table = folder / "table"
        now = int(time.time())
        settings = TableSettings(mode=Mode.ENFORCE)
        self.content = Table(1, now - 10, now + 3_600, settings)
        write_table(self.table, self.content)
        self.settings = Settings.model_validate(
            {
                "table": {"path": str(self.table)},
                "scheduler": {"pbs_accounting_dir": "", "pbs_dedicated_time_file": ""},
                "hook": {"disable_file": str(folder / "foretime.off")},
            }
        )

    @property
    def sched_config(self) -> Path:
        return Path(os.environ["PBS_HOME"]) / "sched_priv" / "sched_config"

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.state_file.read_text())
        return state

    def change(self, **changes: Any) -> None:
        before = self.state if self.state_file.exists() else {}
        self.state_file.write_text(json.dumps({**before, **changes}))

    def hook(self, name: str = HOOK) -> dict[str, Any]:
        found: dict[str, Any] = self.state["hooks"][name]
        return found

    def set_hook(self, name: str, **attributes: str) -> None:
        hooks = self.state["hooks"]
        hook = hooks.setdefault(name, {"attributes": {"enabled": "true", "event": "queuejob"}})
        hook["attributes"].update(attributes)
        self.change(hooks=hooks)

    def set_content(self, name: str, kind: str, text: str) -> None:
        hooks = self.state["hooks"]
        hooks[name][kind] = text
        self.change(hooks=hooks)

    def install(self) -> Outcome:
        outcome = Outcome()
        with all_or_nothing() as undo:
            pbs_install.install(self.server, self.settings, outcome, undo)
        PbsScheduler(pbs_home()).install(outcome)
        return outcome

    def directives(self) -> list[str]:
        return [words[2] for words in self.state["log"] if words[0] == "qmgr"]

    def diagnoses(self) -> dict[str, Finding]:
        checks = pbs_checks(self.settings, self.server, int(time.time()), str(self.bin))
        return {diagnosis.name: diagnosis.finding for diagnosis in examine(checks)}
