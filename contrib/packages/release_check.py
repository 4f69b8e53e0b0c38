"""Looks whether this checkout can be released: version, changelog, locks, tag, tree.

    python contrib/packages/release_check.py [REPOSITORY]

Prints what is wrong, and ends with 1 if anything is. `make release-check` then runs every test and
makes and tries the packages.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import locks

BRANCH = "main"


def problems(repository: Path, today: datetime.date) -> Iterator[str]:
    """Give what keeps a checkout from being released, each with what to do."""
    version = version_of(repository / "pyproject.toml")
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        yield f"pyproject.toml: version {version} is not of the form 1.2.3 or 1.2.3rc1"
    studies = version_of(repository / "simulator/studies/pyproject.toml")
    if studies != version:
        yield f"simulator/studies/pyproject.toml: version {studies} is not {version}"
    yield from _problems_of_changelog(repository / "CHANGELOG.md", version, today)
    yield from locks.problems(repository)
    if _git(repository, "status", "--porcelain"):
        yield "git status: the tree has changes; commit them, or take them out"
    if _git(repository, "tag", "--list", f"v{version}"):
        yield f"git tag: v{version} is there already; raise the version"
    branch = _git(repository, "branch", "--show-current")
    if branch != BRANCH:
        yield f"git branch: on {branch or 'no branch'}, and releases are made on {BRANCH}"


def version_of(project: Path) -> str:
    """Give the version in a pyproject.toml."""
    return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def _problems_of_changelog(changelog: Path, version: str, today: datetime.date) -> Iterator[str]:
    headings = re.findall(r"^## (.*)$", changelog.read_text(encoding="utf-8"), re.MULTILINE)
    name, _, date = (headings[0] if headings else "").partition(" - ")
    if name != version:
        yield f"CHANGELOG.md: its first release is {name or 'missing'}, not {version}"
        return
    try:
        released = datetime.date.fromisoformat(date)
    except ValueError:
        yield f"CHANGELOG.md: {version} has no date but {date or 'nothing'}; write {today}"
        return
    if released > today:
        yield f"CHANGELOG.md: {version} is of {released}, which is to come"


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(problems(place, datetime.datetime.now(tz=datetime.UTC).date()))
    for problem in found:
        print(problem)
    sys.exit(bool(found))
