"""Subscriptions of text files: JSONL, CSV, and an expression per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.csv_records import CsvRecord, csv_records
from tamis.cli.json_text import JsonError, read_object
from tamis.cli.lines import Line, Lines, not_text
from tamis.errors import (
    ExpressionError,
    FileError,
    HistoryError,
    IdTypeError,
    OptionError,
    ParseError,
    TableError,
    TamisError,
)

if TYPE_CHECKING:
    from tamis.language.expression import Expression
    from tamis.matcher.ids import Id


class Subscription(NamedTuple):
    """The contents of a line: an id, and the source of the expression.

    The source is text, the JSON form, the expression itself, or an error if it has none of these: the line still has its id.
    """

    line: int
    id: Id
    source: Any
    weight: float = 0.0


Read = Subscription | FileError
"""The result of reading a line: a subscription, or an error."""


def read_json_lines(lines: Lines) -> Iterator[Read]:
    """An object per line: ``{"id": "ann", "expression": "price < 5"}``, or with the JSON form under "predicates"; perhaps with a
    "weight"."""
    for line in lines:
        if line.text.strip():
            yield _read(lines, line, _of_object)


def read_expressions(lines: Lines) -> Iterator[Read]:
    """An expression per line; the line number is the id. Empty lines and lines with only a ``--`` comment are skipped."""
    for line in lines:
        text = line.text.strip()
        if text and not text.startswith("--"):
            yield _read(lines, line, lambda line: Subscription(line.number, line.number, line.text))


def read_csv(lines: Lines) -> Iterator[Read]:
    """Records under a header with the columns id and expression, and perhaps weight; others are ignored.

    Raises
    ------
    FileError
        If the header lacks these columns.
    """
    header, records = csv_records(lines)
    if header.count("id") != 1 or header.count("expression") != 1 or header.count("weight") > 1:
        found = f"it is {','.join(header)}" if header else "there is none"
        raise lines.error(1, f"the header must have the columns id and expression; {found}")
    for record in records:
        yield record if isinstance(record, FileError) else _of_record(lines, header, record)


def expression_of(subscription: Subscription) -> Expression:
    """The expression of a line.

    Raises
    ------
    ExpressionError
    """
    from tamis.language.reading import to_expression

    if isinstance(subscription.source, ExpressionError):
        raise subscription.source
    return to_expression(subscription.source)


def wrong_expression(error: ExpressionError) -> str:
    """The text of an error that is shown behind file and line."""
    if isinstance(error, HistoryError):
        return "compares with earlier events, but none are kept. Hint: `tamis match` keeps them with --history-rows"
    error.subscription = None
    one_line = error.line == 1 and not (isinstance(error, ParseError) and "\n" in error.text)
    # A second line number would be confusing.
    return str(error).replace("(line 1, column ", "(column ", 1) if one_line else str(error)


def wrong_subscription(error: TamisError) -> str:
    """The same for any error about a subscription, or about a row of a table."""
    if isinstance(error, ExpressionError):
        return wrong_expression(error)
    return error.reason if isinstance(error, TableError) else str(error)


def _read(lines: Lines, line: Line, read: Callable[[Line], Subscription]) -> Read:
    if problem := not_text(line.text):
        return lines.error(line.number, problem)
    try:
        return read(line)
    except (JsonError, IdTypeError, OptionError) as error:
        return lines.error(line.number, str(error))


def _of_object(line: Line) -> Subscription:
    from tamis.matcher.ids import plain_id
    from tamis.matcher.options import plain_weight

    found = read_object(line.text, "a subscription", per_line=True)
    if "id" not in found:
        raise JsonError(_wrong_keys(found))
    weight = plain_weight(found["weight"]) if "weight" in found else 0.0
    return Subscription(line.number, plain_id(found["id"]), _source(found), weight)


def _source(found: dict[str, Any]) -> Any:
    forms = [key for key in ("expression", "predicates") if key in found]
    if len(forms) != 1:
        return ExpressionError(_wrong_keys(found))
    source = found[forms[0]]
    if not isinstance(source, list) and (forms == ["predicates"] or not isinstance(source, str)):
        wanted = "a list of predicates" if forms == ["predicates"] else "a text or a list of predicates"
        return ExpressionError(f"{forms[0]} must be {wanted}")
    return source


def _wrong_keys(found: dict[str, Any]) -> str:
    keys = ", ".join(found) or "none"
    return f"a subscription needs the keys id and either expression or predicates (weight is optional); it has: {keys}"


def _of_record(lines: Lines, header: list[str], record: CsvRecord) -> Read:
    field = dict(zip(header, record.fields, strict=True))
    try:
        return Subscription(record.line, field["id"], field["expression"], _weight(field.get("weight", "").strip()))
    except OptionError as error:
        return lines.error(record.line, str(error))


def _weight(text: str) -> float:
    """The weight in a text; 0 if the text is empty.

    Raises
    ------
    OptionError
    """
    from tamis.matcher.options import plain_weight

    try:
        return plain_weight(float(text)) if text else 0.0
    except ValueError:
        raise OptionError(f"a weight must be a finite number, not {text!r}") from None
