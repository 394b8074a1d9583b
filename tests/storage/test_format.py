"""A reader that was written after `docs/snapshot-format.md`, without our code, reads what we write."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.storage import container, layout
from tests.markdown import ROOT, Page
from tests.storage.naive import xxh64

PAGE = Page(ROOT / "docs" / "snapshot-format.md")


def read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    data = path.read_bytes()
    fields = {row["field"]: (int(row["at"]), int(row["bytes"])) for row in PAGE.rows("at", "bytes", "field")}

    def number(field: str) -> int:
        at, size = fields[field]
        return int.from_bytes(data[at : at + size], "little")

    assert data[:8] == bytes.fromhex("f3 54 41 4d 49 53 0d 0a")
    assert number("version") == 1
    assert number("checksum of the header") == xxh64(data[:56] + bytes(8))
    start, size = number("start of the directory"), number("size of the directory")
    assert number("checksum of the directory") == xxh64(data[start:])
    assert len(data) == start + size + -size % 64
    directory = json.loads(data[start : start + size])
    arrays, at = {}, 64
    for name, dtype, shape, digits in directory["arrays"]:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        end = at + size + -size % 64
        assert int(digits, 16) == xxh64(data[at:end])
        assert not any(data[at + size : end])
        arrays[name] = np.frombuffer(data[at : at + size], dtype).reshape(shape)
        at = end
    assert at == start
    return directory["meta"], arrays


def test_the_page_suffices_to_read_a_file(tmp_path: Path) -> None:
    path = tmp_path / "alerts.snapshot"
    arrays: dict[str, npt.NDArray[Any]] = {
        "start": np.arange(20),
        "price, lo": np.linspace(0, 1, 7).reshape(7, 1),
        "none": np.zeros((3, 0), np.int32),
        "flags": np.array([True, False]),
    }
    container.write(path, arrays, {"subscriptions": 20})
    meta, found = read(path)
    assert meta == {"subscriptions": 20}
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert (found[name] == array).all()


def test_the_directory_on_the_page_is_that_of_its_example(tmp_path: Path) -> None:
    path = tmp_path / "alerts.snapshot"
    container.write(path, {"start": np.array([0, 2, 5]), "lo": np.zeros(5)}, {"subscriptions": 2})
    (shown,) = PAGE.of_language("json")
    assert json.loads(path.read_bytes()[192:].rstrip(b"\0")) == json.loads(shown.text)


def test_the_page_names_every_field_and_dtype() -> None:
    rows = PAGE.rows("at", "bytes", "field")
    ends = [int(row["at"]) + int(row["bytes"]) for row in rows]
    assert [int(row["at"]) for row in rows] == [0, *ends[:-1]]
    assert ends[-1] == layout.HEADER_SIZE == struct.calcsize("<8sI4xQQQ16xQ")
    assert {code for row in PAGE.rows("dtype") for code in row["dtype"].replace("`", "").split()} == set(layout.DTYPES)


def test_the_page_names_the_versions() -> None:
    assert [int(row["version"]) for row in PAGE.rows("version")] == list(range(1, layout.VERSION + 1))
