"""Matching events against subscriptions that may ask about earlier events: the part of `HistoryStore` that matches.

    event  --engine-->  slots whose constant part it satisfies  --join table-->  slots that it satisfies
           --then-->    the retained events

A batch goes through the engine as a whole. Then one kernel decides the joins of all rows that ask (`history_batch`), or else the
joins are decided row after row, and each row is retained before the next one. One array operation finds the rows whose candidates
have joins. The rows between them are retained together. Mappings that are alike, or of numbers alone, are read into arrays once,
for the engine and for the history.

Where the time of an event goes, in us of processor time on a busy machine, beside a matcher without history. Subscriptions and
events are those of `benchmarks.history`, "share":

                                                        of 10,000 rows    of 1,000 mappings    alone
                                                        shop    dense     shop    dense        shop    dense
    without history                                     1.6     5.7       6.6     9.1          9.0     17.0
    with history                                        2.4     7.1       9.0     14.3         18.5    29.2
        reading mappings into arrays                                      1.0     4.7
        the engine, which encodes these arrays          1.5     5.6       2.7     5.4
        joins: 0.04 and 0.33 of an event                0.4     0.6       1.4     1.2          3.9     6.4
        columns of new events; packing if alone         0.2     0.1       1.4     0.7          1.8     3.0
        retaining, and events that leave                0.1     0.5       0.1     0.1

The rest of what a single event takes more is its copy, a look for wrong values, the turn, marks, and the list that waits. In the
shop, one event in a hundred asks three joins, and reads a hundred waiting events into five columns for them.

Keeping joined names and values instead of a copy took longer: dense events have many forms.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tamis.earlier.alike import AlikeEvents
from tamis.earlier.chunks import (
    Chunk,
    ListedEvents,
    LogEvent,
    TableEvents,
    asked_of,
    flat_event,
    is_raw,
    may_be_wrong,
    plain_chunk,
    raw_copies,
)
from tamis.earlier.join_table import Always, EventJoins, JoinTable, Moment, joined_slots
from tamis.earlier.marks import marked_places
from tamis.earlier.prefilter import is_plain, odd_rows
from tamis.earlier.retained import Intake
from tamis.earlier.shelf import Events
from tamis.encoding.events.mappings import Mappings
from tamis.encoding.events.one_event import Form
from tamis.engine.single import NOT_SMALL, Single
from tamis.engine.top_k import keep_heaviest
from tamis.engine.version import Version
from tamis.errors import ReentryError
from tamis.kernels.numbers import Bools, I32s
from tamis.language.event import FlatEvent, flatten, refuse_asked
from tamis.matcher.history_batch import Asked, BatchJoins, asking_in, plan_of, rows_of, without
from tamis.matcher.history_changes import HistoryChanges
from tamis.matcher.ids import Id, Ids
from tamis.matcher.store import Part, R, Workers

T = TypeVar("T")

_NO_SLOTS = np.zeros(0, np.int32)


class HistoryMatching(HistoryChanges):
    """The part of `HistoryStore` that matches."""

    _left_out_of: tuple[Form | None, frozenset[str], tuple[str, ...]] = None, frozenset(), ()
    """A form, what joins asked about then, and the attributes that were asked about and that the form leaves out."""

    # -- one event

    def match_event(self, event: Mapping[str, Any], k: int | None, flat: FlatEvent | None = None) -> list[Id]:
        if self._is_my_turn():
            raise ReentryError
        if self._pending or self._late or self.is_changing() or self.engine.is_changing():
            self._prepare()
        given: Any = event
        single, changes, is_packed = self.engine.singles.take(), self.gate.changes, False
        if flat is None:
            raw = self._packed(event, single)
            if raw is not None:
                given, is_packed = raw, True
            elif is_raw(event):
                given = dict(event)
            else:
                flat = flatten(event)  # Not in turn: it may run any code, which may call the matcher.
        self._turn.acquire()
        try:
            table = self._table
            if table.gone or table is not self._indexed_for:
                self._tidy()
            asked = self._left_out(single.event.form) if is_packed else self._asked()
            if flat is None and asked and may_be_wrong(given, asked):
                flat = flatten(given)
            if flat is not None:
                self._check_wrong(flat)
            always: Sequence[Always]
            joins_changes, always = table.changes, table.always()
            held = self.engine.version if always else None
            count = NOT_SMALL
            if is_packed and self.gate.changes == changes and not changes & 1:
                # While a version lives, no slot is given to another subscription.
                latest, ids = self.engine.latest(), self.ids
                count = single.match(latest, ids.numbers, self.keyed.dimensions.count, table.marks)
            if count == NOT_SMALL or joins_changes & 1 or table.changes != joins_changes or table is not self._table:
                (count, latest, ids), always = self._with_always(lambda: self._matched_one(given, flat, single))
            if self.engine.counters.events >= self.sample.next:
                self._learn(flat_event(given) if flat is None else flat)
            if not always and not single.marked and k is None:
                names = single.names(count) if ids.type is int else ids.name(single.slots(count))
                single.is_taken = False
                self._retained.keep(given if flat is None else flat)
            else:
                names = self._named(single, count, ids, given if flat is None else flat, always, k)
            del held, latest
            return names
        finally:
            self._turn.release()

    def _packed(self, event: Any, single: Single) -> dict[str, Any] | None:
        """A copy of an event that was put into `single`, if it is one of plain numbers, or has a known form. It is raw then."""
        if type(event) is not dict:
            return None
        copy, known = event.copy(), self.keyed.dimensions
        if known.forms and single.event.pack_known(copy, known):
            form = single.event.form
            # Names that equal those of the form may be of a class that decides itself what it equals.
            return None if form is None else dict(zip(form.names, copy.values(), strict=True))
        with self.gate.lock:
            return copy if single.event.pack_numbers(copy, self.keyed.dimensions) else None

    def _left_out(self, form: Form | None) -> Collection[str]:
        """The attributes that joins and the history ask about, and that the engine does not ask about in a form of events.

        The engine finds out whether the others are small numbers.
        """
        if form is None or not form.left_out:
            return ()
        known, of_joins = self._left_out_of, self._table.attributes()
        if known[0] is not form or known[1] is not of_joins:
            known = self._left_out_of = form, of_joins, tuple(form.left_out & self._asked())
        return known[2]

    def _check_wrong(self, flat: FlatEvent, row: int | None = None) -> None:
        """Raise an EventError if an event has a value outside the language that anybody asks about."""
        if not all(flat.values()):  # Only values outside the language are empty.
            refuse_asked(flat, lambda: {*self.dimensions.by_attribute, *self._asked()}, row)

    def _matched_one(
        self, event: Any, flat: FlatEvent | None, single: Single
    ) -> tuple[int, tuple[Version, int, int], Ids]:
        """How many slots an event matches, and what it was matched with. The event is raw, or else `flat` is there."""
        with self.gate.lock:
            known = self.dimensions
            mismatched = single.event.pack(event, known, flat)
            latest, ids, dimensions = self.engine.latest(), self.ids, known.count
        count = NOT_SMALL
        if mismatched is not None:
            count = single.match(latest, ids.numbers, dimensions, self._table_of(ids).marks)
        if count == NOT_SMALL:
            latest, ids, _, dimensions, mismatched = self._put(event, flat, single, mismatched is not None)
            count = single.match(latest, ids.numbers, dimensions, self._table_of(ids).marks)
        self._took_version()
        if mismatched:
            self.engine.counters.add(0, (0, 0, 0), mismatched)
        return count, latest, ids

    def _table_of(self, ids: Ids) -> JoinTable:
        return self._table if ids is self.ids else self._beside[ids].table

    def _learn(self, flat: FlatEvent) -> None:
        """Let the sample take an event that was matched, if it is due."""
        counters = self.engine.counters
        if counters.events >= self.sample.next:
            self.sample.take_one(flat, counters.events)
            self.engine.follow()

    def _named(
        self, single: Single, count: int, ids: Ids, event: LogEvent, always: Sequence[Always], k: int | None
    ) -> list[Id]:
        """The ids of the subscriptions that an event satisfies, among those whose constant parts it satisfies.

        Then the event is retained.
        """
        table, slots = self._table_of(ids), single.slots(count)
        places = single.places_of_marked()
        if places is None:
            places = marked_places(slots, table.marks).tolist()
        asking = single.slots_at(places)
        events = self._retained.begin(event)
        flat = asked_of(event, table.attributes() if always else table.asked_by(asking))
        failing, more = self._decided_slots(asking, flat, events, always, table)
        gone = [places[at] for at in failing]
        self._retained.add(event)
        if k is None and not more and ids.type is int:
            names = single.names(count)
            for place in reversed(gone):
                del names[place]
        else:
            slots = joined_slots(slots, gone, more)
            if k is not None:
                _, slots = keep_heaviest(np.array([len(slots)]), slots, self._beside[ids].weights.view(), k)
            names = ids.name(slots) if len(slots) else []
        single.is_taken = False
        return names

    def _decided_slots(
        self, slots: Sequence[int], event: FlatEvent, events: Events, always: Sequence[Always], table: JoinTable
    ) -> tuple[list[int], list[I32s]]:
        """The places of the slots whose rest an event does not satisfy, and the slots of `always` that it satisfies."""
        kept: Bools | None = None
        if table is not self._table:
            always = ()
        else:
            if table.prefilter.unread:
                self._read_needs(np.array(slots, np.int32))
            if table.prefilter.is_asked(of_batch=False):
                kept, always = self._screened(slots, event, always, table)
        joins = EventJoins(event, events)
        failing = table.failing(slots, joins, kept)
        more = [each.slots for each in always if joins.truth(each.expression) is True] if always else []
        table.note(joins)
        return failing, more

    def _screened(
        self, slots: Sequence[int], event: FlatEvent, always: Sequence[Always], table: JoinTable
    ) -> tuple[Bools | None, Sequence[Always]]:
        """Which slots the pre-filter does not skip, or None if it skips none, and what it leaves of `always`.

        `begin` was called.
        """
        moment = Moment(self._retained, functools.partial(is_plain, event))
        kept, left = table.screened(np.array(slots, np.int32), always, moment)
        if left is not always:
            table.prefilter.skips += _slots_of(always) - _slots_of(left)
        if kept is not None:
            table.prefilter.skips += int(np.count_nonzero(~kept))
        return kept, left

    # -- batches

    def match_flat(
        self, events: list[FlatEvent], workers: Workers, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        with self._in_turn():
            for row, event in enumerate(events):
                if not all(event.values()):
                    self._check_wrong(event, row)
            match = functools.partial(self._candidates_of, events, workers)
            with closing(self._decided(match, ListedEvents(events), k)) as parts:
                return list(map(then, parts))

    def match_mappings(self, events: Mappings, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        chunk = plain_chunk(events, self.limits.few_mappings)
        if chunk is None:
            return self._match_listed(events, workers, k, then)
        match = functools.partial(super().match_mappings, events, workers, None, _as_it_is)
        if isinstance(chunk, AlikeEvents):
            match = functools.partial(super().match_table, chunk.table(), workers, None, _as_it_is)
        with self._in_turn(), closing(self._decided(match, chunk, k)) as parts:
            return list(map(then, parts))

    def _match_listed(self, events: Mappings, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        """The same for events that are not plain."""
        listed = raw_copies(events.events)
        given = Mappings(listed)
        for row in range(len(events)) if None in listed else ():  # Not in turn: flattening may run any code.
            if listed[row] is None:
                listed[row] = given.flattened[row] = events[row]
        with self._in_turn():
            names = self._asked().difference(self.dimensions.by_attribute)
            wrong = names and any(may_be_wrong(event, names) for event in listed)
            if not wrong and all(all(flat.values()) for flat in given.flattened.values()):
                match = functools.partial(super().match_mappings, given, workers, None, _as_it_is)
                with closing(self._decided(match, ListedEvents(listed), k)) as parts:
                    return list(map(then, parts))
        return self.match_flat(given.flat(), workers, k, then)

    def _candidates_of(self, events: list[FlatEvent], workers: Workers) -> list[Part]:
        """The slots whose constant part some events satisfy."""
        return super().match_flat(events, workers, None, _as_it_is)

    def match_table(self, events: pa.Table, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        with self._in_turn():
            chunk = TableEvents(events)
            for wrong in chunk.read(self._asked()):
                raise wrong.error()
            match = functools.partial(super().match_table, events, workers, None, _as_it_is)
            with closing(self._decided(match, chunk, k)) as parts:
                return list(map(then, parts))

    def _took_version(self) -> None:
        self._changes_of_version = self._table.changes

    def _with_always(self, match: Callable[[], T]) -> tuple[T, Sequence[Always]]:
        """What a call finds that takes a version of the engine, and what is to be decided for every event beside that version.

        The caller has the turn, for which no thread waits that changes subscriptions.
        """
        while True:
            table = self._table
            changes, always = table.changes, table.always()
            if changes & 1:
                time.sleep(0)  # The thread that changes goes on.
                continue
            self._changes_of_version = changes  # Without any event to match, no version is taken.
            found = match()
            if changes == self._changes_of_version and table is self._table:
                return found, always

    def _decided(self, match: Callable[[], list[Part]], chunk: Chunk, k: int | None) -> Generator[Part, None, None]:
        """The parts that `match` finds, with the slots that events satisfy among those whose constant part they satisfy.

        The events are retained when the last part was taken.
        """
        # While the version lives, no slot is given to another subscription.
        held = self.engine.version
        parts, always = self._with_always(match)
        with self._retained.taking(chunk) as intake:
            parts, always = self._screened_parts(parts, chunk, intake, always)
            for part in self._decided_parts(parts, chunk, intake, always):
                if k is None:
                    yield part
                else:
                    weights = self._beside[part.ids].weights
                    counts, slots = keep_heaviest(part.counts, part.slots, weights.view(), k)
                    yield part._replace(counts=counts, slots=slots)
            intake.retain_all()
        del held

    def _screened_parts(
        self, parts: list[Part], chunk: Chunk, intake: Intake, always: Sequence[Always]
    ) -> tuple[list[Part], Sequence[Always]]:
        """The parts without what the pre-filter skips for every row of the batch. Rows with several values keep everything."""
        table, prefilter = self._table, self._table.prefilter
        odd: Bools | None = None

        def note_odd(names: Collection[str]) -> bool:
            nonlocal odd
            if odd is None:
                odd = odd_rows(chunk, names)
            return not odd.all()

        if not prefilter.is_asked(of_batch=True):
            for part in parts if prefilter.unread else ():
                if part.ids is self.ids:
                    self._read_needs(part.slots)
            return parts, always
        moment = Moment(self._retained, note_odd, intake.end)
        screened: list[Part] = []
        for part in parts:
            if part.ids is self.ids:
                if prefilter.unread:
                    self._read_needs(part.slots)
                places, _ = table.with_rest(part.slots)
                kept, _ = table.screened(part.slots[places], (), moment)
                if kept is not None and odd is not None:
                    gone = places[~(kept | odd[rows_of(part, places)])]
                    prefilter.skips += len(gone)
                    part = without(part, gone)
            screened.append(part)
        if always:
            left = table.screened(_NO_SLOTS, always, moment)[1]
            if len(left) < len(always) and odd is not None and not odd.any():
                prefilter.skips += len(chunk) * (_slots_of(always) - _slots_of(left))
                always = left
        return screened, always

    def _decided_parts(
        self, parts: list[Part], chunk: Chunk, intake: Intake, always: Sequence[Always]
    ) -> Iterator[Part]:
        """The parts one after another. Rows are decided together if their histories allow it, and if they are enough."""
        table, ids = self._table, self.ids
        asked = [asking_in(part, self._beside[part.ids].table) for part in parts]
        plan = None
        if all(part.ids is ids for part in parts):
            asks = sum(len(each.rows) for each in asked) + len(chunk) * len(always)
            plan = plan_of(intake, self.limits.history_stretch, asks)
        if plan is not None:
            yield from BatchJoins(table, self._retained.window, chunk, plan).decide(parts, asked, always)
        else:
            for part, of_part in zip(parts, asked, strict=True):
                yield self._decided_part(part, of_part, chunk, intake, always)

    def _decided_part(self, part: Part, asked: Asked, chunk: Chunk, intake: Intake, always: Sequence[Always]) -> Part:
        table = self._beside[part.ids].table
        if always and table is self._table:
            return self._decided_rows(part, chunk, intake, table, always)
        places = asked.places
        if not len(places):
            return part
        rows, starts = np.unique(asked.rows, return_index=True)
        events = chunk.events(rows.tolist(), table.attributes())
        holds: list[bool] = []
        cuts, rests = [*starts.tolist(), len(places)], asked.numbers.tolist()
        for at, row in enumerate(rows.tolist()):
            joins = EventJoins(events[at], intake.history(row))
            holds += table.holds(rests[cuts[at] : cuts[at + 1]], joins)
            table.note(joins)
        return without(part, places[~np.array(holds)])

    def _decided_rows(
        self, part: Part, chunk: Chunk, intake: Intake, table: JoinTable, always: Iterable[Always]
    ) -> Part:
        """The same if something is to be decided for every event."""
        ends = np.append(0, np.cumsum(part.counts)).tolist()
        rows = range(part.first, part.first + len(part.counts))
        events = chunk.events(rows, table.attributes())
        kept = [
            table.satisfied(part.slots[ends[at] : ends[at + 1]], events[at], intake.history(row), always)
            for at, row in enumerate(rows)
        ]
        counts = np.array([len(each) for each in kept], np.int64)
        return part._replace(counts=counts, slots=np.concatenate(kept) if kept else part.slots)


def _as_it_is(part: Part) -> Part:
    return part


def _slots_of(always: Iterable[Always]) -> int:
    return sum(len(each.slots) for each in always)
