"""Judges: functions that compare measured curves with a claim of a paper.

A claim of an order is held if the order is the same. A claim with a figure is held from half of the paper's lead on, counted on a
logarithmic scale: if A takes 89 % less than B in the paper, its lead is 9 times, and 3 times is enough. Machines, languages and
sizes differ, so a lead is not expected to be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tamis.experiments.figure import Curves, Judge, Place, Value, Verdict


def below(low: str, high: str, percent: float, place: Place | None = None) -> Judge:
    """`low` takes `percent` % less than `high` at a place, by default the last."""
    needed = 1 - sqrt(1 - percent / 100)

    def judge(curves: Curves) -> Verdict:
        one, other = curves.at(low, place), curves.at(high, place)
        if one.number is None or other.number is None:
            return _untested({low: one, high: other})
        less = 1 - one.number / other.number
        return Verdict(less >= needed, f"{low} takes {_less(less)} than {high} at {_shown(one.place)}")

    return judge


def lead(fast: str, slow: str, times: float, place: Place | None = None) -> Judge:
    """`slow` takes `times` as long as `fast` at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        one, other = curves.at(fast, place), curves.at(slow, place)
        if one.number is None or other.number is None:
            return _untested({fast: one, slow: other})
        ours = other.number / one.number
        return Verdict(ours >= sqrt(times), f"{slow} takes {ours:.3g} times {fast} at {_shown(one.place)}")

    return judge


def order(*lines: str, place: Place | None = None) -> Judge:
    """The lines take longer and longer, at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        values = {line: curves.at(line, place) for line in lines}
        numbers = {line: value.number for line, value in values.items() if value.number is not None}
        if len(numbers) < len(lines):
            return _untested(values)
        ours = sorted(numbers, key=lambda line: numbers[line])
        said = ", ".join(f"{line} {numbers[line]:.3g}" for line in ours)
        return Verdict(ours == list(lines), f"at {_shown(values[lines[0]].place)}: {said}")

    return judge


def best(line: str, among: Sequence[str], place: Place | None = None) -> Judge:
    """The line takes least among some lines, at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        values = {name: curves.at(name, place) for name in dict.fromkeys((line, *among))}
        numbers = {name: value.number for name, value in values.items() if value.number is not None}
        if line not in numbers or len(numbers) < 2:
            return _untested(values)
        first = min(numbers, key=lambda name: numbers[name])
        told = f"{first} takes least at {_shown(values[line].place)}, {numbers[first]:.3g}"
        return Verdict(first == line, told if first == line else f"{told}; {line} {numbers[line]:.3g}")

    return judge


def grows(line: str, most: float | None = None, least: float | None = None) -> Judge:
    """From its first to its last place, the line grows at most, or at least, by a factor."""

    def judge(curves: Curves) -> Verdict:
        values = [value for value in curves.get(line, []) if value.number is not None]
        if len(values) < 2:
            return _untested({line: curves.at(line, None)})
        first, last = values[0], values[-1]
        assert first.number is not None
        assert last.number is not None
        factor = last.number / first.number
        held = (most is None or factor <= most) and (least is None or factor >= least)
        return Verdict(held, f"{line} at {_shown(last.place)} takes {factor:.3g} times that at {_shown(first.place)}")

    return judge


def flatter(flat: str, steep: str) -> Judge:
    """From its first to its last place, `flat` grows less than `steep`."""

    def judge(curves: Curves) -> Verdict:
        verdicts = [grows(line, most=float("inf"))(curves) for line in (flat, steep)]
        said = "; ".join(verdict.ours for verdict in verdicts)
        if any(verdict.held is None for verdict in verdicts):
            return Verdict(None, said)
        return Verdict(_growth(curves[flat]) < _growth(curves[steep]), said)

    return judge


def _growth(values: Sequence[Value]) -> float:
    numbers = [value.number for value in values if value.number is not None]
    return numbers[-1] / numbers[0]


def fails(line: str) -> Judge:
    """The line has a place where it cannot be built or takes too long."""

    def judge(curves: Curves) -> Verdict:
        failed = [value for value in curves.get(line, []) if value.failure and value.failure != "not measured"]
        if failed:
            return Verdict(True, f"{line} fails at {_shown(failed[0].place)}: {failed[0].failure}")
        return Verdict(False, f"{line} has no failure")

    return judge


def together(*judges: Judge) -> Judge:
    """All of some claims."""

    def judge(curves: Curves) -> Verdict:
        verdicts = [each(curves) for each in judges]
        said = "; ".join(verdict.ours for verdict in verdicts)
        if any(verdict.held is False for verdict in verdicts):
            return Verdict(False, said)
        return Verdict(None if any(verdict.held is None for verdict in verdicts) else True, said)

    return judge


def _untested(values: dict[str, Value]) -> Verdict:
    missing = [f"{line}: {value.failure or 'no such figure'}" for line, value in values.items() if value.number is None]
    return Verdict(None, "; ".join(missing) or "too few values")


def _less(share: float) -> str:
    return f"{share:.0%} less" if share >= 0 else f"{-share:.0%} more"


def _shown(place: Place) -> str:
    return f"{place:,}" if isinstance(place, int) else str(place)
