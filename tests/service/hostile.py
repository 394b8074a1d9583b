"""Clients that mean no good: bytes that are no HTTP, frames that are no WebSocket, and what they leave behind in the service."""

from __future__ import annotations

import asyncio
import os
import re
import struct
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.service.serving import PATIENCE, Server

HOST = b"Host: 127.0.0.1\r\n"
GOODBYE = b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
"""A request after which the service ends the connection."""
HANDSHAKE = (
    b"GET /v1/subscribers/target/socket HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
_AT_ONCE = 16


def exchange_all(server: Server, payloads: Sequence[tuple[bytes, bytes]], *, hangs_up: bool = False) -> list[bytes]:
    """What connections get until the service ends them. Each sends some bytes, and others after the head of the first answer.

    With `hangs_up`, it sends nothing more after that: a frame that is not whole would never come.
    """

    async def one(first: bytes, then: bytes, places: asyncio.Semaphore) -> bytes:
        async with places:
            found = bytearray()
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                async with asyncio.timeout(PATIENCE):
                    writer.write(first)
                    while part := await reader.read(65536):
                        found += part
                        if then and b"\r\n\r\n" in found:
                            writer.write(then)
                            then = b""
                            if hangs_up:
                                writer.write_eof()
            except ConnectionError:  # The service has reset the connection.
                pass
            except TimeoutError:
                raise AssertionError(f"the service did not end {first[:300]!r}, {bytes(found[:300])!r}") from None
            finally:
                writer.transport.abort()
            return bytes(found)

    async def everyone() -> list[bytes]:
        places = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(one(first, then, places) for first, then in payloads))

    return asyncio.run(everyone())


def statuses(answer: bytes) -> list[int]:
    """The statuses of the answers in what a connection got."""
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


