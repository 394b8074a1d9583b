"""Signatures, as https://www.standardwebhooks.com describes them. A receiver checks them in five lines: see `docs/service.md`.

webhook-id          the name of the message; a repeated message has the same name
webhook-timestamp   when it was sent, in seconds since 1970
webhook-signature   "v1," and the HMAC-SHA256 of "id.timestamp.body" in base 64; with two secrets, two of them and a space
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Sequence

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


def signature_headers(shared: Sequence[str], message: str, seconds: int, body: bytes) -> list[tuple[str, str]]:
    """The headers that prove who sent a body, and when. A receiver that knows one of the secrets can check them."""
    signed = f"{message}.{seconds}.".encode() + body
    digests = [base64.b64encode(hmac.digest(_key(each), signed, "sha256")).decode() for each in shared]
    signatures = " ".join(f"v1,{digest}" for digest in digests)
    return [("webhook-id", message), ("webhook-timestamp", str(seconds)), ("webhook-signature", signatures)]


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
