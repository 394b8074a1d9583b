"""The covering report, and how it is made."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tamis.language.reading import to_expression
from tamis.matcher.covering.forms import Forms
from tamis.matcher.covering.search import Search
from tamis.matcher.options import plain_limit

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class CoveringReport(Generic[T]):
    """What `find_covering` found. Ids come in the order in which they were given."""

    subscriptions: int = 0
    """How many subscriptions there were."""
    identical: list[list[T]] = field(default_factory=list)
    """Groups of subscriptions that the same events satisfy. In `implied`, the first of a group stands for all."""
    implied: list[tuple[T, T]] = field(default_factory=list)
    """Pairs (narrow, wide): every event that satisfies the first satisfies the second."""
    never: list[T] = field(default_factory=list)
    """Subscriptions that no event satisfies. They are in no group and in no pair."""
    never_single: list[T] = field(default_factory=list)
    """Subscriptions that an event with one value for each attribute never satisfies, such as ``a < 3 AND a > 5``. `tamis check`
    warns about these. A list or an Interval may satisfy them, so they are not in `never`."""
    unfinished: list[T] = field(default_factory=list)
    """Subscriptions with so many candidates that the search stopped early. Pairs with these as `narrow` may be missing."""


def find_covering(
    subscriptions: Iterable[tuple[T, Any]], *, scalars: Container[str] | None = (), most: int = 3
) -> CoveringReport[T]:
    """Find subscriptions that are identical, covered by others, or never true.

    Everything that is reported holds for all events: with lists, Intervals, missing values and earlier events. What is found:

    - Conjunctions of comparisons, IN, BETWEEN, LIKE with a prefix, IS [NOT] NULL, and their negations: all pairs. Exceptions
      hold only because two values are neighbours, as for ``t > x`` and ``t >= y`` if `y` is a microsecond after `x`.
    - Tests of truth values, other patterns, `ip_in`, `lower(a)` and `upper(a)`: most pairs. RLIKE follows only from itself and
      from strings.
    - Joins with earlier events: pairs in which both have the same join.
    - Other expressions, with up to 64 clauses: pairs in which each clause of the narrow one implies a clause of the wide one.
      So ``a = 1`` is not found to imply ``a = 1 AND b IS NULL OR a = 1 AND b IS NOT NULL``.

    Time grows with the number of subscriptions, not with its square, unless most candidates are false; see `unfinished`. 100,000
    price alerts take half a minute and 600 MB.

    Parameters
    ----------
    subscriptions : iterable of (id, expression)
        An id is anything that may be a key. An expression is text, an Expression, or a list in the JSON form.
    scalars : container of str, optional
        Attributes that have neither a list nor an Interval in any event; None for all attributes. Then more is found: ``a = 7``
        implies ``a <> 5``, unless `a` may be ``[5, 7]``. By default, any attribute may have several values.
    most : int
        The most pairs that are reported with the same narrow one. The widest ones are preferred, and come first.

    Raises
    ------
    ExpressionError, OptionError

    Examples
    --------
    >>> report = find_covering([("a", "price < 10 AND genre = 'crime'"), ("b", "price < 20"), ("c", "20 > price")])
    >>> report.identical, report.implied
    ([['b', 'c']], [('a', 'b')])
    """
    limit = plain_limit(most, "`most` is the largest number of pairs for each subscription")
    forms: Forms[T] = Forms(scalars)
    for id, expression in subscriptions:
        forms.add(id, to_expression(expression))
    forms.implications.forget()
    search = Search(forms.forms, forms.implications, limit)
    search.run()
    return _report(forms, search)


def _report(forms: Forms[T], search: Search) -> CoveringReport[T]:
    first = _joined(len(forms.groups), search.same)
    members: dict[int, list[int]] = {}
    for number, own in enumerate(first):
        members.setdefault(own, []).append(number)
    identical = [[id for number in found for id in forms.groups[number]] for found in members.values()]
    pairs = {
        (first[number], first[wide]): None
        for number in sorted(search.wider, key=lambda number: first[number])
        for wide in search.wider[number]
    }
    ids = [group[0] for group in forms.groups]
    return CoveringReport(
        subscriptions=forms.subscriptions,
        identical=[group for group in identical if len(group) > 1],
        implied=[(ids[narrow], ids[wide]) for narrow, wide in pairs if narrow != wide],
        never=forms.never,
        never_single=forms.never_single,
        unfinished=[ids[number] for number in search.unfinished],
    )


def _joined(count: int, same: list[tuple[int, int]]) -> list[int]:
    """For each form the first form that it is the same as."""
    first = list(range(count))

    def root(number: int) -> int:
        while first[number] != number:
            number = first[number]
        return number

    for one, other in same:
        low, high = sorted((root(one), root(other)))
        first[high] = low
    return list(map(root, range(count)))
