"""The slurmrestd client, on replies recorded from live ones, and how its connection fails."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sidecar.clients.client import Cursor, JobChange, SchedulerClient
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.rest import API_VERSIONS, SlurmRest
from foretime_sidecar.clients.slurm.rest_connection import RestConnection, base_url
from foretime_sidecar.clients.slurm.rest_json import (
    parse_rest_configuration,
    parse_rest_load,
    parse_rest_processors,
    parse_rest_reservations,
)

from tests.support.client_checks import READING, Check

FILES = {"slurmdb/jobs": "finished"}
RECORDED = {"v0.0.38": "22.05", "v0.0.42": "26.05", "v0.0.45": "26.05"}


class RecordedRest:
    """Answers of one API of a live slurmrestd; of the finished jobs all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.posted: list[tuple[str, Mapping[str, Any]]] = []
        self.refuse: set[str] = set()

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        self.asked.append((path, query))
        kind, api, name = path.split("/")
        file = self.folder / f"{FILES.get(f'{kind}/{name}', name)}.json"
        if api != self.folder.name or not file.exists():
            return None
        reply: dict[str, Any] = json.loads(file.read_text())
        return reply

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        number = path.rpartition("/")[2]
        if number in self.refuse:
            raise SchedulerError("slurmrestd refused: Invalid job id specified")
        self.posted.append((number, body))


class RecordedCommands:
    """Slurm's commands of the same cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent = ""

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        self.sent += stdin or ""
        if stdin is not None:
            return ""
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if "--json" in argv:
            return json.loads((self.folder / f"{name}.json").read_text())
        return (self.folder / f"{name}.txt").read_text()


@pytest.fixture(params=sorted(RECORDED))
def api(request: pytest.FixtureRequest) -> str:
    """Each recorded API."""
    return str(request.param)


@pytest.fixture
def release_folder(api: str, repository: Path) -> Path:
    return repository / "tests/assets/slurm" / RECORDED[api]


@pytest.fixture
def rest(api: str, release_folder: Path) -> RecordedRest:
    return RecordedRest(release_folder / "rest" / api)


@pytest.fixture
def commands(release_folder: Path) -> RecordedCommands:
    return RecordedCommands(release_folder)


@pytest.fixture
def client(rest: RecordedRest, commands: RecordedCommands) -> SlurmRest:
    return SlurmRest(rest, SlurmCommands(commands, 0), overlap_s=0)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.__name__)
def test_reading_passes_the_shared_checks(check: Check, client: SlurmRest) -> None:
    check(client)


def test_the_newest_api_is_found_once(client: SlurmRest, rest: RecordedRest, api: str) -> None:
    assert client.api() == api
    client.queue()
    pings = [path.split("/")[1] for path, _ in rest.asked if path.endswith("/ping")]
    assert pings == list(API_VERSIONS[: API_VERSIONS.index(api) + 1])


def test_it_reads_what_the_commands_print(
    client: SlurmRest, commands: RecordedCommands, api: str
) -> None:
    by_commands = SlurmCommands(commands, overlap_s=0)

    def both(ask: Callable[[SchedulerClient], Any]) -> tuple[Any, Any]:
        return ask(client), ask(by_commands)

    mine, theirs = both(lambda c: c.queue())
    assert mine == theirs
    mine, theirs = both(lambda c: sorted(c.reservations(), key=lambda r: r.name))
    assert mine == theirs
    mine, theirs = both(lambda c: c.configuration())
    assert mine == theirs
    assert client.load().server_threads >= 1
    mine, theirs = both(lambda c: c.finished_since(Cursor())[0])
    # 22.05's slurmrestd does not know --duplicates, nor what was never eligible.
    lacking = {"11", "12"} if api == "v0.0.38" else {"12"}
    assert {r.job.request.job_id for r in theirs} - {r.job.request.job_id for r in mine} <= lacking
    by_id = {r.job.request.job_id: r for r in theirs}
    assert len(mine) >= 9
    assert all(record == by_id[record.job.request.job_id] for record in mine)


def test_what_accounting_enforces_is_read(repository: Path) -> None:
    path = repository / "tests/assets/slurm/26.05/rest/v0.0.45/conf.json"
    reply = json.loads(path.read_text())
    assert parse_rest_configuration(reply).accounting_enforce == frozenset()
    reply["slurm_conf"]["AccountingStorageEnforce"] = ["associations", "LIMITS", "safe"]
    enforced = parse_rest_configuration(reply).accounting_enforce
    assert enforced == {"associations", "limits", "safe"}


def test_what_ended_outside_is_left_out(client: SlurmRest, rest: RecordedRest) -> None:
    records, last = client.finished_since(Cursor())
    first = records[0].job.end_time
    some, cursor = client.finished_since(Cursor(first), until=first)
    assert {r.job.end_time for r in some} == {first}
    assert cursor == Cursor(first)
    asked = rest.asked[-1][1]
    # It leaves out what was eligible at the end asked for, and so what began and ended then.
    assert (asked["start_time"], asked["end_time"]) == (f"uts{first}", f"uts{first + 1}")
    assert client.finished_since(Cursor(last.end_time + 1))[0] == []


def test_changes_are_sent_as_each_api_takes_them(
    client: SlurmRest, rest: RecordedRest, commands: RecordedCommands, api: str
) -> None:
    changes = [
        JobChange("15", time_limit=3601, time_min=0),
        JobChange("16"),
        JobChange("17", time_min=60),
        JobChange("16_3", time_min=60),
    ]
    if api == "v0.0.38":
        client.update(changes)
        assert commands.sent.splitlines()[0] == "update JobId=15 TimeLimit=61 TimeMin=0"
        return
    rest.refuse = {"17"}
    with pytest.raises(SchedulerError, match=r"17: .*Invalid job id.*16_3: no such job waits"):
        client.update([*changes, JobChange("18", time_min=120)])
    assert rest.posted == [
        ("15", {"time_limit": 61, "time_minimum": 0}),
        ("18", {"time_minimum": 2}),
    ]
    with pytest.raises(SchedulerError, match="15: slurmrestd sets no site factor"):
        client.update([JobChange("15", site_factor=5)])
    with pytest.raises(SchedulerError, match="does not tell site factors"):
        client.site_factors()


def test_a_federation_is_found_out(rest: RecordedRest, release_folder: Path) -> None:
    class Federated(RecordedCommands):
        def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
            if argv[-1] == "federation":
                return "Federation: fed1\nSelf: lab:127.0.0.1:6817 ID:1 FedState:ACTIVE\n"
            return super().__call__(argv, stdin)

    client = SlurmRest(rest, SlurmCommands(Federated(release_folder)))
    assert client.configuration().federation == "fed1"


def test_a_slurmrestd_without_a_known_api_is_refused(
    tmp_path: Path, commands: RecordedCommands
) -> None:
    client = SlurmRest(RecordedRest(tmp_path / "v0.0.7"), SlurmCommands(commands))
    with pytest.raises(SchedulerError, match=r"knows none of the APIs v0\.0\.36 to v0\.0\.49"):
        client.queue()


def test_a_path_that_slurmrestd_has_not_is_told_with_why(
    rest: RecordedRest, commands: RecordedCommands
) -> None:
    class Without(RecordedRest):
        def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
            return None if path.endswith("/jobs") else super().get(path, **query)

    client = SlurmRest(Without(rest.folder), SlurmCommands(commands))
    with pytest.raises(SchedulerError, match=r"has no /slurm/v0.*openapi plugins"):
        client.queue()


@pytest.mark.parametrize("reply", [{}, {"meta": 3}, {"nodes": [{}], "statistics": None}])
def test_unknown_shapes_are_told(reply: dict[str, Any]) -> None:
    parsers: Sequence[Callable[[Mapping[str, Any]], object]] = (
        parse_rest_configuration,
        parse_rest_load,
        parse_rest_processors,
        parse_rest_reservations,
    )
    for parse in parsers:
        with pytest.raises(SchedulerError, match="in an unknown shape"):
            parse(reply)


# -- the connection ------------------------------------------------------------------------------


class Server:
    """An HTTP server on loopback that answers what it is told, and notes what it is asked."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, str]] = []
        self.asked: list[tuple[str, str, str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode()
                names = ("X-SLURM-USER-NAME", "X-SLURM-USER-TOKEN")
                who = "/".join(self.headers.get(name) or "-" for name in names)
                server.asked.append((self.command, self.path, who, body))
                replies = server.replies
                status, text = replies.pop(0) if len(replies) > 1 else replies[0]
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with contextlib.closing(Server()) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))


