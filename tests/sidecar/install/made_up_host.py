"""A made-up host: a folder for its root, and commands that do there what they do on a real one."""

from __future__ import annotations

import shutil
from pathlib import Path

from foretime_estimators.jobs.errors import StateError
from foretime_sidecar.install.host import Host


class MadeUpHost(Host):
    """The host.

    Attributes
    ----------
    users
        The groups of each user.
    active, enabled
        Units.
    ran
        Commands that changed something.
    fails
        The first word or words of commands that fail.
    interrupted
        The first word of a command during which Ctrl-C comes.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root
        self.users: dict[str, set[str]] = {"slurm": {"slurm"}}
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.entries: set[tuple[str, str]] = set()
        self.ran: list[str] = []
        self.fails: tuple[str, ...] = ()
        self.interrupted = ""

    @property
    def is_root(self) -> bool:
        return True

    def succeeds(self, *argv: str) -> bool:
        if argv[:2] == ("getent", "passwd"):
            return argv[2] in self.users
        assert argv[0] == "systemctl", argv
        units = self.enabled if argv[1] == "is-enabled" else self.active
        return argv[-1] in units

    def run(self, *argv: str) -> str:
        shown = " ".join(argv)
        if shown.startswith(self.fails):
            raise StateError(f"{shown}: made to fail")
        if argv[0] == self.interrupted:
            raise KeyboardInterrupt
        name = Path(argv[0]).name
        if name == "id":
            return " ".join(self.users[argv[-1]])
        if name == "getent":
            return "foretime:x:995:\n"
        if name == "getfacl":
            return "".join(f"{entry}--x\n" for place, entry in self.entries if place == argv[-1])
        self.ran.append(shown)
        getattr(self, f"_{name}", lambda *_: None)(*argv[1:])
        return ""

    def _useradd(self, *words: str) -> None:
        self.users[words[-1]] = {words[-1]}

    def _userdel(self, user: str) -> None:
        del self.users[user]

    def _usermod(self, *words: str) -> None:
        self.users[words[-1]].add(words[-2])

    def _gpasswd(self, _: str, user: str, group: str) -> None:
        self.users[user].remove(group)

    def _install(self, *words: str) -> None:
        self.path(words[-1]).mkdir(parents=True)

    def _rm(self, *words: str) -> None:
        shutil.rmtree(self.path(words[-1]))

    def _setfacl(self, *words: str) -> None:
        entry = (words[-1], "user:foretime:")
        if "--modify" in words:
            self.entries.add(entry)
        else:
            self.entries.remove(entry)

    def _systemctl(self, verb: str, *words: str) -> None:
        units = {word for word in words if not word.startswith("--")}
        if verb in ("enable", "disable"):
            (self.enabled.update if verb == "enable" else self.enabled.difference_update)(units)
        if verb == "restart":
            self.active.update(units)
        if "--now" in words and verb == "disable":
            self.active.difference_update(units)

    def begin_systemd(self) -> None:
        """Have systemd run."""
        (self.root / "run/systemd/system").mkdir(parents=True)

    def everything(self) -> tuple[object, ...]:
        """Give all that an installation may change."""
        files = {
            str(path): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.root.rglob("*"))
        }
        users = {name: set(groups) for name, groups in self.users.items()}
        return files, users, set(self.active), set(self.enabled), set(self.entries)
