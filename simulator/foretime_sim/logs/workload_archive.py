"""Logs of the Parallel Workloads Archive: which there are, fetched and verified.

A log counts as fetched once it is whole and what it should be: the gzip file unpacks, it has as
many records as the archive says, and its text, or the beginning of it that is known, has the
checksum that it should have. Until then it is ``NAME.swf.gz.part``, and a broken transfer goes on
where it stopped.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
import tenacity
import urllib3
from foretime_estimators.jobs.errors import ForetimeError, InputError

ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""The Parallel Workloads Archive (D. G. Feitelson, D. Tsafrir and D. Krakov, JPDC 74(10), 2014)."""
ATTEMPTS = 4
TIMEOUT_S = 30.0
_BLOCK = 2**16


class FetchError(ForetimeError):
    """A log could not be fetched: no network, a server's refusal, or not the file it should be."""


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """One log as the archive has it.

    Attributes
    ----------
    name
        The archive's name, without ``.swf.gz``.
    folder
        Where it lies, below the archive's address.
    jobs
        Records in the file.
    processors
        Of the machine.
    years
        When it was recorded.
    text_sha256, text_bytes
        Of the unpacked text's first so many bytes (all of it, unless its end is not known to us).
    whole
        Whether that is the whole text.
    """

    name: str
    folder: str
    jobs: int
    processors: int
    years: str
    text_sha256: str
    text_bytes: int
    whole: bool = True

    @property
    def file_name(self) -> str:
        """Of the log, in the archive and here."""
        return f"{self.name}.swf.gz"

    def url(self, archive: str = ARCHIVE_URL) -> str:
        """Address of the file."""
        return f"{archive.rstrip('/')}/{self.folder}/{self.file_name}"


LOGS = (
    ArchivedLog(
        "ANL-Intrepid-2009-1",
        "l_anl_int",
        68_936,
        163_840,
        "2009",
        "594c102ef71415a9b7fe008d153ab1c7119e18986a3413dce30230546542a44f",
        106_207,
        whole=False,  # header and first 1,200 records
    ),
    ArchivedLog(
        "CEA-Curie-2011-2.1-cln",
        "l_cea_curie",
        312_826,
        93_312,
        "2012",
        "b732a04aea71e2f154c8feee580be549d0bba1462bc91ec581944cb3dd6d442d",
        29_099_943,
    ),
    ArchivedLog(
        "CTC-SP2-1996-3.1-cln",
        "l_ctc_sp2",
        77_222,
        338,
        "1996-1997",
        "8e33a9b597e1ddda2d2164347bac08c9444e1a2620a7947df52f0a1622ec4cde",
        7_167_987,
    ),
    ArchivedLog(
        "KTH-SP2-1996-2.1-cln",
        "l_kth_sp2",
        28_476,
        100,
        "1996-1997",
        "fba36494c4e4257f72182e8b629ebb0bcb054b3b82851ef957445bd627adcc87",
        2_620_495,
    ),
    ArchivedLog(
        "LLNL-Thunder-2007-1.1-cln",
        "l_llnl_thunder",
        121_039,
        4_008,
        "2007",
        "aad5a3120a6adf0342d46fb4830e022121cdfbd3de9ecdd9cf10145b8864b6a5",
        11_267_879,
    ),
    ArchivedLog(
        "NASA-iPSC-1993-3.1-cln",
        "l_nasa_ipsc",
        18_239,
        128,
        "1993",
        "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
        1_678_956,
    ),
    ArchivedLog(
        "SDSC-BLUE-2000-4.2-cln",
        "l_sdsc_blue",
        243_306,
        1_152,
        "2000-2002",
        "13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
        22_531_816,
    ),
    ArchivedLog(
        "SDSC-Par-1996-3.1-cln",
        "l_sdsc_par",
        32_135,
        400,
        "1996",
        "fcb46fa6462b7ac460963025749f604f28b2e813101edd082a720842e80a7aa8",
        2_958_414,
    ),
    ArchivedLog(
        "SDSC-SP2-1998-4.2-cln",
        "l_sdsc_sp2",
        59_715,
        128,
        "1998-2000",
        "2bb635f4b5793f52bd49ccb8fd913d95f9c5be6346925162cadcaf0117e28cf2",
        5_601_165,
    ),
)


def find_log(name: str) -> ArchivedLog:
    """Find a log by its name, with or without ``.swf.gz``.

    Raises
    ------
    InputError
        If there is none of that name; it says which is nearest, and which there are.
    """
    wanted = name.removesuffix(".gz").removesuffix(".swf").lower()
    for log in LOGS:
        if log.name.lower() == wanted:
            return log
    names = [log.name for log in LOGS]
    begins = [known for known in names if known.lower().startswith(wanted)]
    near = begins or difflib.get_close_matches(name, names, n=1, cutoff=0.3)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise InputError(f"there is no log {name!r}{hint} There are: {', '.join(names)}")


