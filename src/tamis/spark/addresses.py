"""Paths and addresses: what users give, what Tamis opens, and what Spark reads and writes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

from tamis.errors import IndexFolderError, shortened


def given_text(path: object) -> str:
    """A path or an address as text.

    Raises
    ------
    IndexFolderError
        If it is something else, or empty.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise IndexFolderError(f"the path of a folder must be a string or a Path, not {shortened(path)}")
    return text


def protocol_of(text: str) -> str:
    """The protocol of an address, in lower case; ``file`` for a path."""
    parsed = urlparse(text)
    return parsed.scheme.lower() if parsed.scheme and "://" in text else "file"


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path or a ``file:`` address as a path.

    Raises
    ------
    IndexFolderError
        For an address of another kind.
    """
    text = given_text(path)
    parsed = urlparse(text)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    if protocol_of(text) != "file":
        raise IndexFolderError(
            f"{text}: this must be a folder that the driver and all executors see as files (on a local disk or NFS), "
            f"not an address of {parsed.scheme}://"
        )
    return Path(os.path.abspath(text))


def address(path: str | os.PathLike[str]) -> str:
    """A local path as an address for Spark to write to, whatever its default file system is."""
    return f"file://{os.path.abspath(path)}"


def pattern(path: str | os.PathLike[str]) -> str:
    """A local path for Spark to read from, with the special characters of patterns escaped."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", address(path))
