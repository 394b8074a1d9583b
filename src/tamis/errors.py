"""Every error that Tamis raises on purpose, as one tree.

    TamisError
    ├── ExpressionError (ValueError)       an expression is wrong: position, line and caret, if it is a text
    │   ├── ParseError                     its text cannot be read: reason, hint
    │   ├── LiteralError                   a literal is outside the language (NULL, NaN, too large)
    │   ├── NestingError                   it is nested deeper than MAX_DEPTH
    │   ├── UnknownAttributeError          a declared schema has no such attribute
    │   ├── KindError                      a literal is not of the attribute's declared kind
    │   └── HistoryError                   it needs earlier events, but none are kept
    ├── EventError (ValueError)            an event is wrong: row, attribute
    │   └── WrongEventsError               some JSON lines of a batch are wrong: problems
    ├── TableError (ValueError)            a table does not have the columns that are needed
    ├── SchemaError (ValueError)           a declared schema cannot be read
    ├── FileError (ValueError)             a file cannot be read: path, line
    │   └── SnapshotError                  a snapshot cannot be read or written
    ├── WorkloadError (ValueError)         a workload cannot be generated from these parameters
    ├── ExperimentError (ValueError)       an experiment is not known, or its folder holds results of another kind
    ├── JavaNotFoundError (OSError)        no Java was found that Spark can run on
    ├── FrameError (ValueError)            a DataFrame does not have the columns that are needed
    ├── IndexFolderError (ValueError)      the folder of a Spark index is missing or cannot be read
    ├── ConflictError (RuntimeError)       another job changed the index at the same time
    ├── BrokerError (RuntimeError)         the folder of a broker cannot be opened, read or written
    │   ├── LockedError                    another process writes to this folder
    │   ├── ServiceError                   a service does not answer, or refuses a request: status, kind
    │   │   └── AccessError                the token is not valid, or lacks a role
    │   └── QueueFullError                 a subscriber has too many notes that were not acknowledged
    ├── RetentionError (LookupError)       notes that are asked for were dropped: the first number that is left
    ├── DuplicateIdError (KeyError)        a subscription with this id already exists, or the id is given twice
    ├── UnknownIdError (KeyError)          no subscription has this id
    ├── UnknownPredicateError (KeyError)   a tree of predicates has no such predicate or leaf
    ├── IdTypeError (TypeError)            an id is neither str nor int, or of another type than the others
    ├── UnknownIndexError (ValueError)     the registry has no index of this name
    ├── CapabilityError (ValueError)       the index cannot do this
    ├── OptionError (ValueError)           a weight, k, threads or another option is wrong
    └── ReentryError (RuntimeError)        a finalizer or signal handler calls during a change

Each error is also a built-in error, so ``except ValueError`` works without importing Tamis errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class TamisError(Exception):
    """The root of the tree: ``except tamis.TamisError`` catches all errors of Tamis."""

    def __str__(self) -> str:
        # KeyError would print the repr of its argument.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, pickle calls the constructor with `args`. Ours builds the message from other arguments.
        return restored, (type(self), self.args, vars(self))


def restored(kind: type[TamisError], args: tuple[Any, ...], attributes: dict[str, Any]) -> TamisError:
    """An error with a finished message, as pickle and the clients of a service make it."""
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class ExpressionError(TamisError, ValueError):
    """An expression is wrong.

    Attributes
    ----------
    subscription : object
        The id of the subscription, if it was added together with others.
    position : int or None
        The place of the error in the text, in characters from 0. None: it is not known, or there is no text.
    line, column : int or None
        The same place as line and column, both counted from 1.
    """

    position: int | None = None
    line: int | None = None
    column: int | None = None

    def __init__(self, message: str, *, subscription: object = None) -> None:
        super().__init__(message)
        self.subscription = subscription

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.subscription is None else f"subscription {shortened(self.subscription)}: {text}"

    def place_at(self, text: str, position: int) -> None:
        """Note where in a text the error is. The message then shows the line with a caret."""
        message = str(self.args[0])
        reason, mark, hint = message.rpartition(" Hint: ")
        self._draw(reason.removesuffix(".") if mark else message, hint if mark else "", text, position)

    def _draw(self, reason: str, hint: str, text: str, position: int) -> None:
        place = max(0, min(position, len(text)))
        start = text.rfind("\n", 0, place) + 1
        self.position, self.line, self.column = place, text.count("\n", 0, place) + 1, place - start + 1
        drawn = f"{reason} (line {self.line}, column {self.column})\n{_with_caret(text, start, place)}"
        self.args = (f"{drawn}\nHint: {hint}" if hint else drawn,)


_AROUND = 60
"""Characters shown on each side of a caret. Some rules are one line of 300 kB, which would hide the message."""


def _with_caret(text: str, start: int, position: int) -> str:
    """The line of a text that begins at `start`, and under it a caret at a position."""
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].replace("\t", " ")
    caret = position - start
    left, right = max(0, caret - _AROUND), caret + _AROUND
    before, after = "..." if left else "", "..." if right < len(line) else ""
    return f"  {before}{line[left:right]}{after}\n  {' ' * (len(before) + caret - left)}^"


class ParseError(ExpressionError):
    """The text of an expression cannot be read.

    Attributes
    ----------
    position, line, column : int
        The place of the error in the text.
    reason, hint : str
        What is wrong at this place, and what to write instead.
    """

    position: int
    line: int
    column: int

    def __init__(self, reason: str, text: str, position: int, *, hint: str = "") -> None:
        self.reason = reason
        self.text = text
        self.hint = hint
        super().__init__(reason)
        self._draw(reason, hint, text, position)


class LiteralError(ExpressionError):
    """A literal is outside the language: NULL, NaN, infinity, a number beyond 64 bits, an unsupported type."""


class NestingError(ExpressionError):
    """An expression is nested deeper than `tamis.language.expression.MAX_DEPTH`."""


class UnknownAttributeError(ExpressionError):
    """The declared schema has no such attribute."""

    # How many attributes a message lists in full. Of a larger schema it names only similar names.
    _LISTED = 12

    def __init__(self, attribute: str, known: Iterable[str]) -> None:
        self.attribute = attribute
        names = sorted(known)
        close = did_you_mean(attribute, names)
        if not close and len(names) <= self._LISTED:
            close = f"; the attributes are: {', '.join(names)}" if names else "; the schema declares none"
        super().__init__(f"unknown attribute {shortened(attribute)}{close}")


class KindError(ExpressionError):
    """A literal is not of the kind that the schema declares for the attribute, which is `attribute`."""

    def __init__(self, message: str, *, attribute: str | None = None) -> None:
        self.attribute = attribute
        super().__init__(message)


class HistoryError(ExpressionError):
    """The expression needs earlier events (ANY, ALL, EXISTS), but there is no history."""


class EventError(TamisError, ValueError):
    """An event is wrong. `row` is its position in the batch, counted from 0. `rows` are the positions of all events with the same
    fault, if known."""

    def __init__(
        self,
        message: str,
        *,
        row: int | None = None,
        attribute: str | None = None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        row = int(rows[0]) if rows is not None and row is None else row
        self.reason = message
        self.row = row
        self.rows = rows
        self.attribute = attribute
        place = [f"event {row}"] if row is not None else []
        if attribute is not None:
            place.append(f"attribute {attribute!r}")
        super().__init__(f"{', '.join(place)}: {message}" if place else message)

    def at(self, row: int | None) -> EventError:
        """The same error of one event, for a batch in which the event has this position."""
        return EventError(self.reason, row=row, attribute=self.attribute)


class WrongEventsError(EventError):
    """Some events of a batch are wrong. `problems` has the error of each by its row. The message is that of the first."""

    def __init__(self, problems: Mapping[int, EventError]) -> None:
        self.problems = dict(sorted(problems.items()))
        row, first = next(iter(self.problems.items()))
        super().__init__(first.reason, row=row, attribute=first.attribute)


class TableError(TamisError, ValueError):
    """A table of subscriptions or events lacks a required column, or a row of it is wrong. `row` is the wrong row, if any."""

    def __init__(self, message: str, *, row: int | None = None) -> None:
        self.reason = message
        self.row = row
        super().__init__(message if row is None else f"row {row}: {message}")


class SchemaError(TamisError, ValueError):
    """A declared schema cannot be read."""


class FileError(TamisError, ValueError):
    """A file cannot be read. `line` counts from 1."""

    def __init__(self, message: str, *, path: str, line: int | None = None) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {message}" if line is not None else f"{path}: {message}")


class SnapshotError(FileError):
    """A snapshot cannot be read or written: it is missing, not a snapshot, of another version, truncated or damaged."""


class WorkloadError(TamisError, ValueError):
    """A parameter of a workload is wrong, or contradicts another parameter."""


class ExperimentError(TamisError, ValueError):
    """A figure, scale or contender is not known, or a folder of results cannot be used."""


class JavaNotFoundError(TamisError, OSError):
    """No Java was found that Spark can run on."""


class IndexFolderError(TamisError, ValueError):
    """The folder of a Spark index is missing or damaged, or lacks the requested version."""


class ConflictError(TamisError, RuntimeError):
    """Another job changed the index at the same time. This change had no effect."""

    def __init__(self, path: object, version: int) -> None:
        self.version = version
        super().__init__(
            f"another process published version {version} of the index {path} meanwhile; nothing was changed. "
            "Hint: run the change again"
        )


class BrokerError(TamisError, RuntimeError):
    """The folder of a broker cannot be opened, read or written, or the broker is closed."""


class LockedError(BrokerError):
    """Another broker, here or in another process, writes to the folder."""


class QueueFullError(BrokerError):
    """An event was refused, since a subscriber has too many notes that were not acknowledged."""


class ServiceError(BrokerError):
    """A service does not answer, or refuses a request for a reason that a broker does not have.

    Attributes
    ----------
    status : int or None
        The status of the answer; None if there was none.
    kind : str
        The kind of the problem, such as ``"too-fast"``; empty if the answer does not say.
    request_id : str or None
        The name of the request in the log of the service.
    """

    def __init__(
        self, message: str, *, status: int | None = None, kind: str = "", request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.request_id = request_id


class AccessError(ServiceError):
    """The token of a client is not valid, or lacks a role."""


class RetentionError(TamisError, LookupError):
    """The notes after a number were dropped. `first` is the number of the first note that is left."""

    def __init__(self, subscriber: str, after: int, first: int) -> None:
        self.subscriber = subscriber
        self.after = after
        self.first = first
        super().__init__(
            f"notes of {shortened(subscriber)} after {after} were dropped; the first that is left is {first}. "
            f"Hint: read with after={first - 1}, or with after=0"
        )


class FrameError(TamisError, ValueError):
    """A DataFrame lacks a required column, or a column has the wrong type."""


class DuplicateIdError(TamisError, KeyError):
    """A subscription with this id already exists, or one call gives the id twice."""

    def __init__(self, identifier: object, *, twice: bool = False) -> None:
        self.identifier = identifier
        name = shortened(identifier)
        known = f"subscription {name} already exists; use replace() or upsert() to change it"
        super().__init__(f"the id {name} is given twice" if twice else known)


class UnknownIdError(TamisError, KeyError):
    """No subscription has this id. In a broker, also: no subscriber has this name, or no event has this number."""

    def __init__(self, identifier: object, what: str = "subscription") -> None:
        self.identifier = identifier
        super().__init__(f"no {what} {shortened(identifier)}")


class UnknownPredicateError(TamisError, KeyError):
    """A tree of predicates has no such predicate, or no such leaf."""


class IdTypeError(TamisError, TypeError):
    """An id is neither str nor int, or of another type than the ids in the matcher."""


class UnknownIndexError(TamisError, ValueError):
    """The registry has no index of this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(f"no index {shortened(name)}{did_you_mean(name, names)}; the indexes are: {', '.join(names)}")


