"""The types of answers in the client, made of what the daemon says of itself.

``python -m tests.support.client_answers`` writes them anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from foretime_sidecar.answers import api_client
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

MARK = "# Made of /openapi.json: python -m tests.support.client_answers\n"
CLIENT = Path(api_client.__file__)
_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def described() -> dict[str, Any]:
    """What a daemon says of itself that has not looked at anything yet."""
    store = Store(":memory:")
    sidecar = Sidecar(Settings(), SlurmCommands(MockSlurm(SlurmSetup(64), Policy()).run), store)
    found = create_app(sidecar, Health(0), lambda: 0).openapi()
    store.close()
    return found


def client_with_answers(described: dict[str, Any]) -> str:
    """The whole text of the client, with the types as they should be."""
    schemas = described["components"]["schemas"]
    types = {name: schema for name, schema in schemas.items() if name != "ErrorAnswer"}
    for schema in [part for part in types.values() if part["type"] == "object"]:
        types |= {
            part["title"]: part for part in schema["properties"].values() if "properties" in part
        }
    asked = described["paths"]["/v1/forecast"]["get"]["parameters"]
    parts = [_parameters(asked), *(_named(name, types[name]) for name in sorted(types))]
    before, mark, _ = CLIENT.read_text().partition(MARK)
    return before + mark + "".join(f"\n\n{part}" for part in parts)


def _parameters(asked: list[dict[str, Any]]) -> str:
    lines = ["class JobParameters(TypedDict, total=False):", '    """A job that is asked about."""']
    for one in asked:
        schema = {**one["schema"]}
        if "anyOf" in schema:  # it is left out where it is not known
            schema["anyOf"] = [part for part in schema["anyOf"] if part.get("type") != "null"]
        word = _type(schema)
        lines.append(f"    {one['name']}: " + (f"Required[{word}]" if one["required"] else word))
    return "\n".join([*lines[:2], "", *lines[2:], ""])


def _named(name: str, schema: dict[str, Any]) -> str:
    about = re.split(r"[.;:](?:\s|$)", " ".join(schema["description"].split()))[0]
    if schema["type"] != "object":
        return f'{name}: TypeAlias = {_type(schema)}\n"""{about}."""\n'
    required = schema["required"]
    fields = [
        f"    {field}: " + (word if field in required else f"NotRequired[{word}]")
        for field, word in ((each, _type(part)) for each, part in schema["properties"].items())
    ]
    return "\n".join([f"class {name}(TypedDict):", f'    """{about}."""', "", *fields, ""])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "properties" in schema:
        return str(schema["title"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        words = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(map(_quoted, words))}]"
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema["items"]]
        words = dict.fromkeys(map(_type, items))
        return f"list[{' | '.join(words)}]"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if inner is True else _type(inner)}]"
    return _WORDS[schema["type"]] if "type" in schema else "Any"


def _quoted(word: str) -> str:
    return f'"{word}"'


if __name__ == "__main__":
    CLIENT.write_text(client_with_answers(described()))
    sys.stdout.write(f"{CLIENT}: written; run ruff format\n")
