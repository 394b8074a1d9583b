"""Bytes that are no HTTP, and frames that are no WebSocket: the service answers 4xx or closes, and goes on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from random import Random

import pytest

from tests.service.hostile import (
    BYE,
    CONTINUED,
    DEFLATE,
    GOODBYE,
    HANDSHAKE,
    PING,
    TEXT,
    Health,
    broken_frames,
    broken_requests,
    changed_frames,
    changed_request,
    deflated_frames,
    exchange_all,
    frame,
    statuses,
)
from tests.service.serving import PATIENCE, Server


@pytest.fixture(scope="module")
def attacked(small: Server) -> Server:
    small.publish({"target": "x"})
    return small


def answers(server: Server, payloads: list[tuple[bytes, bytes]], *, hangs_up: bool = False) -> list[bytes]:
    """What the service answers. None of the answers is an error of the service."""
    found = exchange_all(server, payloads, hangs_up=hangs_up)
    for payload, answer in zip(payloads, found, strict=True):
        assert all(status < 500 for status in statuses(answer)), (payload[0][:300], answer[:300])
    return found


def test_broken_requests(attacked: Server) -> None:
    answers(attacked, [(GOODBYE, b"")] * 20)
    before = Health(attacked)
    payloads = broken_requests()
    found = answers(attacked, [(payload + GOODBYE, b"") for payload in payloads])
    assert all(statuses(answer) for answer in found), [
        payload[:100] for payload, answer in zip(payloads, found, strict=True) if not statuses(answer)
    ]
    # Two lengths of one body: another one might take the body of this request for a request.
    for payload, answer in zip(payloads, found, strict=True):
        if b"Content-Length:" in payload and b"Transfer-Encoding:" in payload:
            assert statuses(answer) == [400], (payload, answer)
    before.check()


def test_changed_requests(attacked: Server, cases: Callable[[int], int], soak: bool) -> None:
    random = Random() if soak else Random(29)
    before = Health(attacked)
    answers(attacked, [(changed_request(random), BYE + GOODBYE) for _ in range(cases(300))])
    before.check()


@pytest.mark.parametrize("extension", [b"", DEFLATE])
def test_broken_frames(attacked: Server, extension: bytes) -> None:
    before = Health(attacked)
    payloads = [*broken_frames(), *(deflated_frames() if extension else ())]
    found = answers(attacked, [(HANDSHAKE + extension + b"\r\n", each) for each in payloads], hangs_up=True)
    assert all(statuses(answer) == [101] for answer in found)
    before.check()


def test_changed_frames(attacked: Server, cases: Callable[[int], int], soak: bool) -> None:
    random = Random() if soak else Random(29)
    before = Health(attacked)
    answers(attacked, [(HANDSHAKE + b"\r\n", changed_frames(random)) for _ in range(cases(200))], hangs_up=True)
    before.check()


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (frame(TEXT, b"{}", mask=None), 1002),
        (frame(PING, b"", fin=False), 1002),
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(TEXT, b"x" * 70_000), 1009),
        (frame(TEXT, b"", fin=False) + frame(CONTINUED, b"", fin=False) * 2000, 1009),
    ],
)
def test_codes(attacked: Server, frames: bytes, code: int) -> None:
    (answer,) = answers(attacked, [(HANDSHAKE + b"\r\n", frames)])
    place = answer.rindex(b"\x88")
    assert int.from_bytes(answer[place + 2 : place + 4]) == code


@pytest.mark.parametrize("header", [b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_socket_that_begins_with_a_body_is_refused(attacked: Server, header: bytes) -> None:
    (answer,) = answers(attacked, [(HANDSHAKE + header + b"\r\n", b"")])
    assert statuses(answer) == [400]


def test_a_socket_behind_a_request_that_waits_is_refused(attacked: Server) -> None:
    waiting = b"GET /v1/subscribers/target/notifications?wait=60 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    (answer,) = answers(attacked, [(waiting + HANDSHAKE + b"\r\n", b"")])
    assert statuses(answer) == [400]


@pytest.mark.parametrize(
    "body", [b'Content-Length: 8\r\n\r\n{"a": 1}', b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n0\r\n\r\n']
)
def test_an_offer_of_another_protocol_is_passed_over(attacked: Server, body: bytes) -> None:
    """Java's client offers HTTP/2 with each first request."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n"
    first = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n" + offer + body + GOODBYE
    (answer,) = answers(attacked, [(first, b"")])
    assert statuses(answer) == [200, 200]
    assert b'"sequence":' in answer
    with socket.create_connection(("127.0.0.1", attacked.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(len(first)):
            connection.sendall(first[place : place + 1])
        connection.settimeout(PATIENCE)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
