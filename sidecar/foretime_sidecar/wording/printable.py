"""Texts as a terminal may have them: a name of a log can't change what it shows."""

from __future__ import annotations

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    r"""Escape control characters but ends of lines and tabs; they begin a terminal's commands.

    Examples
    --------
    >>> from foretime_sidecar.wording.printable import printable
    >>> printable("ann\x1b[2J")
    'ann\\x1b[2J'
    """
    return text.translate(_CONTROLS)
