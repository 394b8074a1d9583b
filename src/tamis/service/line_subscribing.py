"""Subscribing the lines of a request, some thousand at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request

from tamis.broker import Broker
from tamis.errors import BrokerError, ExpressionError, TamisError
from tamis.service.access import Visit
from tamis.service.bodies import Lines, blocks_of_lines
from tamis.service.given import wanted
from tamis.service.json_reader import read_object
from tamis.service.problems import ProblemError, problem_of

_NAMES = ("subscriber", "name")


class LineSubscriber:
    """Subscribes the lines of one request. It stops at the first wrong line; those before it are stored."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._tenant = visit.tenant
        self.done = 0

    async def subscribe(self, request: Request) -> int:
        """Subscribe all lines. Returns how many there were.

        Raises
        ------
        ProblemError
            A line is wrong, or the token is not valid any more. `subscribed` says how many lines are stored.
        """
        try:
            async for block in blocks_of_lines(request, self._tenant.limits):
                self._visit.check_token()
                await self._tenant.work(partial(self._block, block))
        except (ProblemError, TamisError) as error:
            problem = error if isinstance(error, ProblemError) else problem_of(error)
            problem.members.setdefault("subscribed", self.done)
            if problem.status == 401:
                problem.detail = f"after {self.done:,} stored subscriptions: {problem.detail}"
            raise problem from None
        return self.done

    def _block(self, block: Lines, broker: Broker) -> None:
        rows: list[tuple[int, dict[str, Any]]] = []
        seen: set[tuple[Any, Any]] = set()
        wrong: ProblemError | None = None
        for number, raw in enumerate(block.lines, block.first):
            if not raw or raw.isspace():
                continue
            try:
                given = read_object(raw, "a subscription", self._tenant.limits.depth)
                words = wanted(given, self._tenant, _NAMES)
                if not all(isinstance(words[name], str) for name in _NAMES):
                    raise ProblemError(422, "id-type-error", "`subscriber` and `name` must be strings")
            except (TamisError, ProblemError) as error:
                wrong = _at_line(number, error)
                break
            names = (words["subscriber"], words["name"])
            if names in seen:  # A later line changes what an earlier one has added: that needs a call of its own.
                self._put(broker, rows)
                rows, seen = [], set()
            seen.add(names)
            rows.append((number, words))
        self._put(broker, rows)
        if wrong is not None:
            raise wrong

    def _put(self, broker: Broker, rows: list[tuple[int, dict[str, Any]]]) -> None:
        """Subscribe. A refused part is halved until the wrong line is alone."""
        if not rows:
            return
        self._tenant.check_subscriptions(broker, [(words["subscriber"], words["name"]) for _, words in rows])
        try:
            broker.subscribe_many([words for _, words in rows])
        except BrokerError:
            raise
        except TamisError as error:
            if len(rows) == 1:
                raise _at_line(rows[0][0], error) from None
            half = len(rows) // 2
            self._put(broker, rows[:half])
            self._put(broker, rows[half:])
        else:
            self.done += len(rows)


def _at_line(number: int, error: TamisError | ProblemError) -> ProblemError:
    if isinstance(error, ExpressionError):
        error.subscription = None
    problem = problem_of(error) if isinstance(error, TamisError) else error
    problem.members["line"] = number
    problem.detail = f"line {number}: {problem.detail}"
    return problem
