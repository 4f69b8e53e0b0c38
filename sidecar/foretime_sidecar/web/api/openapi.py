"""What ``/openapi.json`` says of all paths: who may ask, errors and their headers, fields in words.

The types of parameters and answers stand at each path; `described_answers` has what is its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import TOKEN_HEADER
from foretime_sidecar.web.api.described_answers import ATTRIBUTES
from foretime_sidecar.web.auth.callers import FOR_MONITORING
from foretime_sidecar.web.auth.trusted_proxy import SECRET_HEADER

Node: TypeAlias = dict[str, Any]

_ABOUT = """\
When jobs will start, how accurate requests are, and what Foretime does about it.

The daemon listens on a unix socket or a loopback address. On the socket the kernel says who asks
(SO_PEERCRED), and no header is needed. Elsewhere one of the security schemes says it, if the
daemon's settings turn it on. Without any only aggregates are shown.

Times are seconds; points in time are seconds since the epoch. `null` is what is unknown. A field
may be added at any time; none is taken away or changes its meaning without an entry in the
changelog."""

_ERROR: Node = {
    "title": "ErrorAnswer",
    "description": "Why there is no answer: the one shape of all errors.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "description": "What, where, and what to do.",
            "type": "object",
            "required": ["what", "where", "remedy"],
            "properties": {
                "what": {"type": "string", "description": "What is wrong."},
                "where": {
                    "type": "string",
                    "description": "The parameter, header, setting or path.",
                },
                "remedy": {"type": "string", "description": "What to do."},
            },
        }
    },
    "example": {
        "error": {
            "what": "time is missing",
            "where": "time",
            "remedy": "GET /openapi.json describes every parameter",
        }
    },
}
_RETRY_AFTER: Node = {
    "description": "Seconds after which to ask again.",
    "schema": {"type": "integer", "minimum": 1},
}
_HEADERS: dict[int, Node] = {
    401: {
        "WWW-Authenticate": {
            "description": "A scheme that proves who asks.",
            "required": True,
            "schema": {"type": "string"},
        }
    },
    405: {
        "Allow": {
            "description": "Methods that the path has.",
            "required": True,
            "schema": {"type": "string"},
        }
    },
    429: {"Retry-After": _RETRY_AFTER | {"required": True}},
    503: {"Retry-After": _RETRY_AFTER},
}
# Every path has those of the first line, every one that looks at who asks those of the second.
_OF_ALL = (400, 403, 408, 413, 421, 431, 500, 503)
_OF_KNOWN = (401, 429)
_WHY = {
    400: "A parameter is wrong, or this is no single HTTP request.",
    401: "What is shown as proof of who asks is none.",
    403: "Not the caller's to see or to change, or sent by another page in a browser.",
    404: "Nothing is known of that here.",
    405: "The path has no such method.",
    408: "No whole request came in time.",
    409: "The caller has news of as many jobs as they may.",
    413: "A body was sent, which no path takes.",
    421: "The daemon is not to be asked by this Host.",
    429: "The caller asks too often.",
    431: "Address and headers are too long.",
    500: "The daemon made a mistake, which its log tells of.",
    503: "The daemon can't know now, or is at work on too much.",
}


# Fields that an answer does not always have.
_IF_ASKED: dict[str, tuple[str, ...]] = {"AccuracyAnswer": ("project",)}


def describe(app: FastAPI, settings: ApiSettings) -> None:
    """Have an application describe itself in full.

    Parameters
    ----------
    app
        With all of its paths.
    settings
        Name the proxy's header.
    """

    def openapi() -> Node:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title, version=app.version, description=_ABOUT, routes=app.routes
            )
            _complete(found, settings)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own manual does


def _complete(found: Node, settings: ApiSettings) -> None:
    components = found["components"]
    # FastAPI's shape of errors in parameters, which are answered as all others are.
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    for schema in components["schemas"].values():
        _say_fields(schema)
        _have_all_fields(schema)
    components["schemas"]["ErrorAnswer"] = _ERROR
    components["responses"] = {f"Error{status}": _error(status) for status in _WHY}
    components["securitySchemes"] = _schemes(settings)
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            _complete_operation(operation, path, method)


def _error(status: int) -> Node:
    error: Node = {
        "description": _WHY[status],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
    }
    if status in _HEADERS:
        error["headers"] = _HEADERS[status]
    return error


def _complete_operation(operation: Node, path: str, method: str) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    own = {int(status) for status in responses} - {200}
    known = path not in FOR_MONITORING
    for status in sorted({*_OF_ALL, *own, 405, *(_OF_KNOWN if known else ())}):
        responses[str(status)] = {"$ref": f"#/components/responses/Error{status}"}
    operation["security"] = _security(changes=method != "get") if known else []


# -- who asks --------------------------------------------------------------------------------------


def _schemes(settings: ApiSettings) -> Node:
    def header(name: str, description: str) -> Node:
        return {"type": "apiKey", "in": "header", "name": name, "description": description}

    return {
        "munge": {
            "type": "http",
            "scheme": "munge",
            "description": "`Authorization: Munge CREDENTIAL`, as `munge -n` makes one; each is "
            "good for one request. If `api.munge` is set.",
        },
        "slurmToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "As `scontrol token` gives it: HS256 if `api.jwt_key_file` is set, "
            "RS256 if `api.jwks_file` is.",
        },
        "slurmTokenHeader": header("X-SLURM-USER-TOKEN", "The same token, as for slurmrestd."),
        "proxyUser": header(
            settings.proxy_header,
            "Whom the site's web server names. Believed on the unix socket of `api.proxy_users`, "
            "elsewhere with the secret.",
        ),
        "proxySecret": header(SECRET_HEADER, "What `api.proxy_secret_file` holds."),
        "changeToken": header(
            TOKEN_HEADER,
            "What GET /v1/token has just answered to the same caller. Needed for what changes "
            "anything.",
        ),
    }


def _security(*, changes: bool) -> list[dict[str, list[str]]]:
    """Give the ways to be known, of which one is enough; the first is the unix socket's peer."""
    ways: tuple[tuple[str, ...], ...] = (
        (),
        ("munge",),
        ("slurmToken",),
        ("slurmTokenHeader",),
        ("proxyUser",),
        ("proxyUser", "proxySecret"),
    )
    token = ("changeToken",) if changes else ()
    return [{name: [] for name in (*way, *token)} for way in ways]


# -- fields ----------------------------------------------------------------------------------------


def _say_fields(schema: Node) -> None:
    """Take what fields mean out of a docstring's Attributes."""
    about, _, attributes = cleandoc(schema.get("description", "")).partition(ATTRIBUTES)
    if about:
        schema["description"] = about
    for names, meaning in _attributes(attributes):
        for name in names:
            if name in schema["properties"]:
                schema["properties"][name].setdefault("description", meaning)


def _attributes(text: str) -> Iterator[tuple[list[str], str]]:
    for found in re.finditer(r"^(\w[\w, ]*)\n((?:[ ]+.*\n?|\n(?=[ ]))+)", text, re.MULTILINE):
        meaning = " ".join(found[2].split()).replace("``None``", "null").replace("``", "`")
        yield found[1].split(", "), meaning


def _have_all_fields(schema: Node) -> None:
    """Say that what has a default is there all the same: it is of a value that was made."""
    if schema.get("type") != "object" or "properties" not in schema:
        return
    for field in schema["properties"].values():
        field.pop("default", None)
        _have_all_fields(field)
    asked = _IF_ASKED.get(schema.get("title", ""), ())
    schema["required"] = [name for name in schema["properties"] if name not in asked]
