"""The evaluator and the matcher against an engine, on the same events and expressions.

Asked are: the engine for the truth of every expression for every event, and for the rows that ``WHERE`` keeps; our
evaluator for the truth; our matcher, given the SQL text, for the matches in an Arrow table and in dictionaries, and once
more with a schema, which lets it merge predicates on one attribute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tamis.language.evaluate import Truth, evaluate
from tamis.language.expression import Expression
from tamis.matcher.matcher import Matcher
from tests.differential.attributes import PLAIN, Event, engine_table, event_table
from tests.differential.cases import TypedCases
from tests.differential.engines import Engine
from tests.differential.translation import engine_text, needs_translation

SCHEMA = {attribute.name: kind for attribute in PLAIN for kind in attribute.types}


class Batch(NamedTuple):
    """Events and expressions, to be combined each with each."""

    events: list[Event]
    expressions: list[Expression]

    @property
    def plain(self) -> list[Expression]:
        """The expressions that engines read as `to_sql` prints them."""
        return [expression for expression in self.expressions if not needs_translation(expression)]


class Answers(NamedTuple):
    """What an engine says: for each expression the truth for each event, for each plain one the rows kept."""

    truths: list[list[Truth]]
    kept: list[list[int]]


class Disagreement(NamedTuple):
    """One event on which somebody says otherwise than the engine."""

    who: str
    expression: Expression
    event: Event
    engine: Truth
    other: Truth

    def __str__(self) -> str:
        seen = {name: value for name, value in self.event.items() if name in self.expression.attributes()}
        return f"{self.who}: {self.other}, engine: {self.engine}, for {seen!r} and\n{self.expression}"


def random_batch(seed: int, *, expressions: int, events: int) -> Batch:
    """A batch of different expressions, at least half of them plain; the same seed gives the same batch."""
    cases = TypedCases(seed)
    drawn_events = [cases.event() for _ in range(events)]
    drawn: dict[Expression, None] = {}
    while len(drawn) < expressions:
        drawn[cases.expression(plain=2 * len(drawn) < expressions)] = None
    return Batch(drawn_events, list(drawn))


def batches(count: int, *, soak: bool = False) -> Iterator[Batch]:
    """The batches of a run, one for each seed from 0; in a soak run four times as many, each with five times the events."""
    count, events = (4 * count, 250) if soak else (count, 50)
    return (random_batch(seed, expressions=100, events=events) for seed in range(count))


def compare(engine: Engine, drawn: Iterable[Batch]) -> Counter[Truth]:
    """Compare batch after batch, fail at the first disagreement, and count the decisions by their truth."""
    decisions: Counter[Truth] = Counter()
    for number, batch in enumerate(drawn):
        answers = ask(engine, batch)
        found = disagreements(batch, answers)
        assert not found, f"{engine.dialect}, batch {number}: {len(found)} disagreements, the shortest is\n{found[0]}"
        decisions.update(truth for truths in answers.truths for truth in truths)
    return decisions


def ask(engine: Engine, batch: Batch) -> Answers:
    """The engine's answers for a batch."""
    engine.load(engine_table(batch.events))
    truths = engine.truths([engine_text(expression, engine.dialect) for expression in batch.expressions])
    return Answers(truths, engine.kept([engine_text(expression, engine.dialect) for expression in batch.plain]))


def disagreements(batch: Batch, answers: Answers) -> list[Disagreement]:
    """Where the evaluator, the matcher or the engine's own WHERE say otherwise than the engine, shortest text first."""
    found = [
        Disagreement("evaluate", expression, event, theirs, ours)
        for expression, truths in zip(batch.expressions, answers.truths, strict=True)
        for event, theirs in zip(batch.events, truths, strict=True)
        if (ours := evaluate(expression, event)) is not theirs
    ]
    by_expression = dict(zip(batch.expressions, answers.truths, strict=True))
    for who, expressions, rows_of_each in _matches(batch, answers):
        for expression, rows in zip(expressions, rows_of_each, strict=True):
            found += [
                Disagreement(who, expression, batch.events[row], theirs, row in rows)
                for row, theirs in enumerate(by_expression[expression])
                if (row in rows) is not (theirs is True)
            ]
    return sorted(found, key=lambda disagreement: len(str(disagreement.expression)))


def _matches(batch: Batch, answers: Answers) -> Iterator[tuple[str, list[Expression], list[list[int]]]]:
    """Who decides on matches, about which expressions, and the rows that match each of them."""
    table = event_table(batch.events)
    plain_table = table.select(list(SCHEMA))
    yield "WHERE", batch.plain, answers.kept
    yield "Arrow", batch.expressions, _matched(Matcher(), batch.expressions, table)
    yield "dictionaries", batch.expressions, _matched(Matcher(), batch.expressions, batch.events)
    yield "schema", batch.plain, _matched(Matcher(schema=SCHEMA), batch.plain, plain_table)


def _matched(matcher: Matcher, expressions: Sequence[Expression], events: Any) -> list[list[int]]:
    matcher.add_many(range(len(expressions)), [str(expression) for expression in expressions])
    rows: list[list[int]] = [[] for _ in expressions]
    for match in matcher.match_batch(events).to_pylist():
        rows[match["subscription"]].append(match["event"])
    return rows
