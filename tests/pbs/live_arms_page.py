"""The page with live arms on OpenPBS side by side.

``python -m tests.pbs.live_arms_page FOLDER`` writes docs/live_pbs_arms.md from the runs that
`tests.pbs.live_arms` has made in FOLDER.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.pbs.live_arms import CPUS, HISTORY, LOAD, LOOK_S, MARGIN_S

PAGE = Path(__file__).resolve().parents[2] / "docs/live_pbs_arms.md"
_TAU_S = 10
_ABOUT = {
    "plain": "by itself",
    "soft": "soft_walltime by the hook (`enforce`, `learned`)",
    "cesnet": "soft_walltime by CESNET's rule",
    "start": "`start-now`",
}
_HEAD = f"""# Live OpenPBS side by side

Each row is one run of the same jobs on a live OpenPBS 23.06.06 of {CPUS} CPUs, begun together.
Requests are 1 to 10 times the runtimes, whose median is 75 s, and jobs come {LOAD} times as fast as
the machine can run them. The daemon looks every {LOOK_S} s. Every arm knows {HISTORY} other jobs of
the same users. CESNET's rule has {MARGIN_S} s of margin in the place of a quarter of an hour, as
jobs here are of minutes. Where strict_ordering is off, `start-now` does nothing, and says so. On
2026-11-26 all ran at once, on two processors with a load of 10 to 40: looks and starts come late,
those of `plain`, too.

    python -m tests.pbs.live_arms FOLDER SEED ARM [JOBS [BEGIN]]
    python -m tests.pbs.live_arms_page FOLDER

| seed | jobs | strict_ordering | arm | mean wait, s | beside | slowdown | p90, s | longest, s |
|---|---:|---|---|---:|---:|---:|---:|---:|
"""


def page_of(folder: Path) -> str:
    """Write the page of a folder's runs."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        seed = int(path.name.split("-")[0])
        rows = np.array([row[1:] for row in told["jobs"]], dtype=np.int64)
        submit, start, end = rows[:, 3], rows[:, 4], rows[:, 5]
        found[seed, not told["strict"], told["arm"], path.name] = (start - submit, end - start)
    lines = []
    for (seed, off, arm, _), (wait, ran) in sorted(found.items()):
        plain = [
            waits.mean() for key, (waits, _) in found.items() if key[:3] == (seed, off, "plain")
        ]
        beside = f"{100 * (wait.mean() / np.mean(plain) - 1):+.0f}%" if plain else ""
        slowdown = np.maximum((wait + ran) / np.maximum(ran, _TAU_S), 1).mean()
        lines.append(
            f"| {seed} | {len(wait)} | {'off' if off else 'on'} | {_ABOUT[arm]} |"
            f" {wait.mean():.0f} | {beside} | {slowdown:.2f} | {np.quantile(wait, 0.9):.0f} |"
            f" {wait.max()} |"
        )
    return _HEAD + "\n".join([*lines, ""])


def main(words: Sequence[str]) -> None:
    """Write the page."""
    PAGE.write_text(page_of(Path(words[0])), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
