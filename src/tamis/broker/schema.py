"""The schema of the tables, its version, and the statements that bring older tables up to date.

Each row has a checksum of its columns, so that a damaged row is an error; see `checksums`.
"""

from __future__ import annotations

APPLICATION = 0x54414D42  # "TAMB"
"""The `application_id` of the file. Its `user_version` is the version of the tables."""

_HISTORY = """
CREATE TABLE history (
    sequence INTEGER PRIMARY KEY,
    kind TEXT,
    key,
    time,
    newest,
    event TEXT
);
CREATE INDEX history_by_time ON history (kind, key, time);
"""
CHECKED = {
    "settings": ("name", "value"),
    "subscribers": ("number", "name", "cursor", "dropped", "deleted", "removed"),
    "subscriptions": (
        "number", "subscriber", "name", "expression", "weight", "valid_from", "valid_until", "started", "paused", "removed",
        "change",
    ),
    "events": ("sequence", "published", "valid_until", "matches"),
    "meetings": ("number", "subscription", "moment", "after", "events"),
    "keys": ("key", "published", "sequence"),
    "batches": ("source", "batch"),
    "history": ("sequence", "kind", "key", "time", "newest"),
}  # fmt: skip
"""By table: the columns that its column `checksum` covers. `event_checksum` covers `sequence` and `event`."""
TEXT_CHECKED = ("events", "history")
"""Tables with the text of events, and with `event_checksum`."""


def _checksums() -> str:
    """Version 3: checksums. The connection has a function of SQL, `checksum`."""
    steps = []
    for table in TEXT_CHECKED:
        steps.append(f"ALTER TABLE {table} ADD COLUMN event_checksum INTEGER;")
        steps.append(f"UPDATE {table} SET event_checksum = checksum(sequence, event) WHERE event IS NOT NULL;")
    for table, columns in CHECKED.items():
        steps.append(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;")
        steps.append(f"UPDATE {table} SET checksum = checksum({', '.join(columns)});")
    return " ".join(steps)


STEPS: tuple[str, ...] = (_HISTORY, _checksums())
"""Statements that bring older tables up to date: the first from version 1 to 2, the next from 2 to 3. `_SCHEMA` is the newest."""
VERSION = 1 + len(STEPS)

_SCHEMA = """
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE subscribers (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cursor INTEGER NOT NULL DEFAULT 0,   -- the last note that was acknowledged
    dropped INTEGER NOT NULL DEFAULT 0,  -- notes up to this one cannot be read any more
    deleted INTEGER NOT NULL DEFAULT 0,  -- how many notes have left the tables
    removed INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER NOT NULL
);
CREATE TABLE subscriptions (
    number INTEGER PRIMARY KEY,
    subscriber INTEGER NOT NULL REFERENCES subscribers,
    name TEXT NOT NULL,
    expression TEXT NOT NULL,
    weight REAL NOT NULL,
    valid_from INTEGER,
    valid_until INTEGER,
    started INTEGER NOT NULL,            -- 0 while valid_from lies ahead
    paused INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    change INTEGER NOT NULL,             -- the number of its last change
    checksum INTEGER NOT NULL,
    UNIQUE (subscriber, name)
);
CREATE UNIQUE INDEX subscriptions_by_change ON subscriptions (change);
CREATE INDEX subscriptions_by_end ON subscriptions (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX subscriptions_by_start ON subscriptions (valid_from) WHERE started = 0;
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    published INTEGER NOT NULL,
    valid_until INTEGER,
    event TEXT NOT NULL,
    event_checksum INTEGER NOT NULL,     -- of sequence and event; before `matches`, whose text may take pages of its own
    matches TEXT NOT NULL,               -- the numbers of the subscriptions that were told
    checksum INTEGER NOT NULL            -- of the other columns
);
CREATE INDEX events_by_end ON events (valid_until) WHERE valid_until IS NOT NULL;
CREATE TABLE meetings (
    number INTEGER NOT NULL,
    subscription INTEGER NOT NULL,
    moment INTEGER NOT NULL,
    after INTEGER NOT NULL,              -- the last event that was published before
    events TEXT NOT NULL,                -- the numbers of the events that were told
    checksum INTEGER NOT NULL,
    PRIMARY KEY (number, subscription)
) WITHOUT ROWID;
CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    published INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX keys_by_time ON keys (published);
CREATE TABLE caches (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE history (
    sequence INTEGER PRIMARY KEY,        -- an event
    kind TEXT,                           -- the kind of its key; '' if the history has no key
    key,
    time,                                -- its number if the history has no order
    newest,                              -- the largest time until then
    event TEXT,                          -- null while it is in events
    event_checksum INTEGER,              -- of sequence and event; null with it
    checksum INTEGER NOT NULL            -- of the other columns
);
CREATE INDEX history_by_time ON history (kind, key, time);
CREATE TABLE batches (
    source TEXT PRIMARY KEY,
    batch INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
"""

MAKING = (
    f"PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE; {_SCHEMA} "
    f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
)
