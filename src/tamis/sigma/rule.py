"""A rule about single events, converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tamis.language.expression import Expression


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about single events.

    Attributes
    ----------
    id : str
        The id of the rule; if it has none, its name; if it has none either, its file and line.
    log_source : mapping
        What its expression asks of the log source of an event, by attribute.
    reported : bool
        Whether a match is a result by itself. Rules that correlations refer to only serve those, unless they `generate`.
    """

    id: str
    title: str
    level: str | None
    tags: tuple[str, ...]
    log_source: Mapping[str, str]
    expression: Expression
    path: str
    line: int
    reported: bool = True

    def with_reported(self, reported: bool) -> Rule:
        """The same rule, reported or not."""
        return replace(self, reported=reported)
