"""Files of usage, as pbs_sched writes them."""

from __future__ import annotations

import struct

DECAYED_AT = 1_795_398_000


def usage_file(**used: float) -> bytes:
    """Give the content that OpenPBS 23.06.06 writes for fair share, decayed at `DECAYED_AT`."""
    entities = (struct.pack("50s6xd", name.encode(), value) for name, value in used.items())
    return struct.pack("9s7xdq", b"PBS_MAG!", 2.0, DECAYED_AT) + b"".join(entities)
