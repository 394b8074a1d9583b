"""Addresses and networks: valid texts, the order of addresses, the networks that make up a range."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import LiteralError
from tamis.language.addresses import address_text, network_range, networks_between
from tamis.language.evaluate import evaluate
from tamis.language.expression import Predicate

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ADDRESSES = st.one_of(
    st.ip_addresses(v=4),
    st.ip_addresses(v=6),
    st.integers(0, 2**32 - 1).map(lambda number: ipaddress.IPv6Address((0xFFFF << 32) + number)),
)


def plain(address: Address) -> Address:
    """The IPv4 address of a mapped IPv6 address; other addresses as they are."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


@given(ADDRESSES, ADDRESSES)
def test_texts_are_ordered_like_addresses(left: Address, right: Address) -> None:
    one, other = address_text(str(left)), address_text(str(right))
    assert one is not None
    assert other is not None
    keys = [(address.version, int(address)) for address in (plain(left), plain(right))]
    assert (one < other) == (keys[0] < keys[1])
    assert (one == other) == (keys[0] == keys[1])


@pytest.mark.parametrize("text", ["::ffff:10.0.0.1", "::FFFF:a00:1", "0:0:0:0:0:ffff:10.0.0.1"])
def test_a_mapped_address_is_the_ipv4_address(text: str) -> None:
    assert address_text(text) == address_text("10.0.0.1") == "40a000001"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "x", "10.0.0", "10.0.0.0.1", "10.0.0.256", "010.0.0.1", "10.0.0.01", " 10.0.0.1", "10.0.0.1 ", "10.0.0.1\n",
        "10.0.0.1/32",
        "1e1.0.0.0", "\u0661.0.0.1", "0x0a.0.0.1", "167772161", ":", ":::", "::1%eth0", "fe80::1%1", "::10.0.0.01", "1::2::3",
        "12345::",
        "[::1]", "::1/128",
    ],
)  # fmt: skip
def test_texts_that_are_not_addresses(text: str) -> None:
    assert address_text(text) is None
    assert evaluate(Predicate("a", "ip_in", ["0.0.0.0/0", "::/0"]), {"a": text}) is None


@given(ADDRESSES, st.integers(0, 128), ADDRESSES)
def test_a_network_contains_the_same_addresses_as_in_python(start: Address, length: int, address: Address) -> None:
    start = plain(start)
    network = ipaddress.ip_network(f"{start}/{min(length, start.max_prefixlen)}", strict=False)
    predicate = Predicate("a", "ip_in", [str(network)])
    for each in (plain(address), start, network[0], network[-1]):
        # A network of mapped addresses is a network of IPv4 addresses.
        inside = plain(each) in network
        assert evaluate(predicate, {"a": str(each)}) is inside
    assert networks_between(*network_range(str(network))) == [str(network)]


def test_a_network_of_mapped_addresses_is_an_ipv4_network() -> None:
    assert network_range("::ffff:10.0.0.0/104") == network_range("10.0.0.0/8")
    assert network_range("::ffff:0:0/96") == network_range("0.0.0.0/0")
    assert evaluate(Predicate("a", "ip_in", ["::/0"]), {"a": "::ffff:10.0.0.1"}) is False


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("10.0.0.1/8", "has host bits set. Hint: write 10.0.0.0/8, or 10.0.0.1 for the one address"),
        ("2001:db8::1/32", "has host bits set. Hint: write 2001:db8::/32, or 2001:db8::1 for the one address"),
        ("::ffff:10.0.0.1/104", "has host bits set. Hint: write 10.0.0.0/8"),
        ("::ffff:0:0/95", "has host bits set. Hint: write ::fffe:0:0/95"),
        ("10.0.0.0/33", "is longer than 32 bits"),
        ("::/129", "is longer than 128 bits"),
        ("10.0.0.0/", "cannot read the network '10.0.0.0/'"),
        ("10.0.0.0/08", "cannot read the network"),
        ("10.0.0.0/255.0.0.0", "cannot read the network"),
        ("10.0.0/8", "cannot read the network"),
        ("fe80::%eth0/10", "cannot read the network"),
        ("", "cannot read the network ''"),
        (5, "takes networks as strings, not 5"),
    ],
)
def test_texts_that_are_not_networks_are_refused(network: object, message: str) -> None:
    with pytest.raises(LiteralError) as error:
        Predicate("a", "ip_in", [network])
    assert message in str(error.value)


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_networks_between(one: int, other: int) -> None:
    start, end = sorted((one, other))
    if start < end:
        ends = [f"4{each:08x}" if each < 2**32 else "5" for each in (start, end)]
        first, last = ipaddress.IPv4Address(start), ipaddress.IPv4Address(end - 1)
        assert networks_between(*ends) == [str(each) for each in ipaddress.summarize_address_range(first, last)]


def test_several_values() -> None:
    inside = Predicate("a", "ip_in", ["10.0.0.0/8"])
    assert evaluate(inside, {"a": ["x", 5, "11.0.0.1"]}) is False
    assert evaluate(inside, {"a": ["x", "11.0.0.1", "10.9.9.9"]}) is True
    assert evaluate(inside, {"a": ["x", 5]}) is None