def fetch(
    log: ArchivedLog,
    folder: Path,
    *,
    archive: str = ARCHIVE_URL,
    retry_wait_s: float = 1.0,
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[Path, bool]:
    """Fetch a log into a folder, unless it is there already.

    Parameters
    ----------
    log
        Which one.
    folder
        Where it goes; made if it is not there.
    archive
        Address of the archive, or of a mirror with the same folders.
    retry_wait_s
        Before the second attempt, seconds; twice as long before each further one.
    progress
        Called with bytes so far, and bytes in all (``None`` if the server does not say).

    Returns
    -------
    tuple
        The file, and whether it was fetched now.

    Raises
    ------
    InputError
        If the folder can't be written into, or another file has the log's name.
    FetchError
        If the log can't be had, or is not what it should be.
    """
    path = folder / log.file_name
    if path.exists():
        wrong = difference(log, path)
        if wrong is not None:
            raise InputError(
                f"{path}: is there already, but is not {log.name}: {wrong}; move it away, or name "
                "another folder"
            )
        return path, False
    part = path.with_name(path.name + ".part")
    url = log.url(archive)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _transfer(url, part, retry_wait_s, progress)
        wrong = difference(log, part)
        if wrong is not None:
            part.unlink()
            raise FetchError(
                f"{url}: what came is not {log.name}: {wrong}; try again, or fetch it by hand and "
                "look at it"
            )
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from error
    return path, True


def difference(log: ArchivedLog, path: Path) -> str | None:
    """Say in what a file is not the log that it should be; ``None`` if it is."""
    seen = hashlib.sha256()
    hashed = records = 0
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                if hashed < log.text_bytes:
                    seen.update(line[: log.text_bytes - hashed])
                hashed += len(line)
                records += bool(line.strip()) and not line.lstrip().startswith(b";")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return f"it does not unpack ({error})"
    if log.whole and hashed != log.text_bytes:
        return f"it has {hashed:,} bytes of text, not {log.text_bytes:,}"
    if records != log.jobs:
        return f"it has {records:,} records, not {log.jobs:,}"
    if seen.hexdigest() != log.text_sha256:
        return f"its text has the SHA-256 {seen.hexdigest()}, not {log.text_sha256}"
    return None


class _PassingError(Exception):
    """Something that another attempt may mend."""


def _transfer(
    url: str,
    part: Path,
    retry_wait_s: float,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Fetch an address into a file, going on after what is there, with several attempts."""
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_PassingError),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=retry_wait_s),
        reraise=True,
    )
    try:
        attempts(_attempt, url, part, progress)
    except _PassingError as error:
        kept = part.exists() and part.stat().st_size > 0
        more = f"; what came is kept as {part.name} and continued next time" if kept else ""
        raise FetchError(
            f"{url}: {error}, {ATTEMPTS} times{more}. Is there a network, and is the address right "
            "(--archive)?"
        ) from error


def _attempt(url: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Try once to fetch what is missing."""
    have = part.stat().st_size if part.exists() else 0
    # The file is compressed as it is: a server must not unpack or pack it on the way.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                part.unlink()  # longer than the file: it was another one
                raise _PassingError("what was kept did not fit")
            if response.status_code in (408, 429) or response.status_code >= 500:
                raise _PassingError(f"the server answered {response.status_code}")
            if not response.ok:
                raise FetchError(
                    f"{url}: the server answered {response.status_code} {response.reason}; look "
                    "whether the log has moved, and name the archive's address with --archive"
                )
            continued = response.status_code == requests.codes.partial_content
            done = have if continued else 0
            length = response.headers.get("Content-Length", "")
            total = done + int(length) if length.isdigit() else None
            with part.open("ab" if continued else "wb") as file:
                for block in response.raw.stream(_BLOCK, decode_content=False):
                    file.write(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
            if total is not None and done < total:
                raise _PassingError(f"the transfer ended after {done:,} of {total:,} bytes")
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _PassingError(_cause(error)) from error
    except requests.RequestException as error:
        raise FetchError(f"{url}: can't be fetched: {error}") from error
    except urllib3.exceptions.HTTPError as error:
        raise _PassingError(f"the transfer broke off ({type(error).__name__})") from error


def _cause(error: requests.RequestException) -> str:
    """Say in a few words why there was no answer."""
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_S:g} s"
    text = str(error)
    if "resolve" in text:
        return "the server's name can't be resolved"
    if "refused" in text:
        return "the connection was refused"
    return "no connection"
