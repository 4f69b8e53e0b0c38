"""The logs of a study of several, read and named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log

from foretime_studies.frame.options import sizes_of
from foretime_studies.gaussier2015.paper import paper_log
from foretime_studies.gaussier2015.study import StudiedLog


def studied_logs(
    logs: list[Path],
    given: Sequence[str] | None,  # what ``--processors`` says
) -> list[StudiedLog]:
    """Read the logs once, so that one that can't be simulated is refused before all runs.

    InputError if a log can't be simulated, two have one name, or a size is of no log.
    """
    sizes = sizes_of(given, logs)
    studied: list[StudiedLog] = []
    for path in logs:
        printed = paper_log(path.name)
        size = sizes.get(path.name, None if printed is None else printed[1]["processors"])
        log = read_log(path)
        if not (log.requested_time.filled(0) > 0).any():
            raise InputError(
                f"{path}: none of the {len(log):,} jobs has a requested time, with which all "
                "that is here is compared; leave the log out"
            )
        workload, filtered = workload_of_log(log, processors=size)
        name = workload.name if printed is None else printed[0]
        if name in [other.name for other in studied]:
            raise InputError(f"{path}: another log is called {name}, too; give each once")
        days = float(workload.submit_time[-1] - workload.submit_time[0]) / DAY_S
        studied.append(
            StudiedLog(
                name,
                path,
                workload.machine_processors,
                filtered.jobs_read,
                len(workload),
                days,
                filtered.text,
            )
        )
    return studied
