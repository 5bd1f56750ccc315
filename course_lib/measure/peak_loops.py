"""The two loops that find a machine's limits: FMAs that never leave the registers, and the STREAM triad.

Importing this module imports Numba. Nothing here is cached on disk: all of it compiles in about half a
second, and the result of the measurement is remembered instead.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

#: FMAs in a row of each chain before the loop jumps back, so that counting the loop costs nothing.
UNROLL = 4
_LANE = ir.IntType(32)


def fma_loop(dtype: str, simd_bits: int, chains: int, fused: bool) -> tuple[Callable, int]:
    """Compile ``run(n, x, y)``: n turns of a loop of independent chains v = v * x + y held in SIMD registers.

    Returns it with the floating-point operations of one turn (a fused multiply-add counts as two). Without
    ``fused`` each step is a multiplication and an addition: the CPU has no FMA, and LLVM would call a slow
    function. The LLVM vectors are written out because a plain loop is compiled for 256-bit registers on most
    AVX-512 CPUs.
    """
    scalar, number = (
        (ir.FloatType(), types.float32) if dtype == "float32" else (ir.DoubleType(), types.float64)
    )
    lanes = simd_bits // (32 if dtype == "float32" else 64)
    vector = ir.VectorType(scalar, lanes)

    @intrinsic
    def loop(typing_context, n, x, y):
        def codegen(context, builder, signature, arguments):
            turns, x, y = arguments
            x, y = _splat(builder, vector, x), _splat(builder, vector, y)
            # LLVM turns these slots into registers; different starts keep it from merging equal chains
            starts = [_splat(builder, vector, ir.Constant(scalar, float(c))) for c in range(chains)]
            slots = [cgutils.alloca_once_value(builder, start) for start in starts]
            with cgutils.for_range(builder, turns):
                for slot in slots * UNROLL:
                    builder.store(_multiply_add(builder, vector, builder.load(slot), x, y, fused), slot)
            total = builder.load(slots[0])
            for slot in slots[1:]:
                total = builder.fadd(total, builder.load(slot))
            return builder.extract_element(total, _LANE(0))

        return number(types.int64, number, number), codegen

    @njit(f"{dtype}(int64, {dtype}, {dtype})", nogil=True)
    def run(n, x, y):
        return loop(n, x, y)

    return run, 2 * lanes * chains * UNROLL


def _splat(builder, vector, value):
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, _LANE(0))
    return builder.shuffle_vector(
        first, nothing, ir.Constant(ir.VectorType(_LANE, vector.count), [0] * vector.count)
    )


def _multiply_add(builder, vector, v, x, y, fused):
    if not fused:
        return builder.fadd(builder.fmul(v, x), y)
    width = 32 if isinstance(vector.element, ir.FloatType) else 64
    kind = ir.FunctionType(vector, [vector] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{vector.count}f{width}")
    return builder.call(fma, [v, x, y])


@njit("void(float64[::1], float64[::1], float64[::1])", nogil=True)
def touch(a, b, c):
    """Write the three arrays for the first time: the memory then belongs to the core that does so."""
    for i in range(len(a)):
        a[i] = 0.0
        b[i] = 1.0
        c[i] = 2.0


@njit("void(float64[::1], float64[::1], float64[::1], float64)", nogil=True)
def triad(a, b, c, scale):
    """STREAM's triad (McCalpin): two arrays read, one written."""
    for i in range(len(a)):
        a[i] = b[i] + scale * c[i]
