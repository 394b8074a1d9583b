"""Versions of an index: each appears completely, and no writer overwrites the version of another."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import ConflictError, IndexFolderError, TamisError
from tamis.spark.addresses import address, local_path, pattern
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest, SegmentFiles
from tamis.spark.matching import grouped


def manifest(version: int = 1) -> Manifest:
    segments = (
        SegmentFiles("a", rows=10, bytes=100),
        SegmentFiles("b", rows=4, bytes=40, removed=1, removed_name="gone"),
    )
    return Manifest(
        version=version,
        published="2026-11-16T10:00:00+00:00",
        id_type="string",
        form="expression",
        form_type="string",
        columns={"tag": '"string"'},
        buckets=(segments, ()),
        sample="events",
    )


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    made = IndexFolder(tmp_path / "index")
    made.prepare()
    for name in manifest().files:
        made.put(name, Path.touch)
    return made


def path(folder: IndexFolder, name: str) -> Path:
    return Path(folder.address, name)


def test_a_version_is_read_as_it_was_published(folder: IndexFolder) -> None:
    folder.publish(manifest())
    folder.publish(replace(manifest(2), applied={"changes": 7}))
    assert folder.versions() == [1, 2]
    assert folder.manifest(1) == manifest()
    assert folder.manifest().applied == {"changes": 7}


def test_figures_and_files(folder: IndexFolder) -> None:
    assert manifest().subscriptions == 13
    assert manifest().files == {
        *(f"segments/{name}.{ending}" for name in "ab" for ending in ("tamis", "arrow", "parquet")),
        "removed/gone.arrow",
        "samples/events.arrow",
    }


def test_only_one_writer_can_publish_a_number(folder: IndexFolder) -> None:
    folder.publish(manifest())
    with pytest.raises(ConflictError, match=r"another process published version 1 .* nothing was changed"):
        folder.publish(replace(manifest(), form="predicates"))
    assert folder.manifest() == manifest()
    assert {each.name for each in path(folder, "versions").iterdir()} == {"000000000001.json", "CURRENT"}


def test_a_version_with_missing_files_is_not_published(folder: IndexFolder) -> None:
    path(folder, "removed/gone.arrow").unlink()
    with pytest.raises(IndexFolderError, match=r"gone\.arrow is gone, so version 1 is not published"):
        folder.publish(manifest())
    assert folder.versions() == []


def test_the_hint_of_the_current_version_may_be_wrong(folder: IndexFolder) -> None:
    for number in (1, 2, 3):
        folder.publish(manifest(number))
    hint = path(folder, "versions/CURRENT")
    for text in ("1", "2\n", "", "no number", "99"):  # late, late, cut off, damaged, of versions that were deleted
        hint.write_text(text)
        assert folder.manifest().version == 3
    hint.unlink()
    assert folder.manifest().version == 3
    folder.forget(1)
    assert [each.version for each in folder.manifests()] == [2, 3]


def test_an_index_of_an_older_tamis_is_read(folder: IndexFolder) -> None:
    text = json.loads(manifest().to_json()) | {"format_version": 1}
    for bucket in text["buckets"]:
        for segment in bucket:
            del segment["seals"], segment["asked"]
    path(folder, "versions/000000000001.json").write_text(json.dumps(text))
    assert folder.manifest() == manifest()


def test_leftovers_of_writers_are_found_after_a_while(folder: IndexFolder) -> None:
    folder.publish(manifest())
    left = path(folder, "versions/.000000000002.json.12345678.part")
    left.touch()
    assert folder.files(datetime.now(UTC) - timedelta(hours=1)) == []
    assert "versions/.000000000002.json.12345678.part" in folder.files(datetime.now(UTC) + timedelta(hours=1))


def test_a_missing_index_or_version_is_named(folder: IndexFolder, tmp_path: Path) -> None:
    with pytest.raises(IndexFolderError, match=r"there is no index at .*Hint: tamis\.spark\.build"):
        IndexFolder(tmp_path / "nothing").manifest()
    folder.publish(manifest())
    with pytest.raises(IndexFolderError, match="has no version 5; it has: 1"):
        folder.manifest(5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ("[]", "damaged, or not the manifest"),
        ('{"format": "other", "format_version": 1}', "is not the manifest of an index"),
        ('{"format": "tamis-index", "format_version": 99}', "has format 99, but this Tamis reads up to 2"),
        ('{"format": "tamis-index", "format_version": 1, "buckets": []}', "is damaged"),
    ],
)
def test_damaged_and_foreign_manifests_are_refused(folder: IndexFolder, text: str, message: str) -> None:
    path(folder, "versions/000000000001.json").write_text(text)
    with pytest.raises(IndexFolderError, match=message):
        folder.manifest()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": None}, "columns is None"),
        ({"columns": {"tag": 3}}, "is not a string"),
        ({"id_type": "double"}, "id_type is 'double'"),
        ({"version": 7}, "it claims to be version 7"),
        ({"format_version": 0}, "not the manifest"),
        ({"buckets": [[{"name": "a", "rows": "many", "bytes": 1}]]}, "rows is 'many'"),
    ],
)
def test_wrong_values_in_a_manifest_are_refused(folder: IndexFolder, changed: dict[str, Any], message: str) -> None:
    text = json.dumps(json.loads(manifest().to_json()) | changed)
    path(folder, "versions/000000000001.json").write_text(text)
    with pytest.raises(IndexFolderError, match=message):
        folder.manifest()


def test_a_manifest_is_plain_json() -> None:
    read = json.loads(manifest().to_json())
    assert (read["format"], read["format_version"], read["version"]) == ("tamis-index", 2, 1)


def test_paths(tmp_path: Path) -> None:
    assert local_path(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert local_path(tmp_path) == tmp_path
    with pytest.raises(IndexFolderError, match="s3://bucket/index: this must be a folder"):
        local_path("s3://bucket/index")
    with pytest.raises(TamisError):
        local_path("")
    assert address("/a b/[1]") == "file:///a b/[1]"
    assert pattern("/a b/[1]*") == r"file:///a b/\[1\]\*"


def test_segments_are_grouped_by_size() -> None:
    segments = [
        SegmentFiles(name, rows=1, bytes=size) for name, size in zip("abcde", [60, 50, 40, 30, 200], strict=True)
    ]
    groups = [[segment.bytes for segment in group] for group in grouped(segments, 100)]
    assert groups == [[200], [60, 40], [50, 30]]
    assert len(grouped(segments, 1000)) == 1
    assert grouped([], 10) == ()
