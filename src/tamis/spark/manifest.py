"""The folder of an index: immutable files, and for every version a manifest that lists its files.

    INDEX/versions/000000000003.json    the manifest of version 3; the highest number is the current version
    INDEX/segments/<name>.tamis         some subscriptions: what `Matcher.save` writes, their rows as ids
    INDEX/segments/<name>.arrow         row by row their ids, weights, times of validity and carried columns
    INDEX/segments/<name>.parquet       the rows as they were given; segments are merged from them
    INDEX/removed/<name>.arrow          the rows of a segment that a version leaves out
    INDEX/samples/<name>.arrow          a sample of events, with which subscriptions are planned
    INDEX/rejected/<name>.parquet       rejected rows, with the reasons

A version appears together with its manifest, in one step, after all its files are safe on disk. Of two processes that publish at
the same time, only one gets the next number. So a reader with a manifest has a complete index, whatever is published meanwhile. A
hash of the id divides subscriptions into *buckets*; a bucket is a list of segments.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tamis.errors import ConflictError, IndexFolderError, shortened
from tamis.storage.replacing import flush_folder

FORMAT = "tamis-index"
FORMAT_VERSION = 1

_VERSIONS = "versions"
SEGMENTS, REMOVED, SAMPLES, REJECTED = "segments", "removed", "samples", "rejected"


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """Some subscriptions of a bucket, in files that never change: a snapshot, and columns beside it.

    In this package a segment is such a set of files. The snapshot may have several segments of the engine.

    Attributes
    ----------
    name : str
        The name of its files, without their endings.
    rows : int
        Number of subscriptions in it, including removed ones.
    removed : int
        Number of subscriptions that this version leaves out.
    removed_name : str or None
        The file that lists them.
    bytes : int
        Size of the files that are mapped for matching.
    """

    name: str
    rows: int
    bytes: int
    removed: int = 0
    removed_name: str | None = None

    @property
    def living(self) -> int:
        return self.rows - self.removed

    @property
    def files(self) -> list[str]:
        """All its files, below the index's folder."""
        own = [f"{SEGMENTS}/{self.name}.{ending}" for ending in ("tamis", "arrow", "parquet")]
        return own if self.removed_name is None else [*own, f"{REMOVED}/{self.removed_name}.arrow"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of an index.

    Attributes
    ----------
    id_type : str
        ``string`` or ``bigint``, as Spark calls them.
    form : str
        The column that subscriptions are given in: ``expression`` or ``predicates``.
    form_type : str
        Its type, as Spark writes it.
    columns : dict
        The carried columns: name -> type as Spark writes it.
    schema : dict or None
        The declared schema, as `tamis.Schema.to_dict` returns it.
    sample : str or None
        The file with the sample of events.
    buckets : tuple of tuple of SegmentFiles
        The segments of each bucket, the newest last. The hash of an id gives its bucket.
    applied : dict
        Stream of changes -> its last batch that is in this version.
    rejected : tuple of str
        The files with the rows that were rejected when this version was made.
    """

    version: int
    published: str
    id_type: str
    form: str
    form_type: str
    columns: dict[str, str]
    buckets: tuple[tuple[SegmentFiles, ...], ...]
    schema: dict[str, Any] | None = None
    sample: str | None = None
    applied: dict[str, int] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()

    @property
    def segments(self) -> list[SegmentFiles]:
        """All segments that are not empty."""
        return [segment for bucket in self.buckets for segment in bucket if segment.living]

    @property
    def subscriptions(self) -> int:
        return sum(segment.living for segment in self.segments)

    @property
    def published_at(self) -> datetime:
        return datetime.fromisoformat(self.published)

    @property
    def files(self) -> set[str]:
        """All files that belong to this version, below the index's folder."""
        others = [f"{REJECTED}/{name}.parquet" for name in self.rejected]
        if self.sample is not None:
            others.append(f"{SAMPLES}/{self.sample}.arrow")
        return set(others).union(*(segment.files for bucket in self.buckets for segment in bucket))

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, path: str) -> Manifest:
        """Read a manifest; `path` is its file, for messages.

        Raises
        ------
        IndexFolderError
        """
        try:
            given = json.loads(text)
            name, number = given.pop("format"), given.pop("format_version")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise IndexFolderError(f"{path} is damaged, or not the manifest of an index") from None
        if name != FORMAT or not isinstance(number, int) or number < 1:
            raise IndexFolderError(f"{path} is not the manifest of an index")
        if number > FORMAT_VERSION:
            raise IndexFolderError(
                f"{path} has format {number}, but this Tamis reads up to {FORMAT_VERSION}. Hint: use a newer Tamis"
            )
        try:
            buckets = tuple(tuple(SegmentFiles(**segment) for segment in bucket) for bucket in given.pop("buckets"))
            manifest = cls(buckets=buckets, rejected=tuple(given.pop("rejected")), **given)
        except (TypeError, KeyError):
            raise IndexFolderError(f"{path} is damaged") from None
        problem = _problem(manifest)
        if problem is not None:
            raise IndexFolderError(f"{path} is damaged: {problem}")
        return manifest


