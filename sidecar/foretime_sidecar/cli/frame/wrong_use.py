"""What typer refuses, in the words of our own errors: what, where, what to do."""

from __future__ import annotations

import typer


def wrong_use(error: typer.TyperException) -> str:
    """Say what is wrong on a command line, and what to give."""
    param = getattr(error, "param", None)
    if error.__cause__ is not None and param is not None:
        from foretime_sim.files.toml_messages import message_of
        from pydantic import ValidationError

        if isinstance(error.__cause__, ValidationError):
            first = error.__cause__.errors(include_url=False)[0]
            if first["type"] != "value_error":  # ours, which says so itself
                name = max(param.opts, key=len) if param.param_type_name == "option" else param.name
                return f"{name} = {first['input']!r}: {message_of(first)}"
    message = error.format_message().replace("Value error, ", "")
    return f"{message.rstrip('.')}; see --help"
