"""``foretime study talby1999``: slack-based backfilling, by months of logs."""

from __future__ import annotations

from pathlib import Path

from foretime_sidecar.cli.frame.progress_bar import later_progress_bar

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Copies, Logs, Seed, Sizes, Workers, sizes_of
from foretime_studies.frame.report import StudyReport
from foretime_studies.talby1999.claims import claims
from foretime_studies.talby1999.figures import figures
from foretime_studies.talby1999.months import read_months
from foretime_studies.talby1999.runs import Talby1999, study
from foretime_studies.talby1999.tables import tables


@study_command(shown=("months", "baselines", "orders", "gap", "logs", "claims"), kept=True)
def talby1999(
    folder: Path,
    logs: Logs,
    processors: Sizes = None,
    repeat: Copies = 10,
    seed: Seed = 1,
    workers: Workers = 2,
) -> StudyReport:
    """Run all of Talby & Feitelson (1999): EASY, conservative and slack-based backfilling.

    KTH's log runs on the paper's 128 processors, with everything that the paper varies; other
    logs run the main comparisons, on their own machines. Runs are kept in the output folder: what
    was interrupted goes on where it was.

    Example: [bold]foretime study talby1999 KTH-SP2-1996-2.1-cln.swf.gz -o talby1999[/bold]
    """
    sizes = sizes_of(processors, logs)
    read = [read_months(path, sizes.get(path.name)) for path in logs]
    with later_progress_bar("simulating", "jobs") as begin:
        found = study(read, folder, repeats=repeat, seed=seed, workers=workers, begin=begin)
    return report(found)


def report(found: Talby1999) -> StudyReport:
    """Put everything together."""
    how = (
        f"Each month is simulated by itself, from an empty machine; copies are {found.repeats}, "
        "each submission moved by up to a minute and ties shuffled. Jobs end at their requests "
        "unless a row says otherwise."
    )
    notes = [how, *(log.note for log in found.logs)]
    made = tables(found)
    if found.papers is None:
        notes.append("The paper's log (KTH, on 128 processors) is not here, so its tables are not.")
    else:
        made.append(claims(found.runs[found.papers.name], found.repeats))
    title = "Talby & Feitelson (1999) again: slack-based backfilling"
    return StudyReport(title, notes, made, figures(found))
