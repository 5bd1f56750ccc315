"""Vectors for compiled loops: the nine operations out of which the `simd` rung is made.

Numba has no vector type, so here is one. A `Row` is a piece of a matrix row that lives in registers: one LLVM
vector of `row_bytes` bytes, which LLVM spreads over as many registers as it takes (256 bytes are four 512-bit
registers). A Row is an ordinary local of a compiled function:

    total = zero(B, 256)                                            # 64 float32 or 32 float64
    for k in range(depth):
        total = fma(broadcast(A, k, total), load(B, k * n, 256), total)
    store(C, 0, total)

Arrays are flat and C-contiguous, an index counts elements. Nothing is checked: not the bounds, not even for
a negative index (Python's meaning of -1 costs a comparison and a select at each access).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

_INDEX = ir.IntType(32)
_LINE_BYTES = 64  # of a cache line; where lines are longer, some are asked for twice


class Row(types.Type):
    """The Numba type of `lanes` numbers of one dtype, held in registers."""

    def __init__(self, dtype: types.Float, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Row({dtype} x {lanes})")


@register_model(Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager, row):
        element = ir.FloatType() if row.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, row, ir.VectorType(element, row.lanes))


@intrinsic
def zero(typing, array, row_bytes):
    """Return a Row of zeros of the array's dtype; `row_bytes` must be a constant."""
    row = _row(array, row_bytes)

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(row), None)

    return row(array, row_bytes), generate


@intrinsic
def load(typing, array, index, row_bytes):
    """Return the `row_bytes` bytes (a constant) of the flat array from `index` on as a Row."""
    row = _row(array, row_bytes)

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        return builder.load(_as(place, builder, context.get_value_type(row)), align=_size(row))

    return row(array, types.intp, row_bytes), generate


@intrinsic
def store(typing, array, index, row):
    """Write a Row into the flat array from `index` on."""
    _check(array)

    def generate(context, builder, signature, arguments):
        place = _as(_place(context, builder, signature, arguments), builder, arguments[2].type)
        builder.store(arguments[2], place, align=_size(row))
        return context.get_dummy_value()

    return types.void(array, types.intp, row), generate


@intrinsic
def broadcast(typing, array, index, like):
    """Return a Row of the type of `like` with array[index] in every lane."""
    _check(array)

    def generate(context, builder, signature, arguments):
        number = builder.load(_place(context, builder, signature, arguments))
        vector = context.get_value_type(like)
        nothing = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(nothing, number, _INDEX(0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, like.lanes), [0] * like.lanes)
        return builder.shuffle_vector(first, nothing, everywhere)

    return like(array, types.intp, like), generate


@intrinsic
def fma(typing, x, y, z):
    """Return x * y + z, lane by lane, rounded once where the CPU has an instruction for it."""

    def generate(context, builder, signature, arguments):
        vector = arguments[0].type
        name = f"llvm.fmuladd.v{x.lanes}f{8 * _size(x)}"
        kind = ir.FunctionType(vector, [vector] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return x(x, x, x), generate


@intrinsic
def add(typing, x, y):
    """Return x + y, lane by lane."""

    def generate(context, builder, signature, arguments):
        return builder.fadd(*arguments)

    return x(x, x), generate


@intrinsic
def prefetch(typing, array, index):
    """Ask for the cache line of array[index] in L2; the CPU may ignore it, and any index is harmless."""

    def generate(context, builder, signature, arguments):
        _prefetch(builder, _place(context, builder, signature, arguments), level=2)
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def prefetch_row(typing, array, index, row_bytes):
    """Ask for all cache lines of the Row from `index` on in the L1 cache; harmless as `prefetch` is."""
    row = _row(array, row_bytes)

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        for first in range(0, row.lanes, _LINE_BYTES // _size(row)):
            _prefetch(builder, builder.gep(place, [_INDEX(first)]), level=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, row_bytes), generate


@intrinsic
def lanes(typing, array, row_bytes):
    """Return how many of the array's numbers are in a Row of `row_bytes`: a constant for the compiler."""
    row = _row(array, row_bytes)

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.intp, row.lanes)

    return types.intp(array, row_bytes), generate


def _row(array: types.Array, row_bytes: types.Type) -> Row:
    """Return the type of Row; Numba tries without the constant's value first and takes an error for a no."""
    _check(array)
    if not isinstance(row_bytes, types.IntegerLiteral):
        raise TypingError("row_bytes is a variable, but it must be a constant: write the number or a global.")
    size, item = row_bytes.literal_value, array.dtype.bitwidth // 8
    if size < item or size & (size - 1):
        raise TypingError(f"row_bytes is {size}, but it must be a power of two of at least {item} bytes.")
    return Row(array.dtype, size // item)


def _check(array: types.Type) -> None:
    is_flat = isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"
    if not (is_flat or isinstance(array, types.CPointer)) or array.dtype not in (
        types.float32,
        types.float64,
    ):
        raise TypingError(
            f"got {array}, but vectors need a flat, contiguous array of float32 or float64: "
            "np.ascontiguousarray(X).reshape(-1) makes one."
        )


def _size(row: Row) -> int:
    return row.dtype.bitwidth // 8


def _place(context, builder, signature, arguments):
    """Return the pointer to array[index], for the first two arguments."""
    return at(context, builder, signature.args[0], *arguments[:2])


def at(context, builder, kind, array, index):
    """Return the pointer to array[index] for a flat array, or for the pointer to its first element."""
    is_array = isinstance(kind, types.Array)
    data = context.make_array(kind)(context, builder, array).data if is_array else array
    return builder.gep(data, [index])


def _as(pointer, builder, kind):
    return builder.bitcast(pointer, kind.as_pointer())


def _prefetch(builder, place, level):
    place = _as(place, builder, ir.IntType(8))
    kind = ir.FunctionType(ir.VoidType(), [place.type, _INDEX, _INDEX, _INDEX])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    to_read, locality, data = _INDEX(0), _INDEX(4 - level), _INDEX(1)
    builder.call(function, [place, to_read, locality, data])