def _problem(manifest: Manifest) -> str | None:
    """What is wrong with the contents of a manifest; None if nothing is."""
    for each in (manifest, *(segment for bucket in manifest.buckets for segment in bucket)):
        for name, kinds in _KINDS[type(each)].items():
            value = getattr(each, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                return f"{name} is {value!r}"
    if manifest.id_type not in ("string", "bigint"):
        return f"id_type is {manifest.id_type!r}"
    if not all(isinstance(name, str) for name in (*manifest.columns.values(), *manifest.rejected)):
        return "a type, or the name of a file, is not a string"
    return None


_TEXT_OR_NONE = (str, type(None))
_KINDS: dict[type, dict[str, Any]] = {
    SegmentFiles: {"name": str, "rows": int, "bytes": int, "removed": int, "removed_name": _TEXT_OR_NONE},
    Manifest: {
        "version": int,
        "published": str,
        "form_type": str,
        "columns": dict,
        "schema": (dict, type(None)),
        "sample": _TEXT_OR_NONE,
        "applied": dict,
    },
}


class IndexFolder:
    """The files of an index, in a folder that all readers and writers can see."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def versions(self) -> list[int]:
        """The numbers of all existing versions, in order."""
        try:
            names = os.listdir(self.path / _VERSIONS)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise IndexFolderError(f"the index {self.path} cannot be read: {error.strerror}") from None
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())

    def manifest(self, version: int | None = None) -> Manifest:
        """A version, by default the current one.

        Raises
        ------
        IndexFolderError
            If there is no index, if the version does not exist (any more), or if it is damaged.
        """
        there = self.versions()
        if not there:
            raise IndexFolderError(
                f"there is no index at {self.path}. Hint: tamis.spark.build makes one; the driver and all executors must "
                "see the folder"
            )
        number = there[-1] if version is None else version
        path = self._manifest_path(number)
        try:
            manifest = Manifest.from_json(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            raise IndexFolderError(
                f"the index {self.path} has no version {number}; it has: {', '.join(map(str, there))}. "
                "Hint: old versions are collected after a while, see tamis.spark.collect_garbage"
            ) from None
        if manifest.version != number:
            raise IndexFolderError(f"{path} is damaged: it claims to be version {manifest.version}")
        return manifest

    def make(self) -> None:
        """Make the folders that files go to.

        Raises
        ------
        IndexFolderError
        """
        try:
            for name in (_VERSIONS, SEGMENTS, REMOVED, SAMPLES, REJECTED):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexFolderError(f"the index {self.path} cannot be written: {error.strerror}") from None

    def publish(self, manifest: Manifest) -> Manifest:
        """Make a manifest the current version, if its number is the next. All its files must be on disk.

        Raises
        ------
        ConflictError
            If another process has published this number.
        """
        # Skip the files of the version before: they are safe while that version is current, and may be thousands.
        before = manifest.version - 1
        known = self.manifest(before).files if before in self.versions() else set()
        gone = [name for name in sorted(manifest.files - known) if not (self.path / name).exists()]
        if gone:
            raise IndexFolderError(
                f"{self.path / gone[0]} is gone, so version {manifest.version} is not published. Hint: set `retain` of "
                "collect_garbage longer than building and updating take"
            )
        target = self._manifest_path(manifest.version)
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with open(part, "x", encoding="utf-8") as stream:
            stream.write(manifest.to_json())
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(part, target)  # Fails if the target exists; a rename would replace it.
        except FileExistsError:
            raise ConflictError(self.path, manifest.version) from None
        except OSError as error:
            raise IndexFolderError(
                f"the index {self.path} cannot be published: {error.strerror}. Hint: its file system needs hard links, as on "
                "local disks and NFS; build the index there, and copy the folder"
            ) from None
        finally:
            part.unlink()
        flush_folder(target.parent)
        return manifest

    def forget(self, version: int) -> None:
        """Delete a version's manifest, but not its files."""
        self._manifest_path(version).unlink(missing_ok=True)

    def files(self, before: datetime) -> list[str]:
        """All files in the folder, without manifests, that have not changed since `before`. Younger files may belong to a task
        that has not reported yet."""
        found = []
        for name in (SEGMENTS, REMOVED, SAMPLES, REJECTED, _VERSIONS):
            for entry in os.scandir(self.path / name):
                with suppress(FileNotFoundError):  # Another process may rename or delete it meanwhile.
                    if not entry.name.endswith(".json") and entry.stat().st_mtime < before.timestamp():
                        found.append(f"{name}/{entry.name}")
        return found

    def _manifest_path(self, version: int) -> Path:
        return self.path / _VERSIONS / f"{version:012}.json"


def new_name() -> str:
    """A name that no other file has."""
    return secrets.token_hex(16)


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path or a ``file:`` address as a path.

    Raises
    ------
    IndexFolderError
        For an address of another kind.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise IndexFolderError(f"the path of a folder must be a string or a Path, not {shortened(path)}")
    parsed = urlparse(text)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    if parsed.scheme and "://" in text:
        raise IndexFolderError(
            f"{text}: an index is memory-mapped, so it must be a folder that the driver and all executors see as files "
            f"(on a local disk or NFS), not an address of {parsed.scheme}://"
        )
    return Path(os.path.abspath(text))


def address(path: str | os.PathLike[str]) -> str:
    """A local path as an address for Spark to write to, whatever its default file system is."""
    return f"file://{os.path.abspath(path)}"


def pattern(path: str | os.PathLike[str]) -> str:
    """A local path for Spark to read from, with the special characters of patterns escaped."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", address(path))


def without_rows(segment: SegmentFiles, removed_name: str, removed: int) -> SegmentFiles:
    """The segment with more rows left out."""
    return replace(segment, removed_name=removed_name, removed=removed)
