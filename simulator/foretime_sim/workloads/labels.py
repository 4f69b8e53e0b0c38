"""A column of names."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Int32Array, Selection


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names (users, projects, queues): a code for each job, a name for each code.

    Attributes
    ----------
    codes
        Shape (jobs,), int32; an index into ``names``, or -1 where the log has none (the one
        place where a code stands for "missing": `get`, `by_job` and `mask` are the ways to read
        it).
    names
        The distinct names, in order of first appearance.
    numbers
        SWF's number for each name; ``None`` where the log had names of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.workloads.labels import Labels
    >>> users = Labels(np.array([0, 1, 0, -1], dtype=np.int32), ("ann", "bob"))
    >>> users.by_job()
    ['ann', 'bob', 'ann', None]
    """

    codes: Int32Array
    names: tuple[str, ...]
    numbers: tuple[int, ...] | None = None

    def get(self, job: int) -> str | None:
        """Name at one position, ``None`` where the log has none."""
        code = int(self.codes[job])
        return None if code < 0 else self.names[code]

    def by_job(self) -> list[str | None]:
        """Give every job's name, ``None`` where the log has none."""
        names = (*self.names, None)  # code -1 takes the last
        return [names[code] for code in self.codes.tolist()]

    @property
    def mask(self) -> BoolArray:
        """Shape (jobs,): True where the log has no name."""
        return np.asarray(self.codes < 0)

    def take(self, jobs: Selection) -> Labels:
        """Give the same names for a selection of jobs (indices or a boolean mask)."""
        return replace(self, codes=self.codes[jobs])