def test_a_question_is_tried_again_a_change_is_not(server: Server) -> None:
    connection = RestConnection(server.url, attempts=3)
    server.replies = [(503, "busy"), (200, "busy"), (200, '{"jobs": [], "errors": []}')]
    assert connection.get("slurm/v0.0.45/jobs", a="b c") == {"jobs": [], "errors": []}
    assert [path for _, path, _, _ in server.asked] == ["/slurm/v0.0.45/jobs?a=b+c"] * 3
    server.asked.clear()
    server.replies = [(500, '{"errors": [{"description": "no", "error": "Invalid job"}]}')]
    with pytest.raises(SchedulerError, match=r"refused /slurm/v0.0.45/job/7: no: Invalid job"):
        connection.post("slurm/v0.0.45/job/7", {"time_limit": 5})
    assert [(method, body) for method, _, _, body in server.asked] == [
        ("POST", '{"time_limit": 5}')
    ]
    server.replies = [(404, "")]
    assert connection.get("slurm/v0.0.99/ping") is None
    with pytest.raises(SchedulerError, match="has no slurm/v0"):
        connection.post("slurm/v0.0.99/job/7", {})


def test_the_token_is_read_anew(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    connection = RestConnection(server.url, "ann", str(token), attempts=1)
    server.replies = [(200, "{}")]
    with pytest.raises(SchedulerError, match=r"can't read slurmrestd's token: .*scontrol token"):
        connection.get("a")
    for text in ("SLURM_JWT=one\n", "two"):
        token.write_text(text)
        connection.get("a")
    assert [who for _, _, who, _ in server.asked] == ["ann/one", "ann/two"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_caller_that_is_not_known_is_told_what_to_check(status: int, server: Server) -> None:
    server.replies = [(status, "Authentication failure")]
    with pytest.raises(SchedulerError, match=rf"does not know us \({status}\): check .*token_file"):
        RestConnection(server.url, attempts=1).get("slurm/v0.0.45/jobs")


def test_what_does_not_answer_is_told(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"does not answer at unix:/.*: No such file.*runs"):
        RestConnection(f"unix:{tmp_path}/none", attempts=2).get("a")
    with pytest.raises(SchedulerError, match=r"at http://127.0.0.1:9: .*refused"):
        RestConnection("http://127.0.0.1:9", attempts=1).get("a")


@pytest.mark.parametrize("where", ["/run/socket", "unix:run/socket", "localhost:6820", "http://"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(InputError, match=r"scheduler.slurmrestd = .*write unix:/PATH"):
        base_url(where)
