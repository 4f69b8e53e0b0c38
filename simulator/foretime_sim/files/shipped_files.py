"""Files that come beside the packages: in a checkout, or where an installation put them."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from foretime_estimators.jobs.errors import InputError


def shipped_file(folder: str, name: str) -> Path:
    """Give the path of a file in one of the repository's folders ``plugin`` and ``contrib``.

    Raises
    ------
    InputError
        If it is neither in the checkout that this package runs from nor in the installation.

    Examples
    --------
    >>> from foretime_sim.files.shipped_files import shipped_file
    >>> shipped_file("contrib", "systemd/foretime.service").name
    'foretime.service'
    """
    # Of the environment, and of pip install --user.
    data = (sysconfig.get_path("data"), sysconfig.get_path("data", f"{os.name}_user"))
    places = [
        Path(__file__).resolve().parents[3] / folder,
        *(Path(place) / "share" / "foretime" / folder for place in data),
    ]
    for place in places:
        if (place / name).is_file():
            return place / name
    raise InputError(
        f"{folder} file {name!r} is not in {' or '.join(map(str, places))}: install foretime again"
    )
