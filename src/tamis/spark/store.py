"""Where files lie that all machines see: a folder on disk, or an object store.

    address                     driver          how a file is created that must not exist
    /path, file:///path         none            a rename that does not replace (on NFS, a hard link)
    s3://, s3a://               s3fs            If-None-Match: *
    gs://, gcs://               gcsfs           ifGenerationMatch=0
    abfs://, abfss://, az://    adlfs           If-None-Match: *
    hdfs://, viewfs://          hdfs-native     a rename that does not replace

A store has files and no folders: a name is a path below the address. Files are written once. Only `Store.create` decides between
two writers, and only `Store.names` lists. Garbage collection and messages need the list, never the truth about an index.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tamis.errors import IndexFolderError, TamisError
from tamis.spark import arrow_files
from tamis.spark.addresses import given_text, local_path, protocol_of
from tamis.storage import exclusive
from tamis.storage.replacing import replacing


class StoredFile(NamedTuple):
    """A file in a list.

    Attributes
    ----------
    name : str
        Its path below the address of the store.
    changed : float
        When it was written, in seconds since 1970.
    """

    name: str
    changed: float


class Store(Protocol):
    """Files below one address. Methods raise an `IndexFolderError` if the store does not answer or refuses."""

    @property
    def address(self) -> str:
        """What `open_store` opens again, in another process."""

    def path(self, name: str) -> Path | None:
        """Where the file lies on this machine's disks; None if it is elsewhere."""

    def has(self, name: str) -> bool:
        """Whether a file exists."""

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises a `FileNotFoundError` if there is none."""

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file to a path on this machine. Raises a `FileNotFoundError` if there is none."""

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """A path for a new file. When the block ends, the file is in the store."""

    def create(self, name: str, data: bytes) -> None:
        """Create a small file, in one step. Raises a `FileExistsError` if it exists, and changes nothing."""

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file, in one step, whether it exists or not."""

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def names(self, folder: str) -> list[StoredFile]:
        """The files whose names begin with a folder."""

    def prepare(self, folders: list[str]) -> None:
        """Get ready for writing to some folders. An error if two writers could not be told apart."""


def open_store(path: object) -> Store:
    """The store at a path or an address.

    Raises
    ------
    IndexFolderError
        If its driver is not installed, or if no driver is known.
    """
    text = given_text(path)
    if protocol_of(text) == "file":
        return LocalStore(local_path(text))
    store = RemoteStore(text.rstrip("/"))
    store.files()  # Fail now if its driver is missing.
    return store


@dataclass(frozen=True)
class LocalStore:
    """A folder on a local disk, or on a disk of the network that is mounted."""

    folder: Path

    @property
    def address(self) -> str:
        return str(self.folder)

    def path(self, name: str) -> Path | None:
        return self.folder / name

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from None
        except OSError as error:
            raise IndexFolderError(f"{self.folder / name} cannot be read: {error.strerror}") from None

    def fetch(self, name: str, target: Path) -> None:
        target.write_bytes(self.read(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        # What Tamis writes appears in one step, see `storage.replacing`.
        yield self.folder / name

    def create(self, name: str, data: bytes) -> None:
        try:
            exclusive.create(self.folder / name, data)
        except FileExistsError:
            raise
        except OSError as error:
            raise IndexFolderError(
                f"{self.folder / name} cannot be created: {error.strerror}. Hint: the file system must be able to rename "
                "without replacing, or have hard links, as local disks and NFS; mounted object stores have neither, so give "
                "their address, such as s3://"
            ) from None

    def replace(self, name: str, data: bytes) -> None:
        with replacing(str(self.folder / name)) as stream:
            stream.write(data)

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[StoredFile]:
        found = []
        try:
            entries = list(os.scandir(self.folder / folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise IndexFolderError(f"{self.folder} cannot be read: {error.strerror}") from None
        for entry in entries:
            with suppress(FileNotFoundError):  # Another process may rename or delete it meanwhile.
                found.append(StoredFile(f"{folder}/{entry.name}", entry.stat().st_mtime))
        return found

    def prepare(self, folders: list[str]) -> None:
        try:
            for name in folders:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexFolderError(f"{self.folder} cannot be written: {error.strerror}") from None


class _Driver(NamedTuple):
    """A driver of fsspec whose exclusive create is known to be one."""

    package: str
    extra: str
    renames: bool
    """Whether it creates by renaming; otherwise a request carries the condition."""


_S3, _GCS = _Driver("s3fs", "s3", renames=False), _Driver("gcsfs", "gcs", renames=False)
_ABFS, _HDFS = _Driver("adlfs", "abfs", renames=False), _Driver("hdfs-native", "hdfs", renames=True)
_DRIVERS = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GCS),
    **dict.fromkeys(("abfs", "abfss", "az"), _ABFS),
    **dict.fromkeys(("hdfs", "viewfs"), _HDFS),
}
"""Protocol -> its driver. Addresses of other protocols can only be read."""

_PROBED: set[str] = set()
"""Addresses where this process has seen that a second writer is refused."""

_TRIES = 3
"""How often an exclusive create is tried if the store says that another request is under way."""


@dataclass(frozen=True)
class RemoteStore:
    """An object store, or HDFS, through a driver of fsspec. Nothing is cached: another machine may have written just now."""

    address: str

    @property
    def _driver(self) -> _Driver | None:
        return _DRIVERS.get(protocol_of(self.address))

    def files(self) -> tuple[Any, str]:
        """The driver's file system, and the address as it names it. fsspec keeps one for each process.

        Raises
        ------
        IndexFolderError
        """
        driver = self._driver
        package = "fsspec and its driver" if driver is None else driver.package
        extra = "s3" if driver is None else driver.extra
        # The driver of HDFS takes all options for settings of Hadoop.
        options = {} if driver is not None and driver.renames else {"use_listings_cache": False}
        try:
            from fsspec.core import url_to_fs

            files, root = url_to_fs(self.address, **options)
        except ImportError:
            raise IndexFolderError(
                f"{self.address} needs {package}. Hint: pip install 'tamis[{extra}]', for the driver and for all executors"
            ) from None
        except Exception as error:
            raise IndexFolderError(f"{self.address} cannot be opened: {error}") from None
        return files, str(root).rstrip("/")

    def path(self, name: str) -> Path | None:
        return None

    @contextmanager
    def _asked(self, name: str, what: str) -> Iterator[tuple[Any, str]]:
        """The file system and the full name of a file, with the errors of drivers as ours."""
        files, root = self.files()
        try:
            yield files, f"{root}/{name}"
        except (FileNotFoundError, FileExistsError, TamisError):
            raise
        except Exception as error:  # Each driver has errors of its own, besides OSError.
            raise IndexFolderError(f"{self.address}/{name} cannot be {what}: {_told(error)}") from error

    def has(self, name: str) -> bool:
        with self._asked(name, "read") as (files, path):
            return bool(files.exists(path))

    def read(self, name: str) -> bytes:
        with self._asked(name, "read") as (files, path):
            return bytes(files.cat_file(path))

    def fetch(self, name: str, target: Path) -> None:
        with self._asked(name, "read") as (files, path):
            if not arrow_files.copied(files, path, target):
                files.get_file(path, str(target))

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            path = Path(folder, name.rpartition("/")[2])
            yield path
            with self._asked(name, "written") as (files, target):
                files.put_file(str(path), target)

    def create(self, name: str, data: bytes) -> None:
        driver = self._driver
        if driver is None:
            raise IndexFolderError(
                f"{self.address} cannot be written: Tamis does not know whether two writers exclude each other at "
                f"{protocol_of(self.address)}:// addresses. Hint: use one of {', '.join(f'{each}://' for each in _DRIVERS)}"
            )
        with self._asked(name, "created") as (files, path):
            try:
                _created_by_rename(files, path, data) if driver.renames else _created(files, path, data)
            except FileExistsError:
                # The driver repeats a request whose answer was lost. Then it is our own file that exists.
                if bytes(files.cat_file(path)) != data:
                    raise

    def replace(self, name: str, data: bytes) -> None:
        driver = self._driver
        with self._asked(name, "written") as (files, path):
            if driver is None or not driver.renames:
                files.pipe_file(path, data)
                return
            part = _part(path)
            files.pipe_file(part, data)
            files.mv(part, path, overwrite=True)

    def delete(self, name: str) -> None:
        with self._asked(name, "deleted") as (files, path), suppress(FileNotFoundError):
            files.rm_file(path)

    def names(self, folder: str) -> list[StoredFile]:
        with self._asked(folder, "listed") as (files, path):
            try:
                found = files.ls(path, detail=True)
            except FileNotFoundError:
                return []
        return [
            StoredFile(f"{folder}/{each['name'].rstrip('/').rpartition('/')[2]}", _changed(each))
            for each in found
            if each["type"] == "file"
        ]

    def prepare(self, folders: list[str]) -> None:
        if self.address not in _PROBED:
            self._probe(folders[0])
            _PROBED.add(self.address)

    def _probe(self, folder: str) -> None:
        """Create a file twice. The second time must fail."""
        probe = f"{folder}/.{secrets.token_hex(8)}.part"
        self.create(probe, b"first")
        try:
            self.create(probe, b"second")
        except FileExistsError:
            return
        finally:
            self.delete(probe)
        raise IndexFolderError(
            f"{self.address} cannot be written: this store has replaced a file that it was asked to create only if there is "
            "none, so two writers could undo each other. Hint: use a store with conditional writes"
        )


def _created(files: Any, path: str, data: bytes) -> None:
    """Create a file by a request with a condition."""
    for tries_left in reversed(range(_TRIES)):
        try:
            files.pipe_file(path, data, mode="create")
            return
        except OSError as error:
            refusal = _refusal(error)
            if refusal == "PreconditionFailed":
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
            # S3 says so if two such requests are under way. Both may have failed.
            if refusal != "ConditionalRequestConflict" or not tries_left:
                raise


def _refusal(error: OSError) -> str | None:
    """The code of S3 for a refused request. Stores that do not name the condition leave the driver without a clear error."""
    response = getattr(error.__cause__, "response", None)
    return response["Error"].get("Code") if isinstance(response, dict) and "Error" in response else None


def _created_by_rename(files: Any, path: str, data: bytes) -> None:
    part = _part(path)
    try:
        files.pipe_file(part, data)
        files.mv(part, path, overwrite=False)
    finally:
        with suppress(FileNotFoundError):
            files.rm_file(part)


def _part(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.{secrets.token_hex(4)}.part"


_TIMES = ("LastModified", "last_modified", "updated", "modification_time", "mtime", "created")
"""What drivers call the time at which a file was written."""


def _changed(info: dict[str, Any]) -> float:
    """When a listed file was written, in seconds. A file without a time counts as new, so that it is not collected."""
    for name in _TIMES:
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, str):
            return datetime.fromisoformat(value).timestamp()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000 if name == "modification_time" else float(value)
    return float("inf")


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
