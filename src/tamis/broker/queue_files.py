"""Blocks of notes in files. They are a cache: missing and damaged files are made again from the tables.

The name of a file has the span of its block. A merged block is written before the files of its parts are deleted. So after a
crash there may be files of both; the longest chain of spans is used.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from tamis.broker import cache_names
from tamis.broker.queue_block import Block, Span
from tamis.errors import SnapshotError
from tamis.storage import container

KIND = "queue"
_ARRAYS = Block._fields[1:]
_META: dict[str, Any] = {"content": "queue", "content_version": 1}


def write_block(folder: Path, block: Block) -> str:
    """Write a block to a file. Returns its name.

    Raises
    ------
    SnapshotError
    """
    name = cache_names.new_name(KIND, block.span)
    container.write(folder / name, {array: getattr(block, array) for array in _ARRAYS}, _META)
    return name


def read_blocks(folder: Path, own: Collection[str]) -> dict[Span, Block]:
    """The blocks that follow each other from the beginning of the tables on. `own` has the names of files that belong to them."""
    chain: dict[Span, Block] = {}
    at = (0, 0)
    files = spans(own)
    while True:
        followers = [span for span in files if span.start == at and span.end != at]
        found = ((span, _read(folder / files[span], span)) for span in sorted(followers, reverse=True))
        block = next((block for _, block in found if block is not None), None)
        if block is None:
            return chain
        chain[block.span] = block
        at = block.span.end


def spans(names: Collection[str]) -> dict[Span, str]:
    """The files of blocks by span."""
    return {Span(*numbers): name for numbers, name in cache_names.numbered(names, KIND)}


def _read(path: Path, span: Span) -> Block | None:
    """The block of a file; None if the file is damaged or of another version."""
    try:
        opened = container.open(path)
        if opened.meta != _META:
            return None
        return Block(span, *(opened.array(name) for name in _ARRAYS))
    except (SnapshotError, OSError):
        return None
