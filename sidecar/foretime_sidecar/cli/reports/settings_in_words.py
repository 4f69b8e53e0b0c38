"""Settings of a site that differ from the defaults, in the words of its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from foretime_sim.files.toml_keys import Key


def said_of(
    described: object, keys: Mapping[str, Key], unsaid: object
) -> Iterator[tuple[str, str]]:
    """Give the keys and values of what is not as in ``unsaid``."""
    for name, key in keys.items():
        value = getattr(described, key.attribute)
        if value is not None and value != getattr(unsaid, key.attribute):
            yield name, key.kind.write(value).strip('"')


def in_words(described: object, keys: Mapping[str, Key], unsaid: object) -> str:
    """Give them in one text."""
    return "; ".join(f"{name}={value}" for name, value in said_of(described, keys, unsaid))
