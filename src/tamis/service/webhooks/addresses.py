"""URLs of receivers, and which addresses may be reached.

A receiver must not be an address of the service's own network: a subscriber could otherwise reach what only the service can
reach. The name is looked up, every address is checked, and the connection goes to a checked address, not to the name. So a name
that points elsewhere a moment later changes nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from tamis.errors import OptionError, shortened

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LONGEST_URL = 2_000
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Target(NamedTuple):
    """A URL, taken apart."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        """The host, with the port if it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_url(url: object) -> Target:
    """The parts of a URL.

    Raises
    ------
    OptionError
    """
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        raise OptionError(f"`url` must be a URL in ASCII, not {shortened(url)}")
    if len(url) > _LONGEST_URL:
        raise OptionError(f"`url` has more than {_LONGEST_URL:,} characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise OptionError(f"`url` cannot be read: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise OptionError(f"`url` must begin with https:// or http:// and a host: {shortened(url)}")
    if parts.username is not None or parts.password is not None:
        raise OptionError("`url` must not have a user or a password. Hint: check the signature instead")
    if parts.fragment:
        raise OptionError("`url` must not have a fragment (#)")
    path = parts.path or "/"
    return Target(
        parts.scheme,
        parts.hostname,
        port if port is not None else _PORTS[parts.scheme],
        f"{path}?{parts.query}" if parts.query else path,
    )


class ForbiddenError(Exception):
    """An address may not be reached."""


class Networks:
    """Which addresses webhooks may reach: public ones, and those of the allowed networks."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = [ipaddress.ip_network(each) for each in allowed]

    def is_allowed(self, address: Address) -> bool:
        """Whether the configuration allows an address."""
        return any(address in network for network in self._allowed if network.version == address.version)

    def check(self, target: Target, address: Address) -> None:
        """Refuse an address that may not be reached.

        Raises
        ------
        ForbiddenError
        """
        inner = inner_address(address)
        if self.is_allowed(inner):
            return
        if not inner.is_global or inner.is_multicast or inner.is_reserved or getattr(inner, "is_site_local", False):
            raise ForbiddenError(
                f"{target.host} is the private address {inner}, which webhooks may not reach. Hint: the configuration can "
                "allow its network"
            )
        if target.scheme == "http":
            raise ForbiddenError(f"{target.host} is a public address, so the URL must begin with https://")

    def allowed_of(self, target: Target, found: Sequence[Address]) -> list[Address]:
        """The addresses of a host that may be reached.

        Raises
        ------
        ForbiddenError
            There are addresses, and none of them may be reached.
        """
        right: list[Address] = []
        wrong: ForbiddenError | None = None
        for address in found:
            try:
                self.check(target, address)
                right.append(address)
            except ForbiddenError as error:
                wrong = error
        if not right and wrong is not None:
            raise wrong
        return right


def inner_address(address: Address) -> Address:
    """The IPv4 address in an IPv6 address that leads to it, else the address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address.teredo is not None:
            return address.teredo[1]
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
