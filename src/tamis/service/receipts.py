"""Receipts as JSON text. Names are encoded some at a time: one call for a million of them would stop the event loop for long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from starlette.responses import StreamingResponse

from tamis.broker import Receipt
from tamis.broker.answer_json import names_json
from tamis.service.answers import json_bytes

_NAMES_AT_ONCE = 1000
_PART_BYTES = 256 * 1024
"""Bytes of an answer that are sent together."""


def receipt_text(receipt: Receipt, *, with_matches: bool, line: int | None = None) -> bytes:
    """A receipt as an object of JSON, perhaps with the number of its line and with the names of all matches."""
    matches = receipt.matches
    start = "{" if line is None else f'{{"line":{line},'
    head = f'{start}"sequence":{receipt.sequence},"matches":{len(matches)}'.encode()
    if not with_matches:
        return head + b"}"
    parts = [
        json_bytes(names_json(matches[at : at + _NAMES_AT_ONCE]))[1:-1] for at in range(0, len(matches), _NAMES_AT_ONCE)
    ]
    return b"".join([head, b',"subscriptions":[', b",".join(parts), b"]}"])


def answer_with_list(head: bytes, name: str, records: Sequence[bytes]) -> StreamingResponse:
    """An answer with the object `head` and a list of records as one more member. It is sent part by part."""
    start, end = head[:-1] + f',"{name}":['.encode(), b"]}"
    size = len(start) + sum(map(len, records)) + max(0, len(records) - 1) + len(end)

    async def parts() -> AsyncIterator[bytes]:
        for part in _joined(start, records, end):
            yield part

    return StreamingResponse(parts(), headers={"Content-Length": str(size)}, media_type="application/json")


def _joined(start: bytes, records: Iterable[bytes], end: bytes) -> Iterable[bytes]:
    held, size = [start], len(start)
    for number, record in enumerate(records):
        if number:
            held.append(b",")
        held.append(record)
        size += len(record) + 1
        if size >= _PART_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join([*held, end])
