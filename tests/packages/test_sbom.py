"""The SBOM names what the packages ship, with the lock's hashes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from locks import SHIPPED, pins_for
from make_packages import DEBIANS
from sbom import make_sbom


def test_it_names_each_package_with_its_hashes(tmp_path: Path, repository: Path) -> None:
    pythons = [debian.python for debian in DEBIANS.values()]
    for name in ("one", "two"):
        make_sbom(tmp_path / name, pythons)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    sbom = json.loads((tmp_path / "one").read_text())
    about = sbom["metadata"]["component"]
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert (about["name"], about["version"]) == ("foretime", project["version"])
    assert about["licenses"][0]["license"]["id"] == "Apache-2.0"
    named = {
        (part["name"], part["version"]): {
            f"sha256:{one['content']}" for one in part["externalReferences"][0]["hashes"]
        }
        for part in sbom["components"]
    }
    locked = [pin for python in pythons for pin in pins_for(python, SHIPPED)]
    assert named == {(pin.name, pin.version): set(pin.hashes) for pin in locked}
