"""Reading notes or changes of a broker in blocks, and waiting for more."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

ITEMS_TOGETHER = 1_000
"""The most notes or changes in a block. They are written and acknowledged together."""

PAUSE = 0.1
"""Seconds between two looks for more items."""


def blocks(
    read: Callable[[int | None], Iterator[T]],
    number: Callable[[T], int],
    after: int | None,
    *,
    follow: bool,
    limit: int | None,
) -> Iterator[list[T]]:
    """Blocks of items after a number. With `follow`, they never end.

    Parameters
    ----------
    read : callable
        Number -> the items after it.
    number : callable
        Item -> its number.
    limit : int, optional
        How many items to read in all.
    """
    left = limit
    while True:
        items = read(after)
        while block := list(islice(items, ITEMS_TOGETHER if left is None else min(left, ITEMS_TOGETHER))):
            yield block
            after = number(block[-1])
            left = None if left is None else left - len(block)
        if not follow or left == 0:
            return
        wait_for_more()


def wait_for_more(seconds: float = PAUSE) -> None:
    """Wait a moment, or until the reader of the output is gone.

    Raises
    ------
    BrokenPipeError
        The reader is gone. Otherwise a command that has nothing to write would never learn it.
    """
    try:
        output = sys.stdout.fileno()
        waiter = select.poll()
    except (OSError, ValueError, AttributeError):  # no file, or a system without poll
        time.sleep(seconds)
        return
    waiter.register(output, 0)
    if waiter.poll(seconds * 1000):
        raise BrokenPipeError
