"""Tatbul's example 3 on the structures: constants and a join for all earlier documents.

author = "Smith" AND 10 <= price <= 30 AND for all d (isbn <> d.isbn): "different than the ones that have been received".
"""

from __future__ import annotations

import numpy as np

import tamis
from tamis.earlier.join_table import JoinTable, split
from tamis.earlier.needs import need_of
from tamis.earlier.retained import Retained
from tamis.language.event import FlatEvent, flatten

PROFILE = tamis.parse("author = 'Smith' AND price BETWEEN 10 AND 30 AND isbn <> ALL (SELECT isbn FROM history)")
DOCUMENTS = [
    {"author": "Smith", "price": 20, "isbn": "1-1"},
    {"author": "Smith", "price": 25, "isbn": "1-1"},
    {"author": "Jones", "price": 20, "isbn": "2-2"},
    {"author": "Smith", "price": 40, "isbn": "3-3"},
    {"author": "Smith", "price": 30, "isbn": "3-3"},
    {"author": "Smith", "price": 10, "isbn": "4-4"},
]
"""The first document, the same isbn again, another author, too dear, cheaper with an isbn that was too dear, a new one."""


def test_the_profile_is_a_constant_part_and_a_join() -> None:
    constant, rest, always = split(PROFILE)
    assert str(constant) == "author = 'Smith' AND price BETWEEN 10 AND 30"
    assert str(rest) == "isbn <> ALL (SELECT isbn FROM history)"
    assert always is None


def test_the_join_decides_among_the_candidates() -> None:
    table, retained = JoinTable(), Retained(tamis.History(rows=10))
    slots = np.array([0], np.int32)
    table.put(slots, {0: split(PROFILE)})
    kept: list[int] = []
    for document in map(flatten, DOCUMENTS):
        window = retained.begin(document)
        kept.append(len(table.satisfied(slots, document, window)))
        retained.add(document)
    # The constant part, which the engine decides, is left out here.
    assert kept == [1, 0, 1, 1, 0, 1]
    assert table.decided == len(DOCUMENTS)


def test_the_matcher_combines_both() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("new", PROFILE)
    assert [bool(matcher.match(document)) for document in DOCUMENTS] == [True, False, False, False, False, True]


def test_a_document_without_isbn_makes_it_unknown() -> None:
    """Documents are in no schema. In the paper, nothing is said of a join whose attribute is missing."""
    new: FlatEvent = flatten({"author": "Smith", "price": 20, "isbn": "9-9"})
    [clause] = need_of(PROFILE, one_history=True)
    assert list(map(str, clause)) == ["every earlier event has isbn with some value"]
    assert tamis.evaluate(PROFILE, {"author": "Smith", "price": 20, "isbn": "9-9"}, [{"author": "Smith"}]) is None
    assert new["isbn"] == ("9-9",)
