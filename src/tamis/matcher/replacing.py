"""Replacing the expressions of subscriptions, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.errors import DuplicateIdError, ExpressionError
from tamis.language.expression import Expression
from tamis.matcher.bulk_add import list_of_expressions
from tamis.matcher.expression_reader import ExpressionReader, kept
from tamis.matcher.expression_store import GivenExpressions
from tamis.matcher.ids import Id
from tamis.matcher.options import list_of_weights, plain_weight
from tamis.matcher.store import Store


def replace_expressions(store: Store[Any], reader: ExpressionReader, ids: Any, expressions: Any, weights: Any) -> None:
    """Replace expressions in a store that the caller is changing, and weights if any are given.

    Raises
    ------
    UnknownIdError, DuplicateIdError, IdTypeError, ExpressionError, OptionError
    """
    identifiers = store.ids.check_known(ids)
    seen: set[Id] = set()
    for identifier in identifiers:
        if identifier in seen:
            raise DuplicateIdError(identifier, twice=True)
        seen.add(identifier)
    given = list_of_expressions(expressions, len(identifiers))
    read = []
    for identifier, expression in zip(identifiers, given, strict=True):
        try:
            read.append(reader.read(expression))
        except ExpressionError as error:
            error.subscription = identifier
            raise
    weighs = None
    if weights is not None:
        weighs = [plain_weight(weight) for weight in list_of_weights(weights, len(identifiers))]
    if identifiers:
        replace_read(store, identifiers, given, read, weighs)


def replace_read(
    store: Store[Any],
    identifiers: list[Id],
    given: Sequence[Any],
    read: Sequence[Expression],
    weights: Sequence[float] | None,
) -> None:
    """Replace the expressions of subscriptions that are there by expressions that were read. Without weights they keep theirs."""
    block = GivenExpressions([kept(*pair) for pair in zip(given, read, strict=True)])
    clauses = store.compile(read)
    slots = np.array([store.ids.slot(identifier) for identifier in identifiers], np.int64)
    weigh = store.weights(slots) if weights is None else np.array(weights, np.float64)
    store.replace(identifiers, clauses, block, weigh)
