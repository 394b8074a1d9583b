"""What a service is told: where it listens, whom it trusts, what it allows. `settings` reads it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal

from tamis.errors import OptionError, shortened
from tamis.language.event import MAX_NESTING
from tamis.service.webhooks.settings import WebhookSettings

LOCAL = ("127.0.0.1", "::1", "localhost")
"""Addresses that only this machine can reach."""
DEFAULT_PORT = 8750

_LEAST = {"connections": 1, "header_seconds": 1, "body_seconds": 1, "send_seconds": 1}
"""The least of settings that must not be 0: nobody could ask anything."""
_NEEDED_LIMITS = ("body_bytes", "event_bytes", "line_bytes", "depth", "expression_bytes")

TokensWanted = Literal["auto", "always"]
LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one request or one tenant may ask for. A limit of 0 in the second half means that there is none."""

    body_bytes: int = 16 * 1024 * 1024
    """Bytes of a body with one JSON value. A body of lines may be longer: only each line has a limit."""
    event_bytes: int = 1024 * 1024
    """Bytes of one event, alone or on a line."""
    line_bytes: int = 1024 * 1024
    """Bytes of one line."""
    depth: int = MAX_NESTING
    """Levels of objects and lists in JSON."""
    expression_bytes: int = 64 * 1024
    """Bytes of the text of an expression."""
    wait_seconds: int = 60
    """Seconds for which a request may wait for notes."""

    subscriptions: int = 0
    """Subscriptions of a tenant."""
    requests_per_second: int = 0
    """Requests of a tenant, on average over a second."""
    events_per_second: int = 0
    """Events of a tenant, on average over a second."""
    streams: int = 10_000
    """Streams and waiting requests of a tenant at the same time."""


@dataclass(frozen=True, slots=True)
class TenantConfig:
    """What is set for one tenant."""

    limits: Limits = field(default_factory=Limits)
    broker: Mapping[str, Any] = field(default_factory=dict)
    """Options of `tamis.open`."""
    schema: Mapping[str, Any] | None = None
    """The event schema. None: the one that was set by ``PUT /v1/schema``."""


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Everything that a service is told when it starts."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0 takes a port that is free."""
    tls_certificate: str = ""
    tls_key: str = ""
    proxy: tuple[str, ...] = ()
    """Addresses of proxies in front, which speak TLS and whose X-Forwarded headers are believed."""
    hosts: tuple[str, ...] = ()
    """Names under which clients reach the service. Empty: on a local address its own names, elsewhere any name."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may call the service, besides its own."""
    tokens: TokensWanted = "auto"
    """Whether a request needs a token. With "auto", it needs none on a local address without a proxy."""
    log: LogLevel = "info"
    """What is logged: "info" has a line for each request."""
    connections: int = 2000
    """Connections at the same time. `connections` says who makes room when there are more."""
    header_seconds: int = 10
    """Seconds in which the head of a request must come."""
    body_seconds: int = 30
    """Seconds that may pass between two parts of a body. After that, each body must have some bytes a second."""
    send_seconds: int = 60
    """Seconds after which a client is cut off that takes nothing of an answer."""
    keep_alive_seconds: int = 75
    """Seconds for which a connection without requests stays open: longer than the 60 of common proxies. So none of them sends a
    request into a connection that just ends."""
    end_seconds: int = 30
    """Seconds that running requests get when the process is told to end."""
    limits: Limits = field(default_factory=Limits)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    broker: Mapping[str, Any] = field(default_factory=dict)
    """Options of `tamis.open` for all tenants."""
    tenants: Mapping[str, TenantConfig] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the service."""
        return self.host in LOCAL and not self.proxy

    @property
    def needs_tokens(self) -> bool:
        """Whether every request needs a token."""
        return self.tokens == "always" or not self.is_local

    def tenant(self, name: str) -> TenantConfig:
        """What is set for a tenant."""
        return self.tenants.get(name) or TenantConfig(self.limits, self.broker)

    def check(self) -> None:
        """Refuse settings that contradict each other, or that would send tokens through a network in the clear.

        Raises
        ------
        OptionError
        """
        if self.port > 65535:
            raise OptionError(f"`port` must be a number from 0 to 65535, not {self.port}")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise OptionError(f"`{name}` must be a number from {least} on, not {getattr(self, name)}")
        for address in self.proxy:
            _check_network(address)
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise OptionError("`tls_certificate` and `tls_key` go together; give both or none")
        for name in ("tls_certificate", "tls_key"):
            path = getattr(self, name)
            if path and not Path(path).is_file():
                raise OptionError(f"`{name}`: there is no file {path}")
        if self.tls_certificate:
            _check_certificate(self.tls_certificate, self.tls_key)
        if self.host not in LOCAL and not self.tls_certificate and not self.proxy:
            raise OptionError(
                f"other machines can reach {self.host}, so it needs TLS. Hint: give --tls-certificate and --tls-key, or --proxy "
                "with the address of a proxy in front that speaks TLS, or listen on 127.0.0.1"
            )
        for host in self.hosts:
            if not re.fullmatch(r"[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]", host):
                raise OptionError(
                    f"`hosts` must be names without a port, such as alerts.example.com, not {shortened(host)}"
                )
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/\s]+", origin, re.IGNORECASE):
                raise OptionError(
                    f"`origins` must be like https://shop.example.com, not {shortened(origin)}. Hint: name each origin"
                )
        if self.tenants and any(not isinstance(each, TenantConfig) for each in self.tenants.values()):
            raise OptionError("`tenants` must be tables")
        for limits in (self.limits, *(each.limits for each in self.tenants.values())):
            for name in _NEEDED_LIMITS:
                if getattr(limits, name) == 0:
                    raise OptionError(f"the limit `{name}` must be a number from 1 on, not 0: nothing would be allowed")
        self.webhooks.check()


def _check_network(address: str) -> None:
    """Refuse a proxy that is no address: its headers would never be believed, and nobody would notice.

    Raises
    ------
    OptionError
    """
    try:
        ip_network(address)
    except ValueError as error:
        raise OptionError(
            f"`proxy` must have addresses or networks, not {shortened(address)}: {error}. Hint: 127.0.0.1 or 10.1.0.0/16"
        ) from None


def _check_certificate(certificate: str, key: str) -> None:
    """Refuse files that are no certificate and key, or that do not belong together.

    Raises
    ------
    OptionError
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # errors of TLS, too
        reason = getattr(error, "reason", None) or error.strerror or "not PEM"
        raise OptionError(f"`tls_certificate` {certificate} and `tls_key` {key} cannot be used: {reason}") from None
