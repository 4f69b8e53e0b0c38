"""Fuzzing by coverage: ``python -m tests.fuzz.run SECONDS [TARGET ...]`` in the repository.

Each target runs in a process of its own for so long, on what is in ``tests/fuzz/corpus/TARGET`` and
its seeds. New inputs that reach new lines are kept in ``build/fuzz/TARGET``. An input that ends in
anything but an error of ours is written to ``tests/fuzz/corpus/TARGET`` and told: from then on
``make test`` reads it, too. Exit code 1 if there is one.
"""

from __future__ import annotations

import gc
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

from tests.fuzz.targets import REPOSITORY, TARGETS, Target

CORPUS = Path(__file__).with_name("corpus")
_MOST_BYTES = 16_384
_CHATTER = re.compile(r"#\d+\s|INFO: |WARNING: |0x|Base64|\s*$")
"""What libFuzzer says at work."""
_FOLLOWED = ("foretime_", "tomllib")
"""Packages whose lines count as reached."""
_ODD: list[Any] = [None, True, -1, 0, 2**31, 2**63, 1e308, -0.5, "", "N/A", "0x1f", [], {}, [[]]]


def main(words: list[str]) -> int:
    """Fuzz the targets named, or all, one after the other."""
    if len(words) == 3 and words[0] == "--one":
        _fuzz(words[1], words[2])
    seconds, *names = words
    failed = []
    for name in names or TARGETS:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz.run", "--one", name, seconds]
        done = subprocess.run(command, cwd=REPOSITORY, check=False, stderr=subprocess.PIPE)
        said = done.stderr.decode("utf-8", "replace").splitlines()
        said = [line for line in said if not _CHATTER.match(line)]
        print("\n".join(said[-4:] if done.returncode == 0 else said), flush=True)
        if done.returncode:
            failed.append(name)
    print(f"findings: {', '.join(failed) or 'none'}")
    return bool(failed)


def _fuzz(name: str, seconds: str) -> None:
    import atheris

    target = TARGETS[name]
    found, kept = REPOSITORY / "build/fuzz" / name, CORPUS / name
    for folder in (found, kept):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (found / f"seed-{number}").write_bytes(seed)
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and (function.__module__ or "").startswith(_FOLLOWED):
            atheris.instrument_func(function)
    options = [
        *(str(found), str(kept), f"-max_total_time={seconds}", f"-max_len={_MOST_BYTES}"),
        *(f"-artifact_prefix={kept}/", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"),
    ]
    mutator = {"custom_mutator": _change_json} if target.is_json else {}
    atheris.Setup([sys.argv[0], *options], _once(target), **mutator)
    atheris.Fuzz()


def _once(target: Target) -> Callable[[bytes], None]:
    def once(data: bytes) -> None:
        target(data)

    return once


def _change_json(data: bytes, most: int, seed: int) -> bytes:
    """Change some values of a JSON text; now and then, and where it is none, its bytes."""
    choose = random.Random(seed)
    try:
        value = json.loads(data)
    except ValueError:
        return _change_bytes(data, choose)[:most]
    places: list[tuple[Any, Any]] = []
    _collect(value, places)
    if not places or choose.random() < 0.2:
        return _change_bytes(data, choose)[:most]
    for holder, key in choose.sample(places, min(len(places), choose.randrange(1, 4))):
        holder[key] = choose.choice([*_ODD, choose.choice(places)[0]])
    try:
        return json.dumps(value).encode()[:most]
    except ValueError:  # it holds itself now
        return data


def _change_bytes(data: bytes, choose: random.Random) -> bytes:
    start = choose.randrange(len(data) + 1)
    stop = min(start + choose.randrange(4), len(data))
    return data[:start] + choose.randbytes(choose.randrange(3)) + data[stop:]


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    if isinstance(value, dict):
        inside: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    else:
        return
    for key, each in inside:
        places.append((value, key))
        _collect(each, places)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
