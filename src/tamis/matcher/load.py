"""From a snapshot to a matcher."""

from __future__ import annotations

import os
from typing import Any

from tamis.language.schema import Schema
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.history_store import store_of
from tamis.matcher.matcher import Matcher, matcher_over
from tamis.matcher.snapshot import open_snapshot, read_contents
from tamis.storage import container


def load(
    path: str | os.PathLike[str], mmap: bool = True, *, device: str = "cpu", gpu_memory: int | None = None
) -> Matcher[Any]:
    """Open a matcher that `Matcher.save` wrote to a file. You can change it and save it again.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool
        If True, map the file into memory. Processes that load the same file then share this memory. If False, read the
        whole file; the file may be truncated or removed afterwards.
    device : str
        What matches batches by default, as in `Matcher`. A snapshot does not say it.
    gpu_memory : int, optional
        The most bytes of a card's memory that the index may take.

    Raises
    ------
    OptionError, CapabilityError
        The device cannot be used.
    SnapshotError
        The file is missing, not a matcher, too new, cut off or damaged. The data for matching is checked at once. The
        expressions are checked when one is first read.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/alerts.tamis"
    >>> matcher = Matcher()
    >>> matcher.add("ann", "price < 20")
    >>> matcher.save(path)
    >>> load(path).match({"price": 12})
    ['ann']
    """
    return matcher_over(load_store(path, mmap), device, gpu_memory)


def load_store(path: str | os.PathLike[str], mmap: bool = True) -> EngineStore:
    """The store of a matcher that was saved to a file.

    Raises
    ------
    SnapshotError
    """
    opened = open_snapshot(container.open(path, mmap=mmap))
    schema = opened.meta["schema"]
    return store_of(read_contents(opened), None if schema is None else Schema.of(schema))
