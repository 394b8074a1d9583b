"""The broker: durable publish/subscribe around the matcher. `docs/pubsub.md` describes what it guarantees.

Read in this order:

    broker              `Broker`: publishing and reading         answers         what it hands out: receipts, notes, subscriptions
    subscription_calls  its calls that change subscriptions      storage_calls   its calls for retention, backup, compaction
    delivery_calls      its calls for streams of batches         arguments       arguments, checked
    listing_calls       its calls for pages of long lists        answer_json     what it hands out, as JSON objects
    session             what all calls share: folder and lock    delivering      events that were matched on Spark
    tables              the truth, in SQLite                     folder          the files, and the lock of the writer
    state               what is kept in memory                   schedule        when subscriptions begin and end
    alarm               a thread that looks at the clock    forking         copies of brokers in forked processes
    publishing          events of all threads, in one commit     subscribing     changes of subscriptions
    valid_events        stored events that are still valid       event_text      events as JSON text
    valid_columns       their values, by attribute and form      strings         the strings of a column
    row_search          where an expression is TRUE              number_spans    comparisons of numbers and moments
    valid_matching      many subscriptions meet valid events     string_search   LIKE and RLIKE over many strings
    string_automaton    simple patterns of RLIKE as tables       address_search  ip_in over many strings
    valid_batch         many events enter them together          valid_file      valid events in a file
    queues              the notes of each subscriber             queue_block     notes in immutable arrays
    opening             from a folder to the state               reading         events and names of notes
    queue_files         blocks of notes in files                 matcher_file    the matcher in a file
    matcher_files       which matcher in a file is the newest
    asked_attributes    which attributes subscriptions ask about
    reader_matcher      a matcher for brokers that only read     table_rows      rows of Arrow tables as events
    following           what readers take over from the writer   number_lists    lists of numbers as JSON text
    valid_loading       valid events of a file and the tables
    cache_names         which files belong to the tables
    schema              the tables' columns, and their versions
    checksums           checksums of rows                        checking        whether the tables are whole
    log_check           whether SQLite's log is whole
    last_commit         whether the tables have the last commit
    housekeeping        work in the background                   compacting      deleting what nobody can read
    stored_ends         how far the tables go
    retention           how long notes are kept                  dropping        notes that can no longer be read
    limits              sizes that tests make small              moments         times, and the clock
    feed                changes of subscriptions, for Spark
    history_table       where events belong among the earlier ones
    live_history        the history of new events, and commits
    join_meetings       stored events and their own histories
"""

from __future__ import annotations

import os

from tamis.broker.answers import (
    Change,
    Matches,
    Note,
    Receipt,
    StandingSubscription,
    StoredEvent,
    SubscriberFigures,
)
from tamis.broker.broker import Broker
from tamis.broker.moments import Clock, system_clock
from tamis.broker.tables import Synchronous
from tamis.earlier.history import History

__all__ = [
    "Broker",
    "Change",
    "Matches",
    "Note",
    "Receipt",
    "StandingSubscription",
    "StoredEvent",
    "SubscriberFigures",
    "open",
]


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    clock: Clock = system_clock,
    synchronous: Synchronous = "full",
    history: History | None = None,
) -> Broker:
    """Open the broker in a folder, which is made if it is not there.

    Parameters
    ----------
    path : path
        The folder. ``":memory:"`` keeps nothing.
    read_only : bool
        Whether to read only. Any number of processes may read while one writes. They may acknowledge what they read.
    clock : callable, optional
        Returns the time of now as a datetime. Tests set it.
    synchronous : "full", "normal" or "off"
        When SQLite waits for the disk. With "full", everything that was acknowledged survives a power cut. With "normal",
        a power cut may lose the last calls, a crash of the process does not. With "off", a power cut may damage the tables.

    history : History, optional
        Which earlier events to retain, as for `Matcher`. Subscriptions may then compare an event with the events before it. The
        folder remembers it, so give it once.

    Raises
    ------
    BrokerError
        The folder or its tables cannot be used.
    LockedError
        Another broker writes to this folder.
    OptionError
        `path` is not a path, `synchronous` is another word, or the folder has another history.

    Examples
    --------
    >>> broker = open(":memory:")
    >>> broker.subscribe("ann", "crime", "price < 20 AND genre = 'crime'")
    >>> receipt = broker.publish({"genre": "crime", "price": 15})
    >>> [note.event for note in broker.notifications("ann")]
    [{'genre': 'crime', 'price': 15}]
    """
    return Broker(path, read_only=read_only, clock=clock, synchronous=synchronous, history=history)
