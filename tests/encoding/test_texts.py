"""Columns of strings, compared with Python string by string."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.encoding.dimensions.labels import Labels
from tamis.encoding.dimensions.texts import Texts, locate, lowered, reversed_texts, uppered
from tests.random_cases import STRINGS

pytestmark = pytest.mark.kernels

STRING_LISTS = st.lists(
    st.text(max_size=6) | st.sampled_from([*STRINGS, "ΑΣ ΑΣ", "K", "ſ", "İI", "A" * 20]), max_size=20
)


@given(STRING_LISTS, st.integers(0, 3))
def test_case_and_reversal(strings: list[str], skipped: int) -> None:
    column = pa.array(strings).slice(skipped)
    plain = strings[skipped:]
    assert lowered(column).to_pylist() == [text.lower() for text in plain]
    assert uppered(column).to_pylist() == [text.upper() for text in plain]
    assert reversed_texts(column).to_pylist() == [text[::-1] for text in plain]
    assert reversed_texts(lowered(column)).to_pylist() == [text.lower()[::-1] for text in plain]


def test_changed_forms_of_a_column_are_made_once() -> None:
    column = Texts(pa.array(["Ab", "É"]))
    for change in (lowered, uppered):
        changed = change(column)
        assert change(column) is changed
        assert reversed_texts(changed) is reversed_texts(changed)
    assert column.buffers is column.buffers


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "é"], pa.string()),
        pa.array(["a", "é"], pa.large_string()),
        pa.array(["a", "é"], pa.string_view()),
        pa.array(["a", "é"]).dictionary_encode(),
        pa.array(["x", "a", "é", "x"]).slice(1, 2),
    ],
)
def test_any_form_of_strings(column: pa.Array) -> None:
    offsets, data = Texts(column).buffers
    assert [bytes(data[offsets[i] : offsets[i + 1]]).decode() for i in range(2)] == ["a", "é"]


def test_strings_that_are_not_utf8() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(UnicodeDecodeError):
        Texts(broken).check()
    Texts(pa.array(["é", "a"])).check()


def located(constants: list[str], strings: list[str]) -> None:
    labels = Labels(-(2**40), 2**40)
    labels.add(labels.missing(constants))
    keys = locate(pa.array(strings, pa.string()), labels.texts(), labels.label_array(), labels.first + 1)
    assert keys.tolist() == [labels.locate(text) for text in strings]


@given(STRING_LISTS, STRING_LISTS)
def test_strings_among_constants(constants: list[str], strings: list[str]) -> None:
    located(constants, strings + constants)


def test_strings_with_a_common_prefix() -> None:
    chance = random.Random(2)
    heads = ["", "a", "\0", "c:\\windows\\system32\\", "c:\\wind", "c:\\windo", "\U0010ffff" * 2, "\0" * 9, "é" * 5]
    strings = [chance.choice(heads) + "".join(chance.choices("ab\0é", k=chance.randint(0, 4))) for _ in range(300)]
    located(strings[:150], strings)
    located(strings[:1], strings)


def test_no_constants() -> None:
    assert locate(pa.array(["a"]), pa.array([], pa.large_string()), np.zeros(0, np.int64), 9).tolist() == [9]
    assert locate(pa.array([], pa.string()), pa.array(["a"], pa.large_string()), np.array([2]), 9).tolist() == []
