"""Register tiles of any height for compiled loops, and edges without spare memory: what `vectors` lacks.

A tile is a tuple of `rows` Rows, one for each row of a small piece of C. The micro-kernel of the `simd` rung
writes its six out by name; here the height is a constant chosen for each matrix, as a small one has no rows
to waste:

    tile = zero_tile(B, 8, 128)                                     # 8 rows of 32 float32
    for k in range(depth):
        tile = add_outer(tile, A, a + k, lda, load(B, b + k * ldb, 128))
    store_tile(C, c, ldc, tile, columns)

Where fewer columns are left than a Row has lanes, `load_first` and `store_tile` touch only those (masked
loads and stores: one instruction where the CPU has them). An index counts elements, nothing is checked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from course_lib.circles.vectors import _INDEX, _as, _check, _row, _size, at


@intrinsic
def flat(typing, array):
    """Return the memory of an array of any strides as a flat array that begins at its first element.

    Strides become factors of an index: X[i, j] is flat(X)[i * rows + j * columns] with X.strides / itemsize.
    Its length is never looked at, and is 0.
    """
    line = types.Array(array.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        given = context.make_array(array)(context, builder, arguments[0])
        made = context.make_array(line)(context, builder)
        nothing = context.get_constant(types.intp, 0)
        size = context.get_constant(types.intp, array.dtype.bitwidth // 8)
        populate_array(made, given.data, [nothing], [size], size, None)
        return made._getvalue()

    return line(array), generate


@intrinsic
def pointer(typing, array):
    """Return the pointer to the first element of an array: what is left of it when nobody counts references.

    At the last use of an array Numba tells it so, by a call of a function, which may change every vector
    register. After a loop of 64 steps it costs as much as eight of them to save and restore a tile for that.
    The array must live longer than the pointer.
    """
    place = types.CPointer(array.dtype)

    def generate(context, builder, signature, arguments):
        return context.make_array(array)(context, builder, arguments[0]).data

    return place(array), generate


@intrinsic
def zero_tile(typing, array, rows, row_bytes):
    """Return `rows` Rows of `row_bytes` bytes (both constants) of zeros of the array's dtype."""
    row = _row(array, row_bytes)
    if not isinstance(rows, types.IntegerLiteral):
        raise TypingError("rows is a variable, but it must be a constant: write the number or a global.")
    tile = types.UniTuple(row, rows.literal_value)

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(tile), None)

    return tile(array, rows, row_bytes), generate


@intrinsic
def add_outer(typing, tile, array, index, step, row):
    """Return the tile plus the outer product of array[index], array[index + step] ... and a Row."""
    _check(array)

    def generate(context, builder, signature, arguments):
        sums, step, row = arguments[0], arguments[3], arguments[4]
        place = at(context, builder, array, *arguments[1:3])
        name = f"llvm.fmuladd.v{tile.dtype.lanes}f{8 * _size(tile.dtype)}"
        kind = ir.FunctionType(row.type, [row.type] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, name)
        for i in range(tile.count):
            number = builder.load(builder.gep(place, [builder.mul(step, step.type(i))]))
            before = builder.extract_value(sums, i)
            after = builder.call(fma, [_everywhere(builder, number, row.type), row, before])
            sums = builder.insert_value(sums, after, i)
        return sums

    return tile(tile, array, types.intp, types.intp, row), generate


@intrinsic
def load_first(typing, array, index, columns, row_bytes):
    """Return array[index : index + columns] as a Row of `row_bytes` bytes (a constant), zeros behind it."""
    row = _row(array, row_bytes)

    def generate(context, builder, signature, arguments):
        vector = context.get_value_type(row)
        place = _as(at(context, builder, array, *arguments[:2]), builder, vector)
        return _masked(builder, "load", vector, place, _first(builder, row, arguments[2]), row)

    return row(array, types.intp, types.intp, row_bytes), generate


