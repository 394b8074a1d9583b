"""String columns of tables give the same keys as the same events one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encoding.dimensions.dimension import Facet, PatternDimension
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.event_batch import EventBatch, encode_flat
from tamis.encoding.events.event_table import distinct_texts, encode_table, seem_to_differ
from tamis.errors import EventError
from tamis.language.event import flatten
from tests.random_cases import REGEXES, STRINGS

pytestmark = pytest.mark.kernels

TEXT_FACETS = [Facet.STRING, Facet.LOWER, Facet.REVERSED, Facet.LOWER_REVERSED]
NEEDLES = ["a", "ab", "é", "o b", "ß", "😀", "%"]


def dimensions() -> Dimensions:
    """All facets of strings of the attribute a."""
    made = Dimensions()
    for facet in TEXT_FACETS:
        text = made.get("a", facet)
        text.add(text.missing(STRINGS[::3]))
    for facet in (Facet.NEEDLE, Facet.LOWER_NEEDLE, Facet.REGEX, Facet.LOWER_REGEX):
        dimension = made.get("a", facet)
        assert isinstance(dimension, PatternDimension)
        dimension.add(NEEDLES if facet in (Facet.NEEDLE, Facet.LOWER_NEEDLE) else REGEXES)
    return made


def rows(batch: EventBatch) -> list[list[tuple[int, int, int]]]:
    values = list(zip(batch.dimension.tolist(), batch.lo.tolist(), batch.hi.tolist(), strict=True))
    return [sorted(values[batch.start[i] : batch.start[i + 1]]) for i in range(len(batch.start) - 1)]


def check(column: Any) -> None:
    made = dimensions()
    expected = encode_flat([flatten({"a": text}) for text in column.to_pylist()], made)
    assert rows(encode_table(pa.table({"a": column}), made).batch) == rows(expected.batch)


def forms(strings: list[str | None]) -> dict[str, Any]:
    plain = pa.array(strings, pa.string())
    encoded = plain.dictionary_encode()
    given = pa.array([None if text is None else 2 * i for i, text in enumerate(strings)], pa.uint16())
    doubled = pa.array([text or "" for text in strings for _ in range(2)])
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(["ab", None, "É"]))
    return {
        "string": plain,
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "dictionary": encoded,
        "large dictionary": pa.DictionaryArray.from_arrays(given, doubled),
        "dictionary of views": pa.DictionaryArray.from_arrays(
            encoded.indices, encoded.dictionary.cast(pa.string_view())
        ),
        "dictionary with null": with_null,
        "slice": pa.array(["x", "ß", *strings, "y"]).slice(2, len(strings)),
        "slice of a dictionary": pa.array(["x", "ß", *strings, "y"]).dictionary_encode().slice(2, len(strings)),
        "chunks": pa.chunked_array([plain, plain.slice(1), plain.slice(0, 0)]),
        "chunks of dictionaries": pa.chunked_array([encoded, pa.array(["new", None]).dictionary_encode()]),
    }


@pytest.mark.parametrize("form", forms([]))
@pytest.mark.parametrize("with_nulls", [False, True])
def test_any_form(form: str, with_nulls: bool) -> None:
    strings = [None if with_nulls and i % 4 == 1 else text for i, text in enumerate(STRINGS)]
    check(forms(strings)[form])


@pytest.mark.parametrize("form", forms([]))
def test_no_strings(form: str) -> None:
    check(forms([])[form])
    check(forms([None, None])[form])


def test_only_ascii_strings_and_only_other_strings() -> None:
    check(pa.array([text for text in STRINGS if text.isascii()]))
    check(pa.array([text for text in STRINGS if not text.isascii()]))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("sliced", [False, True])
def test_distinct_strings_need_no_dictionary(repeated: bool, sliced: bool) -> None:
    chance = random.Random(1)
    strings = [f"{chance.choice(STRINGS)}{i}" for i in range(1100)]
    strings = chance.choices(strings[:20], k=1100) if repeated else strings
    column = pa.array(["x", *strings]).slice(1) if sliced else pa.array(strings)
    codes, _ = distinct_texts(column)
    assert (codes is None) is not repeated
    check(column)


def test_a_few_equal_neighbours_are_noticed() -> None:
    assert seem_to_differ(pa.array([str(i) for i in range(2000)]))
    assert not seem_to_differ(pa.array([str(i // 4) for i in range(2000)]))


def test_strings_that_are_not_utf8() -> None:
    ends = np.arange(0, 101, dtype=np.int32)
    broken = pa.Array.from_buffers(pa.string(), 100, [None, pa.py_buffer(ends), pa.py_buffer(b"a" * 99 + b"\xff")])
    with pytest.raises(EventError, match="event 99, attribute 'a': a string is not UTF-8"):
        encode_table(pa.table({"a": broken}), dimensions())
    assert len(encode_table(pa.table({"a": broken}), dimensions(), lenient=True).batch.start) == 101
