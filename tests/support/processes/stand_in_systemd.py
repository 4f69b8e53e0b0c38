"""What systemctl does for Foretime's units, in a test's own namespaces where no systemd runs.

A service is started by its unit's own ExecStart, as its User, with its folders, and without the
unit's sandbox. The units' files are those of the namespace, as are what is enabled and what runs.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.processes.own_namespaces import OwnNamespaces

_POLL_S = 0.05
_CLIENT = """\
#!/bin/sh
ask={folder}/$$
printf '%s\\n' "$*" >"$ask.new" && mv "$ask.new" "$ask.asked" || exit 1
while [ ! -e "$ask.answer" ]; do sleep {poll_s}; done
read -r code <"$ask.answer"
tail -n +2 "$ask.answer" >&2
exit "$code"
"""
# $1: user; $2: the service's folder below /run; the rest: its command.
_START = """\
user=$1 run=$2; shift 2
if [ -n "$run" ]; then install -d -m 755 -o "$user" -g "$user" "/run/$run"; fi
setsid setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all -- "$@" \
  </dev/null >>{log} 2>&1 &
echo $!
"""
_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system")


class StandInSystemd:
    """Answers the `systemctl` that it puts into a folder; `end` stops answering.

    Parameters
    ----------
    namespaces
        Where the services run.
    folder
        Seen in the namespaces under the same name; its ``bin`` belongs at the PATH's beginning.
    others
        Of units that are not Foretime's, by name: what restarts each.

    Attributes
    ----------
    enabled
        Units that begin at boot.
    log
        What the services print.
    fails
        Requests that are refused.
    """

    def __init__(
        self,
        namespaces: OwnNamespaces,
        folder: Path,
        others: Mapping[str, Callable[[], object]] | None = None,
    ) -> None:
        self._namespaces, self._folder = namespaces, folder
        self._others = dict(others or {})
        self._pids: dict[str, str] = {}
        self.enabled: set[str] = set()
        self.fails: set[str] = set()
        self.log = folder / "services.log"
        (folder / "bin").mkdir(parents=True)
        self.log.touch()
        client = folder / "bin/systemctl"
        client.write_text(_CLIENT.format(folder=folder, poll_s=_POLL_S))
        client.chmod(0o755)
        self._run("mkdir", "-p", "/run/systemd/system")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._answer_all)
        self._thread.start()

    def end(self) -> None:
        """Stop answering."""
        self._ended.set()
        self._thread.join()

    def _answer_all(self) -> None:
        while not self._ended.wait(_POLL_S):
            for asked in self._folder.glob("*.asked"):
                words = asked.read_text().split()
                asked.unlink()
                try:
                    code, said = self._answer(words)
                except (RuntimeError, OSError, TimeoutError) as error:
                    code, said = 1, str(error)
                answer = asked.with_suffix(".answer")
                answer.with_suffix(".part").write_text(f"{code}\n{said}\n")
                answer.with_suffix(".part").rename(answer)

    def _answer(self, words: list[str]) -> tuple[int, str]:
        if " ".join(words) in self.fails:
            return 1, f"systemctl {' '.join(words)}: refused by the test"
        verb, *rest = words
        names = [word if "." in word else f"{word}.service" for word in rest if word[0] != "-"]
        units = [name for name in names if name not in self._others]
        if verb != "daemon-reload" and any(not self._text(unit) for unit in units):
            return 5, f"Unit {' or '.join(units)} not found."
        if verb == "is-enabled":
            return int(not set(units) <= self.enabled), ""
        if verb == "is-active":
            return (0 if all(map(self._is_active, names)) else 3), ""
        if verb in ("enable", "disable"):
            change = self.enabled.update if verb == "enable" else self.enabled.difference_update
            change(units)
            verb = {"enable": "start", "disable": "stop"}[verb] if "--now" in rest else ""
        for name in names if verb in ("start", "stop", "restart") else ():
            if name in self._others:
                self._others[name]()
                continue
            if verb != "start":
                self._stop(name)
            if verb != "stop" and not self._is_active(name):
                self._start(name)
        return 0, ""

    def _is_active(self, unit: str) -> bool:
        if unit in self._others:
            return True
        pid = self._pids.get(unit, "")
        return pid == "timer" or (
            bool(pid) and not self._namespaces.run(["kill", "-0", pid]).returncode
        )

    def _text(self, unit: str) -> str:
        files = [f"{folder}/{unit}" for folder in _FOLDERS] + [f"{_FOLDERS[0]}/{unit}.d/*.conf"]
        return self._namespaces.run(["sh", "-c", f"cat {' '.join(files)} 2>/dev/null"]).stdout

    def _start(self, unit: str) -> None:
        if unit.endswith(".timer"):
            self._pids[unit] = "timer"
            return
        values = dict(re.findall(r"^(\w+)=(.*)$", self._text(unit), flags=re.MULTILINE))
        user = values["User"]
        if "ExecStartPre" in values:
            self._run(
                "setpriv",
                f"--reuid={user}",
                f"--regid={user}",
                "--init-groups",
                "--",
                *shlex.split(values["ExecStartPre"]),
            )
        script = _START.format(log=self.log)
        command = shlex.split(values["ExecStart"])
        run = values.get("RuntimeDirectory", "")
        self._pids[unit] = self._run("sh", "-c", script, "sh", user, run, *command).strip()

    def _stop(self, unit: str) -> None:
        pid = self._pids.pop(unit, "timer")
        if pid != "timer":
            self._run("sh", "-c", f"kill {pid}; while kill -0 {pid}; do sleep {_POLL_S}; done 2>&-")

    def _run(self, *argv: str) -> str:
        done = self._namespaces.run(argv)
        if done.returncode > 1 or (done.returncode and done.stderr):
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout
