"""How much memory a command took."""

from __future__ import annotations

import resource


def peak_memory_bytes() -> int:
    """Largest resident size of this process and of any that ran a repeat."""
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in processes) * 1024
