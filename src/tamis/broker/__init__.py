"""The broker: durable publish/subscribe around the matcher. `docs/pubsub.md` describes what it guarantees.

Read in this order:

    broker              `Broker`: publishing and reading         records         what it hands out: receipts, notes, subscriptions
    subscription_calls  its calls that change subscriptions      storage_calls   its calls for retention, backup, compaction
    delivery_calls      its calls for streams of batches         arguments       arguments, checked
    session             what all calls share: folder and lock    delivering      events that were matched on Spark
    tables              the truth, in SQLite                     folder          the files, and the lock of the writer
    state               what is kept in memory                   schedule        when subscriptions begin and end
    alarm               a thread that looks at the clock
    publishing          events of all threads, in one commit     subscribing     changes of subscriptions
    valid_events        stored events that are still valid       event_text      events as JSON text
    queues              the notes of each subscriber             queue_block     notes in immutable arrays
    opening             from a folder to the state               reading         events and names of notes
    queue_files         blocks of notes in files                 matcher_file    the matcher in a file
    housekeeping        work in the background                   compacting      deleting what is too old
    retention           how long notes are kept                  moments         times, and the clock
    limits              sizes that tests make small              acknowledging   the cursor, moved by a process that reads
    feed                changes of subscriptions, for Spark      table_rows      rows of Arrow tables as events
"""

from __future__ import annotations

import os

from tamis.broker.broker import Broker
from tamis.broker.moments import Clock, system_clock
from tamis.broker.records import Change, Matches, Note, Receipt, StandingSubscription
from tamis.broker.tables import Synchronous

__all__ = ["Broker", "Change", "Matches", "Note", "Receipt", "StandingSubscription", "open"]


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    clock: Clock = system_clock,
    synchronous: Synchronous = "full",
) -> Broker:
    """Open the broker in a folder, which is made if it is not there.

    Parameters
    ----------
    path : path
        The folder. ``":memory:"`` keeps nothing.
    read_only : bool
        Whether to read only. Any number of processes may read while one writes.
    clock : callable, optional
        Returns the time of now as a datetime. Tests set it.
    synchronous : "full", "normal" or "off"
        When SQLite waits for the disk. With "full", everything that was acknowledged survives a power cut. With "normal",
        a power cut may lose the last calls, a crash of the process does not. With "off", a power cut may damage the tables.

    Raises
    ------
    BrokerError
        The folder or its tables cannot be used.
    LockedError
        Another broker writes to this folder.

    Examples
    --------
    >>> broker = open(":memory:")
    >>> broker.subscribe("ann", "crime", "price < 20 AND genre = 'crime'")
    >>> receipt = broker.publish({"genre": "crime", "price": 15})
    >>> [note.event for note in broker.notifications("ann")]
    [{'genre': 'crime', 'price': 15}]
    """
    return Broker(path, read_only=read_only, clock=clock, synchronous=synchronous)
