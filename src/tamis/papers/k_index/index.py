"""`k-index`: a posting list of conjunctions for every size, attribute and value.

Whang et al., Indexing Boolean Expressions, VLDB 2009. Two other papers describe it: Zhang, Chan and Tan, An Efficient
Publish/Subscribe Index for E-Commerce Databases, VLDB 2014, section 3 with Figure 2, and Sadoghi and Jacobsen, BE-Tree, SIGMOD
2011, section 7.2.

Conjunctions are divided by their size K. Within K, a conjunction is in the list of every (attribute, value) that satisfies one of
its predicates; ranges are enumerated (`enumeration`). An event has one list for each of its attributes. A conjunction of size K
is true of the event if K of these lists hold it, so K is at most the event's size.

    directory    (2, A) (2, B) ..    the group of a size and a dimension: a hash table of (K, dimension * 2), and
                    0      1         (K, dimension * 2 + 1) for the gaps
    base            0      8   ..    the first list of a group
    width           8      3   ..    how many lists it has, in the order of their cells
    least           1      3   ..    its first cell
    values         -1      0   ..    where its cells are in `cell`; -1: all from `least` on have a list
    cell                   3 6 9 ..
    start           0 1 3 4 5 ..     entries of list l: start[l] .. start[l + 1]
    data            S2 | S1 S2 | S2 | ..
    sizes           1 2 3 4          the K that occur
    always          S7 ..            K = 0: nothing to enumerate, evaluated for every event
    doubtful        0 0 1 ..         by conjunction: has predicates that no list holds

*Conjunction algorithm*, within one K: the lists of the event are sorted by their current conjunction. If the first and the K-th
have the same one, it is found, and all K move on. Otherwise no conjunction before the K-th's can be in K lists: the lists
before the K-th skip forward to it.

Invariants: a list ascends strictly; a conjunction of size K is in lists of K dimensions; predicates without a list are verified.

Departures from the paper
-------------------------
- We have no text of the original. That the lists before the K-th skip to it is our reading of "the conjunction algorithm".
- NOT IN and ``<>`` are true only if there is a value (the strong sense). The paper uses a default value for every attribute
  that an event lacks. Here NOT IN, ``<>`` and IS NULL are verified for the conjunctions that the lists find. Of several
  conditions on one attribute, all but the one with the fewest values are verified too. K counts enumerated predicates.
- Numbers of events need not be whole or within the domain, and an event may have several values of an attribute, or intervals.
  Then the lists of one attribute are merged, and the conjunctions found are verified.
- Scores and the bitmaps of CNF are left out: Tamis turns subscriptions into conjunctions first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import INT_EXACT, KeyKind, double_code
from tamis.encoding.events.event_batch import EventBatch
from tamis.errors import CapabilityError
from tamis.kernels.numbers import I32s
from tamis.papers.interface import Capabilities, Matches
from tamis.papers.k_index.conjunction_algorithm import KIndexArrays, match_events, scratch_for
from tamis.papers.k_index.enumeration import Domains, no_domains
from tamis.papers.k_index.posting import build, choose
from tamis.papers.options import Options, option
from tamis.papers.parts.collecting import Output, collect
from tamis.papers.parts.static import StaticIndex

_CHECKED = 1_000
"""Size of a domain up to which `check` goes through all values."""


@dataclass(frozen=True, slots=True)
class KIndexOptions(Options):
    """`domain` is the lowest and the highest number of attributes with ranges; by default, subscriptions define it."""

    domain: tuple[int, int] | None = option(None, nothing=True, pair=True)
    max_values: int = option(10_000, least=1)


class PostingList(NamedTuple):
    """A list, for inspection. `gap`: the list is for numbers between the value and the next one."""

    size: int
    dimension: int
    value: int
    gap: bool
    conjunctions: list[int]


class KIndex(StaticIndex):
    """Posting lists by size, attribute and value."""

    name = "k-index"
    summary = "sorted posting lists by size, attribute and value; ranges are enumerated"
    paper = "Whang et al., Indexing Boolean Expressions, VLDB 2009, as in OpIndex section 3 and BE-Tree section 7.2"
    capabilities = Capabilities(dynamic=False, every_predicate=False)
    options_type = KIndexOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._noted = no_domains()
        self._forgetful = False
        self._build(self._rows)

    # -- what it can hold

    def refuse(self, conjunctions: I32s) -> None:
        refusals = self._refusals(self._surveyed(self._noted, conjunctions))
        if refusals and self._forgetful:  # Deleted ranges do not count any more.
            self._noted, self._forgetful = self._surveyed(no_domains(), self._rows), False
            refusals = self._refusals(self._surveyed(self._noted, conjunctions))
        if refusals:
            number, reason = refusals[0]
            raise CapabilityError(
                f"the index {self.name!r} enumerates the whole numbers of every range; {self.name_of(number)}: {reason}. "
                "Hint: use ranges of whole numbers, a smaller option 'domain', a larger option 'max_values', or index='auto'"
            )

    def _surveyed(self, noted: Domains, rows: I32s) -> Domains:
        return noted.surveyed(self.table.view(), rows, self.kind_of, self._domain)

    def _refusals(self, domains: Domains) -> list[tuple[int, str]]:
        return domains.refusals(self._domain, self.options.max_values)

    @property
    def _domain(self) -> tuple[int, int] | None:
        domain = self.options.domain
        if domain is None:
            return None
        low, high = (min(max(each, -INT_EXACT), INT_EXACT) for each in domain)
        return low, high

    def insert(self, conjunctions: I32s) -> None:
        super().insert(conjunctions)
        self._noted = self._surveyed(self._noted, conjunctions)

    def delete(self, conjunctions: I32s) -> None:
        super().delete(conjunctions)
        self._forgetful = True

    # -- building

    def _build(self, rows: I32s) -> None:
        if self._forgetful:
            self._noted, self._forgetful = self._surveyed(no_domains(), rows), False
        self._domains = self._noted.bounded(self._domain)
        self._lists = build(self.table.view(), rows, self._domains, self.options.max_values)

    # -- matching

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        index = KIndexArrays(self._lists, self._domains, self.table.view())
        scratch = scratch_for(dimensions, int(np.diff(batch.start).max(initial=0)))

        def match(event: int, output: Output) -> int:
            nonlocal scratch
            reached = match_events(index, batch, scratch, event, output)
            while reached == event and scratch.needed[0] > len(scratch.mixed):
                scratch = scratch._replace(mixed=np.empty(2 * scratch.needed[0], np.int32))
                reached = match_events(index, batch, scratch, event, output)
            return reached

        return collect(batch, match)

    # -- looking at it

    def _figures(self) -> dict[str, Any]:
        lists = self._lists
        return {
            "bytes": lists.nbytes + self._domains.nbytes,
            "sizes": len(lists.sizes),
            "lists": int(np.count_nonzero(np.diff(lists.start))),
            "entries": len(lists.data),
            "always": len(lists.always),
            "verified": int(np.count_nonzero(lists.doubtful)),
        }

    def posting_lists(self) -> Iterator[PostingList]:
        """All lists that are not empty, by size, dimension and value."""
        self.build()
        lists, groups = self._lists, self._lists.groups
        sizes, keys, numbers = lists.directory.first, lists.directory.second, lists.directory.value
        used = np.flatnonzero(numbers >= 0)
        for at in used[np.lexsort((keys[used], sizes[used]))].tolist():
            size, key, group = int(sizes[at]), int(keys[at]), int(numbers[at])
            for place in range(int(groups.width[group])):
                number, values = groups.base[group] + place, groups.values[group]
                entries = lists.data[lists.start[number] : lists.start[number + 1]].tolist()
                if entries:
                    value = groups.least[group] + place if values < 0 else groups.cell[values + place]
                    yield PostingList(size, key >> 1, int(value), bool(key & 1), entries)

    def _check(self) -> None:
        chosen = choose(self.table.view(), self._rows, self._domains, self.options.max_values)
        # The table may have new rows that were never inserted here.
        assert np.array_equal(chosen.doubtful[self._rows], self._lists.doubtful[self._rows])
        assert self._lists.always.tolist() == self._rows[chosen.sizes == 0].tolist()
        found: dict[tuple[int, int, int], tuple[set[int], set[int]]] = {}
        for size, dimension, value, gap, conjunctions in self.posting_lists():
            assert conjunctions == sorted(set(conjunctions))
            for c in conjunctions:
                found.setdefault((c, size, dimension), (set(), set()))[gap].add(value)
        ends = np.cumsum(chosen.sizes)
        for c, size, end in zip(self._rows.tolist(), chosen.sizes.tolist(), ends.tolist(), strict=True):
            for p in chosen.predicates[end - size : end].tolist():
                dimension = int(self.table.view().predicates.dimension[p])
                cells, gaps = found.pop((c, size, dimension))
                assert (cells, gaps) == self._expected(p, dimension, cells | gaps), (c, dimension)
        assert not found

    def _expected(self, predicate: int, d: int, found: set[int]) -> tuple[set[int], set[int]]:
        """The cells and gaps of a predicate, found in the simplest way; in a wide domain only cells in `found` are tried."""
        predicates = self.table.view().predicates
        intervals = slice(predicates.start[predicate], predicates.start[predicate + 1])
        parts = list(zip(predicates.lo[intervals].tolist(), predicates.hi[intervals].tolist(), strict=True))
        if not self._domains.ranged[d]:
            return {lo for lo, _ in parts}, set()
        low, high = int(self._domains.low[d]), int(self._domains.high[d])
        key: Callable[[int], int] = double_code if self.kind_of(d) is KeyKind.NUMBER else int
        domain = range(low, high + 1) if high - low < _CHECKED else [each for each in found if low <= each <= high]
        cells = {each for each in domain if any(lo <= key(each) <= hi for lo, hi in parts)}
        cells |= {low - 1 for lo, _ in parts if lo < key(low)} | {high + 1 for _, hi in parts if hi > key(high)}
        return cells, {
            each for each in domain if each < high and any(key(each) < lo < key(each + 1) for lo, _ in parts)
        }
