"""The elements of a JSON array, wherever blocks and lines end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.cli.byte_stream import ByteStream
from tamis.cli.json_array import CUT_OFF, JsonArray, in_one_line


class Blocks(ByteStream):
    """A stream of given blocks."""

    def __init__(self, blocks: list[bytes]) -> None:
        self._blocks = iter([*blocks, b""])
        self.name = "blocks"

    def block(self, most: int = 0) -> bytes:
        return next(self._blocks)

    def close(self) -> None:
        pass


def found(*blocks: bytes) -> list[tuple[int, bytes | str]]:
    return [(line, problem or data) for line, data, problem in JsonArray(Blocks([*blocks]))]


def test_elements_and_their_lines() -> None:
    text = b'\n[ {"a": 1},\n\n  {\n "b": [1, {"c": "],[}"}]\n },\n3, "x\\"]" ]\n\n'
    assert found(text) == [
        (2, b'{"a": 1}'),
        (4, b'{\n "b": [1, {"c": "],[}"}]\n }'),
        (7, b"3"),
        (7, b'"x\\"]"'),
    ]


@pytest.mark.parametrize("text", [b"[]", b" [ \n ] \n"])
def test_an_empty_array(text: bytes) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[1,\n2", (2, CUT_OFF)),
        (b"[", (1, CUT_OFF)),
        (b'[1, "open', (1, CUT_OFF)),
        (b"[1,\n,2]", (1, "a comma in the JSON array has no value before or after it")),
        (b"[1\n,]", (2, "a comma in the JSON array has no value before or after it")),
        (
            b"[1]\n\n[2]",
            (
                3,
                "there is more text after the end of the JSON array. Hint: a file holds one array, or one object per line",
            ),
        ),
    ],
)
def test_what_is_wrong(text: bytes, problem: tuple[int, str]) -> None:
    assert problem in found(text)


JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(JSON, max_size=5), indent=st.none() | st.just(2), sizes=st.lists(st.integers(1, 9), min_size=1))
def test_any_array_in_any_blocks(values: list[object], indent: int | None, sizes: list[int]) -> None:
    text = json.dumps(values, indent=indent).encode()
    blocks: list[bytes] = []
    while text:
        size = sizes[len(blocks) % len(sizes)]
        blocks.append(text[:size])
        text = text[size:]
    assert [json.loads(data) for _, data in found(*blocks) if isinstance(data, bytes)] == values


def test_memory_is_bounded_by_an_element(tmp_path: Path) -> None:
    path = tmp_path / "one-line.json"
    path.write_text(json.dumps([{"n": n} for n in range(50_000)]))
    array = JsonArray(ByteStream(str(path)))
    longest = max(len(array.buffer) for _ in array)
    assert longest < 2 * (1 << 16)


def test_in_one_line() -> None:
    assert in_one_line(b'{\r\n  "a": 1.0,\n  "b": "x y"\n}') == b'{ "a": 1.0, "b": "x y" }'
