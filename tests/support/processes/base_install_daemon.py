"""A daemon on the mock Slurm, as where no extra is installed: answers a few paths and ends."""

from __future__ import annotations

import sys
import threading
import time
import urllib.parse
from pathlib import Path

EXTRAS = (
    "cryptography", "dask_jobqueue", "distributed", "lupa", "matplotlib", "pandas", "playwright",
    "pyarrow", "pyslurm", "sklearn", "threadpoolctl",
)  # fmt: skip
"""Of pyproject.toml's optional dependencies, what is imported."""
NOW = 1_700_000_000
PATHS = ("/", "/static/page.css", "/v1/jobs/forecasts", "/v1/forecast?processors=8&time=60")


def main(folder: Path) -> None:
    sys.modules |= dict.fromkeys(EXTRAS)  # type: ignore[arg-type]  # so that they can't be imported
    import requests_unixsocket
    from foretime_sidecar.clients.slurm.commands import SlurmCommands
    from foretime_sidecar.settings.settings import Settings
    from foretime_sidecar.web.server import Daemon
    from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
    from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
    from foretime_sim.policies.policy import Policy

    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    for _ in range(3):
        slurm.submit(Submission("ann", "physics", None, 64, 3600, 600))
    slurm.advance(NOW + 60)
    settings = Settings.model_validate(
        {
            "store": {"path": str(folder / "store")},
            "table": {"path": str(folder / "table")},
            "api": {"listen": f"unix:{folder}/socket"},
            "hook": {"disable_file": str(folder / "off")},
        }
    )
    daemon = Daemon(settings, SlurmCommands(slurm.run), clock=lambda: NOW + 60)

    def ask() -> None:
        try:
            host = urllib.parse.quote(f"{folder}/socket", safe="")
            while not daemon.answers:
                time.sleep(0.05)
            with requests_unixsocket.Session() as session:
                for path in PATHS:
                    reply = session.get(f"http+unix://{host}{path}", timeout=60)
                    print(path.partition("?")[0], reply.status_code)
        finally:
            daemon.end()

    asking = threading.Thread(target=ask)
    asking.start()
    daemon.run()
    asking.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
