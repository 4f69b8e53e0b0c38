"""Slurm's JSON Web Tokens (``scontrol token``, AuthAltTypes=auth/jwt): who they are for.

As Slurm's own auth/jwt: HS256 with the key of ``jwt_key``, RS256 with the keys of ``jwks``; the
user is in the claim ``sun``, else in ``username``. Which of the two a token may be signed with is
decided by the settings and never by the token: a public key is never taken for a secret one.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import jwt
from foretime_estimators.jobs.errors import InputError
from jwt.algorithms import HMACAlgorithm

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.identity import Identity, IdentityError, checked_name, uid_of
from foretime_sidecar.web.auth.key_files import read_public, read_secret

_MOST_BYTES = 16_384
_CLOCKS_DIFFER_S = 10  # between the machine that makes tokens and this one
_RENEW = "get a new one: scontrol token"


class _SlurmKey(HMACAlgorithm):
    """HMAC with a key as it is in its file: Slurm's documents once made it with openssl genrsa."""

    def prepare_key(self, key: str | bytes) -> bytes:
        return key.encode() if isinstance(key, str) else key

    def check_key_length(self, key: bytes) -> str | None:
        return None  # Slurm takes it, and `read_secret` bounds it


class SlurmTokens:
    """Reads tokens.

    Parameters
    ----------
    settings
        Which keys there are.
    clock
        Epoch seconds.

    Raises
    ------
    InputError
        If a key can't be used, or RS256 is asked for without the extra ``jwks``.
    """

    def __init__(self, settings: ApiSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._secret = jwt.PyJWS(algorithms=[])
        self._secret.register_algorithm("HS256", _SlurmKey(HMACAlgorithm.SHA256))
        if settings.jwt_key_file:
            self._secret_key()
        if settings.jwks_file:
            self._public_keys()

    @property
    def wanted(self) -> bool:
        """Whether tokens are looked at."""
        return bool(self._settings.jwt_key_file or self._settings.jwks_file)

    def identity(self, token: str, where: str) -> Identity:
        """Give whom a token is for.

        Parameters
        ----------
        token
            As ``scontrol token`` prints it after ``SLURM_JWT=``.
        where
            The header that it came in.

        Raises
        ------
        IdentityError
            If it is not signed by a key of ours, not valid now, or names nobody.
        """
        if len(token) > _MOST_BYTES:
            raise IdentityError("the token is too long", where, _RENEW)
        try:
            claims = self._verified(token.encode("ascii"))
        except IdentityError:
            raise
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            # PyJWT's own words say nothing of the key.
            raise IdentityError(f"the token is none of ours: {error}", where, _RENEW) from error
        self._check_times(claims, where)
        return self._named(claims, where)

    def _verified(self, token: bytes) -> Mapping[str, Any]:
        algorithm = jwt.get_unverified_header(token).get("alg")
        if algorithm == "HS256" and self._settings.jwt_key_file:
            payload = self._secret.decode(token, self._secret_key(), algorithms=["HS256"])
        elif algorithm == "RS256" and self._settings.jwks_file:
            payload = self._by_public_key(token)
        else:
            raise jwt.InvalidAlgorithmError("it is signed in a way that is not taken here")
        claims = json.loads(payload)
        if not isinstance(claims, dict):
            raise jwt.DecodeError("its claims are no object")
        return claims

    def _by_public_key(self, token: bytes) -> bytes:
        keys = self._public_keys()
        wanted = jwt.get_unverified_header(token).get("kid")
        for key in keys.keys:
            if (wanted is None and len(keys.keys) == 1) or key.key_id == wanted:
                payload: bytes = jwt.PyJWS(algorithms=["RS256"]).decode(
                    token, key, algorithms=["RS256"]
                )
                return payload
        raise jwt.InvalidKeyError("it is signed with a key that is not known here")

    def _secret_key(self) -> bytes:
        return read_secret(self._settings.jwt_key_file, "api.jwt_key_file")

    def _public_keys(self) -> jwt.PyJWKSet:
        return _key_set(
            read_public(self._settings.jwks_file, "api.jwks_file"), self._settings.jwks_file
        )

    def _check_times(self, claims: Mapping[str, Any], where: str) -> None:
        now = self._clock()
        if now - _CLOCKS_DIFFER_S >= _moment(claims, "exp", where):
            raise IdentityError("the token has expired", where, _RENEW)
        for name in ("nbf", "iat"):
            if name in claims and _moment(claims, name, where) > now + _CLOCKS_DIFFER_S:
                raise IdentityError(
                    "the token is not valid yet", where, "wait, or look at the clocks"
                )

    def _named(self, claims: Mapping[str, Any], where: str) -> Identity:
        for claim in (self._settings.jwt_user_claim, "sun", "username"):
            if claim and claim in claims:
                name = checked_name(claims[claim], where)
                return Identity("slurm-token", name, uid_of(name))
        raise IdentityError("the token names no user (sun, username)", where, _RENEW)


def _moment(claims: Mapping[str, Any], name: str, where: str) -> float:
    moment = claims.get(name)
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise IdentityError(f"the token does not say its {name}", where, _RENEW)
    return moment


@functools.lru_cache(maxsize=4)
def _key_set(content: bytes, path: str) -> jwt.PyJWKSet:
    try:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # an extra
    except ImportError as error:
        raise InputError(
            f"api.jwks_file = {path!r}: RS256 needs the extra jwks: pip install foretime[jwks]"
        ) from error
    try:
        keys = jwt.PyJWKSet.from_json(content.decode())
    except (jwt.PyJWTError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise InputError(
            f"api.jwks_file = {path!r}: no JSON Web Key Set ({error}); give the file that jwks= in "
            "AuthAltParameters of slurm.conf names"
        ) from error
    keys.keys = [key for key in keys.keys if isinstance(key.key, RSAPublicKey)]
    if not keys.keys:
        raise InputError(f"api.jwks_file = {path!r}: it has no public RSA key; name another file")
    return keys
