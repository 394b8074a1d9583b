"""Predicates over many strings at once say what the reference evaluator says of each string."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.broker.address_search import in_networks, read_addresses
from tamis.broker.string_search import like
from tamis.broker.strings import Strings, satisfying
from tamis.language.addresses import address_text
from tamis.language.evaluate import evaluate_flat
from tamis.language.expression import CasePredicate, Predicate
from tamis.language.like import LikePattern
from tamis.language.operators import Case, Operator
from tamis.language.values import is_well_formed

pytestmark = pytest.mark.kernels

# Few letters, so that patterns are found: of one to four bytes in UTF-8, two that begin alike, and what patterns treat apart.
_LETTERS = st.sampled_from("aaabbA%_\\\n\x00éèÉ€😀İßΣςK")
TEXTS = st.lists(st.text(_LETTERS, max_size=12) | st.text(max_size=5).filter(is_well_formed), max_size=30)
PATTERNS = st.text(st.sampled_from("aabA%%__é€\\\n"), max_size=8)


def _array(texts: list[str]) -> pa.Array:
    """The texts as an array that does not begin at the beginning of its bytes."""
    return pa.array(["before", *texts, "after"], pa.string())[1:-1]


@settings(max_examples=settings().max_examples // 2)
@given(texts=TEXTS, pattern=PATTERNS, escape=st.sampled_from([None, "\\"]))
@example(texts=[], pattern="%a%", escape=None)
@example(texts=["", ""], pattern="%a%", escape=None)
@example(texts=["", ""], pattern="_%a", escape=None)
@example(texts=["ab", "ba"], pattern="%bb%", escape=None)  # A match must not cross from one string to the next.
@example(texts=["é", "è", "éa"], pattern="%_%a", escape=None)
@example(texts=["é", "e", "éé"], pattern="%_", escape=None)
@example(texts=["é", "e", "éé"], pattern="__%", escape=None)
def test_like(texts: list[str], pattern: str, escape: str | None) -> None:
    try:
        read = LikePattern.read(pattern, escape)
    except ValueError:
        return
    assert like(_array(texts), read).tolist() == list(map(read.matches, texts))


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 200])
@pytest.mark.parametrize("needle", ["x", "xy", "xyz", "y" * 63 + "x", "y" * 64 + "x"])
def test_a_needle_is_found_wherever_it_is(size: int, needle: str) -> None:
    """Bytes are looked at in blocks of 64. The needle lies at all places of a block."""
    texts = [("." * place + needle + "." * size)[:size] for place in range(140)] + ["yy" * size, needle]
    read = LikePattern.read(f"%{needle}%")
    assert like(pa.array(texts), read).tolist() == [needle in text for text in texts]


@pytest.mark.parametrize("runs", [2, 20, 100])
def test_long_patterns(runs: int) -> None:
    texts = ["ab" * count for count in range(0, 130, 3)] + ["ba" * 101, "a", ""]
    for read in map(LikePattern.read, ("%".join(["a", "b"] * runs), "a_" * runs, "%" + "ab" * runs + "%")):
        assert like(pa.array(texts), read).tolist() == list(map(read.matches, texts)), read


_EXPRESSIONS = [
    *("a+b", "^a", "b$", "[^a]", ".", "é", "(?i)a", "(?i)k", r"\pL", r"\w\W", "(a|b)*$"),
    *(
        "aab$",
        "^aab",
        "(aab|bba).",
        "aa[^a]*bb",
        "(?i)AAB",
        "aaé+",
        "(aab|bba|aba)",
        "aab|b",
    ),  # They need "aab" or the like.
]
_PREDICATES = st.one_of(
    st.builds(
        Predicate,
        st.just("a"),
        st.sampled_from([Operator.EQ, Operator.LT, Operator.LE, Operator.GT, Operator.GE]),
        st.tuples(st.text(_LETTERS, max_size=3)),
    ),
    st.builds(Predicate, st.just("a"), st.just(Operator.BETWEEN), st.tuples(st.text(_LETTERS), st.text(_LETTERS))),
    st.builds(Predicate, st.just("a"), st.sampled_from([Operator.LIKE, Operator.ILIKE]), st.tuples(PATTERNS)),
    st.builds(
        Predicate,
        st.just("a"),
        st.just(Operator.RLIKE),
        st.tuples(st.sampled_from(_EXPRESSIONS)),
    ),
    st.builds(
        CasePredicate,
        st.sampled_from(Case),
        st.just("a"),
        st.sampled_from([Operator.EQ, Operator.IN, Operator.LIKE]),
        st.tuples(st.text(st.sampled_from("aAbB%éÉ"), max_size=3)),
    ),
)


@settings(max_examples=settings().max_examples // 2)
@given(texts=TEXTS, predicate=_PREDICATES)
@example(texts=["K", "k", "ſ"], predicate=Predicate("a", Operator.RLIKE, ("(?i)k|s",)))
@example(texts=["xaab", "aabx", "b", "c"], predicate=Predicate("a", Operator.RLIKE, ("aab$",)))
@example(texts=["aabb", "aab"], predicate=Predicate("a", Operator.RLIKE, ("aab$",)))
@example(texts=["İ", "ΑΣ"], predicate=Predicate("a", Operator.ILIKE, ("%̇%",)))
def test_predicates(texts: list[str], predicate: Predicate) -> None:
    strings, half = Strings(), len(texts) // 2
    literals = [str(value) for value in predicate.values]
    codes: list[int] = []
    for part in (texts[:half], texts[half:]):  # Strings come after a predicate was asked, too.
        codes += map(strings.code, part)
        known = texts[: len(codes)]
        found = satisfying(predicate, literals, strings)
        if found is None:
            assert predicate.operator is Operator.RLIKE
            assert not all(map(str.isascii, known))
        else:
            expected = [evaluate_flat(predicate, {"a": (text,)}) is True for text in known]
            assert found[np.array(codes, np.int64)].tolist() == expected


_ADDRESSES = st.one_of(
    st.ip_addresses().map(str),
    st.ip_addresses(v=6).map(lambda address: address.exploded.upper()),
    st.builds("{}{}".format, st.sampled_from(["::ffff:", "::", "1:2:3:4:5:6:", "1::"]), st.ip_addresses(v=4)),
    st.text(st.sampled_from("0012569afAFg:::..%/"), max_size=20),
    st.lists(st.sampled_from(["", "0", "1", "12", "255", "ffff", "00ab", "12345", "1.2.3.4"]), max_size=10).map(
        ":".join
    ),
    st.lists(st.sampled_from(["", "0", "1", "01", "00", "255", "256", "1000"]), max_size=5).map(".".join),
    st.text(max_size=8).filter(is_well_formed),
)
_NETWORKS = (
    "0.0.0.0/0", "10.0.0.0/8", "1.2.3.4", "128.0.0.0/1", "255.255.255.255", "::/0", "::", "::ffff:0.0.0.0/96", "8000::/1",
    "::/64", "::ffff:1.0.0.0/104", "1:2:3:4::/64", "1:2:3:4:5:6::/95", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0:0:1::/48",
)  # fmt: skip


@settings(max_examples=settings().max_examples // 2)
@given(texts=st.lists(_ADDRESSES, max_size=30), networks=st.lists(st.sampled_from(_NETWORKS), min_size=1, max_size=3))
@example(
    texts=["1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::8", ":", "::", ":::", "1:", ":1"], networks=["::/0"]
)
@example(
    texts=["1.2.3.4.", ".1.2.3.4", "1.2.3.4:", "::1.2.3.4:5", "::1.2.3", "::1.2.3.04", "::ffff:1.2.3.4"],
    networks=["::/0"],
)
def test_addresses(texts: list[str], networks: list[str]) -> None:
    expected = list(map(address_text, texts))
    read = read_addresses(_array(texts))
    assert read.family.tolist() == [0 if text is None else int(text[0]) for text in expected]
    order = np.lexsort((read.low, read.high, read.family))  # Words ascend as addresses do.
    assert [expected[row] or "" for row in order] == sorted(text or "" for text in expected)
    predicate = Predicate("a", Operator.IP_IN, tuple(networks))
    assert in_networks(read, networks).tolist() == [evaluate_flat(predicate, {"a": (text,)}) is True for text in texts]


def test_addresses_follow_new_strings() -> None:
    strings, predicate = Strings(), Predicate("a", Operator.IP_IN, ("10.0.0.0/8", "::1"))
    for count, text in enumerate(("10.0.0.1", "no", "11.0.0.1", "::1"), 1):
        strings.code(text)
        found = satisfying(predicate, ["10.0.0.0/8", "::1"], strings)
        assert found is not None
        assert found.tolist() == [True, False, False, True][:count]
    assert strings.kept(np.array([1, 3], np.int32)).addresses().family.tolist() == [0, 6]


@pytest.mark.parametrize("few_to_know", [0, 100])
def test_strings_of_a_file_and_new_ones(few_to_know: int) -> None:
    strings = Strings(pa.array(["a", "B", "c", "c"]), few_to_know=few_to_know)
    assert strings.codes(["B"]) == [1]
    assert strings.codes(["c"]) == [2, 3]
    assert strings.codes(["B", "x", "c"]) == [1, 2, 3]
    codes = [strings.code(text) for text in ("B", "D", "B", "D", "a")]
    assert [strings.texts()[code].as_py() for code in codes] == ["B", "D", "B", "D", "a"]
    assert strings.codes(["D"]) == [codes[1]]
    assert sorted({1, codes[0]}) == strings.codes(["B"])
    assert strings.codes(["E"]) == []
    assert len(strings) == len(strings.texts())
    assert (len(strings) == 5) == (few_to_know == 100)
    later = strings.code("Later")
    assert strings.cased(Case.LOWER).to_pylist() == [text.lower() for text in strings.texts().to_pylist()]
    kept = strings.kept(np.array([1, later], np.int32))
    assert kept.texts().to_pylist() == ["B", "Later"]
    assert (kept.code("B") == 0) == (few_to_know == 100), "the limit also holds for the strings that are kept"


def test_the_other_case_follows_new_strings() -> None:
    strings = Strings()
    for text in ("Abc", "É", "x", "ß", "İ"):
        strings.code(text)
        for case in Case:
            assert strings.cased(case).to_pylist() == [case.change(each) for each in strings.texts().to_pylist()]


def test_many_new_strings_keep_their_codes() -> None:
    """They become arrays in portions, also if somebody looks at them between two portions."""
    strings = Strings(pa.array(["old"]))
    expected = ["old"]
    for number in range(10_000):
        assert strings.code(f"new {number}") == len(expected)
        expected.append(f"new {number}")
        if number in (0, 4094, 4095, 4096, 9000):
            assert strings.texts().to_pylist() == expected
        assert len(strings) == len(expected)
    assert strings.texts().to_pylist() == expected
    assert strings.codes_of(["new 9999", "old", "another"]) == [10_000, 0, 10_001]
    assert strings.codes(["new 4095"]) == [4096]
