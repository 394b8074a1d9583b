"""A declared schema: which attributes there are, of which kind, and which may have several values.

Without one, a literal of another kind than the value makes a predicate UNKNOWN; with one, it is an error when the
subscription is added. Attributes of events that the schema does not name are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tamis.errors import EventError, KindError, UnknownAttributeError, shortened
from tamis.language.declared import Declared, read_declared
from tamis.language.event import FlatEvent, kind_of_value, refuse_asked
from tamis.language.expression import Expression, Predicate
from tamis.language.joins import Exists, Quantified
from tamis.language.operators import ORDER_COMPARISONS, Operator
from tamis.language.values import Interval, Kind, kind_of

if TYPE_CHECKING:
    from tamis.kernels.numbers import I64s


class Schema:
    """The declared attributes, immutable.

    Parameters
    ----------
    declared
        A mapping of names to kinds, a `pyarrow.Schema`, or a Schema. A kind is a word ("number", "string", "boolean",
        "timestamp", "list<string>" and common synonyms), a Python type (`int`, `list[str]`), a `Kind` or an Arrow
        type. Nested mappings and Arrow structs give dotted names.

    Raises
    ------
    SchemaError
        An entry cannot be read. The message names the entry.

    >>> Schema({"price": "number", "tags": "list<string>", "user": {"age": int}})
    Schema({'price': 'number', 'tags': 'list<string>', 'user.age': 'number'})
    """

    __slots__ = ("_declared",)

    def __init__(self, declared: Any) -> None:
        self._declared: dict[str, Declared] = (
            declared._declared if isinstance(declared, Schema) else read_declared(declared)
        )

    @staticmethod
    def of(declared: Any) -> Schema:
        """The schema itself, or a new one made from a declaration."""
        return declared if isinstance(declared, Schema) else Schema(declared)

    def __getitem__(self, attribute: str) -> Declared:
        """What is declared for an attribute.

        Raises
        ------
        UnknownAttributeError
            The schema has no such attribute. The message names attributes with a similar spelling.
        """
        found = self._declared.get(attribute) if isinstance(attribute, str) else None
        if found is None:
            raise UnknownAttributeError(attribute, self._declared)
        return found

    def __contains__(self, attribute: object) -> bool:
        return isinstance(attribute, str) and attribute in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._declared == other._declared

    def __hash__(self) -> int:
        return hash(frozenset(self._declared.items()))

    def __repr__(self) -> str:
        return f"Schema({self.to_dict()!r})"

    def to_dict(self) -> dict[str, str]:
        """The schema as a dictionary of words, which `Schema.of` can read again."""
        return {name: str(declared) for name, declared in self._declared.items()}

    @property
    def scalars(self) -> frozenset[str]:
        """The attributes with at most one value, which is not an Interval."""
        return frozenset(name for name, declared in self._declared.items() if not declared.several)

    def check(self, expression: Expression, text: str | None = None) -> None:
        """Raise an error if the expression does not fit the schema. With the `text` of the expression, the error shows the place.

        Raises
        ------
        UnknownAttributeError
            An attribute of the event, or of earlier events, is not declared.
        KindError
            A literal and its attribute differ in kind, or a join has two attributes of different kinds.
        """
        try:
            self._check(expression)
        except (UnknownAttributeError, KindError) as error:
            if text is not None:
                from tamis.language.fault_places import place_fault

                place_fault(error, text, lambda attribute: self[attribute].kind)
            raise

    def _check(self, expression: Expression) -> None:
        for node in expression.walk():
            if isinstance(node, Predicate):
                self._check_predicate(node)
            elif isinstance(node, Quantified):
                self._check_join(node.attribute, node.operator, node.earlier)
            elif isinstance(node, Exists):
                for join in node.joins:
                    self._check_join(join.earlier, join.operator, join.attribute)
                for condition in node.conditions:
                    self._check_predicate(condition)

    def check_event(self, event: FlatEvent, row: int | None = None) -> None:
        """Raise an EventError for a value outside the language, a value of the wrong kind, or several values where one is
        declared. Attributes that are not declared are not checked."""
        refuse_asked(event, lambda: self._declared, row)
        for name, values in event.items():
            declared = self._declared.get(name)
            if declared is None:
                continue
            if len(values) > 1 and not declared.several:
                raise EventError(f"found {len(values)} values, but the schema declares one", row=row, attribute=name)
            for value in values:
                if isinstance(value, Interval) and not declared.several:
                    message = (
                        f"found an Interval, but the schema declares one value. Hint: declare list<{declared.kind}>"
                    )
                    raise EventError(message, row=row, attribute=name)
                kind = kind_of_value(value)
                if kind is not declared.kind:
                    message = f"{shortened(value)} is a {kind}, but the schema declares a {declared.kind}"
                    raise EventError(message, row=row, attribute=name)

    def allows(self, attribute: str, kind: Kind) -> bool:
        """Whether an event may have a value of this kind. An attribute that is not declared may have any kind."""
        declared = self._declared.get(attribute)
        return declared is None or declared.kind is kind

    def check_column(self, attribute: str, kind: Kind, rows: I64s) -> None:
        """`check_event` for a column of a batch. All values have the kind `kind`; `rows` has the row of each, ascending."""
        declared = self._declared.get(attribute)
        if declared is None or not len(rows):
            return
        if kind is not declared.kind:
            message = f"the value is a {kind}, but the schema declares a {declared.kind}"
            raise EventError(message, rows=rows, attribute=attribute)
        repeated = rows[1:][rows[1:] == rows[:-1]]
        if len(repeated) and not declared.several:
            message = "found several values, but the schema declares one"
            raise EventError(message, rows=repeated, attribute=attribute)

    def _check_predicate(self, predicate: Predicate) -> None:
        declared = self[predicate.attribute]
        for value in predicate.values:
            if kind_of(value) is not declared.kind:
                raise KindError(
                    f"attribute {predicate.attribute!r} is a {declared.kind}: "
                    f"{predicate.operator.upper()} with the {kind_of(value)} {shortened(value)} can never be true",
                    attribute=predicate.attribute,
                )

    def _check_join(self, left: str, operator: Operator, right: str) -> None:
        kinds = self[left].kind, self[right].kind
        if kinds[0] is not kinds[1]:
            raise KindError(
                f"attributes {left!r} (a {kinds[0]}) and {right!r} (a {kinds[1]}) cannot be compared", attribute=left
            )
        if kinds[0] is Kind.BOOLEAN and operator in ORDER_COMPARISONS:
            raise KindError(f"booleans have no order: {left!r} {operator} {right!r}. Hint: use = or <>", attribute=left)
