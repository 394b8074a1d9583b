"""Judges: functions that compare measured curves with a claim of a paper.

A claim of an order is held if the order is the same, where values within a tenth of each other count as equal. A claim with a
figure is held from half of the paper's lead on, counted on a logarithmic scale: if A takes 89 % less than B in the paper, its
lead is 9 times, and 3 times is enough. "Close" is within a factor of two. Machines, languages and sizes differ, so a lead is not
expected to be equal. A judge looks at the last place of the plot, unless it is given another one, or all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import median

from tamis.experiments.figure import Curves, Judge, Place, Value, Verdict

EQUAL = 1.1
"""Values of which none is more times another one count as equal: the same point differs by as much if it is measured twice."""
CLOSE = 2.0
"""Values that a paper calls close, similar or about equal differ by at most this factor."""


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


def below_next(low: str, among: Sequence[str], percent: float) -> Judge:
    """`low` takes `percent` % less than the best of the others, at the last place."""

    def judge(curves: Curves) -> Verdict:
        others = {name: curves.at(name, None).number for name in among if name != low}
        numbers = {name: number for name, number in others.items() if number is not None}
        if not numbers:
            return _untested({name: curves.at(name, None) for name in among})
        return below(low, min(numbers, key=lambda name: numbers[name]), percent)(curves)

    return judge


def lead(fast: str, slow: str, times: float, place: Place | None = None) -> Judge:
    """`slow` takes `times` as long as `fast` at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        return _compared(curves, slow, fast, place, least=sqrt(times))

    return judge


def lead_grows(fast: str, slow: str) -> Judge:
    """`slow` takes more times as long as `fast` at the last place than at the first."""

    def judge(curves: Curves) -> Verdict:
        pairs = [
            (one.place, other.number / one.number)
            for one, other in zip(curves.get(fast, []), curves.get(slow, []), strict=False)
            if one.number is not None and other.number is not None
        ]
        if len(pairs) < 2:
            return _untested({fast: curves.at(fast, None), slow: curves.at(slow, None)})
        (first, before), (last, after) = pairs[0], pairs[-1]
        told = f"{slow} takes {before:.3g} times {fast} at {_shown(first)}, {after:.3g} times at {_shown(last)}"
        return Verdict(after > before, told)

    return judge


def close(one: str, other: str, times: float = CLOSE, place: Place | None = None) -> Judge:
    """Neither line takes more than `times` as long as the other one, at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        return _compared(curves, one, other, place, least=1 / times, most=times)

    return judge


def costs(line: str, other: str, times: float = EQUAL) -> Judge:
    """The line takes at most `times` as long as another one, at the last place."""

    def judge(curves: Curves) -> Verdict:
        return _compared(curves, line, other, None, most=times)

    return judge


def _compared(
    curves: Curves, line: str, base: str, place: Place | None, least: float = 0.0, most: float = float("inf")
) -> Verdict:
    """Whether `line` takes between `least` and `most` times as long as `base`."""
    one, other = curves.at(line, place), curves.at(base, place)
    if one.number is None or other.number is None:
        return _untested({base: other, line: one})
    ours = one.number / other.number
    return Verdict(least <= ours <= most, f"{line} takes {ours:.3g} times {base} at {_shown(one.place)}")


def within(line: str, number: float) -> Judge:
    """The line takes at most twice a number, in the figure's unit, at its last place."""

    def judge(curves: Curves) -> Verdict:
        value = curves.at(line, None)
        if value.number is None:
            return _untested({line: value})
        told = f"{line} {_amount(value.number, curves)} at {_shown(value.place)}"
        return Verdict(value.number <= CLOSE * number, told)

    return judge


