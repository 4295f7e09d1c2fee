"""Ask the processor for what a compiled loop will read soon, so that it does not wait for memory later.

A search that jumps between clusters spends a third of its time on waiting, where the records do not fit
the processor's cache. Prefetching changes no value, whatever it is given; nothing outside the array is
read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from microguard.sdc.kernels.compile import embedded
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

#: Numbers of eight bytes that come together from memory.
LINE = 8
#: Numbers of eight bytes that stay in the processor's own cache: a search over fewer needs no prefetching.
CACHED = 1 << 18
#: Rows ahead of the one in use, where a loop does little per row.
AHEAD = 16


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    if not isinstance(array, types.Array) or array.layout != "C":
        raise TypingError("only contiguous arrays can be prefetched")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(array)(context, builder, arguments[0]).data
        offset = context.cast(builder, arguments[1], place, types.intp)
        size = ir.Constant(offset.type, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = cgutils.pointer_add(builder, data, builder.mul(offset, size), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To read (0), to be kept in every level of the cache (3), data (1).
        builder.call(ask, [address, *(ir.Constant(word, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, place), generate


#: In a kernel, `prefetch(array, place)`: ask for an element of a contiguous array, as if of one dimension.
prefetch = cast(Callable[[Any, Any], None], intrinsic(_prefetch))


@embedded
def prefetch_row(array, row):
    """Ask for a row of a contiguous (n, p) array of numbers of at most eight bytes."""
    p = array.shape[1]
    for d in range(0, p, LINE):
        prefetch(array, row * p + d)
