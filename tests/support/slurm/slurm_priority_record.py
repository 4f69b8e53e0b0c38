"""What a live Slurm said of its priorities and shares over some minutes, and what they are of.

A record is kept whole, so that it can be compared with the model after the cluster is gone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_KEPT = (
    *("JobId", "JobState", "UserId", "Account", "QOS", "Partition", "SubmitTime", "EligibleTime"),
    *("StartTime", "EndTime", "TimeLimit", "Nice", "TRES", "ReqTRES", "AllocTRES"),
)


@dataclass
class Sample:
    """What was seen at one moment.

    Attributes
    ----------
    events
        How many of the record's events had been by then; -1: one came in between.
    sprio, sshare
        Their lines, with ``|`` between columns.
    priorities
        Of waiting jobs by id, as scontrol has them.
    """

    at: int
    events: int
    sprio: list[str]
    sshare: list[str]
    priorities: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """A cluster's ticks, submissions and ends in their order, and what it said meanwhile.

    Attributes
    ----------
    began
        Epoch seconds of the first turn of the decay thread.
    events
        ``("tick", seconds since the last)``, ``("first", job)`` when a job gets its first priority,
        ``("started", job)``, ``("ended", job)`` when its usage is charged, ``("done", job)`` when
        it is over.
    jobs
        By id, as ``scontrol show job`` has them at the end.
    waiting
        By id, as ``scontrol show job`` had them while they waited.
    firsts
        By id, when a job got its first priority, epoch seconds.
    """

    began: int = 0
    events: list[tuple[str, int]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    jobs: dict[int, dict[str, str]] = field(default_factory=dict)
    waiting: dict[int, dict[str, str]] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it as JSON; of samples between the same two events the last."""
        fields = dataclasses.asdict(self)
        different = {sample.events: sample for sample in self.samples if sample.events >= 0}
        fields["samples"] = [dataclasses.asdict(sample) for sample in different.values()]
        for name in ("jobs", "waiting"):
            fields[name] = {
                number: {key: job[key] for key in _KEPT if key in job}
                for number, job in fields[name].items()
            }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(fields, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read what `write` wrote."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            fields["began"],
            [(kind, number) for kind, number in fields["events"]],
            [Sample(**sample) for sample in fields["samples"]],
            {int(number): job for number, job in fields["jobs"].items()},
            {int(number): job for number, job in fields["waiting"].items()},
            {int(number): when for number, when in fields.get("firsts", {}).items()},
        )


def cells_of(lines: Iterable[str]) -> list[list[str]]:
    """Split rows of a table with ``|`` between its columns."""
    return [[cell.strip() for cell in line.split("|")] for line in lines]


_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


def tres_of(text: str) -> dict[str, int]:
    """Read ``cpu=4,mem=500M,node=1,billing=4``."""
    counts = {}
    for part in filter(None, text.split(",")):
        kind, _, value = part.partition("=")
        if value[-1] in _UNITS and kind == "mem":
            counts[kind] = round(float(value[:-1]) * _UNITS[value[-1]])
        else:
            counts[kind] = int(value)
    return counts
