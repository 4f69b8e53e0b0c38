"""The page behind other web servers: Open OnDemand's application, and nginx's configuration."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from foretime_sidecar.web.auth.identity import name_of
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy

from tests.support.processes.raw_http import connected, exchange, head, read_all, statuses
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000


@pytest.fixture(scope="module")
def ondemand(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The application, before a daemon on a mock Slurm."""
    path = repository / "contrib/ondemand/foretime/passenger_wsgi.py"
    spec = importlib.util.spec_from_file_location("passenger_wsgi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 4, 7200, 5400))
    slurm.submit(Submission("bob", "p", None, 4, 7200, 5400))
    with MockSite(tmp_path_factory.mktemp("portal"), slurm) as site:
        module.SOCKET = str(site.socket_path)  # type: ignore[attr-defined]
        yield module


def ask(
    module: ModuleType, path: str, query: str = "", method: str = "GET"
) -> tuple[str, dict[str, str], str]:
    """Give status, headers and body."""
    said: list[Any] = []
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "/pun/sys/foretime",
        "PATH_INFO": path,
        "QUERY_STRING": query,
    }
    body = b"".join(module.application(environ, lambda *answer: said.append(answer)))
    ((status, headers),) = said
    return status, {name.lower(): value for name, value in headers}, body.decode()


def test_the_portal_serves_the_page_and_its_files(ondemand: ModuleType) -> None:
    status, headers, body = ask(ondemand, "/", "ntasks=4&time=60")
    assert status == "200 OK"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "95% sure within" in body
    assert int(headers["content-length"]) == len(body.encode())
    assert ask(ondemand, "/static/page.css")[1]["content-type"].startswith("text/css")
    assert ask(ondemand, "/v1/forecast", "time=soon&ntasks=1")[0].startswith("400 ")


def test_addresses_are_relative_to_a_folder(ondemand: ModuleType) -> None:
    status, headers, _ = ask(ondemand, "")
    assert (status, headers["location"]) == ("302 Found", "/pun/sys/foretime/")


