"""Encoding one event: the fast path gives the same keys and errors as flattening and encoding value by value."""

from __future__ import annotations

import ctypes
import math
import random
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.encoding.dimensions.dimension import Facet
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.keys import INT_EXACT, ascend, double_code
from tamis.encoding.events import event_batch as events
from tamis.encoding.events.event_batch import EncodedEvents, EventBatch, encode_flat, encode_plain
from tamis.encoding.events.one_event import HEAD, OneEvent, unpack_event
from tamis.encoding.expressions.compile import Compiler
from tamis.errors import EventError
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.packed import address_of
from tamis.language.event import flatten
from tamis.language.expression import Expression
from tamis.language.parser import parse
from tamis.language.values import Interval
from tamis.matcher.matcher import Matcher
from tests.random_cases import NUMBERS, STRINGS, TIMES, RandomCases


class Colour(StrEnum):
    RED = "a"


class OldColour(str, Enum):  # noqa: UP042 - its hash is that of the member's name, not of the text
    RED = "a"


class AnyCase(str):
    """A name that is equal to the same name in another case."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(str.lower(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.lower(self) == str.lower(other)


class Odd(type):
    """A metaclass whose classes cannot be hashed."""

    def __eq__(cls, other: object) -> bool:
        raise ValueError("cannot be compared")

    __hash__ = None  # type: ignore[assignment]


class Unhashable(metaclass=Odd):
    pass


class Frozen(Mapping[str, Any]):
    """A mapping that is not a dict, and may raise errors."""

    def __repr__(self) -> str:
        return "Frozen"

    def __init__(self, inner: dict[str, Any], *, fails: bool = False) -> None:
        self.inner = inner
        self.fails = fails

    def __getitem__(self, key: str) -> Any:
        return self.inner[key]

    def __iter__(self) -> Iterator[str]:
        if self.fails:
            raise LookupError("cannot be read")
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)


def encode_event(event: Mapping[str, Any], dimensions: Dimensions) -> EncodedEvents:
    """One event as stores encode it."""
    encoded = encode_plain(event, dimensions)
    return encode_flat([flatten(event)], dimensions) if encoded is None else encoded


def dimensions_of(*expressions: str | Expression) -> Dimensions:
    dimensions = Dimensions()
    compiler = Compiler(dimensions, lambda dimension, relabelling: None)
    compiler.compile_many([parse(each) if isinstance(each, str) else each for each in expressions])
    return dimensions


def slowly(event: Any, dimensions: Dimensions) -> EncodedEvents:
    return encode_flat([flatten(event)], dimensions)


def rows(encoded: EncodedEvents) -> Any:
    """The keys of every dimension, in their order. The keys of one dimension must be neighbours."""
    start, dimension, lo, hi = encoded.batch
    assert [array.dtype for array in encoded.batch] == [np.int64, np.int32, np.int64, np.int64]
    assert all(array.flags.c_contiguous and array.flags.writeable for array in encoded.batch)
    assert start.tolist() == [0, len(dimension)]
    assert len(lo) == len(hi) == len(dimension)
    numbers = dimension.tolist()
    runs = [number for at, number in enumerate(numbers) if at == 0 or numbers[at - 1] != number]
    assert len(runs) == len(set(runs)), "values of one dimension are apart"
    values = list(zip(numbers, lo.tolist(), hi.tolist(), strict=True))
    return sorted(values, key=lambda value: value[0]), encoded.mismatched


def outcome(encode: Any, event: Any, dimensions: Dimensions) -> Any:
    try:
        return rows(encode(event, dimensions))
    except Exception as error:
        return type(error), str(error), getattr(error, "attribute", None), getattr(error, "row", None)


def check(event: Any, dimensions: Dimensions) -> None:
    expected = outcome(slowly, event, dimensions)
    for guess in (False, True):
        dimensions.numbers_expected = guess
        assert outcome(encode_event, event, dimensions) == expected, event
        assert packed_outcome(event, dimensions) in (None, expected), event


@lean_kernel
def unpacked(words: Any, start: Any, place: Any) -> bool:
    return bool(unpack_event(words, start, place))


def packed_outcome(event: Any, dimensions: Dimensions) -> Any:
    """The keys of an event that `OneEvent.pack` packs three times, so that forms are made. None if it cannot pack the event."""
    room = OneEvent()
    outcomes = []
    for _ in range(3):
        mismatched = room.pack(event, dimensions)
        if mismatched is None:
            return None
        start, place = np.zeros(2, np.int64), np.zeros(6, np.int64)
        place[2] = address_of(room.words) + 8 * HEAD
        if not unpacked(room.words, start, place):
            numbers = [value for value in event.values() if isinstance(value, int | float)]
            assert any(not abs(value) < INT_EXACT for value in numbers), event
            return None
        assert unpacked(room.words, start, place)
        count = int(start[1])
        assert place.tolist()[1::2] == [count, count, count]
        dimension = np.frombuffer(ctypes.string_at(int(place[0]), 4 * count), np.int32).copy()
        lo = room.words[HEAD : HEAD + count].copy()
        highest = HEAD + int(place[4] - place[2]) // 8
        hi = room.words[highest : highest + count].copy()
        outcomes.append(rows(EncodedEvents(EventBatch(start, dimension, lo, hi), mismatched)))
    assert all(each == outcomes[0] for each in outcomes)
    return outcomes[0]


# Attributes of every sort: only numbers, only strings in each facet, all at once, presence, patterns, other kinds.
DIMENSIONS = dimensions_of(
    "a > 3 OR a = 9007199254740993",
    "b < 2.5",
    "c = 'abc' OR c >= 'z'",
    "d ILIKE 'ab%'",
    "e LIKE '%b'",
    "f LIKE '%b%'",
    "g IS NULL",
    "h > 1 OR h = 'x'",
    "i = 1 OR i IS NOT NULL",
    "j = TRUE",
    "k > TIMESTAMP '2026-11-14 10:00:00'",
    "l = 'x' OR l LIKE '%y' OR l RLIKE 'z'",
    "n.x = 1",
    "n.y = 'abc'",
    '"é" = 1',
    "\"ü\" = 'x'",
)
NAMES = [*"abcdefghijkl", "n", "n.x", "n.y", "é", "ü", "unasked", "also.unasked", "ungefragt-ö", "A"]
HOSTILE_NAMES: list[Any] = [
    "", 1, None, Colour.RED, OldColour.RED, np.str_("b"), AnyCase("A"), AnyCase("C"), "\ud800", "a\ud800", ("a",),
]  # fmt: skip
PLAIN: list[Any] = [*NUMBERS, *STRINGS, True, False, None, math.nan, math.inf, -math.inf]
LESS_PLAIN: list[Any] = [
    *TIMES, Interval(1, 2), Interval(2**53, 2**53 + 1), Interval(date(2026, 1, 1), datetime(2027, 1, 1)), [], [1], [2, 1, "b"],
    ["abc", None, "ab"], (1.5, True), {3}, frozenset(["x"]), [Interval(1, 2), 7], [math.nan], [2**60 + 1, 0.5],
    np.float64(1.5), np.int32(3), np.bool_(True), np.str_("abc"), np.float64("nan"), np.array([1, 2]), np.array(5),
    Decimal("1.5"), Decimal("NaN"), Colour.RED, OldColour.RED, {}, {"x": 1}, {"y": "abc", "z": None}, {"x": None},
    {"x": {"deep": 1}}, Frozen({"x": 1}), np.datetime64("2026-11-14"), datetime(2026, 11, 14, 12, tzinfo=UTC),
]  # fmt: skip
REFUSED: list[Any] = [
    2**63, -(2**63) - 1, 10**400, -(10**400), "\ud800", "é\udfff", b"x", object(), 1j, range(3), [[1]], [{"x": 1}], ["\ud800"],
    [2**63], {"": 1}, {1: 2}, {"x": b"x"}, {"\ud800": 1}, np.zeros((2, 2)), np.timedelta64(5, "ns"), Unhashable(),
    Frozen({"x": 1}, fails=True),
]  # fmt: skip


@pytest.mark.parametrize("value", [*PLAIN, *LESS_PLAIN, *REFUSED], ids=lambda value: type(value).__name__)
def test_any_value_of_any_attribute(value: Any) -> None:
    for name in [*NAMES, *HOSTILE_NAMES]:
        check({name: value}, DIMENSIONS)
        check({"unasked": 1, name: value, "b": 2}, DIMENSIONS)


@pytest.mark.parametrize("seed", range(6))
def test_random_events(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(700):
        pools = chance.choice([[PLAIN], [NUMBERS], [NUMBERS, STRINGS], [PLAIN, LESS_PLAIN]])
        event = {name: chance.choice(chance.choice(pools)) for name in chance.sample(NAMES, chance.randint(0, 12))}
        check(event, DIMENSIONS)


@pytest.mark.parametrize("seed", range(4))
def test_random_events_with_errors(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        event: dict[Any, Any] = {}
        for _ in range(chance.randint(1, 8)):
            name = chance.choice(HOSTILE_NAMES if chance.random() < 0.1 else NAMES)
            event[name] = chance.choice(REFUSED if chance.random() < 0.15 else chance.choice([PLAIN, LESS_PLAIN]))
        check(event, DIMENSIONS)


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int) -> None:
    cases = RandomCases(seed)
    for _ in range(10):
        dimensions = dimensions_of(*[cases.expression() for _ in range(8)])
        for _ in range(60):
            check(cases.event(), dimensions)


@pytest.mark.parametrize(
    "event",
    [
        {"n": {"x": 1}, "n.x": 2},
        {"n.x": 2, "n": {"x": 1}},
        {"n.x": 2, "n": {"x": 1}, "a": b"x"},
        {"n.x": 2**64, "n": {"x": 1}},
        {"n.x": 2, "n": {"x": None}},
        {"n.x": None, "n": {"x": 1}},
        {"n.x": math.nan, "n": {"x": 1}},
        {"n": {"x": 1}, "n.x": [2]},
        {"n.z": 1, "n": {"z": 1}},
        {"n": {"y.z": 1, "y": {"z": 1}}},
        {"a": 1, OldColour.RED: 2},
        {"a": 2**64, "j": b"x"},
        {"j": b"x", "a": 2**64},
        {"j": True, "": 1},
        {"": 1},
        {"a": 2**64, "n": Frozen({"x": 1}, fails=True)},
    ],
    ids=str,
)
def test_events_that_must_be_flattened_as_a_whole(event: Any) -> None:
    check(event, DIMENSIONS)


@pytest.mark.parametrize("event", [None, [("a", 1)], "a", OrderedDict(a=1), Frozen({"a": 1, "n": {"x": 2}})], ids=str)
def test_events_that_are_not_dicts(event: Any) -> None:
    check(event, DIMENSIONS)


def test_the_error_is_the_same_as_that_of_flatten() -> None:
    with pytest.raises(EventError, match="attribute 'a': the integer 9223372036854775808 is beyond 64 bits"):
        encode_event({"b": 1.0, "a": 2**63}, DIMENSIONS)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"a": 1, "b": 2.5},
        {"a": -0.0, "b": math.inf},
        {"a": math.nan, "b": 2},
        {"a": 2**53 + 1, "b": -(2**63)},
        {"a": 1, "c": "abc", "d": "ABC", "e": "é", "unasked": "x", "other": 2**60},
        {"a": 1, "b": None, "unasked": None, "é": 1},
        {"a": 1, "j": True, "k": date(2026, 1, 1), "f": "abc", "g": 1, "h": 2, "c": ["x", "y"]},
        {"a": 1, "n": {"x": 1, "y": "abc"}, "b": Interval(1, 2)},
        {"a": 1, "ungefragt-ö": 2},
    ],
    ids=str,
)
def test_an_event_without_errors_takes_the_fast_path(event: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rows(slowly(event, DIMENSIONS))
    monkeypatch.setattr(events, "encode_flat", None)
    for _ in range(2):
        assert rows(encode_event(event, DIMENSIONS)) == expected


def test_numbers_are_expected_after_numbers() -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"a": 1, "b": 2.0}, True),
        ({"a": 3, "b": math.nan}, True),
        ({"a": 1, "c": "x"}, False),
        ({"a": 1}, True),
        ({"a": 1, "unasked": 1}, False),
        ({}, True),
        ({"a": True}, False),
    ]
    for event, expected in cases:
        encode_event(event, DIMENSIONS)
        assert DIMENSIONS.numbers_expected is expected


def test_lows_and_highs_are_one_array_unless_there_is_an_interval() -> None:
    batch = encode_event({"a": 1, "c": "x", "j": True, "k": [date(2026, 1, 1)]}, DIMENSIONS).batch
    assert batch.lo is batch.hi
    batch = encode_event({"a": 1, "c": "x", "b": Interval(1, 2)}, DIMENSIONS).batch
    assert (batch.lo != batch.hi).tolist() == [False, False, True]


def test_an_attribute_that_gets_another_dimension() -> None:
    dimensions = Dimensions()
    for attribute, facet in [
        ("a", Facet.NUMBER),
        ("c", Facet.STRING),
        ("a", Facet.PRESENCE),
        ("c", Facet.LOWER),
        ("b", Facet.NEEDLE),
        ("b", Facet.NUMBER),
    ]:
        dimensions.get(attribute, facet)
        for event in ({"a": 1}, {"c": "x"}, {"a": 1, "c": "X", "b": "y"}, {"a": "x", "c": 1, "b": 2}):
            check(event, dimensions)
    assert (dimensions.only_number, dimensions.only_text) == ({}, {})


def test_dimensions_that_get_new_numbers() -> None:
    dimensions = dimensions_of("a = 1 AND b = 2", "c = 'x' AND d ILIKE 'y'", "e = 5 OR e IS NULL")
    event = {"a": 1, "b": 2, "c": "x", "d": "Y", "e": 5}
    check(event, dimensions)
    kept = dimensions.kept([dimension.number for dimension in dimensions if dimension.attribute != "a"])
    check(event, kept)
    assert "a" not in kept.only_number
    assert kept.only_number["b"] == 0


def test_labels_that_move() -> None:
    dimensions = dimensions_of("c IN ('m', 'n')", "d ILIKE 'm%' OR d ILIKE 'n%'")
    moved = 0
    for length in range(1, 80):
        text = "m" + ("bd" * length)[:length] + "c"  # between the last two texts, alternately above and below
        for attribute, facet in (("c", Facet.STRING), ("d", Facet.LOWER)):
            dimension = dimensions.get(attribute, facet)
            for relabelling in dimension.add(dimension.missing([text])):
                relabelling.carry_out()
                moved += 1
        check({"c": text, "d": text}, dimensions)
        check({"c": text + "b", "d": "N"}, dimensions)
    assert moved > 0


def test_many_attributes() -> None:
    dimensions = Dimensions()
    for number in range(3000):
        dimensions.get(f"a{number}", Facet.NUMBER if number % 3 else Facet.STRING)
    check({f"a{number}": number if number % 3 else str(number) for number in range(3000)}, dimensions)
    check({f"a{number}": 0.5 for number in range(3000) if number % 3}, dimensions)


@pytest.mark.kernels
@pytest.mark.parametrize("index", ["auto", "scan"])
def test_arrays_that_events_share_do_not_change(index: str) -> None:
    matcher = Matcher(index)
    matcher.add_many([1, 2], ["a > 1 AND b <> 3", "c = 'x' OR NOT a < 5"])
    for _ in range(2):
        assert sorted(matcher.match({"a": 7, "b": 2, "c": "x"})) == [1, 2]
        assert matcher.match({"a": 2, "b": 2, "c": "y"}) == [1]
        assert matcher.match({"a": 1}) == []
    dimensions = dimensions_of("a > 1 AND b <> 3", "c = 'x'")
    for event in ({"a": 7, "b": 2, "c": "x"}, {"a": 1}):
        first, second = (encode_plain(event, dimensions) for _ in range(2))
        assert first is not None
        assert second is not None
        assert first.batch.start is second.batch.start  # These events share it with those of the matcher.
        assert first.batch.start.tolist() == [0, len(event)]


@pytest.mark.kernels
@given(st.lists(st.floats() | st.floats(-(2.0**53), 2.0**53) | st.sampled_from([0.0, -0.0, 2.0**53, -(2.0**53)])))
def test_bits_ascend_to_codes(values: list[float]) -> None:
    bits = np.array(values, np.float64).view(np.int64)
    assert bool(ascend(bits)) is all(-INT_EXACT < value < INT_EXACT for value in values)
    for value, code in zip(values, bits.tolist(), strict=True):
        assert math.isnan(value) or code == double_code(value)


@pytest.mark.kernels
def test_forms_are_made_for_numbers_that_repeat() -> None:
    dimensions = dimensions_of("a > 3", "b > 3", "c = 'x'")
    room = OneEvent()
    events_given: list[dict[str, Any]] = [
        {"a": 1, "b": 2},
        {"b": 1, "a": 2},
        {"a": 1, "c": "x"},
        {"a": 1, "unasked": 2},
    ]
    for event in events_given * 3:
        assert room.pack(event, dimensions) == 0
    assert {names: bool(form) for names, form in dimensions.forms.items()} == {
        "a\0b": True,
        "b\0a": True,
        "a\0unasked": True,
    }
    for odd in ({"a": True, "b": 2}, {"a": "1", "b": 2}, {"a": None, "b": 2}, {AnyCase("A"): 1, "b": 2}):
        check(odd, dimensions)
    Compiler(dimensions, lambda dimension, relabelling: None).compile_many([parse("a = 'text'")])
    assert dimensions.forms == {}
    check({"a": 1, "b": 2}, dimensions)


@pytest.mark.kernels
@pytest.mark.parametrize(
    "asked", [(), ("a > 3",), ("a > 3", "b > 3"), ("a > 3", "b.c = 4"), ("a > 3", "b > 3", "b.c = 4")]
)
def test_forms_leave_out_what_nobody_asks_about(asked: tuple[str, ...]) -> None:
    dimensions = dimensions_of(*asked)
    room = OneEvent()
    for _ in range(2):
        assert room.pack({"x": "text", "b": 2.5, "a": 1, "y": "more"}, dimensions) == 0
    (form,) = dimensions.forms.values()
    assert form
    for other in (
        "text",
        "\ud800",
        "",
        None,
        True,
        2**80,
        math.nan,
        7,
        {"c": 4},
        {"c": "4"},
        [4],
        [{"c": 4}],
        Decimal(4),
        b"c",
    ):
        check({"x": other, "b": 2.5, "a": 1, "y": "more"}, dimensions)
        check({"x": "text", "b": other, "a": 1, "y": "more"}, dimensions)
        check({"x": "text", "b": 2.5, "a": other, "y": other}, dimensions)
        # An event of the form with other values does not make the form again.
        assert dimensions.forms == {"x\0b\0a\0y": form}


@pytest.mark.kernels
def test_names_that_contain_the_separator_have_no_form() -> None:
    dimensions = Dimensions()
    for name in ("a", "b", "a\0b"):
        dimensions.get(name, Facet.NUMBER)
    room = OneEvent()
    for event in ({"a\0b": 1}, {"a\0b": 1}, {"a\0b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 2}):
        assert room.pack(event, dimensions) == 0
    for event in ({"a\0b": 1}, {"a": 1, "b": 2}):
        check(event, dimensions)


@pytest.mark.kernels
def test_forms_are_bounded() -> None:
    dimensions = dimensions_of(*(f"a{number} > 3" for number in range(6)))
    room = OneEvent(most_forms=3)
    for number in range(6):
        for _ in range(3):
            assert room.pack({f"a{number}": 1}, dimensions) == 0
            assert len(dimensions.forms) <= 3


@pytest.mark.kernels
def test_an_event_of_any_size_has_room() -> None:
    dimensions = dimensions_of("a > 3", "c = 'x'")
    room = OneEvent()
    event = {"a": list(range(2000)), "c": "x", "unasked": 1}
    for _ in range(2):
        assert room.pack(event, dimensions) == 0
    assert sum(room.words[:2].tolist()) == 2001
    assert room.pack({"a": Interval(1, 2)}, dimensions) == 0
    assert room.words[:3].tolist() == [0, 1, 1]
    numbers = {f"x{number}": number for number in range(3000)}
    assert OneEvent().pack(numbers, dimensions) == 0
