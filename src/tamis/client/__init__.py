"""Clients of a service: `tamis.connect` and `tamis.connect_async`. `docs/service.md` describes them for users.

One description of all calls serves both clients. A call is a generator: it yields requests, gets replies, and returns what the
caller wants. It does no input or output itself. A client only sends what comes out of it.

    exchange            requests, replies, and when they are repeated   problems       problem documents as errors of Tamis
    writing             arguments as paths, queries and bodies          answers        JSON objects as what a broker hands out
    subscription_steps  the steps of calls that change subscriptions    note_steps     those of reading and acknowledging notes
    publish_steps       those of publishing                             event_lines    events as lines
    steps               those of all calls                              following      notes as they come
    connection          what both clients are made with                 client         `Client`
    async_client        `AsyncClient`

Only this package knows httpx2. It is the extra ``tamis[client]``, and it is imported when a client is made.
"""

from __future__ import annotations

import ssl

from tamis.client.async_client import AsyncClient
from tamis.client.client import Client
from tamis.client.connection import TIMEOUT, TRIES, Connection

__all__ = ["AsyncClient", "Client", "connect", "connect_async"]


def connect(
    url: str,
    *,
    token: str | None = None,
    tenant: str | None = None,
    timeout: float = TIMEOUT,
    tries: int = TRIES,
    verify: ssl.SSLContext | str | bool = True,
) -> Client:
    """A client of a service, which `tamis serve` starts. It has the methods of a broker.

    Nothing is sent before the first call. Any number of threads may use a client.

    Parameters
    ----------
    url : str
        The address of the service.
    token : str, optional
        A token, which `tamis token create` makes.
    tenant : str, optional
        The tenant, for a token of an operator or a service without tokens. By default that of the token, or ``default``.
    timeout : float
        Seconds without a byte of the answer after which a try has failed.
    tries : int
        How often a request is sent if the service cannot be reached or is too busy. A request that the service may have got is
        repeated only if that changes nothing: `publish` needs a `key` for that.
    verify : ssl.SSLContext, str or bool
        Whose certificates are trusted: those of the system, of a context, or of a file. False trusts everybody.

    Raises
    ------
    OptionError
        An option is wrong, or the extra ``tamis[client]`` is not installed.
    """
    return Client(Connection(url, token, tenant, timeout, tries, verify))


def connect_async(
    url: str,
    *,
    token: str | None = None,
    tenant: str | None = None,
    timeout: float = TIMEOUT,
    tries: int = TRIES,
    verify: ssl.SSLContext | str | bool = True,
) -> AsyncClient:
    """The same as `connect`, for asyncio: calls are awaited, and lists are read with ``async for``."""
    return AsyncClient(Connection(url, token, tenant, timeout, tries, verify))
