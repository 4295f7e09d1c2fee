"""SIMD sums over coordinates: four partial sums ("lanes") that fill a vector register.

A compiler that keeps IEEE arithmetic must not reorder a sum, so it does not vectorise a sum over one index.
Here the order is part of the definition. Lane l sums the terms of coordinates l, l + 4 and so on, the last p
mod 4 terms are added to the first lane, and the result is (q + r) + (s + z). The result is the same on every
processor and for every vector width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 4

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INDEX = ir.IntType(32)

Term = Callable[[Any, list[Any]], Any]


def _summed(term: Term, arrays: tuple[Any, ...], scalars: tuple[Any, ...] = ()) -> Any:
    """Return the signature and the code generator of the sum of a term over the coordinates of arrays.

    Parameters
    ----------
    term : callable
        Function of an LLVM builder and the values of all arrays, then of all scalars, at one coordinate or at
        four. It returns the LLVM value of the term.
    arrays, scalars : tuples of types
        Numba types of the arguments. All arrays have the same length.
    """
    _check(arrays)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = [
            cgutils.create_struct_proxy(array)(context, builder, argument)
            for array, argument in zip(arrays, arguments, strict=False)
        ]
        numbers = [
            context.cast(builder, argument, given, types.float64)
            for argument, given in zip(arguments[len(arrays) :], signature.args[len(arrays) :], strict=True)
        ]
        spread = [_spread(builder, number) for number in numbers]
        length = cgutils.unpack_tuple(builder, rows[0].shape)[0]
        zero, step = ir.Constant(length.type, 0), ir.Constant(length.type, LANES)
        whole = builder.and_(length, ir.Constant(length.type, -LANES))
        lanes = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
        with cgutils.for_range_slice(builder, zero, whole, step) as (place, _):
            values = [_four(builder, row.data, place) for row in rows]
            builder.store(builder.fadd(builder.load(lanes), term(builder, values + spread)), lanes)
        q, r, s, z = (
            builder.extract_element(builder.load(lanes), ir.Constant(_INDEX, lane)) for lane in range(LANES)
        )
        first = cgutils.alloca_once_value(builder, q)
        with cgutils.for_range_slice(builder, whole, length, ir.Constant(length.type, 1)) as (place, _):
            values = [builder.load(builder.gep(row.data, [place])) for row in rows]
            builder.store(builder.fadd(builder.load(first), term(builder, values + numbers)), first)
        return builder.fadd(builder.fadd(builder.load(first), r), builder.fadd(s, z))

    return types.float64(*arrays, *scalars), generate


def _check(arrays: tuple[Any, ...]) -> None:
    for array in arrays:
        if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
            raise TypingError(
                "SIMD sum: expected contiguous arrays of one dimension, found others; pass "
                "np.ascontiguousarray(values)"
            )
        if array.dtype != types.float64:
            raise TypingError(
                "SIMD sum: expected arrays of float64, found another type; pass values.astype(np.float64)"
            )


def _four(builder: Any, data: Any, place: Any) -> Any:
    """Load four numbers from this position; no alignment is required."""
    start = builder.bitcast(builder.gep(data, [place]), _VECTOR.as_pointer())
    return builder.load(start, align=8)


def _spread(builder: Any, number: Any) -> Any:
    """Return a vector with the same number in each lane."""
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, number, ir.Constant(_INDEX, lane))
    return vector


def _inner_product(typing: Any, x: Any, y: Any) -> Any:
    return _summed(lambda builder, at: builder.fmul(at[0], at[1]), (x, y))


def _exchange(typing: Any, x: Any, y: Any, here: Any, there: Any, both: Any) -> Any:
    def term(builder: Any, at: list[Any]) -> Any:
        apart = builder.fsub(at[1], at[0])
        toward = builder.fsub(at[2], at[3])
        return builder.fmul(apart, builder.fadd(builder.fmul(at[4], apart), toward))

    return _summed(term, (x, y, here, there), (both,))


def _add_multiple(typing: Any, sums: Any, factor: Any, x: Any) -> Any:
    _check((sums, x))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        to, row = (cgutils.create_struct_proxy(kinds[at])(context, builder, arguments[at]) for at in (0, 2))
        number = context.cast(builder, arguments[1], kinds[1], types.float64)
        spread = _spread(builder, number)
        length = cgutils.unpack_tuple(builder, to.shape)[0]
        zero, step = ir.Constant(length.type, 0), ir.Constant(length.type, LANES)
        whole = builder.and_(length, ir.Constant(length.type, -LANES))
        with cgutils.for_range_slice(builder, zero, whole, step) as (place, _):
            added = builder.fmul(spread, _four(builder, row.data, place))
            start = builder.bitcast(builder.gep(to.data, [place]), _VECTOR.as_pointer())
            builder.store(builder.fadd(builder.load(start, align=8), added), start, align=8)
        with cgutils.for_range_slice(builder, whole, length, ir.Constant(length.type, 1)) as (place, _):
            added = builder.fmul(number, builder.load(builder.gep(row.data, [place])))
            start = builder.gep(to.data, [place])
            builder.store(builder.fadd(builder.load(start), added), start)
        return context.get_dummy_value()

    return types.void(sums, factor, x), generate


#: In a kernel, `inner_product(x, y)`: the sum of x y over the coordinates.
inner_product = cast(Callable[[Any, Any], float], intrinsic(_inner_product))
#: In a kernel, `exchange(x, y, here, there, both)`: the sum of (y - x) (both (y - x) + (here - there)).
exchange = cast(Callable[[Any, Any, Any, Any, Any], float], intrinsic(_exchange))
#: In a kernel, `add_multiple(sums, factor, x)`: add factor times x to sums, coordinate by coordinate.
add_multiple = cast(Callable[[Any, Any, Any], None], intrinsic(_add_multiple))
