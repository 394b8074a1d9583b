"""Tamis: millions of standing Boolean queries against a stream of events.

>>> import tamis
>>> matcher = tamis.Matcher()
>>> matcher.add("cheap-classics", "price BETWEEN 20 AND 40 AND genre = 'classics'")
>>> matcher.match({"price": 26, "genre": "classics"})
['cheap-classics']

What is inside, from the top down; a package imports only packages below it:

    cli  service               the command; brokers on a network
    sigma                      Sigma rules, the detection rules of security teams
    experiments                the papers' figures, measured again
    client                     `connect`: a broker on a network, used from elsewhere
    spark  workload            matching on clusters, workloads to try and measure with
    broker                     `tamis.open`: durable publish/subscribe
    matcher                    `Matcher`: subscriptions by id, batches, explain
    gpu                        segments of the engine on a card
    papers  engine             the algorithms of the papers, and our own index
    storage  encoding          arrays in files; expressions and events as integers
    earlier                    earlier events, which subscriptions may ask about
    language                   what a match means: read this first
    kernels  errors            what compiled code shares; all errors
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis.errors import (
    AccessError,
    BrokerError,
    CapabilityError,
    ConflictError,
    DuplicateIdError,
    EventError,
    ExperimentError,
    ExpressionError,
    FileError,
    FrameError,
    HistoryError,
    IdTypeError,
    IndexFolderError,
    JavaNotFoundError,
    KindError,
    LiteralError,
    LockedError,
    NestingError,
    OptionError,
    ParseError,
    QueueFullError,
    ReentryError,
    RetentionError,
    SchemaError,
    ServiceError,
    SnapshotError,
    TableError,
    TamisError,
    UnknownAttributeError,
    UnknownIdError,
    UnknownIndexError,
    UnknownPredicateError,
    WorkloadError,
    WrongEventsError,
)

if TYPE_CHECKING:
    from tamis.broker import open as open  # not in __all__, so `from tamis import *` keeps Python's own
    from tamis.client import connect, connect_async
    from tamis.earlier.history import History
    from tamis.encoding.expressions.plain_row import prepare
    from tamis.language.builder import attr, exists, history
    from tamis.language.evaluate import evaluate
    from tamis.language.explain import Explanation, explain
    from tamis.language.expression import Expression
    from tamis.language.json_form import from_json
    from tamis.language.json_writer import to_json
    from tamis.language.parser import parse
    from tamis.language.schema import Schema
    from tamis.language.values import Interval
    from tamis.matcher.load import load
    from tamis.matcher.matcher import Matcher
    from tamis.matcher.plan import Plan
    from tamis.matcher.rejected import Rejected
    from tamis.matcher.subscription import Subscription
    from tamis.papers.registry import indexes

__version__ = "0.2.0"

# Names that are imported when they are first used: numba, pyarrow and sqlglot take most of a second to load.
_LAZY = {
    "Explanation": "tamis.language.explain",
    "Expression": "tamis.language.expression",
    "History": "tamis.earlier.history",
    "Interval": "tamis.language.values",
    "Matcher": "tamis.matcher.matcher",
    "Plan": "tamis.matcher.plan",
    "Rejected": "tamis.matcher.rejected",
    "Schema": "tamis.language.schema",
    "Subscription": "tamis.matcher.subscription",
    "attr": "tamis.language.builder",
    "connect": "tamis.client",
    "connect_async": "tamis.client",
    "evaluate": "tamis.language.evaluate",
    "exists": "tamis.language.builder",
    "explain": "tamis.language.explain",
    "from_json": "tamis.language.json_form",
    "history": "tamis.language.builder",
    "indexes": "tamis.papers.registry",
    "load": "tamis.matcher.load",
    "open": "tamis.broker",
    "parse": "tamis.language.parser",
    "prepare": "tamis.encoding.expressions.plain_row",
    "to_json": "tamis.language.json_writer",
}

__all__ = [
    "AccessError",
    "BrokerError",
    "CapabilityError",
    "ConflictError",
    "DuplicateIdError",
    "EventError",
    "ExperimentError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "FileError",
    "FrameError",
    "History",
    "HistoryError",
    "IdTypeError",
    "IndexFolderError",
    "Interval",
    "JavaNotFoundError",
    "KindError",
    "LiteralError",
    "LockedError",
    "Matcher",
    "NestingError",
    "OptionError",
    "ParseError",
    "Plan",
    "QueueFullError",
    "ReentryError",
    "Rejected",
    "RetentionError",
    "Schema",
    "SchemaError",
    "ServiceError",
    "SnapshotError",
    "Subscription",
    "TableError",
    "TamisError",
    "UnknownAttributeError",
    "UnknownIdError",
    "UnknownIndexError",
    "UnknownPredicateError",
    "WorkloadError",
    "WrongEventsError",
    "__version__",
    "attr",
    "connect",
    "connect_async",
    "evaluate",
    "exists",
    "explain",
    "from_json",
    "history",
    "indexes",
    "load",
    "parse",
    "prepare",
    "to_json",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
