"""The matcher: matching events, plans and statistics. `subscriptions` has what changes subscriptions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.earlier.history import History, check_declared
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.json_lines import JsonLines
from tamis.encoding.events.json_reader import read_event
from tamis.encoding.events.mappings import Mappings
from tamis.engine.version import Accelerator
from tamis.errors import CapabilityError, EventError, OptionError, WrongEventsError, shortened
from tamis.kernels.numbers import Bools, I64s
from tamis.language.event import FlatEvent, flatten
from tamis.language.explain import Explanation, explain
from tamis.language.schema import Schema
from tamis.language.values import is_iterable
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.event_input import arrow_errors, checked_names, read_events, rows_counted_from
from tamis.matcher.expression_reader import ExpressionReader
from tamis.matcher.history_store import HistoryStore
from tamis.matcher.ids import IdT, plain_id
from tamis.matcher.json_input import encoded, flat_lines, json_lines
from tamis.matcher.limits import USUAL_STORE_LIMITS, StoreLimits
from tamis.matcher.naming import Named, named_at_hand, named_in_pieces, table_of
from tamis.matcher.options import checked_device, checked_threads, plain_limit
from tamis.matcher.paper_store import PaperStore
from tamis.matcher.plan import Plan
from tamis.matcher.snapshot import write_snapshot
from tamis.matcher.store import Part, R, Store, Workers
from tamis.matcher.subscriptions import Subscriptions
from tamis.papers.options import Options
from tamis.papers.registry import find_index


class _Wish(NamedTuple):
    """Who the user wants to match a batch."""

    threads: int | None
    device: str | None


class Matcher(Subscriptions[IdT]):
    """Matches events against standing Boolean expressions.

    To type checkers, `Matcher[str]` has ids that are str, and `Matcher[int]` has ids that are int.

    Parameters
    ----------
    index : str
        The name of an index, see `tamis.indexes()`. ``"auto"`` is the engine, the fastest index of Tamis.
    schema : Schema, mapping or pyarrow.Schema, optional
        The attributes and their kinds. With a schema, an expression on an unknown attribute or with a literal of the
        wrong kind is an error. So is an event with a value of the wrong kind.
    options : mapping, optional
        Options of the index by name. The engine has none.
    history : History, optional
        Which earlier events to retain. Subscriptions may then compare an event with earlier events, by ANY, ALL and EXISTS.
        Every event that is matched becomes an earlier event of the next one. Only the engine takes a history.
    device : str
        What matches batches by default: ``"cpu"``, ``"gpu"``, or a card by its number such as ``"gpu:1"``. Single events are
        always matched on the CPU. See `tamis.gpu.devices()`.
    gpu_memory : int, optional
        The most bytes of a card's memory that the index may take. By default, four fifths of the card's memory. What does not
        fit is matched on the CPU.

    Examples
    --------
    >>> matcher = Matcher()
    >>> matcher.add("cheap-classics", "price BETWEEN 20 AND 40 AND genre = 'classics'")
    >>> matcher.match({"price": 26, "genre": "classics"})
    ['cheap-classics']
    """

    _device: str = "cpu"
    """What matches batches, unless a call says otherwise."""
    _card_bytes: int | None = None

    def __init__(
        self,
        index: str = "auto",
        schema: Any = None,
        options: Mapping[str, Any] | None = None,
        *,
        history: History | None = None,
        device: str = "cpu",
        gpu_memory: int | None = None,
    ) -> None:
        store = new_store(index, None if schema is None else Schema.of(schema), options, history=history)
        self._use(store, device, gpu_memory)

    def _use(self, store: Store[Any], device: str = "cpu", gpu_memory: int | None = None) -> None:
        self._store, self._schema = store, store.schema
        self._reader = ExpressionReader(store.schema, keeps_history=store.keeps_history)
        self._card_bytes = None if gpu_memory is None else plain_limit(gpu_memory, "gpu_memory is a number of bytes")
        self._device = device
        self._card(device)

    @property
    def schema(self) -> Schema | None:
        """The declared schema, if there is one."""
        return self._schema

    def match(self, event: Any, k: int | None = None) -> list[IdT]:
        """The ids of the subscriptions that an event satisfies.

        Parameters
        ----------
        event : mapping, dataclass or pandas Series
            Attributes and their values.
        k : int, optional
            Return only the `k` ids with the largest weights, largest first. By default, return all ids in no particular order.

        Raises
        ------
        EventError
        """
        flat = None
        if self._schema is not None:
            flat = flatten(event)
            self._schema.check_event(flat)
        found: list[Any] = self._store.match_event(event, None if k is None else plain_limit(k), flat)
        return found

    def match_batch(
        self,
        events: Any,
        threads: int | None = None,
        k: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        device: str | None = None,
    ) -> pa.Table:
        """All matches of a batch: a table with the columns ``event`` (the row, int64) and ``subscription`` (the id).

        Parameters
        ----------
        events : list of mappings, pyarrow.Table, pyarrow.RecordBatch, or anything with the Arrow PyCapsule protocol
            A table has one column per attribute (null: missing; structs flattened; lists: several values), or a single
            column ``map<string, V>`` or ``list<struct<attribute, value>>``. Dataclasses and pandas Series count as mappings. A
            polars LazyFrame is collected.
        threads : int, optional
            Number of threads. By default, one per processor if the batch is large. With several threads, the columns may
            have several chunks.
        k : int, optional
            For each event, return only the `k` matches with the largest weights, largest first. By default, return all matches.
        attributes : list of str, optional
            The columns of a table to read, or the names in mappings. All others count as missing. By default, all attributes
            that subscriptions ask about.
        device : str, optional
            ``"cpu"``, ``"gpu"``, or a card by its number such as ``"gpu:1"``. By default, the device of the matcher. The matches
            are the same.

        Raises
        ------
        EventError
            An attribute that a subscription asks about has a value outside the language.
        TableError, OptionError
        CapabilityError
            The device cannot be used: the message says what is missing.
        """
        return self._table(_read(events, attributes), _Wish(threads, device), k)

    def match_json(self, data: str | bytes, k: int | None = None) -> list[IdT]:
        """The ids of the subscriptions that one event satisfies, given as JSON: `match` of what ``json.loads`` reads.

        A name that a subscription asks about must not be given twice in one object.

        Raises
        ------
        EventError
        """
        return self.match(read_event(encoded(data), self._asked), k)

    def match_json_batch(
        self,
        lines: Any,
        threads: int | None = None,
        k: int | None = None,
        *,
        wrong: list[EventError] | None = None,
        device: str | None = None,
    ) -> pa.Table:
        """All matches of JSON lines: a table as of `match_batch`. The column ``event`` has the line, counted from 0.

        The lines mean what `match_json` says. They are read without a Python object for each value, in all threads at once, and
        only attributes that subscriptions ask about are read. Blank lines are no events.

        Parameters
        ----------
        lines : bytes, str, list of bytes or str, column of Arrow, open file, or path
            JSON with an object on each line, in UTF-8. In a list or column, each element is an event, and null is a blank line.
        wrong : list, optional
            Gets the errors of wrong lines, which are then left out. By default, wrong lines are an error.

        Other parameters are those of `match_batch`.

        Raises
        ------
        WrongEventsError
            Some lines are wrong. `problems` has the error of each by its line.
        EventError, OptionError, OSError
        """
        events = json_lines(lines)
        numbers, wish = events.numbers, _Wish(threads, device)
        try:
            found = self._table(events, wish, k)
        except WrongEventsError as error:
            problems = {int(numbers[row]): each for row, each in error.problems.items()}
            problems = {line: each.at(line) for line, each in problems.items()}
            if wrong is None:
                raise WrongEventsError(problems) from None
            right = events.without(list(error.problems))
            found, numbers = self._table(right, wish, k), right.numbers
            wrong += problems.values()
        return found.set_column(0, "event", pa.array(numbers[found["event"].to_numpy()], pa.int64()))

    def match_iter(
        self,
        batches: Iterable[Any],
        threads: int | None = None,
        k: int | None = None,
        most: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        device: str | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the matches of one batch after another, in tables like those of `match_batch`. Rows count over all batches.

        `match_iter` takes the next batch only when you ask for more results. It matches a large batch in parts, with a table for
        each part, so memory stays bounded. With `most`, a table has at most `most` matches, unless a single event has more.

        Raises
        ------
        EventError, TableError, OptionError
        """
        if not is_iterable(batches) or isinstance(batches, Mapping):
            raise EventError(f"batches must be an iterable of tables or lists of events, not {type(batches).__name__}")
        checked_threads(threads, 0)
        self._card(device)
        limit = None if k is None else plain_limit(k)
        longest = None if most is None else plain_limit(most, "`most` is the largest number of matches in a table")
        names = None if attributes is None else checked_names(attributes)
        return self._matched_batches(batches, _Wish(threads, device), limit, longest, names)

    def _matched_batches(
        self,
        batches: Iterable[Any],
        wish: _Wish,
        k: int | None,
        most: int | None,
        attributes: tuple[str, ...] | None,
    ) -> Iterator[pa.Table]:
        first, size = 0, self._store.limits.events_at_once
        for batch in batches:
            with rows_counted_from(first):
                read = read_events(batch, attributes)
            for start in range(0, len(read), size):
                part = read.slice(start, size)
                if most is None:
                    yield self._table(part, wish, k, first)
                else:
                    with rows_counted_from(first):
                        found = self._matched(part, wish, k, lambda found: found)
                    for each in found:
                        yield from named_in_pieces(each._replace(first=first + each.first), most)
                first += len(part)

    def _table(self, events: Mappings | pa.Table | JsonLines, wish: _Wish, k: int | None, first: int = 0) -> pa.Table:
        """The matches of events that were read. Their rows count from `first` on."""

        def name(part: Part) -> Named | Part:
            return named_at_hand(part._replace(first=first + part.first))

        with rows_counted_from(first):
            return table_of(self._matched(events, wish, k, name), checked_threads(wish.threads, len(events)))

    def count_batch(
        self,
        events: Any,
        threads: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        device: str | None = None,
    ) -> I64s:
        """The number of subscriptions that each event of a batch satisfies.

        Raises
        ------
        EventError, TableError, OptionError
        """
        counts = self._matched(_read(events, attributes), _Wish(threads, device), None, lambda part: part.counts)
        return np.concatenate(counts)

    def exists_batch(
        self,
        events: Any,
        threads: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        device: str | None = None,
    ) -> Bools:
        """Whether each event of a batch satisfies some subscription.

        Raises
        ------
        EventError, TableError, OptionError
        """
        return self.count_batch(events, threads, attributes=attributes, device=device) > 0

    def explain(self, id: IdT, event: Any) -> Explanation:
        """Explain why an event satisfies a subscription or not: the truth of every part, and the event's values.

        With a history, the event is compared with the events that are retained now. It is not retained itself.

        Raises
        ------
        UnknownIdError, IdTypeError, EventError
        """
        with self._store.changing():
            expression = self._store.sources.expression(self._store.ids.slot(id))
        return explain(expression, event, self._store.earlier(event))

    def observe(self, events: Any) -> None:
        """Learn from events how frequent values are, without matching them.

        The engine plans how events find subscriptions, and rare values make the best plans. It also samples the events that it
        matches. Observe some events before you add subscriptions, and the first plans are already good.

        Parameters
        ----------
        events : list of mappings, pyarrow.Table, pyarrow.RecordBatch, or anything with the Arrow PyCapsule protocol
            As `match_batch` takes them.

        Raises
        ------
        EventError, TableError
        """
        read = read_events(events)
        if isinstance(read, pa.Table):
            with arrow_errors():
                self._store.observe(read)
        else:
            flat = read.flat()
            self._check(flat)
            self._store.observe(flat)

    def optimize(self) -> None:
        """Plan all subscriptions again with the latest statistics of events, and free the memory of removed ones.

        This runs in the calling thread and takes about as long as adding the subscriptions. Other threads can match meanwhile.
        If events change much, the matcher does this by itself, part by part.
        """
        with self._store.changing():
            self._store.optimize()

    def plan(self, id: IdT) -> Plan:
        """Show how events find a subscription: the access predicate, the share of events that meet it, and the cost.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        with self._store.changing():
            self._store.ids.slot(id)
            return self._store.plan(plain_id(id))

    def stats(self) -> dict[str, Any]:
        """Figures about the contents and the work of the matcher.

        ``mismatched`` counts how often an event had an attribute, but no value of the kind that a predicate needs. An example
        is a string where a predicate compares with a number.
        """
        return self._store.stats()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matcher to a file, which `tamis.load` opens in less than a second.

        The file appears when it is complete and safe on disk. It replaces an older file in one step. Other threads may match
        and change the matcher meanwhile. The file has the subscriptions and the history of the moment when `save` was called.

        Raises
        ------
        SnapshotError
            The file cannot be written. An older file is unchanged.
        CapabilityError
            The matcher has an index other than the engine.
        """
        if not isinstance(self._store, EngineStore):
            name = self._store.stats()["index"]
            raise CapabilityError(
                f"a matcher with the index {name!r} cannot be saved. Hint: use Matcher() without index"
            )
        write_snapshot(path, self._store.contents(), self._schema)

    def _matched(
        self,
        events: Mappings | pa.Table | JsonLines,
        wish: _Wish,
        k: int | None,
        then: Callable[[Part], R],
    ) -> list[R]:
        """Match events that were read, in parts; returns the result of `then` for each part."""
        limit = None if k is None else plain_limit(k)
        workers = Workers(checked_threads(wish.threads, len(events)), self._card(wish.device))
        if isinstance(events, pa.Table):
            with arrow_errors():
                return self._store.match_table(events, workers, limit, then)
        if isinstance(events, JsonLines):
            if not self._store.keeps_history:
                return self._store.match_json(events, workers, limit, then)
            flat = flat_lines(events, self._asked(), self._schema)
        elif self._schema is None:
            return self._store.match_mappings(events, workers, limit, then)
        else:
            flat = events.flat()
            self._check(flat)
        return self._store.match_flat(flat, workers, limit, then)

    def _card(self, device: str | None) -> Accelerator | None:
        """What matches segments in the place of threads, if the device is a card."""
        number = checked_device(self._device if device is None else device)
        return None if number is None else self._store.on_card(number, self._card_bytes)

    def _asked(self) -> Asked:
        """What subscriptions ask about now, and what the schema declares."""
        return Asked.names(self._store.asked(), self._schema)

    def _check(self, events: list[FlatEvent]) -> None:
        """Check flat events with the schema, if there is one. Tables are checked when they are encoded."""
        if self._schema is not None:
            for row, event in enumerate(events):
                self._schema.check_event(event, row)


