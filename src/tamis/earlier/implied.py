"""What a constant and a join on one attribute say together of the earlier event: table 2 of the paper.

For `(d.a OP1 a) AND (a OP2 c)`, with the earlier event d and the constant c:

    OP2 \\ OP1   =      <      <=     >      >=
    =           =      <      <=     >      >=        the constraint replaces the join
    <           <      <      <      -      -         the constraint is added to the join
    <=          <=     <      <=     -      -
    >           >      -      -      >      >
    >=          >=     -      -      >      >=

A cell is the operator of `d.a OPERATOR c`. `-` says nothing. So `price < 10 AND EXISTS (... h.price = price)` can be TRUE only if
some earlier price is below 10.

Reference: N. Tatbul, section 4.3.2. Its contradictions, and what we do:

- It asks every profile for a document that has the attribute. With "for all", no document at all is fine. So we ask for one
  under ANY and EXISTS only.
- The implied constraints of a profile are to be indexed like a profile, and every document goes through this index. But all
  predicates of a profile must hold for one document, while each quantified join may be satisfied by another document. So we
  count the documents of each constraint apart.
- The same index finds a document that satisfies a constraint. "For all" needs the reverse: no document that violates it.
- A vector that documents only switch on is wrong once documents leave, and for "for all" at once. So we keep counts.
- The joins of the table are written old OP new. Those of example 5 are written new OP old. Here OP1 is old OP new.
- Example 3 has a join with `<>`, for which the table has no column. With `a = c` it implies `d.a <> c`, with the others nothing.
- The first row is said to replace the join. This holds for an event with one value of the attribute. With several values,
  `a = 10` holds if one of them is 10, and the join may hold for another one. Then no cell of the table holds.
- A table for two-sided constants "could be built". None is needed: both bounds imply their own constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tamis.language.operators import INVERSE, Operator
from tamis.language.scalar_set import ScalarSet
from tamis.language.value_set import (
    AFTER,
    BEFORE,
    EVERYTHING,
    Span,
    ValueSet,
    complement,
    intersection,
    union,
)
from tamis.language.values import Kind

EQ, NE, LT, LE, GT, GE = (
    Operator.EQ,
    Operator.NE,
    Operator.LT,
    Operator.LE,
    Operator.GT,
    Operator.GE,
)
COLUMNS = (EQ, LT, LE, GT, GE)
"""OP1: the earlier value, compared with the new one."""
TABLE: dict[Operator, tuple[Operator | None, ...]] = {
    EQ: (EQ, LT, LE, GT, GE),
    LT: (LT, LT, LT, None, None),
    LE: (LE, LT, LE, None, None),
    GT: (GT, None, None, GT, GT),
    GE: (GE, None, None, GT, GE),
}
"""By OP2: the new value, compared with the constant."""
REPLACING = EQ
"""The row whose constraints replace the join."""

Values: TypeAlias = Mapping[Kind, ValueSet]


def implied(join: Operator, constant: Operator) -> Operator | None:
    """The operator of the constraint `d.a OPERATOR c` that follows from `d.a JOIN a` and `a CONSTANT c`; None if nothing does."""
    if join is NE:
        return NE if constant is EQ else None
    return TABLE[constant][COLUMNS.index(join)]


def joined(join: Operator, new: ScalarSet) -> dict[Kind, ValueSet]:
    """The earlier values y for which `y JOIN x` may hold, if x is one of the new values. Others are certain not to satisfy it."""
    found = {}
    for kind, values in new.values.items():
        if kind is Kind.BOOLEAN and join not in (EQ, NE):
            continue  # Booleans have no order.
        found[kind] = union([_joined_span(join, span, kind) for span in values.spans()])
    return {kind: values for kind, values in found.items() if values}


def surely_joined(join: Operator, new: ScalarSet) -> dict[Kind, ValueSet]:
    """The earlier values y for which `y JOIN x` holds, whichever of the new values x is."""
    if new.missing or len(new.values) != 1:
        return {}
    [kind] = new.values
    if kind is Kind.BOOLEAN and join not in (EQ, NE):
        return {}
    against = joined(INVERSE[join], new)
    values = complement(against[kind], kind) if kind in against else EVERYTHING[kind]
    return {kind: values} if values else {}


def _joined_span(join: Operator, span: Span, kind: Kind) -> ValueSet:
    """The same for the new values between two cuts: each end is a constant, and implies its own constraint."""
    if span.lo is not None and span.is_point:
        return _compared(implied(join, REPLACING), span.lo[0], kind)
    parts = [EVERYTHING[kind]]
    if span.lo is not None:
        key, side = span.lo
        parts.append(_compared(implied(join, GE if side is BEFORE else GT), key, kind))
    if span.hi is not None:
        key, side = span.hi
        parts.append(_compared(implied(join, LT if side is BEFORE else LE), key, kind))
    return intersection(parts)


def _compared(operator: Operator | None, key: object, kind: Kind) -> ValueSet:
    """The values y of a kind for which `y OPERATOR key` holds; all of them if there is no operator."""
    match operator:
        case Operator.EQ:
            return ValueSet(False, ((key, BEFORE), (key, AFTER)))
        case Operator.NE:
            return complement(ValueSet(False, ((key, BEFORE), (key, AFTER))), kind)
        case Operator.LT | Operator.LE:
            return intersection([EVERYTHING[kind], ValueSet(True, ((key, operator is Operator.LE),))])
        case Operator.GT | Operator.GE:
            return intersection([EVERYTHING[kind], ValueSet(False, ((key, operator is Operator.GT),))])
    return EVERYTHING[kind]
