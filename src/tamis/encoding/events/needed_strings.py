"""The strings that a single event does not need, because it lacks all premises of their attributes. See `needed_values`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tamis.encoding.dimensions.dimension_set import Dimensions, parents_of
from tamis.encoding.dimensions.premises import Premise, Premises

_MOST_KNOWN = 1024
"""The most sets of premises that are remembered: there are about as many as log sources."""
_NO_STRINGS = frozenset({int, float, bool, type(None)})


class _Form(NamedTuple):
    """What is known while neither premises nor dimensions change."""

    premises: Premises
    parents: frozenset[str]
    """The names of objects around attributes of premises."""
    left_out: dict[frozenset[Premise], frozenset[str]]
    """The attributes that an event with some premises does not need."""


def not_needed(event: Mapping[str, Any], dimensions: Dimensions) -> Collection[str]:
    """The attributes whose strings an event does not need. None of them if a premise may lie in an object or a list.

    Strings that may be addresses are always needed: whether they are is counted.
    """
    premises = dimensions.premises
    if not premises.texts:
        return ()
    form: _Form | None = dimensions.premise_form
    if form is None or form.premises is not premises:
        parents = frozenset(parent for attribute in premises.texts for parent in parents_of(attribute))
        form = dimensions.premise_form = _Form(premises, parents, {})
    held: list[Premise] = []
    for attribute, texts in premises.texts.items():
        value = event.get(attribute)
        if type(value) is str:
            if value in texts:
                held.append((attribute, value))
        elif type(value) not in _NO_STRINGS:
            return ()
    if not form.parents.isdisjoint(event):
        return ()
    key = frozenset(held)
    left_out = form.left_out.get(key)
    if left_out is None:
        if len(form.left_out) >= _MOST_KNOWN:
            form.left_out.clear()
        facets = dimensions.by_attribute
        left_out = form.left_out[key] = frozenset(
            name
            for name, of_it in premises.of.items()
            if of_it is not None and of_it.isdisjoint(key) and name in facets and facets[name].address is None
        )
    return left_out
