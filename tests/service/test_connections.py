"""Who makes room when all places of connections are taken."""

from __future__ import annotations

import pytest

from tamis.service.connections import EXTRA, YOUNG_SECONDS, Connections, Place, block_of


class Client:
    """A connection whose client does what a test says."""

    def __init__(self, connections: Connections, address: str) -> None:
        self.was_ended = self.stuck = False
        self.place: Place = connections.enter(address, self)

    def make_room(self) -> None:
        self.was_ended = True

    def is_stuck(self) -> bool:
        return self.stuck

    def is_waited_for(self) -> bool:
        return True

    def asks(self, tenant: str, *, address: str | None = None) -> bool:
        """The head of a request has come. Returns whether the request may go on."""
        self.place.work()
        self.place.begin_body()
        self.place.is_sending = False
        return self.place.claim(tenant, address or self.place.address)

    def sends(self, tenant: str, size: int) -> bool:
        """A request whose body is not whole."""
        may = self.asks(tenant)
        self.place.is_sending, self.place.size = True, size
        self.place.began -= 10 * YOUNG_SECONDS
        return may

    def streams(self, tenant: str, *, address: str | None = None) -> bool:
        may = self.asks(tenant, address=address)
        self.place.is_stream = may
        return may


def clients(connections: Connections, *addresses: str) -> list[Client]:
    return [Client(connections, address) for address in addresses]


def ended(found: list[Client]) -> list[bool]:
    return [each.was_ended for each in found]


def test_the_one_that_has_waited_longest_of_the_address_with_the_most() -> None:
    connections = Connections(4)
    found = clients(connections, "a", "b", "b", "b", "c", "d")
    assert ended(found) == [False, True, True, False, False, False]
    assert len(connections) == 4


def test_a_connection_that_takes_nothing() -> None:
    connections = Connections(2)
    busy, stuck = clients(connections, "a", "a")
    assert busy.asks("x")
    assert stuck.asks("x")
    stuck.stuck = True
    newcomer = Client(connections, "a")
    assert (busy.was_ended, stuck.was_ended, newcomer.place.is_extra) == (False, True, False)


def test_the_slowest_body() -> None:
    connections = Connections(3)
    quick, slow, slower = clients(connections, "a", "a", "a")
    for client, size in ((quick, 10_000_000), (slow, 100), (slower, 10)):
        client.sends("x", size)
    for expected in ([False, False, True], [False, True, True], [False, True, True]):
        newcomer = Client(connections, "a")
        newcomer.asks("x")
        assert ended([quick, slow, slower]) == expected
    assert newcomer.place.is_extra


def test_a_slow_body_of_another_address_stays() -> None:
    """A client with many connections takes the places of its own."""
    connections = Connections(4)
    modest, *greedy = clients(connections, "a", "b", "b", "b")
    modest.sends("x", 0)
    for client in greedy:
        client.sends("x", 100)
    newcomer = Client(connections, "b")
    assert (modest.was_ended, sum(ended(greedy)), newcomer.was_ended) == (False, 1, False)


def test_requests_that_wait_for_their_answers_stay() -> None:
    connections = Connections(2)
    found = clients(connections, "a", "b")
    assert all(each.asks("x") for each in found)
    late = Client(connections, "c")
    assert late.place.is_extra
    assert not late.asks("y")
    assert ended(found) == [False, False]
    found[0].place.leave()
    assert Client(connections, "d").asks("y")


def test_streams_are_shared_among_tenants_and_then_among_addresses() -> None:
    connections = Connections(4)
    found = clients(connections, "a", "a", "a", "a")
    assert all(each.streams("x") for each in found)
    assert not Client(connections, "a").streams("x")
    assert Client(connections, "b").streams("y")
    assert Client(connections, "b").streams("y")
    assert not Client(connections, "b").streams("y")
    assert ended(found) == [False, False, True, True]
    # Both tenants have two now. Inside of the first one, another address gets nothing, since that would turn round the shares.
    assert Client(connections, "c").streams("x")
    assert ended(found) == [False, True, True, True]
    assert not Client(connections, "c").streams("x")


def test_behind_a_proxy_the_address_is_that_of_the_client() -> None:
    connections = Connections(3)
    found = clients(connections, "proxy", "proxy", "proxy")
    for each in found:
        assert each.streams("x", address="greedy")
    newcomer = Client(connections, "proxy")
    assert newcomer.streams("x", address="modest")
    assert sum(ended(found)) == 1


def test_extra_places_are_few_and_go_first_to_those_who_hold_few() -> None:
    connections = Connections(1)
    assert Client(connections, "a").asks("x")
    prober = Client(connections, "b")
    flood = clients(connections, *["c"] * (EXTRA + 10))
    assert prober.place.is_extra
    assert not prober.was_ended
    assert sum(ended(flood)) == 11
    prober.place.leave()
    assert not Client(connections, "b").was_ended


@pytest.mark.parametrize(
    ("address", "block"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:0db8:0000:0000"),
        ("fe80::1%eth0", "fe80:0000:0000:0000"),
        ("", ""),
        ("a:b", "a:b"),
    ],
)
def test_blocks_of_addresses(address: str, block: str) -> None:
    assert block_of(address) == block
