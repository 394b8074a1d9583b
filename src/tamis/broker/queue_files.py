"""Blocks of notes in files. They are a cache: whatever is missing or damaged is made again from the tables.

The name of a file has the span of its block. A merged block is written before the files of its parts are deleted. So after a
crash there may be files of both; the longest chain of spans is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tamis.broker.queue_block import Block, Span
from tamis.errors import SnapshotError
from tamis.storage import container

_NAME = re.compile(r"queue-(\d+)-(\d+)-(\d+)-(\d+)\.tamis")
_ARRAYS = Block._fields[1:]
_CONTENT = "queue"
_VERSION = 1


def file_name(span: Span) -> str:
    return "queue-" + "-".join(map(str, span)) + ".tamis"


def write_block(folder: Path, block: Block) -> None:
    """Write a block to its file.

    Raises
    ------
    SnapshotError
    """
    arrays = {name: getattr(block, name) for name in _ARRAYS}
    container.write(folder / file_name(block.span), arrays, {"content": _CONTENT, "content_version": _VERSION})


def read_blocks(folder: Path, end: tuple[int, int]) -> list[Block]:
    """The blocks that follow each other from the beginning of the tables on. `end` is the end of the tables.

    A block that ends later belongs to other tables: somebody has restored a backup of the tables alone.
    """
    chain: list[Block] = []
    at = (0, 0)
    while True:
        followers = [span for span in spans(folder) if span.start == at and span.end != at and _is_within(span, end)]
        block = next(filter(None, (_read(folder, span) for span in sorted(followers, reverse=True))), None)
        if block is None:
            return chain
        chain.append(block)
        at = block.span.end


def remove_others(folder: Path, kept: Iterable[Span]) -> None:
    """Delete the files of all blocks but some."""
    names = set(map(file_name, kept))
    for path in folder.glob("queue-*.tamis"):
        if _NAME.fullmatch(path.name) and path.name not in names:
            with suppress(OSError):
                path.unlink()


def spans(folder: Path) -> list[Span]:
    """The spans of all files."""
    found = (_NAME.fullmatch(path.name) for path in folder.glob("queue-*.tamis"))
    return [Span(*map(int, match.groups())) for match in found if match]


def _is_within(span: Span, end: tuple[int, int]) -> bool:
    return span.event <= end[0] and span.meeting <= end[1]


def _read(folder: Path, span: Span) -> Block | None:
    """The block of a file; None if the file is damaged or of another version."""
    try:
        opened = container.open(folder / file_name(span))
        if opened.meta != {"content": _CONTENT, "content_version": _VERSION}:
            return None
        return Block(span, *(opened.array(name) for name in _ARRAYS))
    except (SnapshotError, OSError):
        return None
