"""Values to keys: order is kept exactly, one by one and in columns."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.encoding.dimensions.dimension import PRESENT, Facet, NumberDimension, PatternDimension, StringDimension
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.keys import double_code, double_codes, double_value, double_values
from tests.random_cases import NUMBERS, STRINGS

INTEGERS = st.integers(-(2**63), 2**63 - 1)
LARGE = st.one_of(
    st.integers(2**53 - 2, 2**53 + 4),
    st.integers(2**63 - 2000, 2**63 - 1),
    st.integers(-(2**53) - 4, -(2**53) + 2),
    st.sampled_from([2**60 + i for i in range(-300, 300, 7)]),
)
FLOATS = st.floats(allow_nan=False)
ANY_NUMBER = st.one_of(INTEGERS, LARGE, FLOATS, LARGE.map(float))


def number_dimension(constants: list[Any]) -> NumberDimension:
    dimension = Dimensions().get("a", Facet.NUMBER)
    assert isinstance(dimension, NumberDimension)
    dimension.add(dimension.missing(constants))
    return dimension


@given(st.lists(ANY_NUMBER, min_size=1, max_size=6), st.lists(ANY_NUMBER, min_size=1, max_size=6))
def test_a_number_compares_with_a_constant_as_its_key_does(constants: list[Any], values: list[Any]) -> None:
    dimension = number_dimension(constants)
    for constant, value in itertools.product(constants, values):
        key, other = dimension.key(value), dimension.key(constant)
        assert (key < other, key == other) == (value < constant, value == constant), (value, constant)


def test_awkward_numbers_compare_as_their_keys() -> None:
    dimension = number_dimension(NUMBERS)
    for left, right in itertools.product([*NUMBERS, math.inf, -math.inf], NUMBERS):
        assert (dimension.key(left) < dimension.key(right)) is (left < right)
        assert (dimension.key(left) == dimension.key(right)) is (left == right)


@given(st.lists(INTEGERS | LARGE, max_size=20), st.lists(ANY_NUMBER, max_size=8))
def test_integers_in_a_column_have_the_keys_they_have_alone(values: list[int], constants: list[Any]) -> None:
    dimension = number_dimension(constants)
    assert dimension.keys(np.array(values, np.int64)).tolist() == [dimension.key(value) for value in values]


@given(st.lists(FLOATS | LARGE.map(float), max_size=20), st.lists(ANY_NUMBER, max_size=8))
def test_floats_in_a_column_have_the_keys_they_have_alone(values: list[float], constants: list[Any]) -> None:
    dimension = number_dimension(constants)
    assert dimension.keys(np.array(values, np.float64)).tolist() == [dimension.key(value) for value in values]


def test_negative_zero_is_zero() -> None:
    assert double_code(-0.0) == double_code(0.0)
    assert double_codes(np.array([-0.0, 0.0])).tolist() == [0, 0]


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_the_code_of_a_double_gives_the_double(values: list[float]) -> None:
    codes = double_codes(np.array(values, np.float64))
    assert [double_value(code) for code in codes.tolist()] == values
    assert double_values(codes).tolist() == values


@pytest.mark.kernels
@pytest.mark.parametrize("facet", [Facet.STRING, Facet.LOWER, Facet.REVERSED, Facet.LOWER_REVERSED])
@pytest.mark.parametrize("copies", [1, 4])
def test_strings_in_a_column_have_the_keys_they_have_alone(facet: Facet, copies: int) -> None:
    dimension = Dimensions().get("a", facet)
    assert isinstance(dimension, StringDimension)
    values = STRINGS * copies  # Python locates a few strings, the kernel many
    assert dimension.keys(pa.array(values, pa.large_string())).tolist() == [dimension.key(value) for value in values]
    dimension.add(dimension.missing(STRINGS[::3]))
    assert dimension.keys(pa.array(values, pa.large_string())).tolist() == [dimension.key(value) for value in values]


@given(st.lists(st.text(max_size=4), max_size=6), st.lists(st.text(max_size=4), max_size=6))
def test_strings_compare_by_code_point(constants: list[str], values: list[str]) -> None:
    dimension = Dimensions().get("a", Facet.STRING)
    dimension.add(dimension.missing(constants))
    for constant, value in itertools.product(constants, values):
        key, other = dimension.key(value), dimension.key(constant)
        assert (key < other, key == other) == (value < constant, value == constant)


@pytest.mark.parametrize(
    ("facet", "patterns", "text", "found"),
    [
        (Facet.NEEDLE, ["ab", "b", "abc", "x"], "zabz", [0, 1]),
        (Facet.NEEDLE, ["a", "a\0b", "é", "😀"], "a\0b é😀", [0, 1, 2, 3]),
        (Facet.LOWER_NEEDLE, ["ab", "é"], "xAB É", [0, 1]),
        (Facet.REGEX, ["^a", "b$", "a.c"], "abc", [0, 2]),
        (Facet.LOWER_REGEX, [r"\Aa.*z\z"], "A..Z", [0]),
    ],
)
def test_patterns_found_in_a_string(facet: Facet, patterns: list[str], text: str, found: list[int]) -> None:
    dimension = Dimensions().get("a", facet)
    assert isinstance(dimension, PatternDimension)
    dimension.add(patterns)
    assert [dimension.key(pattern) for pattern in patterns] == list(range(len(patterns)))
    assert dimension.hits(text) == [PRESENT, *found]
    assert dimension.hits("") == [PRESENT]
    keys, counts = dimension.keys(pa.array([text, "", text]))
    assert keys.tolist() == [PRESENT, *found, PRESENT, PRESENT, *found]
    assert counts.tolist() == [len(found) + 1, 1, len(found) + 1]


def test_patterns_may_be_added_after_a_search() -> None:
    for facet in (Facet.NEEDLE, Facet.REGEX):
        dimension = Dimensions().get("a", facet)
        assert isinstance(dimension, PatternDimension)
        for number in range(400):  # more than one RE2 set
            dimension.add([f"<{number}>"])
            assert dimension.key(f"<{number}>") == number
            assert dimension.hits(f"x<{number}>") == [PRESENT, number]
        assert dimension.hits("<7><200><399>") == [PRESENT, 7, 200, 399]


def test_a_dimension_is_made_once() -> None:
    dimensions = Dimensions()
    first = dimensions.get("a", Facet.NUMBER)
    assert dimensions.get("a", Facet.NUMBER) is first
    assert dimensions.get("a", Facet.STRING) is not first
    assert [dimension.number for dimension in dimensions] == [0, 1]
    assert dimensions[1].facet is Facet.STRING
