"""What a site's commands printed: one text each, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError

COMMANDS = {
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
"""The command of each output, as a site saves it."""
NEEDED = ("config", "nodes", "partitions")
ACCOUNTING = ("assoc", "qos")
"""Needed where AccountingStorageEnforce asks for associations."""


_AGAIN = "save it again: "


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
    """

    texts: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Give an output; "" if it is not there."""
        return self.texts.get(name, "")

    def fault(self, name: str, what: str) -> InputError:
        """Say what is wrong with an output, and what to do."""
        source = self.sources.get(name, name)
        command = COMMANDS[name]
        again = "" if source == command else f"; {self.remedies.get(name, _AGAIN + command)}"
        return InputError(f"{source}: {what}{again}")
