"""The study of Talby & Feitelson 1999 again: slack-based backfilling by months of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_studies.frame.progress import Begin, counted_on
from foretime_studies.talby1999.cases import Case, other_cases, paper_cases
from foretime_studies.talby1999.months import MonthlyLog
from foretime_studies.talby1999.runs import LogRuns, run_cases, tasks_of


@dataclass(frozen=True, slots=True)
class Talby1999:
    """What the study found.

    Attributes
    ----------
    logs
        In the order of tables.
    runs
        By log's name.
    repeats
        Jittered copies.
    """

    logs: tuple[MonthlyLog, ...]
    runs: Mapping[str, LogRuns]
    repeats: int

    @property
    def papers(self) -> MonthlyLog | None:
        """The paper's log on the paper's machine; ``None`` if it is not here."""
        return next((log for log in self.logs if log.papers), None)


def cases_of(log: MonthlyLog) -> list[Case]:
    """Give what runs on a log: everything on the paper's, the main comparisons on others."""
    return paper_cases() if log.papers else other_cases()


def study(
    logs: Sequence[MonthlyLog],
    folder: Path,
    *,
    repeats: int,
    seed: int,
    workers: int,
    begin: Begin | None = None,
) -> Talby1999:
    """Run what is not kept yet.

    Parameters
    ----------
    logs
        With distinct names.
    folder
        Where runs are kept.
    repeats, seed, workers
        See `foretime_studies.talby1999.runs.run_cases`.
    begin
        Called with the number of jobs to simulate; what it gives is called with those done.

    Raises
    ------
    InputError
        If two logs have one name, or another study is writing into the folder.
    """
    names = [log.name for log in logs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: two logs have this name; give each once")
    tasks = {log.name: len(tasks_of(cases_of(log), repeats)) for log in logs}
    whole = sum(tasks[log.name] * len(log.whole) for log in logs)
    progress = None if begin is None else begin(whole)
    runs, before = {}, 0
    for log in logs:
        runs[log.name] = run_cases(
            log,
            cases_of(log),
            folder,
            repeats=repeats,
            seed=seed,
            workers=workers,
            progress=counted_on(progress, before, len(log.whole)),
        )
        before += tasks[log.name] * len(log.whole)
    return Talby1999(tuple(logs), runs, repeats)