def _read(events: Any, attributes: Iterable[str] | None) -> Mappings | pa.Table | JsonLines:
    """Events as users give them, or lines of JSON as commands give them."""
    return events if isinstance(events, JsonLines) else read_events(events, attributes)


def asked_by(matcher: Matcher[Any]) -> Callable[[], Asked]:
    """A function that says what the subscriptions of a matcher ask about at the moment of the call."""
    return matcher._asked


def check_device(matcher: Matcher[Any], device: str) -> None:
    """Check that a matcher can match on a device, before there are events.

    Raises
    ------
    OptionError, CapabilityError
    """
    matcher._card(device)


def new_store(
    index: str = "auto",
    schema: Schema | None = None,
    options: Mapping[str, Any] | None = None,
    limits: StoreLimits = USUAL_STORE_LIMITS,
    history: History | None = None,
) -> EngineStore | PaperStore:
    """An empty store over an index, and over earlier events if there is a history.

    Raises
    ------
    OptionError
    """
    chosen = find_index(index)
    read = (Options if chosen is None else chosen.options_type).read({} if options is None else options, index)
    if history is not None:
        if not isinstance(history, History):
            raise OptionError(
                f"history must be a tamis.History, not {shortened(history)}. Hint: tamis.History(rows=10_000)"
            )
        if chosen is not None:
            raise OptionError(
                f"the index {index!r} cannot keep earlier events. Hint: Matcher(history=...) without index"
            )
        if schema is not None:
            check_declared(history, schema)
        return HistoryStore(history, schema, limits)
    return EngineStore(schema, limits) if chosen is None else PaperStore(chosen, read, schema, limits)


def matcher_over(store: Store[Any], device: str = "cpu", gpu_memory: int | None = None) -> Matcher[Any]:
    """A matcher over a store that was made elsewhere, such as from a snapshot. Raises what `Matcher` does for the device."""
    matcher: Matcher[Any] = Matcher.__new__(Matcher)
    matcher._use(store, device, gpu_memory)
    return matcher
