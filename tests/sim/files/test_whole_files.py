"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import write_text
from foretime_sim.files.whole_files import write_whole
from foretime_sim.scores.plots import FORMATS, save
from matplotlib.figure import Figure


@pytest.fixture(params=[errno.ENOSPC, None], ids=["disk full", "Ctrl-C"])
def ends_early(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be brought to the disk."""

    def refuse(file: int) -> None:
        del file
        if request.param is None:
            raise KeyboardInterrupt
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(os, "fsync", refuse)


def written(path: Path) -> None:
    if path.suffix in FORMATS:
        save(Figure(), path)
    else:
        write_text(path, "1 0 0\n")


@pytest.mark.usefixtures("ends_early")
@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "waits.png", "waits.svg"])
@pytest.mark.parametrize("before", [b"the good file", None])
def test_what_was_there_stays_if_it_can_not_be_written(
    tmp_path: Path, name: str, before: bytes | None
) -> None:
    path = tmp_path / name
    if before is not None:
        path.write_bytes(before)
    with pytest.raises((InputError, KeyboardInterrupt)):
        written(path)
    assert [file.name for file in tmp_path.iterdir()] == ([] if before is None else [name])
    assert before is None or path.read_bytes() == before


def test_a_file_keeps_its_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"before")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, b"after")
    assert link.is_symlink()
    assert file.read_bytes() == b"after"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_that_files_have(tmp_path: Path) -> None:
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.write_bytes(b"")
    write_whole(whole, b"")
    assert whole.stat().st_mode == plain.stat().st_mode


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, b"all")
    assert path.read_bytes() == b"all"


def test_pipes_and_open_files_are_written_directly(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), b"all")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with (tmp_path / "out").open("wb") as file:
        write_whole(Path(f"/dev/fd/{file.fileno()}"), b"all")
        assert os.fstat(file.fileno()).st_size == 3
    reading, writing = os.pipe()
    write_whole(Path(f"/dev/fd/{writing}"), b"all")
    assert os.read(reading, 3) == b"all"
    os.close(reading)
    os.close(writing)


def test_a_file_in_a_folder_that_may_not_be_changed_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    number = path.stat().st_ino
    monkeypatch.setattr(os, "access", lambda *_: False)
    write_whole(path, b"after")
    assert (path.stat().st_ino, path.read_bytes()) == (number, b"after")
