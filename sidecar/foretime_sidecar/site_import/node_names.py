"""Names of nodes as Slurm writes lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from foretime_sidecar.queue.alike_nodes import by_number


def compressed(names: Iterable[str]) -> str:
    """Write names of nodes as a list such as ``n[001-003,007],login``.

    Examples
    --------
    >>> from foretime_sidecar.site_import.node_names import compressed
    >>> compressed(["n3", "n1", "n2", "n10", "login"])
    'login,n[1-3,10]'
    """
    stems: dict[tuple[str, int], list[int]] = {}
    plain = []
    numbered = []
    for name in sorted(names, key=by_number):
        if found := re.fullmatch(r"(.*?)(\d{1,18})", name, re.ASCII):
            numbered.append((found[1], found[2]))
        else:
            plain.append(name)
    padded = {(stem, len(digits)) for stem, digits in numbered if digits.startswith("0")}
    for stem, digits in numbered:
        width = len(digits) if (stem, len(digits)) in padded else 0
        stems.setdefault((stem, width), []).append(int(digits))
    lists = [_ranges(stem, width, numbers) for (stem, width), numbers in stems.items()]
    return ",".join([*plain, *lists])


def _ranges(stem: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [
        str(run[0]).zfill(width) + (f"-{str(run[-1]).zfill(width)}" if len(run) > 1 else "")
        for run in runs
    ]
    if len(texts) == 1 and "-" not in texts[0]:
        return stem + texts[0]
    return f"{stem}[{','.join(texts)}]"
