"""What pbs.conf says of this host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def pbs_conf(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Give a value of the environment or pbs.conf; ``None`` if neither has it."""
    if value := environment.get(name):
        return value
    conf = Path(environment.get("PBS_CONF_FILE", "/etc/pbs.conf"))
    try:
        lines = conf.read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "") or None
