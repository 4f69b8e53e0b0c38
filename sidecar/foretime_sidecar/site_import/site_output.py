"""What a site's commands printed, and its files: one text each, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError

SLURM = {
    "config": "scontrol show config",
    "nodes": "scontrol show node --all --future --oneliner",
    "partitions": "scontrol show partition --all --oneliner",
    "reservations": "scontrol show reservation --oneliner",
    "licenses": "scontrol show licenses",
    "topology": "scontrol show topology",
    "assoc": "sacctmgr show assoc -P",
    "qos": "sacctmgr show qos -P",
    "users": "sacctmgr show user -P",
    "sshare": "sshare -a -l -P",
    "sdiag": "sdiag",
    "dump": "sacctmgr dump CLUSTER file=dump.cfg",
}
"""The command of each of Slurm's outputs, as a site saves it."""
PBS = {
    "server": 'qmgr -c "print server"',
    "sched": 'qmgr -c "print sched"',
    "hosts": "pbsnodes -a -F json",
    "rstat": "pbs_rstat -f",
    "hooks": 'qmgr -c "list hook"',
    "usage": "pbsfs -p",
}
"""The same of PBS's."""
PBS_FILES = ("sched_config", "resource_group", "dedicated_time", "holidays")
"""Files of PBS_HOME/sched_priv that are read."""
COMMANDS = {**SLURM, **PBS, **{name: f"cp PBS_HOME/sched_priv/{name} ." for name in PBS_FILES}}
"""How each output is had."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "slurm": ("config", "nodes", "partitions"),
    "pbs": ("server", "hosts", "sched_config"),
}
"""By scheduler."""
ACCOUNTING = ("assoc", "qos")
"""Needed where AccountingStorageEnforce asks for associations."""


_AGAIN = "save it again: "


def saving(kind: str) -> str:
    """Give the command that saves an output."""
    return COMMANDS[kind] if kind in PBS_FILES else f"{COMMANDS[kind]} > {kind}.txt"


@dataclass(frozen=True, slots=True)
class SiteOutput:
    """Outputs by name (`COMMANDS`), and where each comes from.

    Attributes
    ----------
    texts
        What was printed.
    sources
        What errors call each: a file, or a command.
    remedies
        What to do where an output is wrong; else to save it again.
    unread
        Names of files that were not read.
    """

    texts: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def add(self, name: str, text: str, source: str) -> str:
        """Take an output in; gives its text."""
        self.texts[name], self.sources[name] = text, source
        return text

    def text(self, name: str) -> str:
        """Give an output; "" if it is not there."""
        return self.texts.get(name, "")

    @property
    def schedulers(self) -> list[str]:
        """Whose outputs are there."""
        of_slurm = bool(self.texts.keys() & SLURM.keys())
        of_pbs = bool(self.texts.keys() - SLURM.keys())
        return ["slurm"] * of_slurm + ["pbs"] * of_pbs

    def fault(self, name: str, what: str) -> InputError:
        """Say what is wrong with an output, and what to do."""
        source = self.sources.get(name, name)
        command = COMMANDS[name]
        again = "" if source == command else f"; {self.remedies.get(name, _AGAIN + command)}"
        return InputError(f"{source}: {what}{again}")
