"""The two loops that take most of the time where many entries are met, each as vector code beside its plain twin.

    collect         entries whose filter words hold -> survivors, 8 entries at a time
    check_vector    survivors whose ranges hold -> rows, 16 at a time; its twin is in `checking`

LLVM does not make vectors of the plain loops: it has no rule for appending what passes, nor for reading bytes at places that it
does not know. So the vector code says in LLVM's own words what it needs: *gather* reads words at several places, *compress*
moves the words that pass to the front. Processors without AVX-512 lack the latter, and the plain loops are faster there. So a
host uses one of both, by `VECTORS`. Tests run both on every host, since LLVM writes plain code for what a processor lacks.

At 300,000 subscriptions of ranges alone, an event visits 28,000 entries and checks 14,000 records.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tamis.engine.layout.guards import BLOCK
from tamis.engine.layout.record_words import (
    DONE,
    DOUBT,
    MOST_IN_SHAPE,
    PLACE,
    RANGE_DIMENSION_AT,
    RANGE_FIRST_AT,
    ROW,
    SHAPE_AT,
    UNIT,
    range_holds,
)
from tamis.engine.layout.segment_build import ENTRY_WORDS, entry_reference, entry_word
from tamis.engine.matching.scratch import LANES
from tamis.kernels.kernel import COMPILED, inlined
from tamis.kernels.numbers import I64, UP, U8s, U32s

_NEEDED = ("avx512f", "avx512vl", "avx512bw", "avx512dq")
_BYTE, _WORD_BYTES = 0xFF, 4
_BIT, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))


def _has_vectors() -> bool:
    """Whether the processor that kernels are compiled for has the instructions."""
    given = numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    if not COMPILED or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    if given is not None or numba.config.CPU_NAME is not None:  # type: ignore[attr-defined]
        return all(f"+{name}" in (given or "").split(",") for name in _NEEDED)
    features = llvmlite.binding.get_host_cpu_features()
    return all(features.get(name, False) for name in _NEEDED)


VECTORS: bool = _has_vectors()
"""Whether kernels use the vector code."""


# -- words of LLVM


def _vector(builder: Any, kind: Any, word: Any, lanes: int) -> Any:
    """A vector with the same word in all lanes: a number, or a value of LLVM."""
    if isinstance(word, int):
        return ir.Constant(ir.VectorType(kind, lanes), [word] * lanes)
    nothing = ir.Constant(ir.VectorType(kind, lanes), ir.Undefined)
    first = builder.insert_element(nothing, word, _I32(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes))


def _function(builder: Any, name: str, result: Any, parameters: list[Any]) -> Any:
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, parameters), name)


def _data(context: Any, builder: Any, signature: Any, arguments: Any, number: int) -> Any:
    """The address of the first element of an array, which is an argument."""
    return context.make_array(signature.args[number])(context, builder, arguments[number]).data


def _load(builder: Any, data: Any, at: Any, lanes: int) -> Any:
    words = ir.VectorType(_I32, lanes)
    return builder.load(builder.bitcast(builder.gep(data, [at]), words.as_pointer()), align=4)


def _gather(builder: Any, data: Any, offsets: Any, wanted: Any) -> Any:
    """The words of 32 bits at offsets in bytes; 0 in the lanes that are not wanted, where nothing is read."""
    lanes = offsets.type.count
    byte = _I8.as_pointer()
    bases = _vector(builder, byte, builder.bitcast(data, byte), lanes)
    places = builder.gep(bases, [offsets], source_etype=_I8)
    words, bits = ir.VectorType(_I32, lanes), ir.VectorType(_BIT, lanes)
    name = f"llvm.masked.gather.v{lanes}i32.v{lanes}p0"
    gather = _function(builder, name, words, [ir.VectorType(byte, lanes), _I32, bits, words])
    return builder.call(gather, [places, _I32(1), wanted, _vector(builder, _I32, 0, lanes)])


def _append(builder: Any, words: Any, passing: Any, data: Any, at: Any) -> Any:
    """Write the words that pass at a place, and any words behind them, as many as there are lanes; how many pass."""
    lanes = words.type.count
    name = f"llvm.experimental.vector.compress.v{lanes}i32"
    compress = _function(builder, name, words.type, [words.type, passing.type, words.type])
    front = builder.call(compress, [words, passing, ir.Constant(words.type, ir.Undefined)])
    builder.store(front, builder.bitcast(builder.gep(data, [at]), words.type.as_pointer()), align=4)
    bits = ir.IntType(lanes)
    count = builder.module.declare_intrinsic("llvm.ctpop", [bits])
    return builder.zext(builder.call(count, [builder.bitcast(passing, bits)]), _I64)


def _ranges_hold(builder: Any, words: Any, space: Any) -> Any:
    """`range_holds` of the words in all lanes. A gather reads three bytes behind the space, which `scratch_for` leaves there."""
    lanes = words.type.count
    byte = _vector(builder, _I32, _BYTE, lanes)
    dimensions = builder.lshr(words, _vector(builder, _I32, RANGE_DIMENSION_AT, lanes))
    spaces = _gather(builder, space, dimensions, _vector(builder, _BIT, 1, lanes))
    first = builder.lshr(words, _vector(builder, _I32, RANGE_FIRST_AT, lanes))
    above = builder.and_(builder.sub(spaces, first), byte)
    return builder.icmp_unsigned("<=", above, builder.and_(words, byte))


# -- filtering entries


def _filtering(has_second: bool) -> Any:
    """Code that appends the references of those of BLOCK entries whose filter words hold; it returns how many."""

    def filter_block(
        typing_context: Any, entry: Any, second: Any, place: Any, space: Any, survivor: Any, n: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            entries, seconds, spaces, survivors = (
                _data(context, builder, signature, arguments, number) for number in (0, 1, 3, 4)
            )
            both = _load(builder, entries, builder.mul(arguments[2], _I64(ENTRY_WORDS)), ENTRY_WORDS * BLOCK)
            passing = _ranges_hold(builder, _every_second(builder, both, 0), spaces)
            if has_second:
                more = _load(builder, seconds, arguments[2], BLOCK)
                passing = builder.and_(passing, _ranges_hold(builder, more, spaces))
            return _append(builder, _every_second(builder, both, 1), passing, survivors, arguments[5])

        return types.int64(entry, second, types.int64, space, survivor, types.int64), generate

    return intrinsic(filter_block)


def _every_second(builder: Any, words: Any, first: int) -> Any:
    places = list(range(first, words.type.count, ENTRY_WORDS))
    return builder.shuffle_vector(words, words, ir.Constant(ir.VectorType(_I32, len(places)), places))


_filter_block, _filter_block_twice = _filtering(False), _filtering(True)


@inlined
def collect_plain(first: int, last: int, entry: U32s, second: U32s, space: U8s, survivor: U32s, n: int) -> int:
    """Append the entries from `first` up to `last` whose filter words hold to the `n` survivors."""
    if len(second) > 0:
        for q in range(first, last):
            survivor[UP(n)] = entry_reference(entry, q)
            n += I64(range_holds(entry_word(entry, q), space) & range_holds(second[UP(q)], space))
    else:
        for q in range(first, last):
            survivor[UP(n)] = entry_reference(entry, q)
            n += I64(range_holds(entry_word(entry, q), space))
    return n


@inlined
def collect_vectors(first: int, last: int, entry: U32s, second: U32s, space: U8s, survivor: U32s, n: int) -> int:
    """The same. `survivor` has room for BLOCK more."""
    q = first
    if len(second) > 0:
        while q + BLOCK <= last:
            n += _filter_block_twice(entry, second, q, space, survivor, n)
            q += BLOCK
    else:
        while q + BLOCK <= last:
            n += _filter_block(entry, second, q, space, survivor, n)
            q += BLOCK
    return collect_plain(q, last, entry, second, space, survivor, n)


collect = collect_vectors if VECTORS else collect_plain


# -- checking records


def _most_ranges_code(typing_context: Any, survivor: Any, at: Any) -> Any:
    """The most ranges of LANES survivors; more than MOST_IN_SHAPE if one of them has other predicates, too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        references = _load(builder, _data(context, builder, signature, arguments, 0), arguments[1], LANES)
        name = f"llvm.vector.reduce.umax.v{LANES}i32"
        most = _function(builder, name, _I32, [references.type])
        return builder.zext(builder.call(most, [_ranges(builder, references)]), _I64)

    return types.int64(survivor, types.int64), generate