class CapabilityError(TamisError, ValueError):
    """The index lacks a capability, or cannot hold this expression."""


class OptionError(TamisError, ValueError):
    """A weight, k, threads or another option has a wrong value."""


class ReentryError(TamisError, RuntimeError):
    """A finalizer or signal handler calls a matcher while the interrupted thread changes that matcher."""

    def __init__(self) -> None:
        super().__init__(
            "a finalizer or signal handler called the matcher while the same thread was changing the matcher. "
            "Hint: only remove() and discard() may be called there"
        )


_LONGEST_MISTAKE = 1000
"""Characters of a word that is compared with others. Comparing takes long for longer ones."""


def did_you_mean(word: object, known: list[str]) -> str:
    """`; did you mean 'x'?` if a known word is similar, else an empty string."""
    if not isinstance(word, str) or len(word) > _LONGEST_MISTAKE:
        return ""
    folded = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(folded), n=2, cutoff=0.6)
    if not close:
        return ""
    return "; did you mean " + " or ".join(repr(folded[name]) for name in close) + "?"


def shortened(value: object, *, quoted: bool = True, most: int = 100) -> str:
    """A value as messages show it: quoted, and cut in the middle if it is long. Never raises an error."""
    if type(value) in (list, tuple) and len(value) > 2 * most:  # type: ignore[arg-type]
        value = value[:most] + value[-most:]  # type: ignore[index]  # The middle is not shown, and may be very long.
    try:
        shown = repr(value) if quoted else str(value)
    except Exception:
        # The value is nested too deep for Python, or its class has a broken `__repr__` or `__str__`.
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= most else f"{shown[: most - 20]} ... {shown[-15:]}"
