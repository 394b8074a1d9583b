"""Signatures, as https://www.standardwebhooks.com describes them. A receiver checks them in five lines: see `docs/service.md`.

webhook-id          the name of the message; a repeated message has the same name
webhook-timestamp   when it was sent, in seconds since 1970
webhook-signature   "v1," and the HMAC-SHA256 of "id.timestamp.body" in base 64
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets

from tamis.errors import OptionError

PREFIX = "whsec_"
_FEWEST, _MOST = 24, 64
"""Bytes of a secret."""


def new_secret() -> str:
    """A secret that nobody can guess."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def checked_secret(given: object) -> str:
    """A secret that a user gives.

    Raises
    ------
    OptionError
    """
    if isinstance(given, str) and given.startswith(PREFIX):
        try:
            if _FEWEST <= len(_key(given)) <= _MOST:
                return given
        except (binascii.Error, ValueError):
            pass
    # The message must not repeat the secret.
    raise OptionError(f"`secret` must be {PREFIX!r} and {_FEWEST} to {_MOST} bytes in base 64. Hint: leave it out")


def signature_headers(secret: str, message: str, seconds: int, body: bytes) -> list[tuple[str, str]]:
    """The headers that prove who sent a body, and when."""
    signed = f"{message}.{seconds}.".encode() + body
    digest = base64.b64encode(hmac.digest(_key(secret), signed, "sha256")).decode()
    return [("webhook-id", message), ("webhook-timestamp", str(seconds)), ("webhook-signature", f"v1,{digest}")]


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
