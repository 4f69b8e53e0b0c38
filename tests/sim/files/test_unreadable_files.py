"""Files that are no text: refused in one line, before they fill the memory."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import LONGEST_LINE, read_text
from foretime_sim.machines.machine_file import read_machine
from foretime_sim.policies.advance_reservations import read_reservations


def through_pipe(tmp_path: Path, data: bytes) -> str:
    """Read what another thread writes into a named pipe, as ``<(zcat log)`` does."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        try:
            pipe.write_bytes(data)
        except BrokenPipeError:
            return  # the reader refused it

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return read_text(pipe)
    finally:
        writer.join()


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_pipes_are_read(tmp_path: Path, compress: type[bytes]) -> None:
    text = "".join(f"{number} some words of a log\n" for number in range(200_000))
    assert through_pipe(tmp_path, compress(text.encode())) == text


def test_a_device_is_refused() -> None:
    """With little memory: what reads it without bound fails at once, and hurts nobody."""
    code = "from foretime_sidecar.cli import main; main()"
    command = [sys.executable, "-c", code, "simulate", "/dev/zero"]
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "foretime: /dev/zero: is a device; name a log file or a pipe\n"


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    first = b"; a header\n"
    with pytest.raises(InputError, match=r"pipe:2: a line of more than 8 MiB.*name a log file"):
        through_pipe(tmp_path, first + b"x" * (LONGEST_LINE + 1) + b"\n")
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(first + b"x" * (LONGEST_LINE + 2**20)))
    with pytest.raises(InputError, match=r"packed.gz:2: a line of more than 8 MiB"):
        read_text(packed)


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    """Wherever the blocks that are read begin and end."""
    path = tmp_path / "long"
    text = "short\n" * 3 + "x" * LONGEST_LINE + "\n" + "y" * LONGEST_LINE
    path.write_text(text, encoding="utf-8")
    assert read_text(path) == text


def test_nul_bytes_are_refused_before_the_end(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pipe:2: a NUL byte.*name a log file"):
        through_pipe(tmp_path, b"one\ntw\0o" + bytes(2**24))


def test_names_in_latin_1_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes("müller,".encode("latin-1") + "müller,".encode() + "möller".encode("latin-1"))
    assert read_text(path) == "müller,müller,möller"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\x02\0\0", "this is not a text file.*name a CSV file"),
        (b"\xff\xfe\xfd,\x80", ":1: the columns are .*: give a first line of start,"),
    ],
)
def test_binary_reservations_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "bin.swf"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says):
        read_reservations(path)


def test_a_folder_where_a_machine_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; name a TOML file$"):
        read_machine(tmp_path)
    with pytest.raises(InputError, match=r"is a folder; name a CSV file$"):
        read_reservations(tmp_path)
    with pytest.raises(InputError, match=r"is a folder; name a log file in it$"):
        read_text(tmp_path)
