"""Why an expression matches an event or not: the truth of every node, and the event's values at the leaves.

Every truth is that of `evaluate_flat` for the node, so an explanation cannot disagree with the language.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tamis.language.evaluate import Truth, evaluate_flat, flatten_asked
from tamis.language.event import FlatEvent, Value, kind_of_value
from tamis.language.expression import And, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists, Quantified
from tamis.language.operators import NULL_TESTS, SOME_STRINGS, Quantifier
from tamis.language.printer import TAMIS, TRUTH_WORDS
from tamis.language.values import Interval, Kind

OPERANDS_SHOWN = 20
"""How many operands of one AND or OR ``str()`` shows."""

_TEXT_SHOWN = 100
_CONNECTIVES: dict[type[Expression], str] = {And: "AND", Or: "OR", Not: "NOT"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A node of an expression, with its truth for an event.

    Attributes
    ----------
    truth
        True, False, or None for UNKNOWN.
    expression
        The node. ``str()`` of a leaf is its text.
    values
        The event's values for the attributes of a leaf; an empty tuple for a missing attribute.
    note
        A remark: a missing attribute, a value of another kind, or the earlier event that decided.
    children
        The explanations of the operands.
    """

    truth: Truth
    expression: Expression
    values: Mapping[str, tuple[Value, ...]]
    note: str
    children: tuple[Explanation, ...]

    @property
    def matched(self) -> bool:
        """Whether the event matches: the truth is TRUE."""
        return self.truth is True

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, limit: int | None = OPERANDS_SHOWN) -> str:
        """The tree as text. A node with more than `limit` operands shows the deciding operands first and counts the
        rest. None shows all operands."""
        return "\n".join(self._lines(limit))

    def to_dict(self) -> dict[str, Any]:
        """The tree for JSON: `truth` is true, false or null."""
        connective = _connective(self.expression)
        if connective is not None:
            children = [child.to_dict() for child in self.children]
            return {"truth": self.truth, "operator": connective, "operands": children}
        values = {name: [_jsonable(value) for value in found] for name, found in self.values.items()}
        leaf: dict[str, Any] = {"truth": self.truth, "expression": str(self.expression), "values": values}
        return {**leaf, "note": self.note} if self.note else leaf

    def _lines(self, limit: int | None) -> Iterator[str]:
        yield self._headline()
        shown, folded = self._split(limit)
        blocks = [child._lines(limit) for child in shown]
        if folded:
            counts = Counter(TRUTH_WORDS[child.truth] for child in folded)
            kinds = ", ".join(f"{count:,} {word}" for word, count in counts.items())
            blocks.append(iter([f"... {len(folded):,} more: {kinds}"]))
        for place, block in enumerate(blocks):
            last = place == len(blocks) - 1
            yield ("└─ " if last else "├─ ") + next(block)
            for line in block:
                yield ("   " if last else "│  ") + line

    def _headline(self) -> str:
        word = TRUTH_WORDS[self.truth]
        connective = _connective(self.expression)
        if connective is not None:
            return f"{word:<7}  {connective}"
        line = f"{word:<7}  {_shortened(str(self.expression))}"
        facts = [f"{name} is {_written(found)}" for name, found in self.values.items() if found]
        if self.note:
            facts.append(self.note)
        return f"{line}   ({', '.join(facts)})" if facts else line

    def _split(self, limit: int | None) -> tuple[Sequence[Explanation], Sequence[Explanation]]:
        if limit is None or len(self.children) <= limit:
            return self.children, ()
        # The FALSE operands decide a FALSE AND, the TRUE operands a TRUE OR. Where all operands are needed, each has the truth
        # of the whole.
        ordered = sorted(self.children, key=lambda child: child.truth is not self.truth)
        return ordered[:limit], ordered[limit:]


