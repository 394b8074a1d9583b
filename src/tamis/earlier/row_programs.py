"""Rests of subscriptions as programs: a kernel runs them for many rows, and decides each join of a row once (`row_joins`).

    price < ALL (...) OR NOT seller = ANY (...)      JOIN 0   JOIN 1   NOT   OR 2      and the joins, by their places

A program is in postfix order: each step takes truths from the end of a stack, and puts one there. Truths are numbers.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tamis.language.evaluate import Truth
from tamis.language.expression import And, Constant, Expression, Not, Or, TruthTest
from tamis.language.joins import Exists, Quantified

FALSE, UNKNOWN, TRUE = range(3)
OPEN = 3
"""The truth of what a kernel cannot decide."""
JOIN, CONSTANT, ALL_OF, ANY_OF, NOT, IS = range(6)
_TRUTHS: dict[Truth, int] = {False: FALSE, None: UNKNOWN, True: TRUE}


class Step(NamedTuple):
    """A step of a program."""

    action: int
    of: int
    """The place of the join, the truth of a constant, how many truths are joined, or a bit for each truth that is accepted."""


class Program(NamedTuple):
    """A program and its joins."""

    steps: tuple[Step, ...]
    joins: tuple[Quantified | Exists, ...]


@functools.lru_cache(maxsize=1 << 14)
def program_of(rest: Expression) -> Program:
    """The program of a rest. What is no join, and joins none, is OPEN."""
    joins: dict[Quantified | Exists, int] = {}
    steps: list[Step] = []

    def add(node: Expression) -> None:
        match node:
            case Quantified() | Exists():
                steps.append(Step(JOIN, joins.setdefault(node, len(joins))))
                return
            case Constant():
                steps.append(Step(CONSTANT, TRUE if node.value else FALSE))
                return
            case And() | Or() | Not() | TruthTest():
                for operand in node.operands:
                    add(operand)
        match node:
            case And() | Or():
                steps.append(Step(ALL_OF if isinstance(node, And) else ANY_OF, len(node.operands)))
            case Not():
                steps.append(Step(NOT, 1))
            case TruthTest():
                steps.append(Step(IS, sum(1 << _TRUTHS[truth] for truth in node.accepted)))
            case _:
                steps.append(Step(CONSTANT, OPEN))

    add(rest)
    return Program(tuple(steps), tuple(joins))
