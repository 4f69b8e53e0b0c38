"""Where the units, settings and examples of ``contrib/`` lie."""

from __future__ import annotations

from pathlib import Path

from foretime_sim.files.shipped_files import shipped_file


def contrib_file(name: str) -> Path:
    """Give the path of a file under ``contrib/``, e.g. ``systemd/foretime.service``.

    Raises
    ------
    InputError
        If it is neither in the checkout that this package runs from nor in the installation.

    Examples
    --------
    >>> from foretime_sidecar.install.contrib_files import contrib_file
    >>> contrib_file("systemd/foretime.service").name
    'foretime.service'
    """
    return shipped_file("contrib", name)
