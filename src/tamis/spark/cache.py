"""The local cache of a host: files of indexes in object stores, fetched once, mapped by all tasks and processes.

    FOLDER/3f2a....tamis           a fetched file; its name is that of the file in the store, which no other file has
    FOLDER/.3f2a....tamis.part     a file that a process fetches now, or that a killed process left

Whoever needs a file that is not there locks its part, fetches it, checks its seal and renames it. Others wait for the lock, then
find the file. The system frees the lock of a killed process, so the next one begins the part again.

Files that were not used for long are deleted, and those not used for the longest time make room for new ones. A process that has
mapped a deleted file keeps it until it ends.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tamis.errors import IndexFolderError, OptionError, shortened
from tamis.spark.seals import seal_of, sealed_bytes, seems_sealed
from tamis.spark.store import Store

FOLDER, BYTES, AGE = "spark.tamis.cache.folder", "spark.tamis.cache.bytes", "spark.tamis.cache.age"
"""The settings of a session."""

_AGE = 24 * 3600.0
_SHARE = 0.8
"""Share of the disk's room, free or taken by the cache, that the cache may take by default."""

_log = logging.getLogger("tamis")


class CacheSettings(NamedTuple):
    """Where executors keep files, and how many.

    Attributes
    ----------
    folder : str or None
        A folder on a local disk. By default, one of this user in the folder for temporary files.
    bytes : int or None
        Most bytes of all files. By default, most of what the disk has room for.
    age : float
        Seconds after which a file that nobody uses is deleted.
    """

    folder: str | None = None
    bytes: int | None = None
    age: float = _AGE

    @staticmethod
    def of(setting: Callable[[str], str | None]) -> CacheSettings:
        """The settings of a session, given as a function of their names.

        Raises
        ------
        OptionError
        """
        size, age = setting(BYTES), setting(AGE)
        return CacheSettings(
            setting(FOLDER),
            None if size is None else int(_quantity(BYTES, size, _SIZES, "500g")),
            _AGE if age is None else _quantity(AGE, age, _TIMES, "12h"),
        )


_SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIMES = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def _quantity(name: str, text: str, units: dict[str, int], example: str) -> float:
    """A number with a unit, as in Spark's own settings."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in units:
        raise OptionError(f"the setting {name} must be a number with a unit, such as {example}, not {shortened(text)}")
    return float(found[1]) * units[found[2]]


class Cache:
    """The cache of this host."""

    def __init__(self, settings: CacheSettings = CacheSettings()) -> None:  # noqa: B008 - a tuple
        self._settings = settings
        self.fetched_files, self.fetched_bytes, self.hits = 0, 0, 0
        own = Path(tempfile.gettempdir(), f"tamis-cache-{os.getuid()}")
        self.folder = own if settings.folder is None else Path(settings.folder)

    def fetched(self, store: Store, name: str, seal: str | None) -> Path:
        """The path of a file of a store. It is fetched if it is not here.

        Raises
        ------
        IndexFolderError
            If the store does not have it, or has it damaged, or if it does not fit.
        """
        before = self.fetched_files
        path = self._kept(name, seal, lambda part: self._fetch(store, name, seal, part))
        self.hits += self.fetched_files == before
        return path

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """The path of a file that is made on this host. `make` writes it to a path that exists.

        Raises
        ------
        IndexFolderError
            If it does not fit.
        """

        def fill(part: Path) -> None:
            self._make_room(0)
            try:
                make(part)
            except OSError as error:
                raise self._full(name) if _is_full(error) else error from None

        return self._kept(name, None, fill)

    def _kept(self, name: str, seal: str | None, fill: Callable[[Path], None]) -> Path:
        """The path of a file that one process writes, while others wait for it."""
        target = self.folder / name.rpartition("/")[2]
        if self._is_right(target, seal):
            return target
        self._make()
        with _locked(target.with_name(f".{target.name}.part")) as part:
            if not self._is_right(target, seal):  # Another process may have written it meanwhile.
                fill(part)
                os.replace(part, target)
        return target

    def drop(self, name: str, reason: object) -> None:
        """Delete a file that turned out to be damaged, so that it is fetched again."""
        target = self.folder / name.rpartition("/")[2]
        _log.warning("%s is damaged and is fetched again: %s", target, reason)
        target.unlink(missing_ok=True)

    def _is_right(self, target: Path, seal: str | None) -> bool:
        """Whether a file is here. Notes that it is used."""
        try:
            if seal is None or seems_sealed(target, seal):
                os.utime(target)
                return True
        except OSError:
            return False
        self.drop(target.name, "its size is wrong")
        return False

    def _make(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IndexFolderError(
                f"the folder {self.folder} for fetched files cannot be made on {_host()}: {error.strerror}. "
                f"Hint: set {FOLDER} to a folder on a local disk"
            ) from None
        if self.folder.stat().st_uid != os.getuid():
            raise IndexFolderError(
                f"the folder {self.folder} for fetched files belongs to another user of {_host()}. Hint: set {FOLDER}"
            )

    def _fetch(self, store: Store, name: str, seal: str | None, part: Path) -> None:
        if part.stat().st_size:
            _log.warning("a process was stopped while it fetched %s/%s: it is fetched again", store.address, name)
        self._make_room(0 if seal is None else sealed_bytes(seal))
        for tries_left in (1, 0):
            try:
                self._copy(store, name, part)
            except FileNotFoundError:
                raise IndexFolderError(
                    f"{store.address}/{name} does not exist. Hint: collect_garbage deletes versions that were replaced; set "
                    "its `retain` longer than jobs take"
                ) from None
            found = None if seal is None else seal_of(part)
            if found == seal:
                self.fetched_files += 1
                self.fetched_bytes += part.stat().st_size
                return
            _log.warning("%s/%s came damaged: its seal is %s, not %s", store.address, name, found, seal)
            if not tries_left:
                raise IndexFolderError(
                    f"{store.address}/{name} is damaged: its size and checksum are {found}, not {seal}. "
                    "Hint: build the index again"
                )

    def _copy(self, store: Store, name: str, part: Path) -> None:
        """Copy a file from a store. If the disk is full, everything else that is fetched goes first."""
        for tries_left in (1, 0):
            try:
                store.fetch(name, part)
                return
            except (OSError, IndexFolderError) as error:
                if not _is_full(error):
                    raise
                os.truncate(part, 0)
                if not tries_left or not self._delete_all():
                    raise self._full(name) from None
                _log.warning("the disk of %s is full: all other fetched files were deleted", self.folder)

    def _full(self, name: str) -> IndexFolderError:
        return IndexFolderError(
            f"{name} does not fit into {self.folder} on {_host()}: {shutil.disk_usage(self.folder).free:,} bytes are free. "
            f"Hint: set {FOLDER} to a folder on a larger disk"
        )

    def _files(self) -> list[tuple[float, int, Path]]:
        """Time of last use, size and path of all fetched files, the longest unused first. Parts are in use."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if not entry.name.startswith("."):
                        about = entry.stat()
                        found.append((about.st_mtime, about.st_size, Path(entry.path)))
        return sorted(found)

    def _make_room(self, size: int) -> None:
        """Delete files that nobody has used for long, and as many others as the new one needs."""
        files = self._files()
        taken = sum(each[1] for each in files)
        most = self._settings.bytes
        if most is None:
            most = int(_SHARE * (shutil.disk_usage(self.folder).free + taken))
        before = time.time() - self._settings.age
        for used, bytes_, path in files:
            if used >= before and taken + size <= most:
                return
            path.unlink(missing_ok=True)
            taken -= bytes_

    def _delete_all(self) -> bool:
        files = self._files()
        for _, _, path in files:
            path.unlink(missing_ok=True)
        return bool(files)


@contextmanager
def _locked(part: Path) -> Iterator[Path]:
    """A part that no other process has locked. A part that was renamed while this process waited is not the part any more."""
    while True:
        with open(part, "ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if _is_same(stream.fileno(), part):
                try:
                    yield part
                finally:
                    with suppress(FileNotFoundError):
                        if _is_same(stream.fileno(), part):
                            part.unlink()
                return


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def _host() -> str:
    return os.uname().nodename
