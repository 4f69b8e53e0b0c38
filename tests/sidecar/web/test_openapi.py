"""``/openapi.json`` leaves nothing out: each parameter, field, error and way to be known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import client_answers


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return client_answers.described()


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_parameter_and_field_is_described(described: dict[str, Any]) -> None:
    parts = {
        f"{path} {parameter['name']}": parameter
        for path, _, operation in operations(described)
        for parameter in operation.get("parameters", ())
    }
    for name, schema in described["components"]["schemas"].items():
        parts[name] = schema
        parts |= {f"{name}.{field}": part for field, part in schema.get("properties", {}).items()}
    assert len(parts) > 300
    assert [name for name, part in parts.items() if not part.get("description")] == []
    # What is said of a dataclass's fields stands at the fields.
    assert [name for name, part in parts.items() if "-----" in part["description"]] == []


def test_every_answer_has_a_type(described: dict[str, Any]) -> None:
    for path, _, operation in operations(described):
        ((kind, content),) = operation["responses"]["200"]["content"].items()
        if path == "/metrics":
            assert (kind, content["schema"]) == ("text/plain; version=0.0.4", {"type": "string"})
        else:
            assert kind == "application/json"
            assert content["schema"]["$ref"].startswith("#/components/schemas/")


def test_every_error_is_one_that_the_daemon_has(described: dict[str, Any]) -> None:
    errors = described["components"]["responses"]
    used = set()
    for path, _, operation in operations(described):
        found = operation["responses"].items()
        used |= {part["$ref"].rpartition("/")[2] for status, part in found if status != "200"}
        assert "422" not in operation["responses"], path
    assert used == errors.keys()
    shape = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    assert all(error["content"] == shape for error in errors.values())
    assert {
        name for name, error in errors.items() if "Retry-After" in error.get("headers", {})
    } == {
        "Error429",
        "Error503",
    }


def test_who_may_ask_is_said_of_every_path(described: dict[str, Any]) -> None:
    schemes = described["components"]["securitySchemes"]
    for path, method, operation in operations(described):
        ways = operation["security"]
        assert {name for way in ways for name in way} <= schemes.keys()
        if path in ("/healthz", "/metrics"):
            assert ways == []
        elif method == "get":
            assert {} in ways  # over the unix socket, or as nobody
        else:
            assert all("changeToken" in way for way in ways)
