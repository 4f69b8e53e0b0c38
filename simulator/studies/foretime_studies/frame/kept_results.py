"""Results of a study's runs that are kept in its folder as they come, and not worked out again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from foretime_sim.campaigns.cells import FORMAT
from foretime_sim.campaigns.store import CampaignStore
from pydantic import TypeAdapter

from foretime_studies.frame.progress import Progress, counted_on

Result = TypeVar("Result")
Case = TypeVar("Case", bound=Hashable)


def in_threads(
    runs: Mapping[Case, Callable[[], Result]],
    workers: int,
    progress: Progress | None = None,
    keep: Callable[[Case, Result], object] = lambda run, result: None,
) -> dict[Case, Result]:
    """Give every run's result; ``keep`` is told each as it comes, ``progress`` how many there are.

    The native engine works without the interpreter's lock.
    """
    found: dict[Case, Result] = {}
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(make): run for run, make in runs.items()}
        try:
            for future in as_completed(futures):
                run = futures[future]
                found[run] = future.result()
                keep(run, found[run])
                if progress is not None:
                    progress(len(found))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def kept_results(
    runs: Mapping[str, Callable[[], Result]],
    kind: type[Result],
    folder: Path,
    *,
    workers: int,
    progress: Progress | None = None,
) -> dict[str, Result]:
    """Give the result of every run, making those that are not kept.

    Parameters
    ----------
    runs
        By an id that says all that decides the result. They are made in this order, by threads.
    kind
        What a run gives, such as a dataclass, that JSON can hold.
    folder
        Where results are kept, one line of JSON each.
    workers
        Threads.
    progress
        Called with the number of runs that have a result.

    Raises
    ------
    InputError
        If another study is running into the folder, or it can't be written.
    """
    store, adapter = CampaignStore(folder), TypeAdapter(kind)
    with store.writing() as writer:
        # Read under the lock: nobody adds to it from now on.
        known = store.records()
        found = {run: adapter.validate_python(known[run]["result"]) for run in runs if run in known}
        if progress is not None:
            progress(len(found))

        def keep(run: str, result: Result) -> None:
            writer.add({"format": FORMAT, "id": run, "result": adapter.dump_python(result)})

        todo = {run: make for run, make in runs.items() if run not in found}
        return found | in_threads(todo, workers, counted_on(progress, len(found)), keep)


def kept_cases(
    cases: Collection[Case],
    identity: Callable[[Case], str],
    run: Callable[[Case], Result],
    kind: type[Result],
    folder: Path,
    *,
    workers: int,
    progress: Progress | None = None,
) -> dict[Case, Result]:
    """Give the result of every case, by `kept_results`; ``identity`` gives the id of one's run."""
    ids = {case: identity(case) for case in cases}
    runs = {ids[case]: functools.partial(run, case) for case in cases}
    found = kept_results(runs, kind, folder, workers=workers, progress=progress)
    return {case: found[ids[case]] for case in cases}
