"""Matching by the lists and the trie of SIFT's methods: find the profiles that may match, and evaluate them."""

from __future__ import annotations

from typing import NamedTuple

from tamis.encoding.evaluation import EventPlaces, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP, Bools, I32s
from tamis.papers.parts.collecting import CANDIDATES, Output, is_true, note_event
from tamis.papers.parts.pair_map import FREE, PairArrays, value_of
from tamis.papers.parts.records import Words

ROOT = 0
"""The node of a trie where a search begins."""


class Profiles(NamedTuple):
    """The profiles that terms lead to: those of list or node i are `rows[start[i]]` to `rows[start[i + 1] - 1]`."""

    table: Conjunctions
    terms: PairArrays
    """(dimension, value) -> number of the term; also of its list, if the method has lists."""
    edges: PairArrays
    """(node, number of a term) -> child; only with the tree method."""
    start: Words
    rows: I32s
    always: I32s
    need: I32s
    """Conjunction -> how many of its predicates have terms; only with counters."""


class SiftScratch(NamedTuple):
    """Scratch that events reuse, one after another."""

    places: EventPlaces
    seen: Bools
    found: I32s
    """Profiles that may match."""
    stack: Words
    """Nodes to be visited, and numbers of the event's terms; only with the tree method."""
    known: Words
    hits: I32s
    """Conjunction -> its counter, 0 between events; only with counters."""


@inlined
def _look(rows: I32s, first: int, last: int, scratch: SiftScratch, count: int) -> int:
    """Note the profiles of a list that were not seen yet."""
    for i in range(first, last):
        c = rows[UP(i)]
        if not scratch.seen[UP(c)]:
            scratch.seen[UP(c)] = True
            scratch.found[UP(count)] = c
            count += 1
    return count


@lean_kernel
def match_keys(
    profiles: Profiles, batch: EventBatch, values: Words, scratch: SiftScratch, event: int, output: Output
) -> int:
    start, filled = profiles.start, 0
    for e in range(event, len(batch.start) - 1):
        candidates, nodes = _look(profiles.always, 0, len(profiles.always), scratch, 0), 0
        for v in range(batch.start[e], batch.start[e + 1]):
            number = value_of(profiles.terms, batch.dimension[v], values[v])
            if number != FREE:
                nodes += 1
                candidates = _look(profiles.rows, start[number], start[number + 1], scratch, candidates)
        filled = _evaluate(e, candidates, nodes, profiles.table, batch, scratch, filled, output)
        if filled < 0:
            return e
    return len(batch.start) - 1


@lean_kernel
def match_counts(
    profiles: Profiles, batch: EventBatch, values: Words, scratch: SiftScratch, event: int, output: Output
) -> int:
    start, rows, hits, filled = profiles.start, profiles.rows, scratch.hits, 0
    for e in range(event, len(batch.start) - 1):
        candidates, nodes, touched = _look(profiles.always, 0, len(profiles.always), scratch, 0), 0, 0
        for counting in (True, False):
            for v in range(batch.start[e], batch.start[e + 1]):
                number = value_of(profiles.terms, batch.dimension[v], values[v])
                if number == FREE:
                    continue
                nodes += counting
                for i in range(start[number], start[number + 1]):
                    c = rows[UP(i)]
                    if not counting:
                        hits[UP(c)] = 0
                        continue
                    touched += hits[UP(c)] == 0
                    hits[UP(c)] += 1
                    if hits[UP(c)] == profiles.need[UP(c)]:
                        scratch.found[UP(candidates)] = c
                        candidates += 1
        complete = candidates - len(profiles.always)
        filled = _evaluate(e, candidates, nodes, profiles.table, batch, scratch, filled, output)
        if filled < 0:
            return e
        output.work[CANDIDATES] += touched - complete
    return len(batch.start) - 1


@lean_kernel
def match_tree(
    profiles: Profiles, batch: EventBatch, values: Words, scratch: SiftScratch, event: int, output: Output
) -> int:
    start, stack, terms = profiles.start, scratch.stack, scratch.known
    filled = 0
    for e in range(event, len(batch.start) - 1):
        candidates, nodes, known = _look(profiles.always, 0, len(profiles.always), scratch, 0), 0, 0
        for v in range(batch.start[e], batch.start[e + 1]):
            number = value_of(profiles.terms, batch.dimension[v], values[v])
            if number != FREE:
                terms[known] = number
                known += 1
        stack[0], height = ROOT, 1
        while height > 0:
            height -= 1
            node = stack[height]
            nodes += 1
            candidates = _look(profiles.rows, start[node], start[node + 1], scratch, candidates)
            for t in range(known):
                repeated = False  # several values of an event may be one term
                for u in range(t):
                    repeated |= terms[u] == terms[t]
                child = value_of(profiles.edges, node, terms[t])
                if child != FREE and not repeated:
                    stack[height] = child
                    height += 1
        filled = _evaluate(e, candidates, nodes, profiles.table, batch, scratch, filled, output)
        if filled < 0:
            return e
    return len(batch.start) - 1


@inlined
def _evaluate(
    event: int,
    candidates: int,
    nodes: int,
    table: Conjunctions,
    batch: EventBatch,
    scratch: SiftScratch,
    filled: int,
    output: Output,
) -> int:
    """Evaluate the profiles that may match an event, and clear `seen`. How much is filled, -1 if there is no room."""
    before, evaluated = filled, 0
    load_event(batch, event, scratch.places)
    for i in range(candidates):
        c = scratch.found[i]
        scratch.seen[c] = False
        true, tested = is_true(c, table, batch, scratch.places)
        evaluated += tested
        if true:
            if filled < len(output.matches):
                output.matches[filled] = c
            filled += 1
    unload_event(batch, event, scratch.places)
    if filled > len(output.matches):
        return -1
    note_event(event, filled - before, candidates, evaluated, nodes, output)
    return filled
