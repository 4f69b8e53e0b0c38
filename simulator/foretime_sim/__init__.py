"""Job logs, the scheduling engine, a mock Slurm and a mock PBS, and what is measured on them.

Its rooms, the lowest first: `files`, `machines`, `workloads`, `logs`, `policies`, `engine`,
`reference`, `scores`, `models`, `waits`, `self_tuning`, `mocks`, `campaigns`.

>>> from foretime_sim import Backfill, Policy, generate, simulate
>>> workload = generate("lublin2003", jobs=100, seed=1)
>>> schedule = simulate(workload, Policy(backfill=Backfill.EASY_SJBF))
>>> len(schedule.start_time)
100
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
