"""From a snapshot to a matcher."""

from __future__ import annotations

import os
from typing import Any

from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import Matcher
from tamis.matcher.snapshot import open_snapshot, read_contents
from tamis.storage import container


def load(path: str | os.PathLike[str], mmap: bool = True) -> Matcher[Any]:
    """The matcher that `Matcher.save` wrote to a file. It can be changed and saved like any other.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool
        Whether to map the file into memory: processes that load one file then share its memory. Otherwise it is read as
        a whole, and may be truncated or be on a disk that goes away afterwards.

    Raises
    ------
    SnapshotError
        When it is not there, not a matcher's, of a newer version, cut off or damaged. What matching needs is checked now,
        the expressions when one is first asked for.

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
    opened = open_snapshot(container.open(path, mmap=mmap))
    matcher: Matcher[Any] = Matcher(schema=opened.meta["schema"])
    assert isinstance(matcher._store, EngineStore)
    matcher._store.restore(read_contents(opened))
    return matcher