def ruby(program: str, *arguments: str, **environment: str) -> str:
    """Run Ruby, which Open OnDemand's dashboard is written in; skips where there is none."""
    if shutil.which("ruby") is None:
        pytest.skip("no ruby: apt-get install ruby")
    reply = subprocess.run(
        ["ruby", "-ryaml", "-rerb", "-rjson", "-e", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=60,
    )
    assert reply.returncode == 0, reply.stderr
    return reply.stdout


def widget(repository: Path, socket_path: str) -> str:
    """Render the widget as Rails renders a partial, with its marks that trim lines."""
    return ruby(
        "print ERB.new(File.read(ARGV[0]), trim_mode: '-').result",
        str(repository / "contrib/ondemand/widgets/_foretime.html.erb"),
        FORETIME_SOCKET=socket_path,
    )


def test_the_widget_shows_waiting_jobs_with_links_to_the_page(
    ondemand: ModuleType, repository: Path
) -> None:
    shown = widget(repository, ondemand.SOCKET)
    assert '<a href="/pun/sys/foretime/?job=2#jobs-title">2</a>' in shown
    assert re.search(r">2</a></td>\s*<td>\d+ (min|h)</td>\s*<td>\d+ h</td>", shown), shown
    assert "<%" not in shown
    # Where the link leads.
    assert '<h2 id="jobs-title">Job 2</h2>' in ask(ondemand, "/", "job=2")[2]


def test_the_widget_says_so_without_a_daemon(repository: Path) -> None:
    shown = widget(repository, "/nowhere")
    assert ">Forecasts are not available now.</p>" in shown
    assert "No such file or directory" in shown


def test_the_app_and_the_layout_are_as_ondemand_reads_them(repository: Path) -> None:
    """A manifest of the names that its class Manifest knows; a widget is a partial of its name."""
    folder = repository / "contrib/ondemand"
    read = "print JSON.generate(YAML.safe_load(File.read(ARGV[0])))"
    manifest = json.loads(ruby(read, str(folder / "foretime/manifest.yml")))
    known = {"name", "description", "icon", "url", "category", "subcategory", "role", "metadata"}
    assert manifest.keys() <= known | {"new_window", "caption"}
    layout = json.loads(ruby(read, str(folder / "foretime.yml")))["dashboard_layout"]
    columns = [column for row in layout["rows"] for column in row["columns"]]
    assert sum(column["width"] for column in columns) == 12
    assert "foretime" in [name for column in columns for name in column["widgets"]]
    assert (folder / "widgets/_foretime.html.erb").exists()


def test_only_questions_are_handed_on(ondemand: ModuleType) -> None:
    assert ask(ondemand, "/v1/breaker/reset", method="POST")[0].startswith("405 ")


def test_a_daemon_that_is_away_is_said_not_to_answer(
    ondemand: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ondemand, "SOCKET", "/nowhere")
    status, _, body = ask(ondemand, "/")
    assert status.startswith("503 ")
    assert "does not answer on this machine" in body


# -- nginx ---------------------------------------------------------------------------------------

NGINX = """
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        server_name localhost;
        include {folder}/foretime.conf;
    }}
}}
"""


@pytest.fixture(scope="module")
def nginx(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Where nginx answers, with our configuration, before a daemon that takes it for a proxy."""
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("no nginx: apt-get install nginx")
    folder = tmp_path_factory.mktemp("nginx")
    for above in (folder, *folder.parents):
        if above.stat().st_mode & 0o011 != 0o011:
            above.chmod(above.stat().st_mode | 0o011)
    workers = "www-data" if os.geteuid() == 0 else name_of(os.geteuid())
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with MockSite(folder, slurm, api={"proxy_users": [workers]}) as site:
        text = (repository / "contrib/nginx/foretime.conf").read_text()
        path = "/run/foretime/foretime.sock"
        assert path in text
        (folder / "foretime.conf").write_text(text.replace(path, str(site.socket_path)))
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
        options = "daemon off;" + ("user www-data;" if os.geteuid() == 0 else "")
        command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    exchange(("127.0.0.1", port), head("/foretime", "Connection: close"))
                    break
                assert time.monotonic() < deadline
                assert server.poll() is None
                time.sleep(0.1)
            yield "127.0.0.1", port
            server.terminate()


def test_nginx_shows_the_page_and_changes_nothing(nginx: tuple[str, int]) -> None:
    def status(path: str, *headers: str, method: str = "GET", body: bytes = b"") -> list[int]:
        sent = head(f"/foretime/{path}", "Connection: close", *headers, method=method)
        return statuses(exchange(nginx, sent + body))

    assert status("") == [200]
    assert status("static/page.css") == [200]
    assert status("v1/reliability") == [200]
    # It need not be one that the daemon knows.
    assert status("", "Host: cluster.example.org") == [200]
    assert status("v1/me", "X-Remote-User: ann") == [403]
    assert status("v1/me/forget", method="POST") == [403]
    assert status("v1/token") == [403]
    assert status("healthz", "Content-Length: 5", body=b"hello") == [200]
    assert status("v1/map", "Sec-Fetch-Site: cross-site") == [403]
    assert status("v1/map", "Origin: https://evil.example") == [403]


def test_slow_people_behind_nginx_hold_nobody_up(nginx: tuple[str, int]) -> None:
    """Whoever is slow before nginx holds nothing behind it."""
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            slow = stack.enter_context(connected(nginx))
            slow.sendall(b"GET /foretime/healthz HTTP/1.1\r\nX: ")
        people = [stack.enter_context(connected(nginx)) for _ in range(100)]
        for each in people:
            each.sendall(head("/foretime/healthz", "Connection: close"))
        assert {tuple(statuses(read_all(each))) for each in people} == {(200,)}
