"""The real logs that the engine's tests run, as workloads; read once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.workloads.workload import Workload

KTH = "KTH-SP2-1996-2.1-cln"
CTC = "CTC-SP2-1996-3.1-cln"
SDSC_SP2 = "SDSC-SP2-1998-4.2-cln"
SDSC_BLUE = "SDSC-BLUE-2000-4.2-cln"
CURIE = "CEA-Curie-2011-2.1-cln"
LOGS = (KTH, CTC, SDSC_SP2, SDSC_BLUE, CURIE)

Load = Callable[[str], Workload]


@cache
def read_workload(path: Path) -> Workload:
    # Published figures are for Curie's thin nodes; its header counts all.
    processors = 80_640 if path.name.startswith(CURIE) else None
    return workload_of_log(read_log(path), processors=processors)[0]
