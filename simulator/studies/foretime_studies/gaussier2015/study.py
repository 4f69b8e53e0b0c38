"""The study of Gaussier 2015 again: every heuristic triple on every log, as a campaign.

A heuristic triple is a prediction, a correction of predictions that a job outlives, and a
backfilling (section 6.2): 20 losses and the mean of the user's last two runtimes x three
corrections x two backfillings, and requested times x two, are the paper's 128 runs a log; two
with actual runtimes come on top.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS, LOSSES
from foretime_estimators.jobs.errors import ForetimeError
from foretime_sim.campaigns.cells import Plan, plan
from foretime_sim.campaigns.execution import Outcome
from foretime_sim.campaigns.failures import causes
from foretime_sim.campaigns.file import parse_campaign
from foretime_sim.campaigns.runs import Record
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, EventOrder

from foretime_studies.frame.known_by_behaviour import known_by_behaviour
from foretime_studies.gaussier2015.selection import Rule, leave_one_out

REQUESTED, CLAIRVOYANT_TIMES, LAST_TWO = "requested", "actual", "last-two"
REGRESSION = "regression:"
CORRECTIONS = (Correction.REQUESTED, Correction.INCREMENTAL, Correction.DOUBLING)
"""Section 5.2."""
BACKFILLS = (Backfill.EASY, Backfill.EASY_SJBF)
"""Section 5.1."""
CAMPAIGN = "campaign.toml"
"""What messages call the campaign."""


class Triple(NamedTuple):
    """A heuristic triple; ``correction`` is ``None`` where no job outlives its prediction."""

    prediction: str
    correction: str | None
    backfill: str

    @property
    def title(self) -> str:
        """As tables write it."""
        prediction = self.prediction.removeprefix(REGRESSION).partition(":")[0]
        parts = (prediction, self.correction, self.backfill)
        return " / ".join(part for part in parts if part is not None)

    @property
    def learned(self) -> bool:
        """Whether a regression predicts."""
        return self.prediction.startswith(REGRESSION)

    @property
    def clairvoyant(self) -> bool:
        """Whether it knows the actual runtimes."""
        return self.prediction == CLAIRVOYANT_TIMES


EASY = Triple(REQUESTED, None, "easy")
EASY_SJBF = Triple(REQUESTED, None, "easy-sjbf")
EASY_PLUS_PLUS = Triple(LAST_TWO, "incremental", "easy-sjbf")
LAST_TWO_REQUESTED = Triple(LAST_TWO, "requested", "easy-sjbf")
"""EASY++ with the plainest correction."""
CLAIRVOYANT = Triple(CLAIRVOYANT_TIMES, None, "easy")
CLAIRVOYANT_SJBF = Triple(CLAIRVOYANT_TIMES, None, "easy-sjbf")


@dataclass(frozen=True, slots=True)
class StudiedLog:
    """A log of the study."""

    name: str
    path: Path
    processors: int
    # jobs_read, jobs: before and after the filter
    jobs_read: int
    jobs: int
    days: float  # from its first to its last submission
    note: str  # what the filter did


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How the study is run."""

    repeats: int = 10  # jittered copies of each log, on which the triples that matter run again
    event_order: EventOrder = EventOrder.PER_EVENT  # ``per-event`` is that of the paper's simulator
    losses: tuple[str, ...] = tuple(LOSSES)  # names of the losses that regressions are learned with
    # Of the regressions (`foretime_estimators.estimators.regression.learned_runtime.OPTIONS`), such
    # as ``half-life=1000`` for footnote 2's weight of recent jobs.
    options: tuple[str, ...] = ()

    def regression(self, loss: str) -> str:
        """Give the name of the estimator that is learned with a loss."""
        return ":".join((REGRESSION + loss, *self.options))

    @property
    def paper_choice(self) -> Triple:
        """What the paper's selection chooses (section 6.3.3)."""
        return Triple(self.regression(E_LOSS.name), "incremental", "easy-sjbf")

    @property
    def triples(self) -> list[Triple]:
        """The heuristic triples, those of requested times first and the clairvoyant ones last."""
        predictions = (LAST_TWO, *(self.regression(loss) for loss in self.losses))
        return [
            EASY,
            EASY_SJBF,
            *(
                Triple(prediction, str(correction), str(backfill))
                for prediction in predictions
                for correction in CORRECTIONS
                for backfill in BACKFILLS
            ),
            CLAIRVOYANT,
            CLAIRVOYANT_SJBF,
        ]

    @property
    def always_repeated(self) -> tuple[Triple, ...]:
        """Triples that run on the jittered copies of every log."""
        return (EASY, EASY_PLUS_PLUS, LAST_TWO_REQUESTED, self.paper_choice, CLAIRVOYANT_SJBF)


