"""Events as lines, from mappings or Arrow, in requests of a bounded number of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tamis.broker.arguments import listed, plain_keys
from tamis.broker.event_text import event_text
from tamis.broker.table_rows import row_events
from tamis.client.writing import encode, moment_text
from tamis.errors import OptionError
from tamis.matcher.event_input import as_table

AT_ONCE = 50_000
"""Lines of one request. The service answers with a receipt for each line at its end."""


class Block(NamedTuple):
    """The lines of one request."""

    first: int
    """The row of the first line."""
    lines: list[bytes]
    is_single: bool
    """Whether there is one event only. Errors do not count rows then."""
    wrapped: bool
    repeatable: bool
    """Whether all events have keys, so that publishing them again changes nothing."""


def blocks_of(events: Any, valid_until: Any, keys: Any) -> Iterator[Block]:
    """Events in blocks. The arguments are those of `Broker.publish_many`.

    Raises
    ------
    EventError, TableError, OptionError
    """
    table = as_table(events)
    if table is None:
        rows = listed(events, "events")
        parts: Iterator[Sequence[Any]] = (rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE))
        count = len(rows)
    else:
        count = table.num_rows
        parts = (row_events(table.slice(at, AT_ONCE)) for at in range(0, count, AT_ONCE))
    ends = valid_until if isinstance(valid_until, list | tuple) else [valid_until] * count
    names = plain_keys(keys, count)
    if len(ends) != count or len(names) != count:
        raise OptionError(f"{count} events need as many keys and moments, not {len(names)} and {len(ends)}")
    moments = [moment_text(each, "valid_until") for each in ends]
    wrapped = keys is not None or any(each is not None for each in moments)
    first = 0
    for part in parts:
        last = first + len(part)
        texts = [event_text(event, row=row if count > 1 else None) for row, event in enumerate(part, first)]
        if wrapped:
            words = zip(texts, names[first:last], moments[first:last], strict=True)
            texts = [f'{{"event":{text},"key":{encode(key)},"valid_until":{encode(end)}}}' for text, key, end in words]
        lines = [text.encode() + b"\n" for text in texts]
        yield Block(first, lines, count == 1, wrapped, all(name is not None for name in names[first:last]))
        first = last
