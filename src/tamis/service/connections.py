"""Who holds the connections, and who makes room when there are too many.

A connection has a place. When all places are taken, a new connection takes the place of another one:

    1. one that waits: it has asked nothing yet, or its request was refused
    2. one that is stuck: it takes nothing of its answer
    3. one that sends a body slowly: the slowest one
    4. a stream, and then any body, of a tenant (or inside of a tenant, of an address) that holds more places than the new one

Requests that are whole and wait for their answers are never ended. The tenant of a connection is known when its request has
come. So a connection without a place is let in as an extra one. There are few of them, for ``/health``, ``/ready`` and for
requests that then find a place by rule 4. All others are refused.
"""

from __future__ import annotations

import time
from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import Protocol

EXTRA = 64
"""Connections beyond the limit. They wait for the head of one request, or for the answer to it."""
SLOW_BYTES = 16 * 1024
"""Bytes a second of a body. One that comes as fast as that makes no room for others of its own tenant and address."""
YOUNG_SECONDS = 0.5
"""A body that began less than this ago is not called slow."""


PLACE = "place"
"""Where the place of a connection stands in the state of a request."""
TOO_MANY = ("too-many-connections", "too many connections are open. Hint: try again later, or use fewer connections")


class Holder(Protocol):
    """What has a place: a connection in some protocol."""

    def make_room(self) -> None:
        """End the connection, since others need its place."""

    def is_stuck(self) -> bool:
        """Whether the client takes nothing of what was sent to it."""

    def is_waited_for(self) -> bool:
        """Whether the service waits for a part of a body from this client."""


class Place:
    """The place of one connection. Its attributes are changed by its holder and by the routes."""

    __slots__ = ("_connections", "address", "began", "holder", "is_extra", "is_sending", "is_stream", "size", "tenant")

    def __init__(self, connections: Connections, address: str, holder: Holder) -> None:
        self._connections = connections
        self.address = address
        self.holder = holder
        self.tenant = ""
        """The tenant of the last request; empty: not known yet."""
        self.is_extra = False
        self.is_stream = False
        self.is_sending = False
        """Whether the body of a request is not whole."""
        self.began = 0.0
        self.size = 0
        """Bytes of the body so far."""

    def wait(self) -> None:
        """Say that the connection waits for a request, or that what it sends is not wanted any more."""
        self.is_sending = self.is_stream = False
        self._connections.wait(self)

    def work(self) -> None:
        """Say that the head of a request has come."""
        self._connections.work(self)

    def claim(self, tenant: str, address: str) -> bool:
        """Whether a request of a tenant may go on. `address` is that of the client, also behind a proxy."""
        self.tenant, self.address = tenant, block_of(address)
        return not self.is_extra or self._connections.find_room(self)

    def leave(self) -> None:
        """Say that the connection has ended."""
        self._connections.leave(self)

    def begin_body(self) -> None:
        self.is_sending, self.began, self.size = True, time.monotonic(), 0

    def pace(self, now: float) -> float | None:
        """Bytes a second of the body that the service waits for; None: there is no such body, or it has just begun."""
        age = now - self.began
        if not self.is_sending or age < YOUNG_SECONDS or not self.holder.is_waited_for():
            return None
        return self.size / age


class Connections:
    """All places. It is used in the event loop alone.

    Parameters
    ----------
    most : int
        How many places there are.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: dict[Place, None] = {}
        self._waiting: dict[str, dict[Place, None]] = {}
        """By address: places whose connections wait for the head of a request or were refused, the longest waiting first."""
        self._extra: dict[Place, None] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def holders(self) -> list[Holder]:
        """All that have a place."""
        return [place.holder for place in (*self._taken, *self._extra)]

    def enter(self, address: str, holder: Holder) -> Place:
        """A place for a new connection. It may be an extra one."""
        place = Place(self, block_of(address), holder)
        if self._has_room() or self._end(self._idlest() or self._slowest(place)):
            self._taken[place] = None
            self.wait(place)
        else:
            self._enter_extra(place)
        return place

    def wait(self, place: Place) -> None:
        if place in self._taken:
            self._waiting.setdefault(place.address, {})[place] = None

    def work(self, place: Place) -> None:
        self._forget_waiting(place)

    def find_room(self, place: Place) -> bool:
        """Whether an extra place could become a usual one."""
        if not self._has_room() and not self._end(self._idlest() or self._slowest(place) or self._greedy(place)):
            return False
        if self._extra.pop(place, self) is self:
            return False  # It has lost even this place.
        place.is_extra = False
        self._taken[place] = None
        return True

    def leave(self, place: Place) -> None:
        self._forget_waiting(place)
        self._taken.pop(place, None)
        self._extra.pop(place, None)

    def _has_room(self) -> bool:
        return len(self._taken) < self.most

    def _enter_extra(self, place: Place) -> None:
        if len(self._extra) >= EXTRA:
            held = Counter(each.address for each in self._extra)
            self._end(max(self._extra, key=lambda each: held[each.address]))
        place.is_extra = True
        self._extra[place] = None

    def _end(self, place: Place | None) -> bool:
        """Whether there is a connection to end, which makes room."""
        if place is None:
            return False
        self.leave(place)
        place.holder.make_room()
        return True

    def _forget_waiting(self, place: Place) -> None:
        mine = self._waiting.get(place.address)
        if mine is not None:
            mine.pop(place, None)
            if not mine:
                del self._waiting[place.address]

    def _idlest(self) -> Place | None:
        """The connection that has waited longest, of the address with the most connections that wait."""
        if not self._waiting:
            return None
        address = max(self._waiting, key=lambda each: len(self._waiting[each]))
        return next(iter(self._waiting[address]))

    def _slowest(self, newcomer: Place) -> Place | None:
        """A connection that takes nothing, or the slowest one that sends a body, of an address that holds no fewer places."""
        now = time.monotonic()
        held = Counter(place.address for place in self._taken)
        own = held[newcomer.address]
        found, slowest = None, float(SLOW_BYTES)
        for place in self._taken:
            if held[place.address] < own:
                continue
            if place.holder.is_stuck():
                return place
            pace = place.pace(now)
            if pace is not None and pace < slowest:
                found, slowest = place, pace
        return found

    def _greedy(self, newcomer: Place) -> Place | None:
        """A connection of a tenant that holds more than the newcomer's would; else of an address inside of the same tenant."""
        tenants = Counter(place.tenant for place in self._taken)
        inside = Counter(place.address for place in self._taken if place.tenant == newcomer.tenant)
        own_tenant, own_address = tenants[newcomer.tenant], inside[newcomer.address]
        candidates = [place for place in self._taken if tenants[place.tenant] > own_tenant + 1]
        if not candidates:
            candidates = [
                place
                for place in self._taken
                if place.tenant == newcomer.tenant and inside[place.address] > own_address + 1
            ]
        now = time.monotonic()
        streams = [place for place in candidates if place.is_stream]
        if streams:
            return max(reversed(streams), key=lambda place: (tenants[place.tenant], inside[place.address]))
        bodies = [(pace, place) for place in candidates if (pace := place.pace(now)) is not None]
        return min(bodies, key=lambda pair: pair[0])[1] if bodies else None


def block_of(address: str) -> str:
    """The block of addresses that one client has: an IPv6 client has all that share the first 64 bits."""
    if ":" not in address:
        return address
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    assert isinstance(found, IPv6Address)
    mapped = found.ipv4_mapped
    return str(mapped) if mapped is not None else found.exploded[:19]
