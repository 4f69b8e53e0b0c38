"""A PBS server with the hook, its table and its configuration, for tests of the hook."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from foretime_sidecar.table.table import Mode, Table, TableRow, TableSettings, write_table
from foretime_sim.mocks.pbs.hook import PbsHook, PbsReply

NOW = 10_000
SOFT = "Resource_List.soft_walltime"
TABLE = Table(
    generation=1,
    written_at=5_000,
    valid_until=100_000,
    settings=TableSettings(mode=Mode.ENFORCE),
    rows=(
        TableRow("user", "alice", 0, 300_000),
        TableRow("project", "phys", 0, 500_000),
        TableRow("user", "small", 0, 100_000, 8 * 36_000),
    ),
)


class Scheduler:
    """A server with the hook, its table and its configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table, self.config = folder / "table", folder / "foretime_hook.CF"
        self.configure()
        self.hook = PbsHook(config=self.config)
        self.write(TABLE)

    def configure(self, **given: Any) -> None:
        self.config.write_text(
            json.dumps(
                {"table": str(self.table), "disable_file": str(self.folder / "off"), **given}
            )
        )

    def write(self, table: Table, **changed: Any) -> None:
        write_table(self.table, replace(table, settings=replace(table.settings, **changed)))

    def queue(self, requestor: str = "alice", now: float = NOW, **job: Any) -> PbsReply:
        return self.hook.queuejob({"Resource_List": {"walltime": 36_000}, **job}, requestor, now)

    def modify(
        self, request: dict[str, Any], requestor: str = "alice", now: float = NOW, **job: Any
    ) -> PbsReply:
        return self.hook.modifyjob(request, {**self.planned(), **job}, requestor, now)

    def run(self, now: float = NOW, **job: Any) -> PbsReply:
        return self.hook.runjob({**self.planned(), "euser": "alice", **job}, now)

    @staticmethod
    def planned(soft: int | None = 10_800, **resources: Any) -> dict[str, Any]:
        """A job that was planned when it was submitted, at 1,000."""
        listed = {"walltime": "10:00:00", "soft_walltime": soft, **resources}
        return {
            "id": "7.pbs",
            "Job_Owner": "alice@login",
            "ctime": 1_000,
            "queue": "workq",
            "Resource_List": {name: value for name, value in listed.items() if value is not None},
        }


def words(reply: PbsReply) -> dict[str, str]:
    """The last line that the hook logged."""
    text = reply.log[-1].text.removeprefix("foretime: ").partition(" (")[0]
    return dict(word.split("=", 1) for word in text.split(" "))
