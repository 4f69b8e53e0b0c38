"""The list of what the packages ship (an SBOM), as CycloneDX, made from the lock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from locks import REPOSITORY, SHIPPED, pins_for


def make_sbom(sbom: Path, pythons: Iterable[str]) -> None:
    """Write what packages for these Pythons ship; the same lock gives the same bytes."""
    found = [pin.line() for python in pythons for pin in pins_for(python, SHIPPED)]
    # The tool warns that a lock does not say which package needs which.
    command = [sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements"]
    options = ["--output-reproducible", "--validate", "--output-file", str(sbom)]
    about = ["--pyproject", str(REPOSITORY / "pyproject.toml")]
    lines = "\n".join(dict.fromkeys(found))
    subprocess.run([*command, *options, *about, "-"], input=lines, text=True, check=True)
