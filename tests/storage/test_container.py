"""Arrays come back from a container as they went in, without a copy."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from tamis.errors import FileError, SnapshotError
from tamis.storage import container
from tamis.storage.array_bytes import PIECE_BYTES, write_array
from tamis.storage.layout import DTYPES
from tamis.storage.tables import to_bytes

Arrays = dict[str, npt.NDArray[Any]]

CODES = sorted(DTYPES)


class Lazy(Mapping[str, npt.NDArray[Any]]):
    """Makes arrays when they are asked for."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return np.full(self._size, int(name))

    def __iter__(self) -> Iterator[str]:
        return (str(number) for number in range(self._count))

    def __len__(self) -> int:
        return self._count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.snapshot"


def same(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    """Whether two arrays have the same dtype, shape and bytes (NaN included)."""
    return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


def of_code(code: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    dtype = DTYPES[code]
    raw = np.random.default_rng(3).integers(0, 2 if code == "|b1" else 256, math.prod(shape) * dtype.itemsize, np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.kernels
@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("code", CODES)
def test_every_dtype_comes_back(path: Path, code: str, mmap: bool) -> None:
    shapes = [(0,), (1,), (7,), (64,), (65,), (3, 5), (2, 0, 4), (2, 3, 4), ()]
    arrays = {str(shape): of_code(code, shape) for shape in shapes}
    container.write(path, arrays)
    opened = container.open(path, mmap=mmap)
    assert opened.names == tuple(arrays)
    for name, array in arrays.items():
        assert same(opened.array(name), array), name


@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_are_aligned_and_read_only(path: Path, mmap: bool) -> None:
    container.write(path, {f"{code} {size}": of_code(code, (size,)) for code in CODES for size in range(5)})
    opened = container.open(path, mmap=mmap)
    for name in opened.names:
        array = opened.array(name)
        assert array.ctypes.data % 64 == 0
        assert array.flags.aligned
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_arrays_are_not_copied(path: Path) -> None:
    container.write(path, {"a": np.arange(100)})
    opened = container.open(path)
    assert np.shares_memory(opened.array("a"), opened.array("a"))


def test_arrays_outlive_the_container(path: Path) -> None:
    container.write(path, {"a": np.arange(1000)})
    with container.open(path) as opened:
        array = opened.array("a")
    del opened
    path.unlink()
    gc.collect()
    assert array.sum() == 499500


def test_a_closed_container_gives_nothing(path: Path) -> None:
    container.write(path, {"a": np.arange(3)}, {"k": 1})
    with container.open(path) as opened:
        assert repr(opened).endswith("1 arrays)")
    assert opened.names == ("a",)
    assert repr(opened).endswith("closed)")
    for ask in (opened.verify, lambda: opened.array("a")):
        with pytest.raises(SnapshotError, match="is closed: open it again"):
            ask()


def test_a_file_that_was_read_may_be_cut_off(path: Path) -> None:
    container.write(path, {"a": np.arange(1000)})
    opened = container.open(path, mmap=False)
    path.write_bytes(b"")
    opened.verify()
    assert opened.array("a").sum() == 499500


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(4, 6).T,
        np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
        np.arange(100)[::-3],
        np.arange(100, dtype=np.int32).reshape(10, 10)[2:7, ::2],
        np.broadcast_to(np.float64(2.5), (3, 4)),
        np.frombuffer(b"x" + bytes(range(80)), "<u8", offset=1),
        np.arange(5, dtype=">i4"),
        np.arange(24, dtype=">f8").reshape(4, 6).T,
    ],
    ids=["transposed", "Fortran", "backwards", "slice", "broadcast", "unaligned", "big-endian", "both"],
)
def test_any_layout_in_memory_is_stored_in_order(path: Path, array: npt.NDArray[Any]) -> None:
    container.write(path, {"a": array})
    expected = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    assert same(container.open(path).array("a"), expected)
    whole, pieces = BytesIO(), BytesIO()
    assert write_array(pieces, "a", array, "", piece=64) == write_array(whole, "a", array, "")
    assert pieces.getvalue() == whole.getvalue()


def test_an_array_of_many_pieces(path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 2**63, 3 * PIECE_BYTES // 8 + 5)
    container.write(path, {"a": array, "b": array[::2]})
    opened = container.open(path)
    assert same(opened.array("a"), array)
    assert same(opened.array("b"), array[::2])


def test_thousands_of_arrays(path: Path) -> None:
    container.write(path, {f"dimension {i}": np.arange(i % 7) for i in range(3000)})
    opened = container.open(path)
    assert len(opened.names) == 3000
    assert opened.array("dimension 2999").tolist() == [0, 1, 2]
    opened.verify()


@pytest.mark.parametrize("mmap", [True, False])
def test_nothing_at_all_can_be_stored(path: Path, mmap: bool) -> None:
    container.write(path, {})
    opened = container.open(path, mmap=mmap)
    opened.verify()
    assert (opened.names, opened.meta) == ((), {})


@given(
    arrays=st.dictionaries(
        st.text(max_size=5),
        stn.arrays(st.sampled_from(list(DTYPES.values())), stn.array_shapes(min_dims=0, min_side=0, max_side=5)),
        max_size=4,
    ),
    meta=st.dictionaries(
        st.text(max_size=3),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=3,
    ),
)
def test_anything_comes_back(tmp_path_factory: pytest.TempPathFactory, arrays: Arrays, meta: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.snapshot"
    container.write(path, arrays, meta)
    opened = container.open(path)
    assert opened.meta == meta
    assert list(opened.names) == list(arrays)
    assert all(same(opened.array(name), array) for name, array in arrays.items())


def test_odd_names_come_back(path: Path) -> None:
    names = ["", " ", "größe", "\ud800", "a\0b", 'quote"', "x" * 10_000]
    container.write(path, {name: np.array([i]) for i, name in enumerate(names)})
    opened = container.open(path)
    assert [opened.array(name).item() for name in names] == list(range(len(names)))


def test_the_same_content_is_the_same_file(path: Path) -> None:
    files = []
    for _ in range(2):
        container.write(path, {"a": np.arange(5), "b": np.zeros(0)}, {"k": [1, None]})
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert len(files[0]) % 64 == 0


def test_arrays_are_taken_one_after_another(path: Path) -> None:
    count, size = 20, 100_000
    container.write(path, Lazy(1, 10))  # compiles the checksum
    tracemalloc.start()
    try:
        container.write(path, Lazy(count, size))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * size * 8
    opened = container.open(path)
    assert [int(opened.array(name)[-1]) for name in opened.names] == list(range(count))


def test_no_second_copy_is_held(path: Path) -> None:
    array = np.zeros((2000, 2000)).T[1:]  # 32 MB that do not lie in order
    container.write(path, {"a": array[:10]})
    tracemalloc.start()
    try:
        container.write(path, {"a": array})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * PIECE_BYTES


def test_two_processes_read_one_file_and_a_new_one_does_not_disturb_them(path: Path) -> None:
    container.write(path, {"a": np.arange(1000)})
    opened = container.open(path)
    program = (
        "import sys, numpy as np\n"
        "from tamis.storage import container\n"
        "with container.open(sys.argv[1]) as opened:\n"
        "    print(opened.array('a').sum())\n"
        "    container.write(sys.argv[1], {'a': opened.array('a') + 1})\n"
        "    print(opened.array('a').sum())\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["499500", "499500"]
    assert opened.array("a").sum() == 499500
    assert container.open(path).array("a").sum() == 500500


# -- refusals


@pytest.mark.parametrize(
    "array",
    [
        np.array([None, "a"], object),
        np.array(["a", "b"]),
        np.array([b"a"]),
        np.array([1j]),
        np.array(["2024-01-01"], "M8[us]"),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, np.float16),
        np.zeros(2, np.longdouble),
        np.array(["a"], np.dtypes.StringDType()),
    ],
    ids=lambda array: str(array.dtype),
)
def test_other_dtypes_are_refused(path: Path, array: npt.NDArray[Any]) -> None:
    with pytest.raises(SnapshotError, match=r"alerts.snapshot: array 'x' has the dtype .*; only booleans"):
        container.write(path, {"x": array})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("arrays", "says"),
    [({"x": [1, 2]}, "'x' is not a NumPy array but a list"), ({5: np.zeros(1)}, "must be a string, not 5")],
)
def test_what_is_no_named_array_is_refused(path: Path, arrays: Any, says: str) -> None:
    with pytest.raises(SnapshotError, match=says):
        container.write(path, arrays)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "meta",
    [{"a": {1, 2}}, {"a": float("nan")}, {"a": np.int64(1)}, {("a",): 1}, {"a": nested(100_000)}, 5, ["a"]],
    ids=["set", "NaN", "NumPy", "tuple as key", "deep", "a number", "a list"],
)
def test_meta_that_is_no_json_is_refused(path: Path, meta: Any) -> None:
    with pytest.raises(SnapshotError, match="`meta` cannot be written as JSON"):
        container.write(path, {}, meta)
    assert list(path.parent.iterdir()) == []


def test_an_unknown_name_gets_a_hint(path: Path) -> None:
    container.write(path, {"start": np.zeros(1)})
    with pytest.raises(SnapshotError, match=r"alerts.snapshot: has no array 'strat'; did you mean 'start'\?"):
        container.open(path).array("strat")


def test_the_other_byte_order_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container.write(path, {})
    monkeypatch.setattr(sys, "byteorder", "big")
    for attempt in (lambda: container.write(path, {}), lambda: container.open(path)):
        with pytest.raises(SnapshotError, match="little-endian machines only"):
            attempt()


def test_the_error_names_the_file(path: Path) -> None:
    with pytest.raises(FileError) as refusal:
        container.open(path)
    assert refusal.value.path == str(path)
    assert isinstance(refusal.value, ValueError)


# -- tables


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["ann", None, "bén", ""]),
        pa.array(["ann", "ben"], pa.large_string()),
        pa.array([1, None, 2**62]),
        pa.array([], pa.string()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([["a"], [], None]),
        pa.chunked_array([["a"], ["b", "c"]]),
        pa.array(["a", "b", "c", "d"])[1:3],
    ],
    ids=["string", "large_string", "int64", "empty", "dictionary", "list", "chunked", "slice"],
)
def test_arrow_arrays_come_back(path: Path, column: Any) -> None:
    container.write(path, {"before": np.zeros(3, np.uint8), "ids": to_bytes(column)})
    back = container.open(path).table("ids").column("values")
    assert back.type == column.type
    assert back.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("kind", [pa.table, pa.record_batch])
def test_tables_come_back_without_a_copy(path: Path, kind: Any) -> None:
    table = kind({"id": [1, 2, 3], "expression": ["a = 1", "b = 2", None]})
    container.write(path, {"subscriptions": to_bytes(table)})
    opened = container.open(path)
    array, back = opened.array("subscriptions"), opened.table("subscriptions")
    first, last = array.ctypes.data, array.ctypes.data + array.nbytes
    for column in back.columns:
        for buffer in column.chunk(0).buffers():
            assert buffer is None or first <= buffer.address < last
    del opened, array
    path.unlink()
    gc.collect()
    assert back.to_pydict() == table.to_pydict()


@pytest.mark.parametrize("array", [np.zeros(0, np.uint8), np.arange(100), np.full(64, 255, np.uint8)])
def test_an_array_that_is_no_table_is_refused(path: Path, array: npt.NDArray[Any]) -> None:
    container.write(path, {"a": array})
    with pytest.raises(SnapshotError, match=r"array 'a' is not a table: read it with array\(\)"):
        container.open(path).table("a")
