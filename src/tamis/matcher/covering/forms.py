"""Subscriptions by their forms. Identical subscriptions share a form. Subscriptions that are never true have none."""

from __future__ import annotations

from collections.abc import Container, Hashable
from typing import Generic, TypeVar

from tamis.language.expression import Expression
from tamis.language.implication import Clause, Form, Implications
from tamis.language.simplify import Finding, simplify

T = TypeVar("T", bound=Hashable)


class Forms(Generic[T]):
    """The distinct forms of subscriptions. `forms` and `groups` are parallel; a group has the ids with one form."""

    def __init__(self, scalars: Container[str] | None) -> None:
        self._scalars = scalars
        self._numbers: dict[Form | frozenset[Clause], int] = {}
        self.implications = Implications(scalars)
        self.forms: list[Form] = []
        self.groups: list[list[T]] = []
        self.subscriptions = 0
        self.never: list[T] = []
        self.never_single: list[T] = []

    def add(self, id: T, expression: Expression) -> None:
        self.subscriptions += 1
        form = self.implications.read(expression)
        if not form or self._is_never(expression, form, self._scalars):
            self.never.append(id)
            return
        if self._scalars is not None and self._is_never(expression, form, None):
            self.never_single.append(id)
        key = form if len(form) == 1 else frozenset(form)
        number = self._numbers.setdefault(key, len(self.forms))
        if number == len(self.forms):
            self.forms.append(form)
            self.groups.append([])
        self.groups[number].append(id)

    def _is_never(self, expression: Expression, form: Form, scalars: Container[str] | None) -> bool:
        """Whether `simplify` finds that no event satisfies an expression. It is asked only where it may know more."""
        if not all(map(_may_contradict, form)):
            return False
        return any(remark.finding is Finding.NEVER for remark in simplify(expression, scalars=scalars).remarks)


def _may_contradict(clause: Clause) -> bool:
    """Whether a clause asks for something that one value for each attribute may not satisfy."""
    return bool(clause.literals) or any(
        sum(len(needed.sets) for _, needed in demand.kinds) > 1 for _, demand in clause.demands
    )
