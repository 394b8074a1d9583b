"""Premises: strings without which no row that asks about an attribute can match.

    logsource.category = 'process_creation' AND CommandLine LIKE '%-enc%'      CommandLine: logsource.category, process_creation
    logsource.category = 'ps_script' AND ScriptBlockText LIKE '%IEX%'          ScriptBlockText: logsource.category, ps_script

An event of another category needs no keys of its command line: whatever they were, each row that asks about them has a predicate
that the event does not satisfy. So its strings are not searched. A row names its premises if it asks for one string of an
attribute, or for one of a few. If one row that asks about an attribute has no premise, all events need the attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Premise: TypeAlias = tuple[str, str]
"""An attribute and its string."""

MOST_PREMISES = 256
"""The most premises of an attribute. With more, all events need it."""


class Premises(NamedTuple):
    """The premises of attributes that rows ask about. It never changes."""

    of: Mapping[str, frozenset[Premise] | None]
    """None: all events need the attribute. So do all attributes that are not here."""
    texts: Mapping[str, frozenset[str]]
    """The strings of premises, by their attribute."""

    @property
    def are_any(self) -> bool:
        """Whether some events do not need all attributes."""
        return bool(self.texts)

    def with_rows(self, asked: Iterable[tuple[str, Iterable[Premise] | None]]) -> Premises:
        """The premises with those of more rows: attributes that some rows ask about, and the premises of these rows."""
        of = dict(self.of)
        for attribute, premises in asked:
            before = of.get(attribute, frozenset())
            after = None if before is None or premises is None else before.union(premises)
            of[attribute] = None if after is not None and len(after) > MOST_PREMISES else after
        return premises_of(of)

    def only(self, attributes: Iterable[str]) -> Premises:
        """The premises of some attributes."""
        return premises_of({attribute: self.of.get(attribute) for attribute in attributes})


def premises_of(of: Mapping[str, frozenset[Premise] | None]) -> Premises:
    """Premises by attribute."""
    texts: dict[str, set[str]] = {}
    for premises in of.values():
        for attribute, text in premises or ():
            texts.setdefault(attribute, set()).add(text)
    return Premises(of, {attribute: frozenset(of_it) for attribute, of_it in texts.items()})


NO_PREMISES = Premises({}, {})
"""All events need all attributes."""
