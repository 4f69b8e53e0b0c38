"""Logs fetched from a local server that behaves, and from some that do not."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.workload_archive import (
    ARCHIVE_URL,
    ATTEMPTS,
    LOGS,
    ArchivedLog,
    FetchError,
    difference,
    fetch,
    find_log,
)

TEXT = b"; MaxProcs: 4\n" + b"".join(
    f"{job} {job} 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n".encode() for job in range(1, 4_001)
)
FILE = gzip.compress(TEXT, mtime=0)
LOG = ArchivedLog(
    "TEST-2000-1", "l_test", 4_000, 4, "2000", hashlib.sha256(TEXT).hexdigest(), len(TEXT)
)


class Archive:
    """A web server that does what each test says at each request."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None]] = []
        self.answer: Callable[[BaseHTTPRequestHandler, int], None] = lambda handler, _: whole(
            handler
        )
        archive = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # as the server calls it
                archive.requests.append((self.path, self.headers.get("Range")))
                archive.answer(self, len(archive.requests))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/workload/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def send(
    handler: BaseHTTPRequestHandler, code: int, body: bytes, length: int | None = None
) -> None:
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    # As some servers say of a .gz file: it must not be unpacked for that.
    handler.send_header("Content-Encoding", "gzip")
    handler.end_headers()
    handler.wfile.write(body)


def whole(handler: BaseHTTPRequestHandler, body: bytes = FILE) -> None:
    send(handler, 200, body)


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive()
    yield made
    made.close()


def get(archive: Archive, folder: Path, log: ArchivedLog = LOG) -> tuple[Path, bool]:
    return fetch(log, folder, archive=archive.url, retry_wait_s=0.0)


