"""Results of a study's runs that are kept in its folder as they come, and not worked out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from foretime_sim.campaigns.cells import FORMAT
from foretime_sim.campaigns.store import CampaignStore
from pydantic import TypeAdapter

Result = TypeVar("Result")


def kept_results(
    runs: Mapping[str, Callable[[], Result]],
    kind: type[Result],
    folder: Path,
    *,
    workers: int,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Result]:
    """Give the result of every run, making those that are not kept.

    Parameters
    ----------
    runs
        By an id that says all that decides the result. They are made in this order, by threads: the
        native engine works without the interpreter's lock.
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
    with store.writing() as writer, ThreadPoolExecutor(workers) as pool:
        # Read under the lock: nobody adds to it from now on.
        known = store.records()
        found = {run: adapter.validate_python(known[run]["result"]) for run in runs if run in known}
        if progress is not None:
            progress(len(found))
        futures = {pool.submit(make): run for run, make in runs.items() if run not in found}
        try:
            for future in as_completed(futures):
                run = futures[future]
                found[run] = future.result()
                writer.add({"format": FORMAT, "id": run, "result": adapter.dump_python(found[run])})
                if progress is not None:
                    progress(len(found))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found
