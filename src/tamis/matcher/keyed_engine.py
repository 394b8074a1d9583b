"""An engine and the dimensions that its keys belong to: what must change together.

What an event is in keys depends on the constants that are known. So encoding an event and taking a version of the engine belong
together: the gate keeps dimensions and constants from changing in between. Constants change in three ways:

    compile    new constants come, behind the gate for a moment
    relabel    labels move: all rows are built again with the new keys, aside, and then replace the old ones behind the gate
    sweep      constants that no living subscription needs go, and dimensions once most of them are idle
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

import numpy as np

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.premises import Premise
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.compile import Compiler
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.encoding.expressions.plain_row import PlainEncoder
from tamis.encoding.expressions.predicates import ends_by_dimension
from tamis.encoding.expressions.row_premises import premises_of_rows
from tamis.engine.delta import Delta
from tamis.engine.engine import Engine
from tamis.engine.limits import Limits
from tamis.engine.sample import Sample, relabelled, renumbered
from tamis.language.expression import Expression, Predicate
from tamis.matcher.clauses import ClauseRows, clause_rows
from tamis.matcher.compiling import SubscriptionCompiler
from tamis.matcher.gate import Gate

_MOST_ONE_BY_ONE = 32
"""Up to this many plain expressions of one call are laid out one by one. Compiling one or ten expressions takes twice as long,
compiling a hundred takes as long."""


class KeyedEngine:
    """The engine of a store, its dimensions, and the sample of events. One thread changes it at a time."""

    dimensions: Dimensions

    def __init__(self, scalars: Container[str], limits: Limits, rows_at_once: int) -> None:
        self._scalars = scalars
        self._rows_at_once = rows_at_once
        self.gate = Gate()
        self.moves = 0
        """How often labels have moved."""
        self.sample = Sample()
        self.engine = Engine(self.sampled, limits=limits)
        self.use(Dimensions())

    def use(self, dimensions: Dimensions) -> None:
        """Go on with these dimensions."""
        self.dimensions = dimensions
        compiler = Compiler(dimensions, self._relabel, self._scalars, self.gate.writing)
        self._compiler = SubscriptionCompiler(compiler, lambda: self.moves, self._rows_at_once)
        self._plain = PlainEncoder(compiler)

    def is_inside(self) -> bool:
        """Whether the calling thread is inside of a call that changes or reads what is here."""
        return self.engine.is_changing() or self.gate.is_inside() or self.sample.is_changing()

    def sampled(self) -> EventBatch | None:
        """The sample in keys. A thread that restores a snapshot asks for it while it holds the gate."""
        if self.gate.is_writer():
            return self.sample.encoded(self.dimensions, self.moves)
        with self.gate.reading():
            return self.sample.encoded(self.dimensions, self.moves)

    # -- compiling

    def compile(self, expressions: Sequence[Expression]) -> ClauseRows:
        """The rows of expressions, which have no slots yet."""
        few = self._few_plain_rows(expressions) if len(expressions) <= _MOST_ONE_BY_ONE else None
        return self.compile_any(expressions) if few is None else self._noted(lambda: few)

    def compile_any(self, expressions: Sequence[Expression]) -> ClauseRows:
        """The same for expressions of any kind and number."""
        return self._noted(lambda: clause_rows(self._compiler.compile(expressions)))

    def compile_rows(self, rows: KeptPredicates) -> ClauseRows:
        """The same for rows of predicates.

        Raises
        ------
        WrongRowsError
        """
        return self._noted(lambda: clause_rows(self._compiler.compile_rows(rows)))

    def _noted(self, compile_some: Callable[[], ClauseRows]) -> ClauseRows:
        """Compile rows, and note what an event must have so that they can match. If that fails, events need all attributes."""
        asked: Iterable[tuple[str, Iterable[Premise] | None]] = ()
        try:
            compiled = compile_some()
            rows = compiled.rows
            asked = list(premises_of_rows(rows.table, rows.program, rows.programs, self.dimensions))
            return compiled
        finally:
            known = self.dimensions.premises
            noted = known.with_rows(asked)
            noted = noted.with_rows((name, None) for name in self.dimensions.by_attribute if name not in noted.of)
            if noted != known:
                with self.gate.writing():
                    self.dimensions.premises = noted

    def _few_plain_rows(self, expressions: Sequence[Expression]) -> ClauseRows | None:
        """The rows of a few expressions, laid out like expressions that come alone; None if one is not plain."""
        delta = Delta()
        for number, expression in enumerate(expressions):
            if not self.add_plain(delta, expression, number):
                return None
        return ClauseRows(delta.view().rows, len(expressions))

    def add_plain(self, to: Engine | Delta, expression: Expression, slot: int) -> bool:
        """Add the row of an expression, if it is plain and so has only one row; returns whether it is."""
        if self.dimensions.premises.are_any and to is self.engine and self._is_guarded(expression):
            return False
        row = self._plain.row(expression)
        if row is not None and to.add_plain(row, slot):
            return True
        row = self._plain.keyed_row(expression)
        return row is not None and to.add_plain(row, slot)

    def _is_guarded(self, expression: Expression) -> bool:
        """Whether an expression asks about an attribute that not all events need: the compiler then notes its premises."""
        of = self.dimensions.premises.of
        return any(isinstance(node, Predicate) and of.get(node.attribute) is not None for node in expression.walk())

    # -- changing keys

    def at_once(self, change: Callable[[], None]) -> None:
        """Change dimensions, and what depends on them, while nobody encodes. If `change` is interrupted, it runs once more."""
        with self.gate.writing():
            try:
                change()
            except BaseException:
                change()
                raise

    def _relabel(self, dimension: int, relabelling: Relabelling) -> None:
        """Let the stored keys of a dimension follow its labels."""
        sample = relabelled(self.sampled(), dimension, relabelling)
        with self.engine.rewriting(lambda rows: rows.relabelled(dimension, relabelling), sample) as rewritten:

            def move() -> None:
                relabelling.carry_out()
                self.moves += 1
                self.engine.put(rewritten)

            self.at_once(move)

    def sweep(self) -> None:
        """Forget the constants that no living subscription needs, and idle dimensions if most are idle.

        Keys stay as they are, so rows change only if dimensions get new numbers. Most of the work is done outside of the gate.
        """
        rows = self.engine.living()
        ends = list(ends_by_dimension((rows.table.predicates, rows.programs.predicates)))
        used = [number for number, _, _ in ends]
        idle = sorted(set(range(len(self.dimensions))) - set(used))
        nothing = np.zeros(0, np.int64)
        keepings = [self.dimensions[number].keeping(lows, highs) for number, lows, highs in ends]
        keepings += [self.dimensions[number].keeping(nothing, nothing) for number in idle]
        if len(idle) <= len(used):
            self.at_once(lambda: self._forget(keepings, self.dimensions))
            return
        old, numbers = self.dimensions, self.dimensions.numbers_if_kept(used)
        sample = renumbered(self.sampled(), numbers)
        with self.engine.rewriting(lambda rows: rows.renumbered(numbers), sample) as rewritten:

            def renumber() -> None:
                self._forget(keepings, old.kept(used))
                self.sample.forget_encoding()
                self.engine.put(rewritten)

            self.at_once(renumber)

    def _forget(self, keepings: Sequence[Callable[[], None]], dimensions: Dimensions) -> None:
        """Forget constants, and go on with these dimensions."""
        for keep in keepings:
            keep()
        self.use(dimensions)
