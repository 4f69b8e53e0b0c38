"""A web server of the site's that has asked people who they are, and says so in a header.

Whose header is believed: on a unix socket a peer that ``api.proxy_users`` names, over TCP whoever
knows the secret of ``api.proxy_secret_file``. From anybody else it is refused.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.identity import Identity, IdentityError, checked_name
from foretime_sidecar.web.auth.key_files import read_secret
from foretime_sidecar.web.auth.peer import Peer

SECRET_HEADER = "X-Foretime-Proxy-Secret"  # noqa: S105 - its name


class TrustedProxy:
    """Reads the header.

    Parameters
    ----------
    settings
        Its name, and whom it is believed.

    Raises
    ------
    InputError
        If the secret can't be used.
    """

    def __init__(self, settings: ApiSettings) -> None:
        self._header = settings.proxy_header
        self._users = frozenset(settings.proxy_users)
        self._secret_file = settings.proxy_secret_file
        if self._secret_file:
            self._secret()

    @property
    def wanted(self) -> bool:
        """Whether there is a proxy."""
        return bool(self._users or self._secret_file)

    def is_proxy(self, peer: Peer | None, headers: Headers) -> bool:
        """Say whether a request comes from the proxy.

        Raises
        ------
        IdentityError
            If it shows a secret that is wrong.
        """
        if peer is not None:
            return peer.user in self._users
        shown = headers.getlist(SECRET_HEADER)
        if not shown or not self._secret_file:
            return False
        # latin-1 is how headers are decoded.
        if len(shown) == 1 and hmac.compare_digest(shown[0].encode("latin-1"), self._secret()):
            return True
        raise IdentityError(
            "the proxy's secret is wrong",
            SECRET_HEADER,
            "let the proxy send what api.proxy_secret_file holds",
        )

    def identity(self, headers: Headers, *, from_proxy: bool) -> Identity | None:
        """Give whom the proxy names; ``None`` if nobody.

        Raises
        ------
        IdentityError
            If somebody else names anybody, or the proxy does not name one user.
        """
        named = headers.getlist(self._header)
        if not named:
            return None
        if not from_proxy:
            raise IdentityError(
                f"{self._header} is not believed over this connection",
                self._header,
                "leave it out, or ask through the site's web server",
            )
        if len(named) > 1:
            raise IdentityError(
                f"{self._header} is there {len(named)} times",
                self._header,
                "let the proxy remove what came from outside",
            )
        return Identity("proxy", checked_name(named[0], self._header))

    def _secret(self) -> bytes:
        return read_secret(self._secret_file, "api.proxy_secret_file").strip()
