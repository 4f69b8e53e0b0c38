"""Settings of the daemon's HTTP interface: where it answers, whom, and whom it believes."""

from __future__ import annotations

import re

from foretime_estimators.jobs.errors import InputError
from pydantic import Field, field_validator

from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN
from foretime_sidecar.settings.settings_section import FilePath, Names, Section, refused_as_value

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:[0-9]{1,5})?", re.ASCII)


def _check_hosts(hosts: Names) -> None:
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise InputError(f"{host!r} is no host; write it as cluster.example.org, without https")


def _check_mode(mode: str) -> None:
    if not re.fullmatch(r"0?[0-7]{3}", mode):
        raise InputError("give three octal digits, such as 0660")


def _check_header(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name):
        raise InputError("give a header's name of letters, digits and hyphens, up to 64 of them")


class ApiSettings(Section):
    """Where and to whom the daemon answers."""

    listen: str = Field(
        default=DEFAULT_LISTEN,
        description=(
            "unix:PATH, where callers are known by the socket's peer, or a loopback "
            "address such as 127.0.0.1:8642, where without a token, a MUNGE credential or the "
            "proxy's word they see only aggregates."
        ),
    )
    socket_mode: str = Field(
        default="0666",
        description="Permissions of the unix socket, octal.",
    )
    hosts: Names = Field(
        default=[],
        description=(
            "Hosts by which browsers may ask besides localhost and loopback addresses, as in the "
            "page's address, with the port if it has one: cluster.example.org. For a web server "
            "that passes Host on."
        ),
    )
    smallest_group: int = Field(
        default=5, ge=5, description="Aggregates are of at least so many users."
    )
    requests_per_minute: int = Field(
        default=120,
        ge=1,
        description=(
            "How often one caller may ask in the long run; advice counts five times. Not for "
            "operators, root and the daemon's own user."
        ),
    )
    request_burst: int = Field(
        default=60, ge=1, description="How often one caller may ask at a time, after a rest."
    )
    operators: Names = Field(
        default=[],
        description=(
            "Users who may see and erase everybody's history, as root and the daemon's own user "
            "may."
        ),
    )
    jwt_key_file: FilePath = Field(
        default="",
        description=(
            "Callers are known by Slurm's tokens (scontrol token) that are signed with this key: "
            "jwt_key of AuthAltParameters in slurm.conf, HS256; empty: not. Whoever has it can be "
            "anybody, in Slurm, too."
        ),
    )
    jwks_file: FilePath = Field(
        default="",
        description=(
            "Callers are known by tokens that are signed with a key of this JSON Web Key Set: jwks "
            "of AuthAltParameters, RS256; empty: not. Needs the extra jwks."
        ),
    )
    jwt_user_claim: str = Field(
        default="",
        description=(
            "Claim with the user's name that is looked at before sun and username: userclaimfield "
            "of AuthAltParameters."
        ),
    )
    munge: bool = Field(
        default=False,
        description="Callers are known by MUNGE credentials, which unmunge on the PATH decodes.",
    )
    munge_socket: FilePath = Field(default="", description="munged's socket; empty: its usual one.")
    proxy_header: str = Field(
        default="X-Remote-User",
        description="Header in which a web server of the site's says who asks.",
    )
    proxy_users: Names = Field(
        default=[],
        description=(
            "Users whose processes are that web server, on the unix socket; nothing else of theirs "
            "is known by its peer. They may hold more connections than others, over a loopback "
            "address, too."
        ),
    )
    proxy_secret_file: FilePath = Field(
        default="",
        description=(
            "File with the secret that the web server sends in X-Foretime-Proxy-Secret, over a "
            "loopback address; empty: none is believed there."
        ),
    )

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: Names) -> Names:
        return refused_as_value(hosts, _check_hosts)

    @field_validator("socket_mode")
    @classmethod
    def _is_mode(cls, mode: str) -> str:
        return refused_as_value(mode, _check_mode)

    @field_validator("proxy_header")
    @classmethod
    def _is_header(cls, name: str) -> str:
        return refused_as_value(name, _check_header)