@intrinsic
def store_tile(typing, array, index, step, tile, columns):
    """Write the first `columns` numbers of each row of the tile to array[index], array[index + step] ..."""
    _check(array)
    row = tile.dtype

    def generate(context, builder, signature, arguments):
        step = arguments[2]
        place = at(context, builder, array, *arguments[:2])
        is_whole = builder.icmp_signed(">=", arguments[4], arguments[4].type(row.lanes))
        rows = [builder.extract_value(arguments[3], i) for i in range(tile.count)]
        with builder.if_else(is_whole) as (whole, part):
            with whole:
                for i, one in enumerate(rows):
                    to = builder.gep(place, [builder.mul(step, step.type(i))])
                    builder.store(one, _as(to, builder, one.type), align=_size(row))
            with part:
                mask = _first(builder, row, arguments[4])
                for i, one in enumerate(rows):
                    to = builder.gep(place, [builder.mul(step, step.type(i))])
                    _masked(builder, "store", one.type, _as(to, builder, one.type), mask, row, one)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, tile, types.intp), generate


@intrinsic
def transpose(typing, array, index, step, count, to, place, to_step, row_bytes):
    """Write to[place + k * to_step + j] = array[index + j * step + k] for j, k below the lanes of a Row.

    From j = count on the last row is repeated. Each of log2(lanes) rounds deals the first half of the rows
    and the second out in turn, as cards are riffled; then all have changed places (H. S. Stone, "Parallel
    processing with the perfect shuffle", IEEE Trans. Computers C-20(2), 1971).
    """
    row = _row(array, row_bytes)
    _check(to)

    def generate(context, builder, signature, arguments):
        vector, n = context.get_value_type(row), row.lanes
        source = at(context, builder, array, *arguments[:2])
        target = at(context, builder, to, *arguments[4:6])
        last = builder.sub(arguments[3], arguments[3].type(1))
        rows = []
        for j in range(n):
            j = last.type(j)
            j = builder.select(builder.icmp_signed("<", j, last), j, last)
            here = builder.gep(source, [builder.mul(j, arguments[2])])
            rows.append(builder.load(_as(here, builder, vector), align=_size(row)))
        pairs = [lane for i in range(n) for lane in (i, n + i)]
        halves = [ir.Constant(ir.VectorType(_INDEX, n), pairs[h * n : (h + 1) * n]) for h in (0, 1)]
        for _ in range(n.bit_length() - 1):
            dealt = []
            for upper, lower in zip(rows[: n // 2], rows[n // 2 :], strict=True):
                dealt += [builder.shuffle_vector(upper, lower, half) for half in halves]
            rows = dealt
        for k, one in enumerate(rows):
            here = builder.gep(target, [builder.mul(arguments[6], last.type(k))])
            builder.store(one, _as(here, builder, vector), align=_size(row))
        return context.get_dummy_value()

    whole = types.intp
    return types.void(array, whole, whole, whole, to, whole, whole, row_bytes), generate


def _everywhere(builder, number, vector):
    """Return a vector with the number in every lane."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, _INDEX(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, vector.count), None))


def _first(builder, row, columns):
    """Return the mask of the first `columns` lanes."""
    of_all = _everywhere(builder, columns, ir.VectorType(columns.type, row.lanes))
    lanes = ir.Constant(of_all.type, list(range(row.lanes)))
    return builder.icmp_signed("<", lanes, of_all)


def _masked(builder, what, vector, place, mask, row, value=None):
    """Load or store the lanes of a mask; the others are zeros, and their memory is not touched."""
    name = f"llvm.masked.{what}.v{row.lanes}f{8 * _size(row)}.p0v{row.lanes}f{8 * _size(row)}"
    align = _INDEX(_size(row))
    if what == "load":
        kind = ir.FunctionType(vector, [place.type, _INDEX, mask.type, vector])
        arguments = [place, align, mask, ir.Constant(vector, None)]
    else:
        kind = ir.FunctionType(ir.VoidType(), [vector, place.type, _INDEX, mask.type])
        arguments = [value, place, align, mask]
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
