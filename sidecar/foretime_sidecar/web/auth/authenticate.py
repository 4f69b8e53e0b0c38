"""Who asks, from all that a request shows: the socket's peer, a token, a credential, a proxy.

A name in the question is never among it. All that is shown must say the same; of the same user
the surest proof counts: the socket's peer, then MUNGE, then a token, then the proxy.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.identity import Identity, IdentityError
from foretime_sidecar.web.auth.munge_credential import MungeCredentials
from foretime_sidecar.web.auth.peer import Peer
from foretime_sidecar.web.auth.slurm_token import SlurmTokens
from foretime_sidecar.web.auth.trusted_proxy import TrustedProxy

_AUTHORIZATION, _SLURM = "Authorization", "X-SLURM-USER-TOKEN"


class Identities:
    """Tells who asks.

    Parameters
    ----------
    settings
        What is believed.
    clock
        Epoch seconds.

    Raises
    ------
    InputError
        If a key or a secret can't be used.
    """

    def __init__(self, settings: ApiSettings, clock: Callable[[], float]) -> None:
        self._tokens = SlurmTokens(settings, clock)
        self._munge = MungeCredentials(settings.munge_socket) if settings.munge else None
        self._proxy = TrustedProxy(settings)

    def of(self, peer: Peer | None, headers: Headers) -> Identity | None:
        """Give who asks; ``None`` if nothing says.

        Parameters
        ----------
        peer
            At the other end of a unix socket; ``None`` over TCP.
        headers
            Of the request.

        Raises
        ------
        IdentityError
            If what is shown as proof is none, or two proofs disagree.
        StateError, InputError
            If a proof can't be looked at now.
        """
        shown = self._shown(peer, headers)
        if len({identity.who for identity in shown}) > 1:
            said = " and ".join(f"{each.who} ({each.source})" for each in shown)
            raise IdentityError(
                f"this request is of more than one: {said}",
                "connection",
                "show one proof, of yourself",
            )
        return shown[0] if shown else None

    def _shown(self, peer: Peer | None, headers: Headers) -> list[Identity]:
        """Give all who are shown, the surest first."""
        from_proxy = self._proxy.wanted and self._proxy.is_proxy(peer, headers)
        # Of the proxy's own user is nothing that comes through it.
        found = [None if from_proxy else Identity.of_peer(peer)]
        credentials, tokens = self._authorizations(headers)
        if self._munge is not None:
            found += [self._munge.identity(each, _AUTHORIZATION) for each in credentials]
        if self._tokens.wanted:
            found += [self._tokens.identity(each, where) for each, where in tokens]
        if self._proxy.wanted:
            found.append(self._proxy.identity(headers, from_proxy=from_proxy))
        return [identity for identity in found if identity is not None]

    @staticmethod
    def _authorizations(headers: Headers) -> tuple[list[str], list[tuple[str, str]]]:
        """Give MUNGE credentials, and tokens with the header that each came in."""
        credentials, tokens = [], [(text, _SLURM) for text in headers.getlist(_SLURM)]
        for text in headers.getlist(_AUTHORIZATION):
            scheme, _, proof = text.strip().partition(" ")
            if scheme.lower() == "munge":
                credentials.append(proof.strip())
            elif scheme.lower() == "bearer":
                tokens.append((proof.strip(), _AUTHORIZATION))
        return credentials, tokens
