"""The words of the SQL text: which of them the language keeps for itself, and which names must be quoted."""

from __future__ import annotations

from tamis.language.operators import CALLED, OPERATOR_WORDS, SYNONYMS, Case

RESERVED = OPERATOR_WORDS | {"AND", "OR", "NOT", "TRUE", "FALSE"}
"""An attribute of such a name is quoted, except after a dot."""

CONTEXTUAL = frozenset(
    {"ANY", "SOME", "ALL", "EXISTS", "SELECT", "FROM", "WHERE", "AS", "ESCAPE", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}
    | {"UNKNOWN", "DISTINCT"}
    | SYNONYMS.keys()
)
"""Keywords only where nothing else can stand: `from = 'x'` and `date > DATE '2026-01-01'` need no quotes."""

KEYWORDS = RESERVED | CONTEXTUAL

CONDITIONS = ("starts_with", "ends_with", "contains", "array_contains", *sorted(CALLED))
"""The functions that are a complete condition. The first four stand for LIKE and `=`.

`FUNCTIONS` cannot be read here, since its modules read these words. A test compares the two.
"""

FUNCTION_NAMES = (*Case, *CONDITIONS)
"""All functions of the language, in the order in which messages list them."""


def keyword(word: str) -> str | None:
    """The keyword that a word spells, in capitals; None for any other word."""
    folded = word.upper()
    # Outside ASCII different letters share a capital: the long s of `i\u017f` would make it IS.
    return folded if folded in KEYWORDS and word.isascii() else None


def needs_quotes(name: str) -> bool:
    """Whether an attribute's name cannot stand in the text as it is."""
    parts = name.split(".")
    return not all(map(str.isidentifier, parts)) or keyword(parts[0]) in RESERVED