def explain(expression: Any, event: Mapping[str, Any], history: Iterable[Mapping[str, Any]] = ()) -> Explanation:
    """Explain why an expression matches an event or not.

    Parameters
    ----------
    expression : str, Expression or list
        SQL text, an expression, or the JSON form of one.
    event
        A mapping from attributes to values.
    history
        The earlier events, which ANY, ALL and EXISTS ask about.

    ``str()`` of the result draws the tree::

        FALSE    AND
        ├─ TRUE     price <= 40   (price is 25)
        └─ FALSE    genre = 'classics'   (genre is 'crime')
    """
    from tamis.language.reading import to_expression

    read = to_expression(expression)
    return explain_flat(read, *flatten_asked(read, event, history))


def _connective(node: Expression) -> str | None:
    """The word for a node with operands; None for a leaf."""
    return TAMIS.truth(node.truth, node.negated) if isinstance(node, TruthTest) else _CONNECTIVES.get(type(node))


def explain_flat(node: Expression, event: FlatEvent, history: Sequence[FlatEvent] = ()) -> Explanation:
    """As `explain`, for a flat event. A value outside the language is UNKNOWN."""
    truth = evaluate_flat(node, event, history)
    if node.operands:
        return Explanation(
            truth, node, {}, "", tuple(explain_flat(operand, event, history) for operand in node.operands)
        )
    values = {name: event.get(name, ()) for name in sorted(node.attributes())}
    return Explanation(truth, node, values, _note(node, truth, event, history), ())


def _note(leaf: Expression, truth: Truth, event: FlatEvent, history: Sequence[FlatEvent]) -> str:
    missing = [name for name in sorted(leaf.attributes()) if name not in event]
    notes = [f"{name} is missing" for name in missing]
    if isinstance(leaf, Predicate) and truth is None and not missing:
        notes.append(_other_kind(leaf, event[leaf.attribute]))
    if isinstance(leaf, Quantified | Exists):
        notes.append(_deciding(leaf, truth, event, history))
    return ", ".join(note for note in notes if note)


def _other_kind(predicate: Predicate, values: tuple[Value, ...]) -> str:
    """Why a predicate on an attribute that is there is UNKNOWN."""
    if predicate.operator in NULL_TESTS:
        return ""
    if predicate.operator in SOME_STRINGS and any(kind_of_value(value) is Kind.STRING for value in values):
        return f"not {SOME_STRINGS[predicate.operator]}"
    present = " and ".join(f"a {kind}" for kind in dict.fromkeys(kind_of_value(value) for value in values))
    asked = " and ".join(f"a {kind}" for kind in predicate.kinds)
    return f"{present}, compared with {asked}"


def _deciding(leaf: Quantified | Exists, truth: Truth, event: FlatEvent, history: Sequence[FlatEvent]) -> str:
    """Which earlier event decided: a TRUE one is enough for ANY and EXISTS, a FALSE one for ALL."""
    if not history:
        return "there are no earlier events"
    decisive = not (isinstance(leaf, Quantified) and leaf.quantifier is Quantifier.ALL)
    if truth is not decisive:
        return f"none of {len(history):,} earlier events decides it" if truth is None else ""
    place = next(place for place, earlier in enumerate(history) if evaluate_flat(leaf, event, [earlier]) is decisive)
    return f"decided by earlier event {place}"


def _written(values: tuple[Value, ...]) -> str:
    texts = [_value_text(value) for value in values[:OPERANDS_SHOWN]]
    if len(values) > OPERANDS_SHOWN:
        texts.append(f"... {len(values) - OPERANDS_SHOWN:,} more")
    return texts[0] if len(values) == 1 else f"[{', '.join(texts)}]"


def _value_text(value: Value) -> str:
    if isinstance(value, Interval):
        return f"in {_value_text(value.lo)} to {_value_text(value.hi)}"
    return str(value) if isinstance(value, date) else _shortened(repr(value))


def _jsonable(value: Value) -> Any:
    if isinstance(value, Interval):
        return {"lo": _jsonable(value.lo), "hi": _jsonable(value.hi)}
    if isinstance(value, date):
        return value.isoformat()
    # JSON has no infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 24]} ... {text[-20:]}"
