"""Reading and writing whole files, plain or compressed with gzip or xz."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

from foretime_estimators.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"


def read_text(path: Path) -> str:
    """Read a text file; what compressed it is told by its content, not its name.

    Bytes that are not UTF-8 are kept as surrogates, so that writing gives them back.

    Raises
    ------
    InputError
        If the file is not there, is a folder, is not readable, is cut off, is empty, or is binary.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name a log file in it") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if data.startswith((GZIP_MAGIC, XZ_MAGIC)):
        kind = "gzip" if data.startswith(GZIP_MAGIC) else "xz"
        try:
            data = gzip.decompress(data) if kind == "gzip" else lzma.decompress(data)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise InputError(
                f"{path}: the {kind} data is cut off or damaged ({error}); fetch the file again"
            ) from None
    if not data.strip():
        raise InputError(f"{path}: the file is empty")
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise InputError(
            f"{path}:{line}: a NUL byte; this is not a text file, or it was damaged in transfer"
        )
    text = data.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text


def write_text(path: Path, text: str) -> None:
    """Write a text file, compressed if its name ends in ``.gz`` or ``.xz``.

    The same text always gives the same bytes.

    Raises
    ------
    InputError
        If the file can't be written.
    """
    data = text.encode("utf-8", errors="surrogateescape")
    match path.suffix:
        case ".gz":
            data = gzip.compress(data, mtime=0)
        case ".xz":
            data = lzma.compress(data)
        case _:
            pass
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from None


def name_without_endings(path: Path) -> str:
    """Give a log file's name without compression and format endings, as reports show it."""
    name = path.name
    for ending in (".gz", ".xz", ".swf", ".csv", ".txt", ".sacct"):
        name = name.removesuffix(ending)
    return name or path.name
