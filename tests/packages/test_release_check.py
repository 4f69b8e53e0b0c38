"""What keeps a checkout from being released is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from locks import BUILD, SHIPPED, WHEEL_BUILDERS

PROJECT = """
[build-system]
requires = []
[project]
version = "{}"
dependencies = []
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that can be released."""
    files = {
        "pyproject.toml": PROJECT.format("1.2.0"),
        "simulator/studies/pyproject.toml": PROJECT.format("1.2.0"),
        SHIPPED: "",
        BUILD: "".join(f"{tool}==1 --hash=sha256:aa\n" for tool in WHEEL_BUILDERS),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 - 2024-02-29\n\n## 1.1.0 - x\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    return tmp_path


def git(checkout: Path, *arguments: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(checkout), *named, *arguments], check=True)


def commit(checkout: Path) -> None:
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message=All")


def check(checkout: Path, repository: Path) -> str:
    """Give what the command prints; it ends with 1 exactly if that is something."""
    program = repository / "contrib/packages/release_check.py"
    done = subprocess.run(
        [sys.executable, str(program), str(checkout)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == bool(done.stdout)
    return done.stdout


def test_a_checkout_that_is_ready_passes(checkout: Path, repository: Path) -> None:
    assert check(checkout, repository) == ""


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        ("## 1.2.0 - unreleased", "CHANGELOG.md: 1.2.0 has no date but unreleased; write 20"),
        ("## 1.1.0 - 2024-02-29", "CHANGELOG.md: its first release is 1.1.0, not 1.2.0"),
        ("## 1.2.0 - 9999-01-01", "CHANGELOG.md: 1.2.0 is of 9999-01-01, which is to come"),
        ("", "CHANGELOG.md: its first release is missing, not 1.2.0"),
    ],
)
def test_the_changelog_has_the_release_and_its_date(
    heading: str, said: str, checkout: Path, repository: Path
) -> None:
    (checkout / "CHANGELOG.md").write_text(heading)
    commit(checkout)
    assert check(checkout, repository).startswith(said)


@pytest.mark.parametrize("version", ["1.2", "1.2.0.dev1"])
def test_the_versions_are_one_and_good(version: str, checkout: Path, repository: Path) -> None:
    (checkout / "pyproject.toml").write_text(PROJECT.format(version))
    commit(checkout)
    said = check(checkout, repository)
    assert f"pyproject.toml: version {version} is not of the form 1.2.3 or 1.2.3rc1" in said
    assert f"simulator/studies/pyproject.toml: version 1.2.0 is not {version}" in said


def test_the_locks_fit(checkout: Path, repository: Path) -> None:
    (checkout / SHIPPED).write_text("numpy>=2\n")
    commit(checkout)
    said = f"{SHIPPED}: numpy has not one version with hashes; run make lock\n"
    assert check(checkout, repository) == said


def test_git_is_clean_on_main_and_has_no_such_tag(checkout: Path, repository: Path) -> None:
    git(checkout, "checkout", "--quiet", "-b", "other")
    git(checkout, "tag", "v1.2.0")
    (checkout / "new").touch()
    said = check(checkout, repository)
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "git status",
        "git tag",
        "git branch",
    ]
