"""`ps-tree`: a tree for each dimension. A conjunction is in the lists of the leaves that its access predicate covers.

S. Ji, H.-A. Jacobsen: PS-Tree-based Efficient Boolean Expression Matching for High-Dimensional and Dense Workloads. PVLDB
12(3), 2018: the one-dimensional structure of section 4 as an index, with the access predicates of section 3.3.

    role      predicate of the table -> ACCESS: it is in a tree, and its leaves list the conjunction; WIDE: it covers too
              many leaves, and a list of its dimension has the conjunction; SIGNED: see `bloom`; 0: only verified
    lists     leaf -> c d c d c d ...              conjunctions, each with the dimension of the first predicate
                                                   of its record, or `matching.unsigned` of it if this predicate has no
                                                   signature: an event that lacks the dimension needs no record
    wide      1 + dimension -> the same            conjunctions whose access predicate covers too many leaves
              0 -> the same                        conjunctions that no tree can find: every event evaluates them
    records   the predicates to verify, the most selective first: all but the access predicate

An event with one value for each dimension meets one leaf in each, so it meets a conjunction once. Other events meet several
leaves, and stamps mark the conjunctions that they have met.

Invariants: the predicate counter of a leaf is the number of ACCESS and SIGNED predicates that cover it. A conjunction is in
the lists of exactly the leaves that its access predicate covers. There is a cut exactly where such a predicate ends.

Departures from the paper: the paper has no index of this kind; it is PSTBloom without signatures. `observe` counts events, not
matching, and newly cut leaves count past events again instead of copying a counter. An access predicate that covers more than
`most_leaves` leaves is not inserted into its tree. A batch makes all its cuts first, one dimension after another, then enters the
lists. If it is larger than the index, the index is built again with both. Without past events, the narrower of two ranges comes
first. The width of a range of numbers is the number of doubles in it, not the distance of its ends. While cuts are few, or have
not changed recently, the leaves of values are found in a sorted copy of the leaves (`forest`), not by MatchPair, unless the
option `search` asks for the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s, U8s
from tamis.kernels.ranges import span_indices
from tamis.papers.interface import Matches
from tamis.papers.options import Options, option
from tamis.papers.parts.past_events import by_selectivity
from tamis.papers.parts.records import RecordArrays, Records, dimension_in, mode_in
from tamis.papers.parts.slabs import SlabArrays, Slabs
from tamis.papers.ps_tree.covering import Gathered, gathered
from tamis.papers.ps_tree.forest import Forest, Log
from tamis.papers.ps_tree.forest_index import PAPER, ForestIndex, drop_dead
from tamis.papers.ps_tree.matching import EVERYWHERE, FIRST_WIDE, SignedLists, match_lists, unsigned
from tamis.papers.ps_tree.nodes import NONE
from tamis.papers.ps_tree.signatures import Signatures

_ABSENT = int(Mode.ABSENT)
ACCESS, SIGNED, WIDE = 1, 2, 3
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class ListOptions(Options):
    """The options of `ps-tree`."""

    most_leaves: int = option(256, least=1)
    """Most leaves that an access predicate may cover when it is inserted."""
    search: str = option("binary", choices=("binary", "walk"))
    """How the leaf of a value is found: "walk" by MatchPair down the tree, "binary" by binary search in a sorted copy."""


class PSTreeLists(ForestIndex):
    """Conjunctions in the lists of leaves."""

    name = "ps-tree"
    summary = "a tree of predicate spaces for each dimension, with a list of conjunctions in each space"
    paper = PAPER + ", sections 3.3 and 4"
    options_type: ClassVar[type[Options]] = ListOptions

    def _clear(self) -> None:
        self.forest = Forest(walk=self.options.search == "walk")
        self.signatures = self._new_signatures()
        self._lists, self._wide = Slabs(), Slabs()
        self._records = Records()
        self._role = GrowingArray(np.uint8)
        self._signed = GrowingArray(np.int32)
        self._live = GrowingArray(np.bool_)
        self._count = 0
        self._entries = 0

    def _new_signatures(self) -> Signatures:
        return Signatures(1, 0)

    # -- inserting

    def _rows(self) -> I32s:
        return np.flatnonzero(self._live.view()).astype(np.int32)

    def _entered(self) -> tuple[int, int]:
        return self._entries, self.options.most_leaves

    def _insert(self, conjunctions: I32s) -> None:
        table = self.table.view()
        for column, rows in ((self._live, len(self.table)), (self._signed, len(self.table))):
            column.grow(max(0, rows - len(column)), fill=0)
        self._role.grow(max(0, len(table.predicates.dimension) - len(self._role)), fill=0)
        order, start = by_selectivity(table, conjunctions, self.history)
        self._choose(table, order, start)
        gathered = self._gathered(table, conjunctions)
        inserted = self._cut(gathered)
        self._put_records(table, conjunctions, order, start)
        self._enter_lists(table, conjunctions, gathered, inserted)
        self._sign(gathered, inserted)
        self._live.view()[conjunctions] = True
        self._count += len(conjunctions)
        if len(conjunctions) == self._count:
            self._fit()

    def _sign(self, gathered: Gathered, inserted: I64s) -> None:
        """Enter the conjunctions of inserted predicates in signatures, if there are any."""

    def _fit(self) -> None:
        """Free most of the room that is not in use."""
        self.forest.fit()
        self._lists.fit()

    def _choose(self, table: Conjunctions, order: I64s, start: I64s) -> None:
        """Give the most selective predicate of each conjunction the role ACCESS, unless all predicates ask for absence."""
        first = order[start[:-1][np.diff(start) > 0]]
        self._role.view()[first[table.predicates.mode[first] != _ABSENT]] = ACCESS

    def _cut(self, gathered: Gathered) -> I64s:
        """Cut the spaces of predicates. Takes the role from those that cover too many leaves; returns which ones are left."""
        predicates, every, role = gathered.predicates, gathered.every, self._role.view()
        self._follow_splits(self.forest.cut(predicates, every, self.history))
        self.forest.copy_chains(len(every))
        most = self._most(role[gathered.source])
        many = self.forest.covering(predicates, every, most) > most
        if many.any():
            self._follow_merges(self.forest.release(predicates, every[many]))
            self.forest.copy_chains(len(every))
            wide = gathered.source[many]
            role[wide] = np.where(role[wide] == ACCESS, WIDE, 0)
            every = every[~many]
        self.forest.count_predicates(predicates, every, 1)
        return every

    def _most(self, role: U8s) -> int | I64s:
        """How many leaves predicates of some roles may cover."""
        return self.options.most_leaves

    def _follow_splits(self, log: Log) -> None:
        self._add_lists(self._lists, self.forest.leaf_numbers)
        if len(self.history):
            self.forest.recount(np.concatenate(log), self.history)
        done = 0
        while done < len(log.first):
            done, copied = _copy_lists(self._lists.view(), log, done)
            self._entries += copied
            if done < len(log.first):
                self._lists.enlarge(int(self._lists.view().size[log.first[done]]))

    def _follow_merges(self, log: Log) -> None:
        sizes = self._lists.view().size
        self._entries -= int(sizes[log.first].sum()) // 2
        sizes[log.first] = 0

    def _add_lists(self, lists: Slabs, count: int) -> None:
        if count > len(lists):
            lists.add(count - len(lists))

    def _put_records(self, table: Conjunctions, conjunctions: I32s, order: I64s, start: I64s) -> None:
        """Write records: the predicates that lists do not decide, signed predicates first."""
        role = self._role.view()
        kept, sizes = np.empty_like(order), np.empty(len(conjunctions), np.int32)
        count = _record_order(role, order, start, kept, sizes, self._signed.view(), conjunctions)
        self._records.put(table, conjunctions, kept[:count], sizes)

    def _enter_lists(self, table: Conjunctions, conjunctions: I32s, gathered: Gathered, inserted: I64s) -> None:
        access = inserted[self._role.view()[gathered.source[inserted]] == ACCESS]
        for first in range(0, len(access), _AT_ONCE):
            self._push(self._lists, *self._leaves_of(gathered, access[first : first + _AT_ONCE]))
        numbers, owners = self._wide_of(table, conjunctions)
        self._add_lists(self._wide, int(numbers.max(initial=-1)) + 1)
        self._push(self._wide, numbers, owners)

    def _push(self, lists: Slabs, numbers: I64s, owners: I32s) -> None:
        values = np.empty((len(numbers), 2), np.int32)
        values[:, 0], values[:, 1] = owners, _seconds(self._records.view(), self._signed.view(), owners)
        lists.extend(np.repeat(numbers, 2), values.ravel())
        self._entries += len(numbers)

    def _leaves_of(self, gathered: Gathered, access: I64s) -> tuple[I64s, I32s]:
        """The leaves whose lists hold the conjunctions of some access predicates, and for each leaf the conjunction."""
        counts = self.forest.covering(gathered.predicates, access)
        leaves, _ = self.forest.covered(gathered.predicates, access, counts)
        return leaves, np.repeat(gathered.owner[access], counts)

    def _wide_of(self, table: Conjunctions, conjunctions: I32s) -> tuple[I64s, I32s]:
        """The lists of wide predicates and of all events that hold conjunctions, and for each list the conjunction."""
        chosen, place = self._predicates_of(table, conjunctions)
        role = self._role.view()[chosen]
        wide = role == WIDE
        helped = np.zeros(len(conjunctions), np.bool_)
        helped[place[(role == ACCESS) | wide]] = True
        numbers = FIRST_WIDE + table.predicates.dimension[chosen[wide]].astype(np.int64)
        numbers = np.append(numbers, np.full(int((~helped).sum()), EVERYWHERE, np.int64))
        return numbers, np.append(conjunctions[place[wide]], conjunctions[~helped])

    def _gathered(self, table: Conjunctions, conjunctions: I32s, *roles: int) -> Gathered:
        """The predicates of conjunctions that are in trees, or only those with some roles."""
        chosen, place = self._predicates_of(table, conjunctions)
        kept = np.isin(self._role.view()[chosen], roles or (ACCESS, SIGNED))
        return gathered(table.predicates, chosen[kept], conjunctions[place[kept]])

    def _predicates_of(self, table: Conjunctions, conjunctions: I32s) -> tuple[I64s, npt.NDArray[np.intp]]:
        """The predicates of conjunctions, and for each predicate the place of its conjunction in `conjunctions`."""
        counts = table.start[conjunctions + 1] - table.start[conjunctions]
        return span_indices(table.start[conjunctions], counts), np.repeat(np.arange(len(conjunctions)), counts)

    # -- deleting

    def _delete(self, conjunctions: I32s) -> None:
        table = self.table.view()
        self._live.view()[conjunctions] = False
        inserted = self._gathered(table, conjunctions)
        access = self._gathered(table, conjunctions, ACCESS)
        leaves, _ = self._leaves_of(access, access.every)
        wide, _ = self._wide_of(table, conjunctions)
        for lists, numbers in ((self._lists, leaves), (self._wide, wide)):
            self._entries -= drop_dead(lists.view(), np.unique(numbers), self._live.view(), 2)
        self._records.remove(conjunctions)
        self.forest.count_predicates(inserted.predicates, inserted.every, -1)
        self._follow_merges(self.forest.release(inserted.predicates, inserted.every))
        self._role.view()[self._predicates_of(table, conjunctions)[0]] = 0

    # -- matching

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        self.forest.flatten(len(batch.start) - 1)
        lists = SignedLists(self._lists.view(), self._wide.view(), self.signatures.view(), self._signed.view())
        scratch = self._scratch_for(batch, dimensions)
        kernel = partial(match_lists, self.forest.view(), lists, self._row_arrays(), batch, scratch)
        return self._collected(batch, kernel)

    # -- about it

    def stats(self) -> dict[str, Any]:
        sizes = self._wide.view().size // 2
        return {
            **super().stats(),
            "leaves": self.forest.leaves,
            "entries": self._entries,
            "everywhere": int(sizes[EVERYWHERE]) if len(sizes) > EVERYWHERE else 0,
            "wide": int(sizes[FIRST_WIDE:].sum()),
        }

    def list_of(self, leaf: int) -> list[int]:
        """The conjunctions in the list of a leaf."""
        return sorted(self._lists.values(leaf)[::2].tolist())

    def check(self) -> None:
        self.forest.check(self.history)
        table, role = self.table.view(), self._role.view()
        rows = self._rows()
        assert len(rows) == self._count
        access = self._gathered(table, rows, ACCESS)
        entries = 0
        for lists, expected in (
            (self._lists, self._leaves_of(access, access.every)),
            (self._wide, self._wide_of(table, rows)),
        ):
            listed: dict[int, list[int]] = {}
            for number, owner in zip(*expected, strict=True):
                listed.setdefault(int(number), []).append(int(owner))
            for number in range(len(lists)):
                assert sorted(lists.values(number)[::2].tolist()) == sorted(listed.pop(number, [])), number
            assert not listed
            entries += len(expected[0])
        assert entries == self._entries
        inserted = np.flatnonzero((role == ACCESS) | (role == SIGNED))
        self._check_counters(inserted)
        ends = {
            (int(table.predicates.dimension[p]), int(end))
            for p in inserted
            for i in range(table.predicates.start[p], table.predicates.start[p + 1])
            for end in _ends(int(table.predicates.lo[i]), int(table.predicates.hi[i]))
        }
        assert len(ends) == self.forest.leaves - np.count_nonzero(self.forest.view().roots != NONE)
        chosen, _ = self._predicates_of(table, rows)
        assert not np.delete(role, chosen).any(), "only predicates of what is in the index have a role"


def _ends(lo: int, hi: int) -> list[int]:
    lowest, highest = -(2**63), 2**63 - 1
    return ([lo] if lo > lowest + 1 else []) + ([hi + 1] if hi < highest else [])


@lean_kernel
def _copy_lists(lists: SlabArrays, log: Log, done: int) -> tuple[int, int]:
    """Copy the lists of split leaves to the new leaves; returns how far the room sufficed, and how many entries."""
    begin, size, room, data, end = lists.begin, lists.size, lists.room, lists.data, lists.end
    copied = 0
    for i in range(done, len(log.first)):
        old, new = log.first[i], log.second[i]
        size[new] = 0
        if size[old] > room[new]:
            if end[0] + size[old] > len(data):
                return i, copied
            begin[new], room[new] = end[0], size[old]
            end[0] += size[old]
        for j in range(size[old]):
            data[begin[new] + j] = data[begin[old] + j]
        size[new] = size[old]
        copied += size[old] // 2
    return len(log.first), copied


@lean_kernel
def _record_order(
    role: U8s, order: I64s, start: I64s, kept: I64s, sizes: I32s, signed: I32s, conjunctions: I32s
) -> int:
    """Write the predicates of records, SIGNED ones of each conjunction first; returns how many in all."""
    count = 0
    for i in range(len(conjunctions)):
        begin = count
        for turn in range(2):
            for j in range(start[i], start[i + 1]):
                p = order[j]
                if role[p] != ACCESS and (role[p] == SIGNED) == (turn == 0):
                    kept[count] = p
                    count += 1
            if turn == 0:
                signed[conjunctions[i]] = count - begin
        sizes[i] = count - begin
    return count


def _seconds(records: RecordArrays, signed: I32s, conjunctions: I32s) -> I32s:
    """What lists say about the first predicate of each record: its dimension, `unsigned` if it has no signature; or NONE.

    It is NONE if there is no such predicate, or if it asks for absence.
    """
    heads = (
        records.words[np.where(records.size[conjunctions] > 0, records.at[conjunctions], 0)]
        if len(records.words)
        else np.zeros(len(conjunctions), np.int64)
    )
    known = (records.size[conjunctions] > 0) & (mode_in(heads) != _ABSENT)
    dimension = dimension_in(heads)
    return np.where(known, np.where(signed[conjunctions] > 0, dimension, unsigned(dimension)), NONE).astype(np.int32)
