"""Four numbers at once: loads and stores of 16 bytes.

A thread can move 16 bytes in one instruction (LDG.E.128, STG.E.128) if the address is a multiple of 16.
Python has no way to say so. `load4` and `store4` are ordinary functions that say what happens; run as
Python they do just that. For the GPU the functions below them stand in: they promise the alignment to the
compiler. (Numba calls such a stand-in an overload. It wants numba-cuda; without that package the functions
stay plain ones.)

In shared memory nothing of the kind is needed: `alignment=16` and indices that are multiples of four are
enough for the compiler to join neighbouring loads by itself (LDS.128).

A trace counts what the source says: four requests of a number for each lane, where a GPU makes one of 16
bytes, to the same sectors.
"""

from __future__ import annotations

from numba import cuda, float32

from course_lib.circles.cuda_edges import element, put
from course_lib.measure import machine


def load4(X, i, j):
    """Return X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3] (float32); all in row i, j a multiple of 4."""
    return X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3]


def store4(X, i, j, x0, x1, x2, x3):
    """Set X[i, j] to x0 … X[i, j + 3] to x3 (float32); all in row i, j a multiple of 4."""
    X[i, j] = x0
    X[i, j + 1] = x1
    X[i, j + 2] = x2
    X[i, j + 3] = x3


load4.runs_as_written = store4.runs_as_written = True  # a mark for the tracer: as they stand here


@cuda.jit(device=True)
def elements(X, i, j, wide):
    """Return X[i, j] … X[i, j + 3], zero where X has no such element; j is a multiple of 4.

    `wide` says that every row begins at a multiple of 16 bytes; then all four are inside, or none.
    """
    x0 = float32(0)
    x1 = float32(0)
    x2 = float32(0)
    x3 = float32(0)
    if wide:
        if i < X.shape[0] and j < X.shape[1]:
            x0, x1, x2, x3 = load4(X, i, j)
    else:
        x0 = element(X, i, j)
        x1 = element(X, i, j + 1)
        x2 = element(X, i, j + 2)
        x3 = element(X, i, j + 3)
    return x0, x1, x2, x3


@cuda.jit(device=True)
def put_elements(X, i, j, x0, x1, x2, x3, wide):
    """Set X[i, j] … X[i, j + 3], those that X has; j and `wide` as in `elements`."""
    if wide:
        if i < X.shape[0] and j < X.shape[1]:
            store4(X, i, j, x0, x1, x2, x3)
    else:
        put(X, i, j, x0)
        put(X, i, j + 1, x1)
        put(X, i, j + 2, x2)
        put(X, i, j + 3, x3)


# -- what the GPU runs in their place ----------------------------------------------------------------------


def _teach_numba_cuda() -> None:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic, overload

    four = ir.VectorType(ir.FloatType(), 4)
    index = types.int64

    def lane(number: int) -> ir.Constant:
        return ir.Constant(ir.IntType(32), number)

    def place(context, builder, kind, X, i, j):
        """Return the address of X[i, j] as that of four floats."""
        array = context.make_array(kind)(context, builder, X)
        columns = builder.extract_value(array.shape, 1)
        address = builder.gep(array.data, [builder.add(builder.mul(i, columns), j)])
        return builder.bitcast(address, four.as_pointer())

    @intrinsic
    def load(typing, X, i, j):
        def generate(context, builder, signature, arguments):
            vector = builder.load(place(context, builder, signature.args[0], *arguments), align=16)
            numbers = [builder.extract_element(vector, lane(n)) for n in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(types.float32, 4)(X, index, index), generate

    @intrinsic
    def store(typing, X, i, j, x0, x1, x2, x3):
        def generate(context, builder, signature, arguments):
            vector = ir.Constant(four, ir.Undefined)
            for n, number in enumerate(arguments[3:]):
                vector = builder.insert_element(vector, number, lane(n))
            builder.store(vector, place(context, builder, signature.args[0], *arguments[:3]), align=16)
            return context.get_dummy_value()

        return types.void(X, index, index, *[types.float32] * 4), generate

    def fits(X) -> bool:
        return isinstance(X, types.Array) and X.dtype == types.float32 and X.ndim == 2 and X.layout == "C"

    @overload(load4)
    def _(X, i, j):
        return (lambda X, i, j: load(X, i, j)) if fits(X) else None

    @overload(store4)
    def _(X, i, j, x0, x1, x2, x3):
        if fits(X):
            return lambda X, i, j, x0, x1, x2, x3: store(X, i, j, x0, x1, x2, x3)


if not machine.missing("numba-cuda"):
    _teach_numba_cuda()