def _ranges_at_code(typing_context: Any, record: Any, survivor: Any, at: Any, number: Any, space: Any) -> Any:
    """Bit by bit, which of LANES survivors have no range with this number, or one that holds. The first number is 1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        records, survivors, spaces = (_data(context, builder, signature, arguments, number) for number in (0, 1, 4))
        references = _load(builder, survivors, arguments[2], LANES)
        number = _vector(builder, _I32, builder.trunc(arguments[3], _I32), LANES)
        has_it = builder.icmp_unsigned("<=", number, _ranges(builder, references))
        offsets = builder.add(_record_offsets(builder, references), _words_to_bytes(builder, number))
        words = _gather(builder, records, offsets, has_it)
        holds = builder.or_(_ranges_hold(builder, words, spaces), builder.not_(has_it))
        return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _I64)

    return types.int64(record, survivor, types.int64, types.int64, space), generate


def _append_rows_code(
    typing_context: Any, record: Any, survivor: Any, at: Any, chosen: Any, out: Any, filled: Any
) -> Any:
    """Append the rows of the chosen ones of LANES survivors, a bit each; returns how many."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        records, survivors, rows = (_data(context, builder, signature, arguments, number) for number in (0, 1, 4))
        references = _load(builder, survivors, arguments[2], LANES)
        bits = ir.VectorType(_BIT, LANES)
        wanted = builder.bitcast(builder.trunc(arguments[3], ir.IntType(LANES)), bits)
        settled = _is_settled(builder, references)
        found = _gather(
            builder, records, _record_offsets(builder, references), builder.and_(wanted, builder.not_(settled))
        )
        found = builder.and_(found, _vector(builder, _I32, DOUBT | ROW, LANES))
        places = builder.and_(references, _vector(builder, _I32, PLACE, LANES))
        return _append(builder, builder.select(settled, places, found), wanted, rows, arguments[5])

    return types.int64(record, survivor, types.int64, types.int64, out, types.int64), generate


