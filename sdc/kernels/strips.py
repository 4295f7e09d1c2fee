"""SIMD loops over records: strips of consecutive records that fill a vector register.

Each record has a separate sum with a fixed order of terms. Results therefore do not depend on the width of
the processor's vectors. Arrays are read and written in whole strips, so they must be padded to a multiple of
`STRIP`. Values written to the padding are meaningless.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

STRIP = 8

_DOUBLE, _WORD, _INDEX, _BYTE = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
_DOUBLES, _WORDS = ir.VectorType(_DOUBLE, STRIP), ir.VectorType(_WORD, STRIP)
_ZERO, _STEP, _HIGHEST = ir.Constant(_WORD, 0), ir.Constant(_WORD, STRIP), ir.Constant(_WORD, 2**64 - 1)


def _squared_distances(typing: Any, points: Any, centre: Any, start: Any, stop: Any, squares: Any) -> Any:
    _check((points, types.float64, 2), (centre, types.float64, 1), (squares, types.float64, 1))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        rows, point, to = (_array(context, builder, kinds[at], arguments[at]) for at in (0, 1, 4))
        first, last = (context.cast(builder, arguments[at], kinds[at], types.intp) for at in (2, 3))
        variables, length = cgutils.unpack_tuple(builder, rows.shape)
        total = cgutils.alloca_once(builder, _DOUBLES)
        with cgutils.for_range_slice(builder, first, last, _STEP) as (place, _):
            builder.store(ir.Constant(_DOUBLES, [0.0] * STRIP), total)
            with cgutils.for_range(builder, variables) as loop:
                row = builder.gep(rows.data, [builder.add(builder.mul(loop.index, length), place)])
                at = _spread(builder, builder.load(builder.gep(point.data, [loop.index])), _DOUBLES)
                apart = builder.fsub(_strip(builder, row, _DOUBLES), at)
                builder.store(builder.fadd(builder.load(total), builder.fmul(apart, apart)), total)
            _put(builder, builder.load(total), builder.gep(to.data, [place]))
        return context.get_dummy_value()

    return types.void(points, centre, start, stop, squares), generate


def _squared_distances_from_boxes(typing: Any, low: Any, high: Any, centre: Any, squares: Any) -> Any:
    _check((low, types.float64, 2), (high, types.float64, 2))
    _check((centre, types.float64, 1), (squares, types.float64, 1))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        lows, highs, point, to = (_array(context, builder, kinds[at], arguments[at]) for at in range(4))
        variables, length = cgutils.unpack_tuple(builder, lows.shape)
        nothing = ir.Constant(_DOUBLES, [0.0] * STRIP)
        total = cgutils.alloca_once(builder, _DOUBLES)
        with cgutils.for_range_slice(builder, _ZERO, length, _STEP) as (place, _):
            builder.store(nothing, total)
            with cgutils.for_range(builder, variables) as loop:
                row = builder.add(builder.mul(loop.index, length), place)
                at = _spread(builder, builder.load(builder.gep(point.data, [loop.index])), _DOUBLES)
                below = builder.fsub(_strip(builder, builder.gep(lows.data, [row]), _DOUBLES), at)
                above = builder.fsub(at, _strip(builder, builder.gep(highs.data, [row]), _DOUBLES))
                away = builder.select(builder.fcmp_ordered(">", below, above), below, above)
                away = builder.select(builder.fcmp_ordered(">", away, nothing), away, nothing)
                builder.store(builder.fadd(builder.load(total), builder.fmul(away, away)), total)
            _put(builder, builder.load(total), builder.gep(to.data, [place]))
        return context.get_dummy_value()

    return types.void(low, high, centre, squares), generate


def _farthest(typing: Any, distances: Any, ranks: Any, count: Any) -> Any:
    _check((distances, types.float64, 1), (ranks, types.int64, 1))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        away, first = (_array(context, builder, signature.args[at], arguments[at]) for at in (0, 1))
        stop = context.cast(builder, arguments[2], signature.args[2], types.intp)
        whole = builder.and_(stop, ir.Constant(_WORD, -STRIP))
        strip = _Farthest(builder, _DOUBLES, _WORDS)
        steps = ir.Constant(_WORDS, list(range(STRIP)))
        with cgutils.for_range_slice(builder, _ZERO, whole, _STEP) as (place, _):
            distance = _strip(builder, builder.gep(away.data, [place]), _DOUBLES)
            rank = _strip(builder, builder.gep(first.data, [place]), _WORDS)
            strip.compare(distance, rank, builder.add(_spread(builder, place, _WORDS), steps))
        single = _Farthest(builder, _DOUBLE, _WORD)
        for lane in range(STRIP):
            at = ir.Constant(_INDEX, lane)
            single.compare(*(builder.extract_element(found, at) for found in strip.found()))
        with cgutils.for_range_slice(builder, whole, stop, ir.Constant(_WORD, 1)) as (place, _):
            distance = builder.load(builder.gep(away.data, [place]))
            single.compare(distance, builder.load(builder.gep(first.data, [place])), place)
        return single.found()[2]

    return types.intp(distances, ranks, count), generate


class _Farthest:
    """Code generator that tracks the distance, rank and place of the farthest record, per lane or for one
    lane.
    """

    def __init__(self, builder: Any, distance: Any, rank: Any) -> None:
        self._builder = builder
        start = (_filled(distance, -1.0), _filled(rank, 2**63 - 1), _filled(rank, 0))
        self._kept = [cgutils.alloca_once(builder, value.type) for value in start]
        for value, kept in zip(start, self._kept, strict=True):
            builder.store(value, kept)

    def found(self) -> list[Any]:
        return [self._builder.load(kept) for kept in self._kept]

    def compare(self, *candidate: Any) -> None:
        """Replace the farthest record by a candidate whose distance is larger, or equal with a lower rank."""
        builder, found = self._builder, self.found()
        lower = builder.icmp_signed("<", candidate[1], found[1])
        tie = builder.and_(builder.fcmp_ordered("==", candidate[0], found[0]), lower)
        chosen = builder.or_(builder.fcmp_ordered(">", candidate[0], found[0]), tie)
        for value, before, kept in zip(candidate, found, self._kept, strict=True):
            builder.store(builder.select(chosen, value, before), kept)


def _insert_key(typing: Any, keys: Any, row: Any, key: Any) -> Any:
    _check((keys, types.uint64, 2))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        rows = _array(context, builder, kinds[0], arguments[0])
        length = cgutils.unpack_tuple(builder, rows.shape)[1]
        number = context.cast(builder, arguments[1], kinds[1], types.intp)
        kept = builder.gep(rows.data, [builder.mul(number, length)])
        key = context.cast(builder, arguments[2], kinds[2], types.uint64)
        known = cgutils.alloca_once(builder, _BYTE)
        builder.store(ir.Constant(_BYTE, 0), known)
        with cgutils.for_range_slice(builder, _ZERO, length, _STEP) as (place, _):
            strip = _strip(builder, builder.gep(kept, [place]), _WORDS)
            equal = builder.icmp_unsigned("==", strip, _spread(builder, key, _WORDS))
            builder.store(builder.or_(builder.load(known), builder.bitcast(equal, _BYTE)), known)
        is_known = builder.icmp_unsigned("!=", builder.load(known), ir.Constant(_BYTE, 0))
        fresh = _spread(builder, builder.select(is_known, _HIGHEST, key), _WORDS)
        before = cgutils.alloca_once(builder, _WORDS)
        builder.store(_filled(_WORDS, 0), before)
        back = ir.Constant(ir.VectorType(_INDEX, STRIP), list(range(STRIP - 1, 2 * STRIP - 1)))
        with cgutils.for_range_slice(builder, _ZERO, length, _STEP) as (place, _):
            to = builder.gep(kept, [place])
            strip = _strip(builder, to, _WORDS)
            lower = builder.shuffle_vector(builder.load(before), strip, back)
            least = builder.select(builder.icmp_unsigned("<", strip, fresh), strip, fresh)
            builder.store(strip, before)
            _put(builder, builder.select(builder.icmp_unsigned(">", lower, least), lower, least), to)
        return context.get_dummy_value()

    return types.void(keys, row, key), generate


def _check(*arrays: tuple[Any, Any, int]) -> None:
    for array, kind, dimensions in arrays:
        if not isinstance(array, types.Array) or array.layout != "C":
            raise TypingError("strips: expected contiguous arrays, found another memory layout")
        if array.dtype != kind or array.ndim != dimensions:
            raise TypingError(
                f"strips: expected an array of {dimensions} dimensions of {kind}, found {array}"
            )


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value)


def _filled(kind: Any, value: float) -> Any:
    """Return a constant of this type; for a vector type, in each lane."""
    return ir.Constant(kind, [value] * STRIP if isinstance(kind, ir.VectorType) else value)


def _spread(builder: Any, value: Any, kind: Any) -> Any:
    """Return a vector with the same value in each lane."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_INDEX, 0))
    lanes = ir.Constant(ir.VectorType(_INDEX, STRIP), [0] * STRIP)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), lanes)


