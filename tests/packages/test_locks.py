"""The locks pin all that the packages ship and are built with."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from locks import BUILD, SHIPPED, WHEEL_BUILDERS, Pin, pins, pins_for, problems
from make_packages import DEBIANS, Debian, download_locked
from packaging.requirements import Requirement

LINE = "numpy==2.1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via foretime\n"
PROJECT = """
[build-system]
requires = ["nanobind>=2.4"]
[project]
dependencies = ["NumPy>=1.26"]
"""


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A checkout whose locks fit its pyproject.toml."""
    (tmp_path / "contrib/packages").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / SHIPPED).write_text(f"# made by a tool\n{LINE}")
    tools = ["nanobind", *WHEEL_BUILDERS]
    (tmp_path / BUILD).write_text("".join(f"{name}==3.0 --hash=sha256:cc\n" for name in tools))
    return tmp_path


def test_the_locks_of_this_checkout_fit_its_dependencies(repository: Path) -> None:
    assert not list(problems(repository))


@pytest.mark.parametrize("debian", DEBIANS.values(), ids=list(DEBIANS))
def test_every_python_has_what_it_needs_once(debian: Debian, repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    for lock in (SHIPPED, BUILD):
        names = [pin.name for pin in pins_for(debian.python, lock)]
        assert len(names) == len(set(names))
    shipped = {pin.name for pin in pins_for(debian.python, SHIPPED)}
    assert shipped >= {Requirement(line).name for line in project["dependencies"]}
    assert "colorama" not in shipped, "for Windows alone"


@pytest.mark.parametrize("lock", [SHIPPED, BUILD])
def test_a_lock_names_no_place(lock: str, repository: Path) -> None:
    text = (repository / lock).read_text()
    assert not re.search("://|^-|file:|/home|/tmp|/root", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("", "", ""),
        ("2.1.0", "1.25.0", "no version for NumPy>=1.26 of pyproject.toml"),
        ("numpy", "numpy-stl", "no version for NumPy>=1.26 of pyproject.toml"),
        (" \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb", "", "numpy has not one version"),
        ("==2.1.0", ">=2.1.0", "numpy has not one version with hashes"),
        ("==2.1.0", "==2.*", "numpy has not one version with hashes"),
    ],
)
def test_what_a_lock_leaves_open_is_said(locked: Path, was: str, becomes: str, said: str) -> None:
    (locked / SHIPPED).write_text(LINE.replace(was, becomes))
    found = list(problems(locked))
    assert bool(found) == bool(said)
    for problem in found[:1]:
        assert problem.startswith(f"{SHIPPED}: {said}")
        assert problem.endswith("; run make lock")


def test_tools_are_locked_too(locked: Path) -> None:
    (locked / BUILD).write_text("nanobind==2.3 --hash=sha256:cc\n")
    said = "\n".join(problems(locked))
    assert all(f"no version for {tool} " in said for tool in ["nanobind>=2.4", *WHEEL_BUILDERS])
    (locked / BUILD).unlink()
    assert list(problems(locked)) == [f"{BUILD}: is missing; run make lock"]


def test_a_pin_is_read_whole(locked: Path) -> None:
    (pin,) = pins(locked / SHIPPED)
    assert pin.line() == "numpy==2.1.0 --hash=sha256:aa --hash=sha256:bb"


@pytest.mark.parametrize("good", [True, False])
def test_a_file_with_another_hash_ends_the_build(
    good: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    wheel = tmp_path / "index/small-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(
            "small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n"
        )
        file.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if good else 64 * "0"
    pin = Pin(Requirement("small==1.0"), (f"sha256:{digest}",))
    with (
        contextlib.nullcontext()
        if good
        else pytest.raises(SystemExit, match=f"If a hash .*{SHIPPED}")
    ):
        download_locked(tmp_path / "house", "3.13", [pin])
    assert (tmp_path / "house" / wheel.name).exists() == good
    assert ("DO NOT MATCH THE HASHES" in capfd.readouterr().err) != good