_most_ranges: Any = intrinsic(_most_ranges_code)
_ranges_at: Any = intrinsic(_ranges_at_code)
_append_rows: Any = intrinsic(_append_rows_code)


def _is_settled(builder: Any, references: Any) -> Any:
    shapes = builder.lshr(references, _vector(builder, _I32, SHAPE_AT, LANES))
    return builder.icmp_unsigned("==", shapes, _vector(builder, _I32, DONE, LANES))


def _ranges(builder: Any, references: Any) -> Any:
    """The shapes, which are numbers of ranges if there is nothing else; 0 where nothing is left to check."""
    shapes = builder.lshr(references, _vector(builder, _I32, SHAPE_AT, LANES))
    return builder.select(_is_settled(builder, references), _vector(builder, _I32, 0, LANES), shapes)


def _record_offsets(builder: Any, references: Any) -> Any:
    """Where records begin, in bytes."""
    places = builder.and_(references, _vector(builder, _I32, PLACE, LANES))
    far = builder.zext(places, ir.VectorType(_I64, LANES))
    return builder.mul(far, _vector(builder, _I64, _WORD_BYTES * UNIT, LANES))


def _words_to_bytes(builder: Any, words: Any) -> Any:
    far = builder.zext(words, ir.VectorType(_I64, LANES))
    return builder.mul(far, _vector(builder, _I64, _WORD_BYTES, LANES))


@inlined
def have_only_ranges(survivor: U32s, at: int) -> bool:
    """Whether the LANES survivors from `at` on have records of ranges alone, or nothing left to check."""
    return bool(_most_ranges(survivor, at) <= MOST_IN_SHAPE)


@inlined
def check_vector(record: U32s, survivor: U32s, at: int, end: int, space: U8s, out: U32s, filled: int) -> int:
    """Append the rows of those of LANES survivors from `at` on whose ranges hold, and which lie before `end`.

    There are LANES survivors, which `have_only_ranges`. `out` has room for LANES more.
    """
    most, number = _most_ranges(survivor, at), 1
    chosen = (1 << min(LANES, end - at)) - 1
    while number <= most and chosen != 0:
        chosen &= _ranges_at(record, survivor, at, number, space)
        number += 1
    if chosen != 0:
        filled += _append_rows(record, survivor, at, chosen, out, filled)
    return filled
