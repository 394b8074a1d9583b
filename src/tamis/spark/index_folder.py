"""An index at an address: the current version, its files on this machine, and publishing a new version.

A reader begins at the version that ``versions/CURRENT`` names, and looks for later ones, number by number. A writer creates the
next manifest exclusively, then renews ``CURRENT``, which is only a hint. If the hint is lost, the list of manifests takes its
place.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tamis.errors import ConflictError, IndexFolderError, SnapshotError
from tamis.spark.cache import Cache, CacheSettings
from tamis.spark.manifest import REJECTED, REMOVED, SAMPLES, SEGMENTS, VERSIONS, Manifest
from tamis.spark.seals import seal_of, seal_of_bytes
from tamis.spark.store import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
_CURRENT = f"{VERSIONS}/CURRENT"
_FOLDERS = [VERSIONS, SEGMENTS, REMOVED, SAMPLES, REJECTED]
_AT_ONCE = 16
"""Requests under way at a time when many files are looked up. Stores answer each in some tens of milliseconds."""


class IndexFolder:
    """The files of an index, at an address that all readers and writers reach. Tasks carry it to executors."""

    def __init__(self, path: str | os.PathLike[str], cache: CacheSettings = CacheSettings()) -> None:  # noqa: B008
        self.store: Store = open_store(path)
        self._settings = cache
        self._cache = Cache(cache)

    @staticmethod
    def of(path: str | os.PathLike[str], spark: SparkSession) -> IndexFolder:
        """An index that is read with the settings of a session.

        Raises
        ------
        IndexFolderError, OptionError
        """
        return IndexFolder(path, CacheSettings.of(lambda name: spark.conf.get(name, None)))

    def __reduce__(self) -> tuple[type[IndexFolder], tuple[str, CacheSettings]]:
        return IndexFolder, (self.address, self._settings)

    @property
    def address(self) -> str:
        return self.store.address

    @property
    def fetched(self) -> tuple[int, int, int]:
        """How many files this object has fetched into the cache, their bytes, and how many it has found there."""
        return self._cache.fetched_files, self._cache.fetched_bytes, self._cache.hits

    def local(self, name: str, seal: str | None) -> Path:
        """A file on this machine: where it is, if that is a local path, else in the cache.

        Raises
        ------
        IndexFolderError
            If the file does not exist, or cannot be fetched.
        """
        path = self.store.path(name)
        if path is None:
            return self._cache.fetched(self.store, name, seal)
        if not path.exists():
            raise IndexFolderError(not_seen(path))
        return path

    def opened(self, name: str, seal: str | None, opener: Callable[[Path], _T]) -> _T:
        """What `opener` makes of a file. A file of the cache is fetched again, once, if it is damaged, or if another process
        has made room between fetching and opening.

        Raises
        ------
        IndexFolderError, SnapshotError
        """
        path = self.local(name, seal)
        try:
            return opener(path)
        except (IndexFolderError, SnapshotError) as error:
            if self.store.path(name) is not None:
                raise
            if path.exists():
                self._cache.drop(name, error)
        return opener(self.local(name, seal))

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """A file of this host that was made from files of the index, once: `make` gets the path to write to.

        Raises
        ------
        IndexFolderError
        """
        return self._cache.made(name, make)

    def read(self, name: str, seal: str | None = None) -> bytes:
        """The bytes of a file that is read once.

        Raises
        ------
        IndexFolderError
        """
        try:
            data = self.store.read(name)
        except FileNotFoundError:
            raise IndexFolderError(not_seen(f"{self.address}/{name}")) from None
        if seal is not None and (found := seal_of_bytes(data)) != seal:
            raise IndexFolderError(
                f"{self.address}/{name} is damaged: its size and checksum are {found}, not {seal}. Hint: build the index again"
            )
        return data

    def put(self, name: str, write: Callable[[Path], object]) -> str:
        """Write a file: `write` gets a path of this machine. Returns the seal of the file.

        Raises
        ------
        IndexFolderError, SnapshotError
        """
        with self.store.writing(name) as path:
            write(path)
            return seal_of(path)

    def versions(self) -> list[int]:
        """The numbers of the listed versions, in order. A store may list a new version late."""
        names = [each.name.rpartition("/")[2] for each in self.store.names(VERSIONS)]
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())

    def has(self, version: int) -> bool:
        """Whether a version exists."""
        return self.store.has(_manifest_name(version))

    def current(self) -> Manifest | None:
        """The current version; None if there is no index.

        Raises
        ------
        IndexFolderError
            If it is damaged.
        """
        found = self._from(self._hint())
        if found is None:  # The hint is lost, or names a version that was collected.
            listed = self.versions()
            found = self._from(listed[-1] if listed else 1)
        return None if found is None else self._checked(*found)

    def manifest(self, version: int | None = None) -> Manifest:
        """A version, by default the current one.

        Raises
        ------
        IndexFolderError
            If there is no index, if the version does not exist (any more), or if it is damaged.
        """
        if version is not None:
            text = self._text(version)
            if text is not None:
                return self._checked(version, text)
        current = self.current()
        if current is None:
            raise IndexFolderError(
                f"there is no index at {self.address}. Hint: tamis.spark.build makes one; the driver and all executors must "
                "see the folder"
            )
        if version is None:
            return current
        raise IndexFolderError(
            f"the index {self.address} has no version {version}; it has: {', '.join(map(str, self.versions()))}. "
            "Hint: old versions are collected after a while, see tamis.spark.collect_garbage"
        )

    def manifests(self) -> list[Manifest]:
        """All versions, in order. They have numbers without gaps, so none is missed that a store lists late."""
        current = self.manifest()
        number = min([*self.versions(), current.version])
        while self.has(number - 1):
            number -= 1
        return [*map(self.manifest, range(number, current.version)), current]

    def prepare(self) -> None:
        """Get ready for writing.

        Raises
        ------
        IndexFolderError
            If the address cannot be written, or if two writers could not be told apart.
        """
        self.store.prepare(_FOLDERS)

    def publish(self, manifest: Manifest) -> Manifest:
        """Make a manifest the current version, if its number is the next. All its files must be in the store.

        Raises
        ------
        ConflictError
            If another process has published this number.
        """
        # Skip the files of the version before: they are safe while that version is current, and may be thousands.
        before = self._text(manifest.version - 1)
        known = set() if before is None else self._checked(manifest.version - 1, before).files
        gone = self._missing(sorted(manifest.files - known))
        if gone:
            raise IndexFolderError(
                f"{self.address}/{gone[0]} is gone, so version {manifest.version} is not published. Hint: set `retain` of "
                "collect_garbage longer than building and updating take"
            )
        try:
            self.store.create(_manifest_name(manifest.version), manifest.to_json().encode())
        except FileExistsError:
            raise ConflictError(self.address, manifest.version) from None
        self._note(manifest.version)
        return manifest

    def forget(self, version: int) -> None:
        """Delete a version's manifest, but not its files."""
        self.store.delete(_manifest_name(version))

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        self.store.delete(name)

    def remove(self) -> None:
        """Delete the whole index."""
        for folder in _FOLDERS:
            for each in self.store.names(folder):
                self.store.delete(each.name)

    def files(self, before: datetime) -> list[str]:
        """All files, without manifests, that have not changed since `before`. Younger files may belong to a task that has not
        reported yet."""
        return [
            each.name
            for folder in _FOLDERS
            for each in self.store.names(folder)
            if not each.name.endswith(".json") and each.name != _CURRENT and each.changed < before.timestamp()
        ]

    def _note(self, version: int) -> None:
        """Renew the hint. Readers find the version without it."""
        with suppress(IndexFolderError, SnapshotError):
            self.store.replace(_CURRENT, f"{version}\n".encode())

    def _hint(self) -> int:
        """The version that the hint names; 0 if there is no hint."""
        with suppress(FileNotFoundError, ValueError):
            return int(self.store.read(_CURRENT))
        return 0

    def _text(self, version: int) -> str | None:
        """The manifest of a version as text, if it exists."""
        try:
            return self.store.read(_manifest_name(version)).decode("utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _from(self, version: int) -> tuple[int, str] | None:
        """The last of the versions that follow this one without a gap, and its manifest; None if this version does not exist."""
        found = None
        while version > 0 and (text := self._text(version)) is not None:
            found = version, text
            version += 1
        return found

    def _checked(self, version: int, text: str) -> Manifest:
        path = f"{self.address}/{_manifest_name(version)}"
        manifest = Manifest.from_json(text, path)
        if manifest.version != version:
            raise IndexFolderError(f"{path} is damaged: it claims to be version {manifest.version}")
        return manifest

    def _missing(self, names: list[str]) -> list[str]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [name for name, there in zip(names, pool.map(self.store.has, names), strict=True) if not there]


def not_seen(path: str | Path) -> str:
    """The message about a file that is not there."""
    return (
        f"{os.uname().nodename} does not see {path}. Hint: the driver and all executors must see the folder of an "
        "index; or collect_garbage deleted the version that is read"
    )


def _manifest_name(version: int) -> str:
    return f"{VERSIONS}/{version:012}.json"