def order(*lines: str, place: Place | None = None) -> Judge:
    """The lines take longer and longer, at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        values = {line: curves.at(line, place) for line in lines}
        numbers = {line: value.number for line, value in values.items() if value.number is not None}
        if len(numbers) < len(lines):
            return _untested(values)
        return Verdict(*_ordered(lines, numbers, curves, _shown(values[lines[0]].place)))

    return judge


def settled(*lines: str, places: int = 4) -> Judge:
    """Each line takes at least a tenth more than the one before, by their medians of the last places."""

    def judge(curves: Curves) -> Verdict:
        last = {line: [each for each in curves.get(line, []) if each.number is not None][-places:] for line in lines}
        if any(len(values) < places for values in last.values()):
            return _untested({line: curves.at(line, None) for line in lines})
        numbers = {line: median(each.number for each in values if each.number) for line, values in last.items()}
        values = last[lines[0]]
        where = f"{_shown(values[0].place)} to {_shown(values[-1].place)}, in the median"
        return Verdict(*_ordered(lines, numbers, curves, where, 1 / EQUAL))

    return judge


def _ordered(
    lines: Sequence[str], numbers: dict[str, float], curves: Curves, where: str, most: float = EQUAL
) -> tuple[bool, str]:
    """Whether each line takes at most `most` times as long as the next one, and the order that was measured."""
    ours = sorted(numbers, key=lambda line: numbers[line])
    said = ", ".join(f"{line} {_amount(numbers[line], curves)}" for line in ours)
    held = all(numbers[one] <= most * numbers[other] for one, other in pairwise(lines))
    return held, f"at {where}: {said}"


def best(line: str, among: Sequence[str], place: Place | None = None) -> Judge:
    """The line takes least among some lines, at a place, by default the last."""

    def judge(curves: Curves) -> Verdict:
        values = {name: curves.at(name, place) for name in dict.fromkeys((line, *among))}
        numbers = {name: value.number for name, value in values.items() if value.number is not None}
        if line not in numbers or len(numbers) < 2:
            return _untested(values)
        first = min(numbers, key=lambda name: numbers[name])
        told = f"{first} takes least at {_shown(values[line].place)}, {_amount(numbers[first], curves)}"
        held = numbers[line] <= EQUAL * numbers[first]
        return Verdict(held, told if first == line else f"{told}; {line} {_amount(numbers[line], curves)}")

    return judge


def always_best(line: str, among: Sequence[str]) -> Judge:
    """The line takes least among some lines, at every place where it was measured."""

    def judge(curves: Curves) -> Verdict:
        places = [value.place for value in curves.get(line, []) if value.number is not None]
        if not places:
            return _untested({line: curves.at(line, None)})
        return together(*(best(line, among, place) for place in places))(curves)

    return judge


def worst(line: str, among: Sequence[str]) -> Judge:
    """The line takes most among some lines, at the last place."""

    def judge(curves: Curves) -> Verdict:
        values = {name: curves.at(name, None) for name in dict.fromkeys((line, *among))}
        numbers = {name: value.number for name, value in values.items() if value.number is not None}
        if len(numbers) < len(values):
            return _untested(values)
        last = max(numbers, key=lambda name: numbers[name])
        told = f"{last} takes most at {_shown(values[line].place)}, {_amount(numbers[last], curves)}"
        return Verdict(numbers[last] <= EQUAL * numbers[line], told)

    return judge


def grows(line: str, most: float | None = None, least: float | None = None, start: Place | None = None) -> Judge:
    """From its first place, or from the place `start`, to its last one, the line grows at most, or at least, by a factor."""

    def judge(curves: Curves) -> Verdict:
        values = [value for value in curves.get(line, []) if value.number is not None]
        values = values[next((row for row, value in enumerate(values) if value.place == start), 0) :]
        if len(values) < 2:
            return _untested({line: curves.at(line, None)})
        factor = _growth(values)
        held = (most is None or factor <= most) and (least is None or factor >= least)
        told = f"{line} at {_shown(values[-1].place)} takes {factor:.3g} times that at {_shown(values[0].place)}"
        return Verdict(held, told)

    return judge


def flatter(flat: str | Sequence[str], steep: str | Sequence[str]) -> Judge:
    """From its first to its last place, each line of `flat` grows less than each line of `steep`."""
    low, high = ((lines,) if isinstance(lines, str) else tuple(lines) for lines in (flat, steep))

    def judge(curves: Curves) -> Verdict:
        verdict = together(*(grows(line, most=float("inf")) for line in (*low, *high)))(curves)
        if verdict.held is None:
            return verdict
        held = max(_growth(curves[line]) for line in low) < min(_growth(curves[line]) for line in high)
        return Verdict(held, verdict.ours)

    return judge


def grow_alike(one: str, other: str, least: float = 0.0) -> Judge:
    """Both lines grow by about the same factor, and at least by `least`."""

    def judge(curves: Curves) -> Verdict:
        verdict = together(grows(one, least=least), grows(other, least=least))(curves)
        if not verdict.held:
            return verdict
        ratio = _growth(curves[one]) / _growth(curves[other])
        return Verdict(1 / CLOSE <= ratio <= CLOSE, verdict.ours)

    return judge


def lowest_moves_up(*lines: str) -> Judge:
    """The place where a line is lowest: it is further up for each next line, or the same, and further up for the last."""

    def judge(curves: Curves) -> Verdict:
        lows: dict[str, Place] = {}
        ranks: list[int] = []
        for line in lines:
            numbers = [value.number for value in curves.get(line, [])]
            if not numbers or any(number is None for number in numbers):
                return _untested({line: curves.at(line, None) for line in lines})
            ranks.append(min(range(len(numbers)), key=lambda place: numbers[place] or 0.0))
            lows[line] = curves[line][ranks[-1]].place
        told = ", ".join(f"{line} at {_shown(place)}" for line, place in lows.items())
        return Verdict(ranks == sorted(ranks) and ranks[0] < ranks[-1], f"lowest: {told}")

    return judge


def _growth(values: Sequence[Value]) -> float:
    numbers = [value.number for value in values if value.number is not None]
    return numbers[-1] / numbers[0]


def fails(line: str) -> Judge:
    """The line has a place where it cannot be built or takes too long."""

    def judge(curves: Curves) -> Verdict:
        failed = [value for value in curves.get(line, []) if value.failure and value.failure != "not measured"]
        if failed:
            return Verdict(True, f"{line} fails at {_shown(failed[0].place)}: {failed[0].reason}")
        return Verdict(False, f"{line} has no failure")

    return judge


def together(*judges: Judge) -> Judge:
    """All of some claims."""

    def judge(curves: Curves) -> Verdict:
        verdicts = [each(curves) for each in judges]
        said = "; ".join(dict.fromkeys(part for verdict in verdicts for part in verdict.ours.split("; ")))
        if any(verdict.held is False for verdict in verdicts):
            return Verdict(False, said)
        return Verdict(None if any(verdict.held is None for verdict in verdicts) else True, said)

    return judge


def unclaimed(_: Curves) -> Verdict:
    """The paper claims nothing."""
    return Verdict(None, "see the values", claimed=False)


def _untested(values: dict[str, Value]) -> Verdict:
    missing = [f"{line}: {value.reason or 'no such figure'}" for line, value in values.items() if value.number is None]
    return Verdict(None, "; ".join(missing) or "too few values")


def _less(share: float) -> str:
    return f"{share:.0%} less" if share >= 0 else f"{-share:.0%} more"


def _amount(number: float, curves: Curves) -> str:
    """A number with its unit."""
    return f"{shown_number(number)} {curves.unit}".strip()


def shown_number(number: float) -> str:
    """A number with three digits, or all digits before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _shown(place: Place) -> str:
    return f"{place:,}" if isinstance(place, int) else str(place)
