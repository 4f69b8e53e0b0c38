"""A real Prometheus of a test's own: it scrapes one address, and has ended when it is left."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

import pytest

_READY_S = 60


def debian_tool(name: str) -> str:
    """Give the path of a command of Debian's package prometheus; the test is skipped without."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: apt-get install prometheus")
    return found


class PrometheusServer:
    """Listens on a loopback port, and keeps all that it has in a folder.

    Parameters
    ----------
    folder
        Empty.
    target
        What it scrapes: host and port.
    rules
        Files with alert rules.
    """

    def __init__(self, folder: Path, target: str, rules: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": "foretime", "static_configs": [{"targets": [target]}]},
            ],
        }
        path = folder / "prometheus.yml"  # YAML takes JSON
        path.write_text(json.dumps(settings))
        self._log_path = folder / "log"
        self._command = [
            debian_tool("prometheus"),
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self._address}",
        ]

    def __enter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_READY_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, path: str, **parameters: str) -> Any:
        """Give the data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}?{query}") as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]

    def wait_for_scrape(self) -> None:
        """Wait until it has scraped its target."""
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            assert self._process.poll() is None, self._log_path.read_text()
            try:
                if any(one["value"][1] == "1" for one in self.ask("query", query="up")["result"]):
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError(self._log_path.read_text())
