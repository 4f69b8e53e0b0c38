"""Code on the pages about forward runs and what goes into them runs, and prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("name", "examples"),
    [("forward.md", 5), ("runtime_distributions.md", 1), ("forward_switching.md", 1)],
)
def test_the_examples_print_what_the_page_says(repository: Path, name: str, examples: int) -> None:
    page = (repository / "docs" / name).read_text()
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    printed = ""
    compared = 0
    for kind, text in blocks:
        if kind == "python":
            assert printed == "", "what the block before prints is not on the page"
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(text, names)
            printed = output.getvalue()
        else:
            assert printed == text
            printed = ""
            compared += 1
    assert printed == ""
    assert compared >= examples
