"""Makes the packages, into dist/: an sdist, wheels, a .deb for each Debian, an .rpm, an SBOM.

    python contrib/packages/make_packages.py [SUITE ...]

For each suite (bookworm, trixie; by default both) the wheel of its Python is made in a root without
a compiler, and its .deb there. The .rpm is made of bookworm's, whose Python 3.11 RHEL 8 and 9 have.
As root, with debootstrap. docs/packages.md says more.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from locks import BUILD, REPOSITORY, SHIPPED, Pin, build_requirements, pins_for
from sbom import make_sbom

HERE = Path(__file__).resolve().parent
DIST = REPOSITORY / "dist"
CACHE = Path(os.environ.get("FORETIME_ROOTS", "/var/cache/foretime-roots"))

GLIBC = "2.28"
"""The oldest C library that the packages run on: RHEL 8's."""
GLIBC_MINORS = (28, 27, 26, 24, 17, 12, 5)
"""Of the manylinux tags that a wheel for `GLIBC` may have."""

ON_WRONG_HASH = (
    f"If a hash differs, the file is not the one that {SHIPPED} or {BUILD} names. "
    "Find out why; make lock would take the new file."
)


@dataclass(frozen=True)
class Debian:
    """A Debian release, and the Python that its packages belong to."""

    suite: str
    number: int
    python: str


DEBIANS = {
    debian.suite: debian
    for debian in (Debian("bookworm", 12, "3.11"), Debian("trixie", 13, "3.13"))
}


def main(suites: Sequence[str]) -> None:
    """Make the packages of these suites; of all, if none is named."""
    unknown = set(suites) - DEBIANS.keys()
    if unknown:
        sys.exit(f"make_packages.py: no suite {', '.join(unknown)}; there are {', '.join(DEBIANS)}")
    DIST.mkdir(exist_ok=True)
    sdist = make_sdist()
    for old in DIST.glob("*.cdx.json"):
        old.unlink()
    make_sbom(DIST / f"foretime-{version()}.cdx.json", [each.python for each in DEBIANS.values()])
    for debian in [DEBIANS[name] for name in suites or DEBIANS]:
        wheel = make_wheel(debian, sdist)
        with environment(debian, wheel) as (root, work):
            make_deb(debian, root, work)
            if debian.suite == "bookworm":
                make_rpm(debian, root, work)
        print(f"built on Debian {debian.number}: {wheel.name}")
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  dist/{path.name}")


def make_sdist() -> Path:
    """Make the sdist, from which everything else is made."""
    for old in DIST.glob("*.tar.gz"):
        old.unlink()
    # With the certificates that pip goes by, too.
    command = [sys.executable, "-m", "uv", "build", "--system-certs", "--sdist", "--quiet"]
    locked = ["--build-constraints", str(REPOSITORY / BUILD), "--require-hashes"]
    places = [
        "--no-create-gitignore",
        "--python",
        sys.executable,
        "--out-dir",
        str(DIST),
        str(REPOSITORY),
    ]
    if subprocess.run([*command, *locked, *places], check=False).returncode:
        sys.exit(f"make_packages.py: no sdist was made. {ON_WRONG_HASH}")
    (sdist,) = DIST.glob("*.tar.gz")
    return sdist


def make_wheel(debian: Debian, sdist: Path) -> Path:
    """Make the wheel of a suite's Python; of 3.12 and newer it is one for all of them."""
    compiled = CACHE / "compiled"
    compiled.mkdir(parents=True, exist_ok=True)
    with work_folder() as work:
        house, made, given = work / "wheelhouse", work / "made", work / "sdist"
        download_locked(house, debian.python, pins_for(debian.python, BUILD))
        for folder in (made, given):
            folder.mkdir()
        shutil.copy(sdist, given)
        run_in_root(
            make_root(f"{debian.suite}-build"),
            work,
            {house: "/wheelhouse", given: "/sdist", made: "/dist", compiled: "/compiled"},
            ["/packages/wheel.sh", GLIBC, *build_requirements(REPOSITORY)],
        )
        (wheel,) = made.iterdir()
        for old in DIST.glob(re.sub(r"^(foretime-)[^-]+-", r"\1*-", wheel.name)):
            old.unlink()
        return Path(shutil.move(wheel, DIST / wheel.name))


