"""One try to deliver a batch: sign it, send it, follow redirects."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urljoin

import h11

from tamis import __version__
from tamis.errors import OptionError, shortened
from tamis.service.webhooks.addresses import ForbiddenError, Networks, Target, read_url
from tamis.service.webhooks.channel import Answer, Channel, Headers
from tamis.service.webhooks.names import Names
from tamis.service.webhooks.settings import WebhookSettings
from tamis.service.webhooks.signing import signature_headers

_REDIRECTS = 3
_MOST_DIGITS = 9
"""Digits of the seconds that a receiver may ask for: some 30 years."""
GONE = 410


class Outcome(NamedTuple):
    """What came of a try."""

    delivered: bool
    reason: str
    """Why it was not delivered."""
    status: int | None = None
    retry_after: float | None = None
    """Seconds that the receiver asks for."""


class Sender:
    """What all webhooks of a service send with: the networks that they may reach, and whom they trust."""

    def __init__(self, settings: WebhookSettings) -> None:
        self.settings = settings
        self.networks = Networks(settings.allowed_networks)
        self.security = _security(settings.ca_file)

    def channel(self, names: Names) -> Channel:
        """A connection for one webhook, whose tenant looks up names."""
        return Channel(names, self.security)

    async def send(self, channel: Channel, url: str, shared: Sequence[str], message: str, body: bytes) -> Outcome:
        """Send a body once, signed with each of the `shared` secrets. It never raises an error for what a receiver does."""

        def headers() -> list[tuple[str, str]]:
            """The headers as of the moment in which they are sent."""
            return [
                ("user-agent", f"tamis/{__version__}"),
                ("content-type", "application/json"),
                *signature_headers(shared, message, int(time.time()), body),
            ]

        try:
            async with asyncio.timeout(self.settings.timeout) as limit:
                return _outcome(await self._followed(channel, read_url(url), limit, headers, body))
        except TimeoutError:
            channel.close()
            return Outcome(False, f"no answer within {self.settings.timeout:g} seconds")
        except ForbiddenError as error:
            return Outcome(False, str(error))
        except OptionError as error:
            return Outcome(False, f"the redirect is wrong: {error}")
        except ssl.SSLCertVerificationError as error:
            return Outcome(False, f"the certificate is not valid: {error.verify_message}")
        except h11.ProtocolError as error:
            return Outcome(False, f"the answer is not HTTP: {shortened(error, quoted=False)}")
        except OSError as error:
            return Outcome(False, f"no connection: {_reason(error)}")
        except Exception as error:  # Else, a receiver could switch off backoff, tries and dead letters.
            return Outcome(False, f"the try has failed: {shortened(repr(error), quoted=False)}")

    async def _followed(
        self, channel: Channel, target: Target, limit: asyncio.Timeout, headers: Headers, body: bytes
    ) -> Answer:
        answer = await channel.post(target, headers, body, limit)
        for _ in range(_REDIRECTS):
            place = answer.headers.get("location")
            # Only these two keep the method and the body.
            if answer.status not in (307, 308) or place is None:
                break
            other = read_url(urljoin(target.url, place))
            if target.scheme == "https" and other.scheme != "https":
                raise OptionError("it leads from https:// to http://")
            target = other
            answer = await channel.post(target, headers, body, limit)
        return answer


def _reason(error: OSError) -> str:
    """Why there is no connection. asyncio says that a call failed, and only the number says why."""
    if isinstance(error, ssl.SSLError) or error.errno is None or error.errno not in errno.errorcode:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()


def _outcome(answer: Answer) -> Outcome:
    if 200 <= answer.status < 300:
        return Outcome(True, "", answer.status)
    shown = f": {answer.text.strip()}" if answer.text.strip() else ""
    return Outcome(
        False, f"status {answer.status}{shown}", answer.status, _seconds(answer.headers.get("retry-after", ""))
    )


def _seconds(text: str) -> float | None:
    """The seconds that a receiver asks for; None if its text is no such number."""
    return float(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None


def _security(ca_file: str) -> ssl.SSLContext:
    found = ssl.create_default_context()
    if ca_file:
        try:
            found.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise OptionError(f"{ca_file} has no certificates: {error}") from None
    return found