@dataclass(frozen=True, slots=True)
class Gaussier2015:
    """What the study found."""

    logs: tuple[StudiedLog, ...]  # in the order of tables
    settings: StudySettings
    # Metrics (docs/outputs.md) by log, triple and seed; seed 0 is the log as it is.
    runs: Mapping[tuple[str, Triple, int], Mapping[str, Any]]
    # By log, the triple chosen on the others by the sum of AVEbsld; empty with a single log.
    chosen: Mapping[str, Triple]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the logs."""
        return tuple(log.name for log in self.logs)

    @property
    def candidates(self) -> list[Triple]:
        """The triples among which is chosen: those that know nothing of the future."""
        return [triple for triple in self.settings.triples if not triple.clairvoyant]

    def avebsld(self, log: str, triple: Triple, seed: int = 0) -> float:
        """Mean bounded slowdown of one run."""
        return float(self.runs[log, triple, seed]["bounded_slowdown_mean"])

    def matrix(self, listed: Sequence[Triple]) -> Float64Array:
        """AVEbsld of triples on the logs as they are, shape (logs, triples)."""
        return np.array([[self.avebsld(name, triple) for triple in listed] for name in self.names])

    def choices(self, rule: Rule) -> dict[str, Triple]:
        """Choose a triple for each log on the others (section 6.3.3); empty with a single log."""
        if len(self.logs) < 2:
            return {}
        listed = self.candidates
        chosen = leave_one_out(self.matrix(listed), self.matrix([EASY])[:, 0], rule)
        return dict(zip(self.names, (listed[column] for column in chosen), strict=True))


def study(
    logs: Sequence[StudiedLog],  # with distinct names
    folder: Path,  # where results are kept; messages name it
    # Runs the cells of a plan that are not kept, keeps them, and gives all records.
    execute: Callable[[Plan], Outcome],
    settings: StudySettings | None = None,  # how; the defaults of `StudySettings`
) -> Gaussier2015:
    """Run what is not kept yet, choose, and repeat what was chosen on jittered copies.

    ForetimeError if runs failed; those that did not are kept.
    """
    settings = settings or StudySettings()
    known = {(log.name, triple) for log in logs for triple in settings.triples}
    always = {key for key in known if key[1] in settings.always_repeated}
    found = _found(logs, settings, execute(planned(logs, folder, settings, always)))
    chosen = found.choices(Rule.SUM)
    again = set(chosen.items())
    if settings.repeats and again - always:
        whole = planned(logs, folder, settings, always | again)
        found = _found(logs, settings, execute(whole))
    return replace(found, chosen=chosen)


def planned(
    logs: Sequence[StudiedLog],
    folder: Path,
    settings: StudySettings,
    repeated: Iterable[tuple[str, Triple]],
) -> Plan:
    """Plan the campaign: every triple on each log as it is, and some on jittered copies.

    What a cell is kept by are the log's content, its policy and Foretime's version (see
    `foretime_sim.campaigns.cells`), and what this Foretime's policy and estimator do to a small
    workload: so a result of older code is not taken for one of this.
    """
    text = campaign_text(logs, settings, repeated)
    whole = plan(parse_campaign(text, folder / CAMPAIGN))
    return known_by_behaviour(whole)


def campaign_text(
    logs: Sequence[StudiedLog], settings: StudySettings, repeated: Iterable[tuple[str, Triple]]
) -> str:
    """Write the campaign as `foretime_sim.campaigns.file` reads it."""
    listed = settings.triples
    lines = [
        *campaign_head("Gaussier 2015", logs),
        "[grid]",
        f"estimator = {json.dumps(list(dict.fromkeys(triple.prediction for triple in listed)))}",
        f"correction = {json.dumps([str(correction) for correction in CORRECTIONS])}",
        f"backfill = {json.dumps([str(backfill) for backfill in BACKFILLS])}",
        f'event_order = "{settings.event_order}"',
    ]
    for name, triple in sorted(repeated, key=str) if settings.repeats else ():
        lines += [
            "[[include]]",
            f"log = {json.dumps(name)}",
            f"estimator = {json.dumps(triple.prediction)}",
            f"correction = {json.dumps(triple.correction or str(CORRECTIONS[0]))}",
            f"backfill = {json.dumps(triple.backfill)}",
            f"seeds = {list(range(1, settings.repeats + 1))}",
        ]
    return "\n".join(lines) + "\n"


def campaign_head(name: str, logs: Sequence[StudiedLog]) -> list[str]:
    """Write the lines of a campaign that name its logs."""
    lines = [f'name = "{name}"', 'output = "."']
    for log in logs:
        # A JSON string is a TOML string.
        lines += ["[[logs]]", f"name = {json.dumps(log.name)}"]
        lines += [f"path = {json.dumps(str(log.path.absolute()))}"]
        lines += [f"processors = {log.processors}"]
    return lines


def triple_of(axes: Mapping[str, Any]) -> Triple:
    """Give the triple that a campaign's cell runs."""
    return Triple(axes["estimator"], axes["correction"], axes["backfill"])


def check_outcome(outcome: Outcome) -> None:
    """Refuse an outcome in which runs failed.

    ForetimeError naming the causes.
    """
    if outcome.failed:
        told = "; ".join(
            f"{some.cells}: {some.example['error']}" for some in causes(outcome.failed)
        )
        raise ForetimeError(f"{len(outcome.failed)} runs failed ({told}); the others are kept")


def _found(logs: Sequence[StudiedLog], settings: StudySettings, outcome: Outcome) -> Gaussier2015:
    check_outcome(outcome)
    return Gaussier2015(tuple(logs), settings, _runs(outcome.records.values()), {})


def _runs(records: Iterable[Record]) -> dict[tuple[str, Triple, int], Mapping[str, Any]]:
    return {
        (record["axes"]["log"], triple_of(record["axes"]), record["axes"]["seed"]): (
            record["metrics"]
        )
        for record in records
    }