@contextlib.contextmanager
def environment(debian: Debian, wheel: Path) -> Iterator[tuple[Path, Path]]:
    """Lay out the files of the .deb and .rpm in a root; give it and its work folder."""
    root = make_root(f"{debian.suite}-build")
    with work_folder() as work:
        house, pages = work / "wheelhouse", work / "man"
        pip = [pin for pin in pins_for(debian.python, BUILD) if pin.name == "pip"]
        download_locked(house, debian.python, {*pins_for(debian.python, SHIPPED), *pip})
        shutil.copy(wheel, house)
        # Here, as simulations' commands can't be asked where what they need is left out.
        subprocess.run([sys.executable, str(HERE / "man_pages.py"), str(pages)], check=True)
        binds = {house: "/wheelhouse", pages: "/man", REPOSITORY: "/source"}
        run_in_root(root, work, binds, ["/packages/environment.sh"])
        yield root, work


def make_deb(debian: Debian, root: Path, work: Path) -> None:
    """Make a .deb of what a root has below /stage."""
    stage = work / "upper/stage"
    control = work / "upper/DEBIAN"
    shutil.copytree(HERE / "debian", control)
    template = Template((control / "control.in").read_text(encoding="utf-8"))
    (control / "control").write_text(
        template.substitute(
            version=f"{package_version()}-1~deb{debian.number}",
            python=debian.python,
            glibc=GLIBC,
            size_kib=sum(path.lstat().st_size for path in stage.rglob("*")) // 1024,
        ),
        encoding="utf-8",
    )
    (control / "control.in").unlink()
    for old in DIST.glob(f"*~deb{debian.number}_amd64.deb"):
        old.unlink()
    script = "cp -a /DEBIAN /stage && dpkg-deb --root-owner-group -Zxz --build /stage /dist >&2"
    run_in_root(root, work, {DIST: "/dist"}, ["sh", "-c", f"{script}; rm -r /stage/DEBIAN"])


def make_rpm(debian: Debian, root: Path, work: Path) -> None:
    """Make an .rpm of what a root has below /stage."""
    macros = {
        "stage": "/stage",
        "foretime_version": package_version(),
        "python": f"python{debian.python}",
        "_rpmdir": "/dist",
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    }
    defines = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    for old in DIST.glob("*.rpm"):
        old.unlink()
    command = ["rpmbuild", "--quiet", "-bb", *defines, "/packages/foretime.spec"]
    run_in_root(root, work, {DIST: "/dist"}, command)


def make_root(name: str) -> Path:
    """Give a Debian root (make_root.sh), made at its first use."""
    command = [str(HERE / "make_root.sh"), name]
    return Path(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    )


def run_in_root(root: Path, work: Path, binds: dict[Path, str], command: Sequence[str]) -> None:
    """Run a command in a root (enter_root.sh), with some folders of this machine's."""
    places = {HERE: "/packages", DIST: "/dist", **binds}
    named = [f"{folder}:{place}" for folder, place in places.items()]
    subprocess.run(
        [str(HERE / "enter_root.sh"), str(root), str(work), *named, "--", *command], check=True
    )


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """Give a folder for `run_in_root` that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="work.", dir=CACHE) as work:
        yield Path(work)


def download_locked(folder: Path, python: str, pins: Iterable[Pin]) -> None:
    """Fetch the wheels of these pins for a Python and `GLIBC`; end where a hash differs."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lines:
        lines.writelines(f"{pin.line()}\n" for pin in pins)
        lines.flush()
        try:
            download(folder, python, ["--require-hashes", "--no-deps", "--requirement", lines.name])
        except subprocess.CalledProcessError:
            sys.exit(f"make_packages.py: pip did not get every wheel. {ON_WRONG_HASH}")


def download(folder: Path, python: str, arguments: Sequence[str]) -> None:
    """Fetch the wheels that pip's arguments name, for a Python and `GLIBC`."""
    names = [f"manylinux_2_{minor}_x86_64" for minor in GLIBC_MINORS]
    names += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)),
            *("--progress-bar", "off", "--only-binary", ":all:", "--python-version", python),
            *(word for name in names for word in ("--platform", name)),
            *arguments,
        ],
        check=True,
    )


def version() -> str:
    """Give the version, which stands in pyproject.toml alone."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def package_version() -> str:
    """Give the version as dpkg and rpm sort it: 1.0rc1 as 1.0~rc1, before 1.0."""
    return re.sub(r"\.?(a|b|rc|dev)(?=\d)", r"~\1", version())


if __name__ == "__main__":
    main(sys.argv[1:])