def _strip(builder: Any, start: Any, kind: Any) -> Any:
    """Load a strip of an array; no alignment is required."""
    return builder.load(builder.bitcast(start, kind.as_pointer()), align=8)


def _put(builder: Any, strip: Any, start: Any) -> None:
    builder.store(strip, builder.bitcast(start, strip.type.as_pointer()), align=8)


#: In a kernel, `squared_distances(points, centre, start, stop, squares)`: write the squared distances of
#: points[:, start:stop] (p, padded n) from the point centre (p,); start is a multiple of `STRIP`.
squared_distances = cast(Callable[[Any, Any, Any, Any, Any], None], intrinsic(_squared_distances))
#: In a kernel, `squared_distances_from_boxes(low, high, centre, squares)`: write the squared distances of the
#: point centre (p,) from boxes with corners low and high (p, padded n); 0 inside a box.
squared_distances_from_boxes = cast(
    Callable[[Any, Any, Any, Any], None], intrinsic(_squared_distances_from_boxes)
)
#: In a kernel, `farthest(distances, ranks, count)`: the index of the largest of the first `count`
#: non-negative distances; ties are resolved by the lowest rank (int64).
farthest = cast(Callable[[Any, Any, Any], int], intrinsic(_farthest))
#: In a kernel, `insert_key(keys, row, key)`: insert a key into the sorted keys[row] (padded) and drop the
#: largest key, unless the row already contains the key. The code has no branch, because the processor could
#: not predict it.
insert_key = cast(Callable[[Any, Any, Any], None], intrinsic(_insert_key))
