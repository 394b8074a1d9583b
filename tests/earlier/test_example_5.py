"""Tatbul's example 5 on the structures: the documents that satisfy each join, the table, and the answer.

P1 exists price < d.price, P2 for all year > d.year, P3 exists author = d.author. D1 is 10/2000/Smith, D2 25/1999/- and the new
document 30/2001/Smith. The document vectors are 00, 11 and 10, and the result is 011.
"""

from __future__ import annotations

import numpy as np

import tamis
from tamis.earlier.join_table import EventJoins, JoinTable, Split, split
from tamis.earlier.key_ranges import satisfying
from tamis.earlier.retained import Retained
from tamis.language.event import flatten
from tamis.language.expression import FALSE
from tamis.language.joins import Quantified

DOCUMENTS = [{"price": 10, "year": 2000, "author": "Smith"}, {"price": 25, "year": 1999}]
NEW = flatten({"price": 30, "year": 2001, "author": "Smith"})
PROFILES = [
    "price < ANY (SELECT price FROM history)",
    "year > ALL (SELECT year FROM history)",
    "author = ANY (SELECT author FROM history)",
]


def join(text: str) -> Quantified:
    read = tamis.parse(text)
    assert isinstance(read, Quantified)
    return read


def documents() -> Retained:
    retained = Retained(tamis.History(rows=9))
    for document in DOCUMENTS:
        flat = flatten(document)
        retained.begin(flat)
        retained.add(flat)
    return retained


def splits(*profiles: str) -> dict[int, Split]:
    return dict(enumerate(map(split, map(tamis.parse, profiles))))


def test_document_vectors() -> None:
    retained = documents()
    window = retained.begin(NEW)
    found = []
    for each in map(join, PROFILES):
        wanted = retained.log.column(each.earlier).ranges(satisfying(NEW[each.attribute], each.operator))
        index = window.index(each.earlier)
        found.append(sorted(index.candidates(wanted).tolist()))
        assert index.count(wanted) == len(found[-1])
    assert found == [[], [0, 1], [0]]


def test_join_table() -> None:
    table, window = JoinTable(), documents().begin(NEW)
    slots = np.arange(6, dtype=np.int32)
    # Two subscriptions share each join.
    parts = splits(*PROFILES, *PROFILES)
    table.put(slots, parts)
    table.show(slots, parts)
    assert (len(table), table.joins()) == (4, 3)  # FALSE stands for the constant part that no event has.
    profiles = {str(each.expression): each.slots.tolist() for each in table.always()}
    assert profiles == {profile: [slot, slot + 3] for slot, profile in enumerate(PROFILES)}
    assert table.satisfied(slots[:0], NEW, window, table.always()).tolist() == [1, 4, 2, 5]
    assert table.decided == 3
    assert window.indexed() == {"price", "year", "author"}


def test_rests_decide_among_candidates() -> None:
    table, window = JoinTable(), documents().begin(NEW)
    slots = np.arange(6, dtype=np.int32)
    table.put(slots, splits(*(f"price > {number} AND {PROFILES[number % 3]}" for number in range(6))))
    assert (len(table), table.joins(), table.always()) == (3, 3, ())
    assert table.satisfied(slots, NEW, window).tolist() == [1, 2, 4, 5]
    assert table.decided == 3


def test_a_document_without_the_attribute_makes_all_unknown() -> None:
    """The paper calls it false. Under NOT, that would be a match."""
    joins = EventJoins(NEW, documents().begin(NEW))
    assert joins.truth(join("author = ALL (SELECT author FROM history)")) is None
    assert joins.truth(join("author <> ALL (SELECT author FROM history)")) is False


def test_slots_that_go_take_their_joins_with_them() -> None:
    table = JoinTable()
    slots = np.array([3, 5], np.int32)
    parts = splits(f"a = 1 AND {PROFILES[0]}", PROFILES[0])
    table.put(slots, parts)
    table.show(slots, parts)
    table.remove(3)
    assert not table.tidy()
    assert len(table) == 2
    table.remove(5)
    assert len(table) == 2  # An event that is being matched may still need them.
    assert table.tidy()
    assert (len(table), set(table.attributes()), table.always()) == (0, set(), ())


def test_a_slot_that_is_given_again_has_no_old_rest() -> None:
    table, window = JoinTable(), documents().begin(NEW)
    slots = np.array([3], np.int32)
    table.put(slots, splits(f"a = 1 AND {PROFILES[0]}"))
    assert table.satisfied(slots, NEW, window).tolist() == []
    table.remove(3)
    table.put(slots, {})
    assert table.satisfied(slots, NEW, window).tolist() == [3]
    assert not table.gone


def test_an_expression_of_joins_alone_has_no_candidates() -> None:
    assert split(tamis.parse(PROFILES[0])).rest == FALSE
    constant, rest, always = split(tamis.parse(f"a = 1 OR {PROFILES[0]}"))
    assert (str(constant), rest, str(always)) == ("a = 1", None, PROFILES[0])
