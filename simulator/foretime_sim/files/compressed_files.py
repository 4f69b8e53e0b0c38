"""Reading and writing whole files, plain or compressed with gzip or xz."""

from __future__ import annotations

import codecs
import gzip
import lzma
import stat
import zlib
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.whole_files import write_whole

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"


LONGEST_LINE = 8 * 2**20
"""Bytes of the longest line that is read; anything longer is no text, and may never end."""
_BLOCK = 2**20
_ELSE_LATIN_1 = "foretime-else-latin-1"


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_ELSE_LATIN_1, _as_latin_1)


def read_text(path: Path, *, what: str = "log file") -> str:
    """Read a text file or pipe; what compressed it is told by its content, not its name.

    Bytes that are not UTF-8 are taken as Latin-1, so that names that differ stay apart.

    Parameters
    ----------
    path
        The file.
    what
        What should have been named, for the message about a folder or a device.

    Raises
    ------
    InputError
        If the file is not there, is a folder or a device, is not readable, is cut off, is empty, is
        binary, or has a line above `LONGEST_LINE`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.files.compressed_files import read_text, write_text
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt.gz"
    ...     write_text(path, "compressed by its name")
    ...     read_text(path)
    'compressed by its name'
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path}: is a device; name a {what} or a pipe")
        with path.open("rb") as file:
            data = _read_blocks(file, path, what)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        remedy = "name a log file in it" if what == "log file" else f"name a {what}"
        raise InputError(f"{path}: is a folder; {remedy}") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if not data or data.isspace():
        raise InputError(f"{path}: the file is empty; name another {what}")
    text = data.decode("utf-8", errors=_ELSE_LATIN_1).removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _read_blocks(file: BufferedReader, path: Path, what: str) -> bytearray:
    """Read and decompress all; stops at once where it can't be text, as a pipe may never end."""
    start = file.peek(len(XZ_MAGIC))
    kinds = {GZIP_MAGIC: "gzip", XZ_MAGIC: "xz"}
    kind = next((kinds[magic] for magic in kinds if start.startswith(magic)), None)
    source = _decompressed(file, kind)
    data = bytearray()
    line_start = 0
    try:
        while block := source.read(_BLOCK):
            zero = block.find(b"\0")
            if zero >= 0:
                line = data.count(b"\n") + block.count(b"\n", 0, zero) + 1
                raise InputError(
                    f"{path}:{line}: a NUL byte; this is not a text file, or it was damaged in "
                    f"transfer; name a {what}"
                )
            newline = block.find(b"\n")
            ends = len(data) + (newline if newline >= 0 else len(block))
            if ends - line_start > LONGEST_LINE:
                raise InputError(
                    f"{path}:{data.count(10) + 1}: a line of more than "
                    f"{LONGEST_LINE // 2**20} MiB; this is not a text file; name a {what}"
                )
            if newline >= 0:
                line_start = len(data) + block.rfind(b"\n") + 1
            data += block
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: the {kind} data is cut off or damaged ({error}); fetch the file again"
        ) from None
    return data


def _decompressed(file: BufferedReader, kind: str | None) -> BufferedIOBase:
    match kind:
        case "gzip":
            return gzip.GzipFile(fileobj=file, mode="rb")
        case "xz":
            return lzma.LZMAFile(file)
        case _:
            return file


def write_text(path: Path, text: str) -> None:
    """Write a text file, compressed if its name ends in ``.gz`` or ``.xz``.

    The same text always gives the same bytes. The file is whole or as it was before.

    Raises
    ------
    InputError
        If the file can't be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.files.compressed_files import write_text
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt.gz"
    ...     write_text(path, "compressed by its name")
    ...     path.read_bytes()[:2].hex()
    '1f8b'
    """
    data = text.encode("utf-8", errors="surrogateescape")  # names of files may have some
    match path.suffix:
        case ".gz":
            data = gzip.compress(data, mtime=0)
        case ".xz":
            data = lzma.compress(data)
        case _:
            pass
    try:
        write_whole(path, data)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such folder; make {path.parent} first") from None
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}; name another") from None


def name_without_endings(path: Path) -> str:
    """Give a log file's name without compression and format endings, as reports show it."""
    name = path.name
    for ending in (".gz", ".xz", ".swf", ".csv", ".txt", ".sacct", ".log", ".cobalt"):
        name = name.removesuffix(ending)
    return name or path.name
