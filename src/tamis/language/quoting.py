"""LIKE patterns that stand for a plain string, with an escape where the string holds a wildcard."""

from __future__ import annotations

from tamis.language.like import ANY_ONE, ANY_RUN

ESCAPE = "!"
"""Not the backslash, which some dialects read as an escape of the string literal itself."""


def quoted(text: str, *, before: str = "", after: str = "") -> tuple[str, str | None]:
    """The pattern for `text` between two pieces of pattern, and the escape it needs, if any.

    >>> quoted("100%", after="%")
    ('100!%%', '!')
    """
    if ANY_RUN not in text and ANY_ONE not in text:
        return before + text + after, None
    escaped = "".join(ESCAPE + symbol if symbol in (ANY_RUN, ANY_ONE, ESCAPE) else symbol for symbol in text)
    return before + escaped + after, ESCAPE
