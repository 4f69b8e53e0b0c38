"""A policy as a person names it: a TOML file with the keys of `PolicyTable`, or a known one's name.

The known ones are the files in `KNOWN_FOLDER`; their first line says what each is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pydantic
from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.toml_messages import message_of, nearest
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.policies.policy_table import PolicyTable, policy_of

KNOWN_FOLDER = Path(__file__).parent / "known"
_SLURM = (
    "the policy slurm is now called planning, as it has none of Slurm's own rules: give planning,"
    " or for Slurm's rules --site FILE (foretime site import) or, in a replay, --scheduler slurm"
)


def known_policies() -> dict[str, str]:
    """Give the text of every known policy by its name."""
    files = sorted(KNOWN_FOLDER.glob("*.toml"))
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def read_policy(name: str | Path, folder: Path | None = None) -> dict[str, Any]:
    """Read and check a policy: the values of those keys that it sets.

    Parameters
    ----------
    name
        A TOML file, or the name of a known policy.
    folder
        Where the file, and orders and backfilling in Python, are looked for; the current one if
        ``None``.

    Raises
    ------
    InputError
        Naming file, line, key and value, and what would be valid.

    Examples
    --------
    >>> from foretime_sim.policies.policy_file import read_policy
    >>> read_policy("easy")
    {'order': 'fcfs', 'backfill': 'easy'}
    """
    path = (folder or Path()) / name
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: can't read the policy: not UTF-8 text") from error
    except OSError as error:
        known = known_policies()
        if str(name) == "slurm":
            raise InputError(_SLURM) from error
        if str(name) not in known:
            raise InputError(
                f"{path}: can't read the policy: {error.strerror}, and no policy is called so; "
                f"{nearest(name, known)}"
            ) from error
        path, text = KNOWN_FOLDER / f"{name}.toml", known[str(name)]
    return parse_policy(text, path, folder)


def parse_policy(text: str, path: Path, folder: Path | None = None) -> dict[str, Any]:
    """Read the text of a policy file; see `read_policy`."""
    values = parse_toml(text, str(path))
    try:
        table = PolicyTable.model_validate(values, context={"folder": folder})
    except pydantic.ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = str(problem["loc"][0])
        place = f"{path}:{_line_of(key, text)}: {key}"
        if problem["type"] == "extra_forbidden":
            valid = nearest(key, PolicyTable.model_fields)
            raise InputError(f"{place}: there is no such key; {valid}") from error
        raise InputError(f"{place} = {problem['input']!r}: {message_of(problem)}") from error
    found = table.model_dump(exclude_unset=True)
    try:
        policy_of(found, folder)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return found


def _line_of(key: str, text: str) -> int:
    wanted = re.compile(rf"\s*\[*\s*[\"']?{re.escape(key)}\b")
    numbered = enumerate(text.splitlines(), start=1)
    return next((number for number, line in numbered if wanted.match(line)), 1)