def test_a_log_is_fetched_verified_and_not_fetched_again(archive: Archive, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path, new = fetch(
        LOG,
        tmp_path / "logs",
        archive=archive.url,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert new
    assert path.read_bytes() == FILE
    assert archive.requests == [("/workload/l_test/TEST-2000-1.swf.gz", None)]
    assert seen[-1] == (len(FILE), len(FILE))
    assert get(archive, tmp_path / "logs") == (path, False)
    assert len(archive.requests) == 1
    assert [file.name for file in (tmp_path / "logs").iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (gzip.compress(TEXT.replace(b" 20 ", b" 21 "), mtime=0), "SHA-256"),
        (gzip.compress(TEXT[:-1_000], mtime=0), "bytes of text"),
        (FILE[:-20], "does not unpack"),
        (b"<html>moved</html>", "does not unpack"),
        (b"", "bytes of text"),
    ],
)
def test_what_is_not_the_log_is_not_kept(
    archive: Archive, tmp_path: Path, body: bytes, says: str
) -> None:
    archive.answer = lambda handler, _: whole(handler, body)
    with pytest.raises(FetchError, match=says):
        get(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_log_known_only_in_its_beginning_is_checked_by_that(
    archive: Archive, tmp_path: Path
) -> None:
    begins = ArchivedLog(
        LOG.name, LOG.folder, 4_000, 4, "2000", hashlib.sha256(TEXT[:100]).hexdigest(), 100, False
    )
    path, _ = get(archive, tmp_path, begins)
    assert difference(begins, path) is None
    path.write_bytes(gzip.compress(TEXT[:-55]))
    assert "records" in str(difference(begins, path))
    path.write_bytes(gzip.compress(b"; MaxProcs: 5" + TEXT[13:]))
    assert "SHA-256" in str(difference(begins, path))


def test_a_broken_transfer_goes_on_where_it_stopped(archive: Archive, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, request: int) -> None:
        if request == 1:
            send(handler, 200, FILE[:5_000], length=len(FILE))
            handler.close_connection = True
        else:
            send(handler, 206, FILE[5_000:])

    archive.answer = answer
    path, _ = get(archive, tmp_path)
    assert path.read_bytes() == FILE
    assert [asked for _, asked in archive.requests] == [None, "bytes=5000-"]


def test_a_server_that_can_not_go_on_begins_again(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "TEST-2000-1.swf.gz.part").write_bytes(FILE[:100])
    path, _ = get(archive, tmp_path)
    assert path.read_bytes() == FILE
    assert archive.requests[0][1] == "bytes=100-"


def test_what_was_kept_of_another_file_is_dropped(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "TEST-2000-1.swf.gz.part").write_bytes(b"x" * (len(FILE) + 10))
    archive.answer = lambda handler, request: (
        send(handler, 416, b"") if request == 1 else whole(handler)
    )
    path, _ = get(archive, tmp_path)
    assert path.read_bytes() == FILE


def test_a_fetch_that_is_always_cut_off_keeps_its_part(archive: Archive, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, request: int) -> None:
        send(handler, 206 if request > 1 else 200, FILE[:10], length=len(FILE))
        handler.close_connection = True

    archive.answer = answer
    with pytest.raises(FetchError, match=r"kept as TEST-2000-1\.swf\.gz\.part"):
        get(archive, tmp_path)
    assert len(archive.requests) == ATTEMPTS
    assert [file.suffix for file in tmp_path.iterdir()] == [".part"]


def test_only_errors_that_may_pass_are_tried_again(archive: Archive, tmp_path: Path) -> None:
    archive.answer = lambda handler, _: send(handler, 404, b"")
    with pytest.raises(FetchError, match=r"404 .*--archive"):
        get(archive, tmp_path)
    assert len(archive.requests) == 1  # another attempt would not help
    archive.answer = lambda handler, request: (
        send(handler, 500, b"") if request <= 3 else whole(handler)
    )
    path, new = get(archive, tmp_path)
    assert new
    assert path.read_bytes() == FILE


def test_a_server_that_always_fails_is_given_up(archive: Archive, tmp_path: Path) -> None:
    archive.answer = lambda handler, _: send(handler, 500, b"")
    with pytest.raises(FetchError, match=f"500, {ATTEMPTS} times"):
        get(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_the_error_says_so(archive: Archive, tmp_path: Path) -> None:
    archive.close()
    with pytest.raises(FetchError, match=r"connection was refused.*Is there a network"):
        get(archive, tmp_path)
    with pytest.raises(FetchError, match="can't be fetched"):
        fetch(LOG, tmp_path, archive="no-address", retry_wait_s=0.0)
    assert list(tmp_path.iterdir()) == []


def test_another_file_of_that_name_is_left_alone(archive: Archive, tmp_path: Path) -> None:
    mine = tmp_path / "TEST-2000-1.swf.gz"
    mine.write_bytes(b"mine")
    with pytest.raises(InputError, match="is there already, but is not TEST-2000-1"):
        get(archive, tmp_path)
    assert mine.read_bytes() == b"mine"
    assert archive.requests == []


def test_a_log_is_found_by_name_or_its_nearest_is_named() -> None:
    assert find_log("kth-sp2-1996-2.1-cln.swf.gz").name == "KTH-SP2-1996-2.1-cln"
    with pytest.raises(InputError, match="did you mean 'ANL-Intrepid-2009-1'"):
        find_log("ANL-Intrepid")
    intrepid = find_log("ANL-Intrepid-2009-1")
    assert intrepid.url() == f"{ARCHIVE_URL}/l_anl_int/ANL-Intrepid-2009-1.swf.gz"


@pytest.mark.traces
@pytest.mark.parametrize(
    "log", [log for log in LOGS if log.jobs < 80_000], ids=lambda log: log.name
)
def test_real_logs_are_those_of_the_catalogue(
    log: ArchivedLog, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    if log.whole:
        assert difference(log, trace(log.file_name)) is None
        return
    excerpt = trace(f"{log.name}-first1200.swf.gz")
    text = gzip.decompress(excerpt.read_bytes())
    assert hashlib.sha256(text[: log.text_bytes]).hexdigest() == log.text_sha256
    assert "1,200 records, not 68,936" in str(difference(log, excerpt))
