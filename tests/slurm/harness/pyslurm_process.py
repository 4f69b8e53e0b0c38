"""The pyslurm client in a process inside a test cluster.

Slurm's library reads slurm.conf as pyslurm is imported, so a process knows one cluster.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.pyslurm_client import PySlurm, import_pyslurm

from tests.slurm.harness.slurm_cluster import SlurmCluster

_REPOSITORY = Path(__file__).resolve().parents[3]


class PyslurmProcess:
    """A `SchedulerClient` whose methods are run in that process.

    Parameters
    ----------
    cluster
        The cluster that is asked.
    pyslurm
        The folder that pyslurm is installed in.
    """

    def __init__(self, cluster: SlurmCluster, pyslurm: Path) -> None:
        self._process = subprocess.Popen(
            cluster.namespace.command([sys.executable, "-m", __name__, str(cluster.commands)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_REPOSITORY,
            env={"PATH": cluster.release.search_path, "PYTHONPATH": f"{pyslurm}:{_REPOSITORY}"},
        )

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._ask(name, arguments)

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((name, arguments), self._process.stdin)
        self._process.stdin.flush()
        answer, error = pickle.load(self._process.stdout)
        if error is not None:
            raise error
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def main(commands_dir: str) -> None:
    """Answer until the standard input ends."""
    commands = SlurmCommands(SubprocessRunner(commands_dir, attempts=1), overlap_s=0)
    client: PySlurm | None = None
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            client = client or PySlurm(import_pyslurm(), commands)
            answer = getattr(client, name)(*arguments), None
        except Exception as error:  # noqa: BLE001  # the test's to judge
            answer = None, error
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
