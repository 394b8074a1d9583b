"""What an index has at its address: immutable files, and for every version a manifest that lists its files.

    INDEX/versions/000000000003.json    the manifest of version 3; the highest number is the current version
    INDEX/versions/CURRENT              the number of a late version: readers begin there and look for later ones
    INDEX/segments/<name>.tamis         some subscriptions: what `Matcher.save` writes, their rows as ids
    INDEX/segments/<name>.arrow         row by row their ids, weights, times of validity and carried columns
    INDEX/segments/<name>.parquet       the rows as they were given; segments are merged from them
    INDEX/removed/<name>.arrow          the rows of a segment that a version leaves out
    INDEX/samples/<name>.arrow          a sample of events, with which subscriptions are planned
    INDEX/rejected/<name>.parquet       rejected rows, with the reasons

A version appears together with its manifest, in one step, after all its files are safe. Of two processes that publish at the same
time, only one gets the next number. So a reader with a manifest has a complete index, whatever is published meanwhile. A hash of
the id divides subscriptions into *buckets*; a bucket is a list of segments. `index_folder` reads and writes all of this.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from tamis.errors import IndexFolderError

FORMAT = "tamis-index"
FORMAT_VERSION = 2
"""Version 2 has seals, and the attributes that segments ask about."""

VERSIONS = "versions"
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
    seals : dict
        File, below the index's address -> its size and checksum, see `seals`. Indexes of version 1 have none.
    asked : list of str or None
        The attributes that its subscriptions ask about. None in indexes of version 1.
    """

    name: str
    rows: int
    bytes: int
    removed: int = 0
    removed_name: str | None = None
    seals: dict[str, str] = field(default_factory=dict)
    asked: list[str] | None = None

    @property
    def living(self) -> int:
        return self.rows - self.removed

    @property
    def files(self) -> list[str]:
        """All its files, below the index's folder."""
        own = [f"{SEGMENTS}/{self.name}.{ending}" for ending in ("tamis", "arrow", "parquet")]
        return own if self.removed_name is None else [*own, removed_file(self.removed_name)]


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
    SegmentFiles: {
        "name": str,
        "rows": int,
        "bytes": int,
        "removed": int,
        "removed_name": _TEXT_OR_NONE,
        "seals": dict,
        "asked": (list, type(None)),
    },
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


def new_name() -> str:
    """A name that no other file has."""
    return secrets.token_hex(16)


def removed_file(name: str) -> str:
    """The file that lists removed rows, below the index's address."""
    return f"{REMOVED}/{name}.arrow"


def without_rows(segment: SegmentFiles, removed_name: str, seal: str, removed: int) -> SegmentFiles:
    """The segment without the rows that a file lists, whose seal and length are given."""
    kept = {name: each for name, each in segment.seals.items() if not name.startswith(f"{REMOVED}/")}
    seals = {**kept, removed_file(removed_name): seal}
    return replace(segment, removed_name=removed_name, removed=removed, seals=seals)