class Health:
    """What a service holds: open files and memory. Linux alone tells them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._home = Path(f"/proc/{server.process.pid}")
        assert server.client.get("/health").is_success  # Its connection counts, now and later.
        self.files = self._files()
        self.resident = self._resident()

    def _files(self) -> int:
        return len(os.listdir(self._home / "fd")) if self._home.exists() else 0

    def _resident(self) -> int:
        if not self._home.exists():
            return 0
        text = (self._home / "status").read_text(encoding="ascii")
        return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) * 1024

    def check(self, more_bytes: int = 50_000_000, more_files: int = 10) -> None:
        """The service answers, and holds no connections of others. It may have opened files of its own, and use more memory."""
        server = self._server
        assert server.client.get("/health").json() == {"status": "ok"}
        figures = server.client.get("/v1/figures").json()
        while figures["streams"]:  # Tasks of connections that have just ended.
            figures = server.client.get("/v1/figures").json()
        end = time.monotonic() + PATIENCE
        while self._files() > self.files + more_files and time.monotonic() < end:
            assert server.client.get("/health").is_success  # Gives the service a turn.
        assert self._files() <= self.files + more_files
        assert self._resident() <= self.resident + more_bytes
        log = server.log()
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]
        assert '"level": "error"' not in log


# HTTP


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, *headers, b"", b""]) + body


def broken_requests() -> list[bytes]:
    """Requests that are wrong in a way that people have attacked servers with."""
    post = b"POST /v1/events HTTP/1.1"
    host, close = b"Host: 127.0.0.1", b"Connection: close"
    chunked = b"Transfer-Encoding: chunked"
    lines = b"Content-Type: application/x-ndjson"
    smuggled = b"0\r\n\r\nGET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    return [
        # The first line
        *(request(line, host) for line in (
            b"", b"GET", b"GET /health", b"GET  /health HTTP/1.1", b"GET /health HTTP/9.9", b"GET /health HTTP/1.1 x",
            b"get /health HTTP/1.1", b"G\x00T /health HTTP/1.1", b"GET /hea\x00lth HTTP/1.1", b"\xff\xfe / HTTP/1.1",
            b"GET * HTTP/1.1", b"OPTIONS * HTTP/1.1", b"CONNECT 127.0.0.1:1 HTTP/1.1", b"GET http://evil.example/health HTTP/1.1",
            b"GET //evil.example/health HTTP/1.1", b"GET ?x HTTP/1.1", b"GET http:// HTTP/1.1", b"GET /\xff\xfe HTTP/1.1",
            b"GET /../../etc/passwd HTTP/1.1", b"GET /console/..%2f..%2fconfig.py HTTP/1.1", b"PRI * HTTP/2.0",
            b"GET /v1/events?expression=%ZZ%+%f HTTP/1.1", b"GET /v1/events?expression=%ff%fe%00 HTTP/1.1",
            b"GET /v1/subscribers/%ff%fe/notifications HTTP/1.1", b"GET /v1/subscribers/%00 HTTP/1.1",
            b"GET /v1/subscribers/%ed%a0%80 HTTP/1.1", b"GET /v1/subscribers/%ZZ HTTP/1.1", b"GET /v1/subscribers/% HTTP/1.1",
            b"PUT /v1/subscribers/%ed%a0%80/subscriptions/%00 HTTP/1.1", b"GET /v1/events/" + b"9" * 5000 + b" HTTP/1.1",
            b"GET /v1/events?after=" + b"9" * 5000 + b" HTTP/1.1", b"GET /v1/events?limit=1e9 HTTP/1.1",
            b"GET /v1/subscribers/target/notifications?wait=nan HTTP/1.1",
            b"GET /v1/subscribers/target/notifications?wait=-inf HTTP/1.1",
            b"GET /" + b"a" * 60_000 + b" HTTP/1.1", b"GET /" + b"a" * 200_000 + b" HTTP/1.1",
            b"GET /v1/events?" + b"a=b&" * 15_000 + b" HTTP/1.1", b"GET /" + b"%2F" * 20_000 + b" HTTP/1.1",
        )),
        # Headers
        *(request(b"GET /v1/access HTTP/1.1", *headers) for headers in (
            [], [host, host], [b"Host: evil.example"], [host, b"X: " + b"y" * 70_000], [host, *[b"X: y"] * 20_000],
            [host, b"X\x00: y"], [host, b"X: \x00"], [host, b"X: \xff\xfe"], [host, b" folded: y"], [host, b"X: y\r\n folded"],
            [host, b"no colon"], [host, b": no name"], [host, b"X : y"], [host, b"X: y\nY: z"], [host, b"X: y\rY: z"],
            [host, b"Authorization: Bearer \xff\xfe"], [host, b"Authorization: Bearer " + b"x" * 30_000],
            [host, b"Authorization:"], [host, b"Tamis-Tenant: \xff"], [host, b"Tamis-Tenant: ../../x"],
            [host, b"X-Request-Id: \x80\xff"], [host, b"Origin: http://["], [host, b"Origin: null"],
            [b"Host: [::1"], [b"Host: 127.0.0.1:99999999999"], [host, b"Expect: 200-maybe"],
            [host, b"Upgrade: h2c", b"Connection: Upgrade"],
            [host, b"Connection: close, keep-alive, upgrade"], [host, b"Last-Event-ID: 9e9"],
        )),
        # The length of the body
        *(request(post, host, *headers, body=body) for headers, body in (
            ([b"Content-Length: -1"], b"{}"), ([b"Content-Length: +2"], b"{}"), ([b"Content-Length: 2, 2"], b"{}"),
            ([b"Content-Length: 2", b"Content-Length: 3"], b"{}x"), ([b"Content-Length: 0x2"], b"{}"),
            ([b"Content-Length: 99999999999999999999999"], b"{}"), ([b"Content-Length: 18446744073709551615"], b"{}"),
            ([b"Content-Length:"], b"{}"), ([b"Content-Length: 2"], b"{}" + GOODBYE), ([b"Content-Length: 1"], b"{}"),
            ([b"Content-Length: 4", chunked], smuggled), ([chunked, b"Content-Length: 4"], smuggled),
            ([chunked, chunked], smuggled), ([b"Transfer-Encoding: gzip, chunked"], smuggled),
            ([b"Transfer-Encoding: chunked, identity"], smuggled), ([b"Transfer-Encoding: xchunked"], smuggled),
            ([b"Transfer-Encoding : chunked"], smuggled), ([b"Transfer-Encoding:\x0bchunked"], smuggled),
            ([b"Transfer-Encoding: chunked\r\n : x"], smuggled), ([b"X: y\nTransfer-Encoding: chunked"], smuggled),
            ([chunked], b"2\r\n{}\r\n0\r\n\r\n" + GOODBYE), ([chunked], b"3\r\n{}\r\n0\r\n\r\n"),
            ([chunked], b"1\r\n{}\r\n0\r\n\r\n"),
            ([chunked], b"-2\r\n{}\r\n0\r\n\r\n"), ([chunked], b"0x2\r\n{}\r\n0\r\n\r\n"), ([chunked], b"ZZ\r\n"),
            ([chunked], b"FFFFFFFFFFFFFFFFF\r\n{}"), ([chunked], b"FFFFFFFFFFFFFFFF\r\n{}"),
            ([chunked], b"2;" + b"x" * 100_000 + b"\r\n{}\r\n0\r\n\r\n"),
            ([chunked], b"2\r\n{}0\r\n\r\n"), ([chunked], b"2\n{}\n0\n\n"), ([chunked], b"0\r\nX: y\r\n\r\n" + GOODBYE),
            ([chunked], b"0\r\n" + b"X: yyyyyyyy\r\n" * 20_000 + b"\r\n"), ([chunked], b"1\r\n{\r\n" * 50_000 + b"0\r\n\r\n"),
            ([chunked, lines], b"3\r\n{}\n\r\n0\r\n\r\n" + GOODBYE), ([chunked, lines], b"5\r\n{}\n{}\r\n7\r\n"),
            ([b"Content-Encoding: gzip", b"Content-Length: 2", close], b"{}"), ([b"Content-Length: 2", close], b"\xff\xfe"),
            ([b"Content-Length: 9", close], b'{"a":"\x00"}'), ([b"Content-Length: 3", close], b"\xef\xbb\xbf"),
            ([b"Content-Length: 2", b"Content-Type: \xff/\xfe;;;=", close], b"{}"),
        )),
    ]  # fmt: skip


_SEEDS = (
    request(
        b"GET /v1/subscribers/target/notifications?after=0&limit=2 HTTP/1.1", b"Host: 127.0.0.1", b"X-Request-Id: 7"
    ),
    request(b"POST /v1/events HTTP/1.1", b"Host: 127.0.0.1", b"Content-Length: 8", body=b'{"a": 1}'),
    request(
        b"POST /v1/events HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Content-Type: application/x-ndjson",
        b"Transfer-Encoding: chunked",
        body=b'9\r\n{"a": 1}\n\r\n9\r\n{"a": 2}\n\r\n0\r\n\r\n',
    ),
    request(
        b"PUT /v1/subscribers/target%2F/subscriptions/x HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Content-Type: application/json",
        b"Content-Length: 29",
        body=b'{"expression": "target = \'x\'"}'[:29],
    ),
    HANDSHAKE + b"\r\n",
)
_SPLICES = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b" ",
    b":",
    b"%",
    b"%00",
    b"\xff",
    b"chunked",
    b"Content-Length: 3\r\n",
    b"9" * 30,
    b"{",
)


def changed_request(random: Random) -> bytes:
    """A right request with some bytes changed, taken out or put in."""
    raw = bytearray(random.choice(_SEEDS))
    for _ in range(random.choice([1, 1, 2, 4, 8])):
        place = random.randrange(len(raw))
        action = random.randrange(4)
        if action == 0:
            raw[place] = random.randrange(256)
        elif action == 1:
            raw[place:place] = random.choice(_SPLICES)
        elif action == 2:
            del raw[place : place + random.randrange(1, 10)]
        else:
            end = place + random.randrange(1, 40)
            raw[place:place] = raw[place:end]
        if not raw:
            raw += b"\x00"
    return bytes(raw)


# WebSocket


def frame(
    opcode: int,
    data: bytes,
    *,
    fin: bool = True,
    rsv: int = 0,
    mask: bytes | None = b"\1\2\3\4",
    length: int | None = None,
) -> bytes:
    """A frame. `length` is what it says of its length."""
    size = len(data) if length is None else length
    marked = 0x80 if mask is not None else 0
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if size < 126:
        head += bytes([marked | size])
    elif size < 65536:
        head += struct.pack("!BH", marked | 126, size)
    else:
        head += struct.pack("!BQ", marked | 127, size)
    if mask is None:
        return head + data
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


BYE = frame(8, struct.pack("!H", 1000))
TEXT, BINARY, CONTINUED, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


def deflated(data: bytes) -> bytes:
    work = zlib.compressobj(wbits=-12)
    return (work.compress(data) + work.flush(zlib.Z_SYNC_FLUSH))[:-4]


def broken_frames() -> list[bytes]:
    """Frames, after the handshake, that are wrong in a known way. Each list ends so that the service closes."""
    good = b'{"acknowledge": 1}'
    return [
        b"".join(each)
        for each in (
            [frame(TEXT, good, mask=None)],
            [frame(opcode, b"x") for opcode in (3, 7)],
            [frame(11, b"")], [frame(15, b"")],
            [frame(TEXT, good, rsv=1)], [frame(TEXT, good, rsv=4), BYE], [frame(TEXT, good, rsv=2)],
            [frame(PING, b"x" * 126)], [frame(PING, b"", fin=False)], [frame(CLOSE, b"x" * 130)], [frame(CLOSE, b"", fin=False)],
            [frame(CONTINUED, good)], [frame(TEXT, good, fin=False), frame(TEXT, good)],
            [frame(TEXT, b"\xff\xfe")], [frame(TEXT, b"\xed\xa0\x80")],
            [frame(TEXT, "é".encode()[:1], fin=False), frame(CONTINUED, b"x")],
            [frame(CLOSE, b"\x03")], [frame(CLOSE, struct.pack("!H", 999))], [frame(CLOSE, struct.pack("!H", 1005))],
            [frame(CLOSE, struct.pack("!H", 65535))], [frame(CLOSE, struct.pack("!H", 1000) + b"\xff")], [frame(CLOSE, b"")],
            [frame(TEXT, b"", length=2**62)], [b"\x81\xff" + b"\xff" * 8], [b"\x81\xff" + struct.pack("!Q", 2**63) + b"mask"],
            [frame(TEXT, b"x" * 70_000)], [frame(BINARY, b"x" * 70_000)],
            [frame(TEXT, b"x" * 40_000, fin=False), frame(CONTINUED, b"x" * 40_000)],
            [frame(TEXT, b"", fin=False), *[frame(CONTINUED, b"", fin=False)] * 20_000],
            [b"\x81\xfe\x00\x02mask{}", BYE], [b"\x81\xff" + struct.pack("!Q", 2) + b"mask{}", BYE],
            [frame(TEXT, text) + BYE for text in (b"", b"[", b"null", b'{"acknowledge": "x"}', b'{"acknowledge": 1e999}')],
            [frame(TEXT, b'{"acknowledge": ' + b"9" * 5000 + b"}"), frame(TEXT, b"[" * 60_000), BYE],
            [frame(TEXT, b'{"acknowledge": 9223372036854775808}'), frame(TEXT, b'{"acknowledge": -1}'), BYE],
            [frame(TEXT, b'{"acknowledge": 1, "acknowledge": 2}'), frame(TEXT, b'{"\xed\xa0\x80": 1}')],
            [frame(BINARY, b"\xff\x00"), frame(BINARY, good), *[frame(PING, b"x")] * 100, *[frame(PONG, b"x")] * 100, BYE],
            [frame(TEXT, good)] * 200 + [BYE], [BYE, frame(TEXT, good)],
            [b"GET / HTTP/1.1\r\n\r\n"], [b"\x00" * 100],
        )
    ]  # fmt: skip


def deflated_frames() -> list[bytes]:
    """The same for connections with compression: small frames that grow large, and what cannot be unpacked."""
    bomb = deflated(b"x" * 50_000_000)
    return [
        frame(TEXT, deflated(b'{"acknowledge": 1}'), rsv=4) + BYE,
        frame(TEXT, bomb[:60_000], rsv=4),
        frame(TEXT, deflated(b"x" * 1_000_000), rsv=4),
        frame(TEXT, b"\xff" * 50, rsv=4),
        frame(TEXT, b"", rsv=4) + BYE,
        frame(PING, b"x", rsv=4),
        frame(TEXT, deflated(b"{}"), rsv=4, fin=False) + frame(CONTINUED, b"x", rsv=4),
    ]


def changed_frames(random: Random) -> bytes:
    """Random frames, perhaps cut off or with a changed byte."""
    found = bytearray()
    for _ in range(random.randrange(1, 6)):
        data = random.choice([b"", b"x", b'{"acknowledge": 1}', random.randbytes(random.randrange(200))])
        found += frame(
            random.choice([0, 1, 1, 2, 8, 9, 10, random.randrange(16)]),
            data,
            fin=random.random() < 0.8,
            rsv=random.choice([0, 0, 0, random.randrange(8)]),
            mask=random.choice([random.randbytes(4)] * 5 + [None]),
            length=random.choice([None] * 5 + [random.randrange(300), 2 ** random.randrange(64) - 1]),
        )
    if random.random() < 0.3:
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found)
