"""The loops that find a machine's limits: FMAs that never leave the registers, reads, the STREAM triad.

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
READS = 12  # vectors that the reading loop adds up side by side: additions wait for each other, too
_LANE, _WORD = ir.IntType(32), ir.IntType(64)


def fma_loop(dtype: str, simd_bits: int, chains: int, fused: bool, ticks: int = 0) -> tuple[Callable, int]:
    """Compile ``run(n, x, y)``: n turns of a loop of independent chains v = v * x + y held in SIMD registers.

    Returns it with the floating-point operations of one turn (a fused multiply-add counts as two). Without
    ``fused`` each step is a multiplication and an addition: the CPU has no FMA, and LLVM would call a slow
    function. The LLVM vectors are written out because a plain loop is compiled for 256-bit registers on most
    AVX-512 CPUs.

    In each turn `ticks` integer operations stand beside them, each of which waits for the last and takes one
    cycle on every CPU known: with more of them than the FMAs take cycles, the time of a turn tells the clock
    (under vectors, for which some CPUs lower it). Their result is added to what is returned.
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
            counter = cgutils.alloca_once_value(builder, _WORD(0))
            with cgutils.for_range(builder, turns):
                for slot in slots * UNROLL:
                    builder.store(_multiply_add(builder, vector, builder.load(slot), x, y, fused), slot)
                for tick in range(ticks):  # no compiler shortens additions and exclusive ors in turn
                    step = builder.xor if tick % 2 else builder.add
                    builder.store(step(builder.load(counter), turns), counter)
            total = builder.extract_element(_sum(builder, slots), _LANE(0))
            return builder.fadd(total, builder.sitofp(builder.load(counter), scalar)) if ticks else total

        return number(types.int64, number, number), codegen

    @njit(f"{dtype}(int64, {dtype}, {dtype})", nogil=True)
    def run(n, x, y):
        return loop(n, x, y)

    return run, 2 * lanes * chains * UNROLL


def read_loop(simd_bits: int) -> tuple[Callable, int]:
    """Compile ``run(x, turns, times)``: add up the first numbers of x (float64, flat), `times` times over.

    Returns it with the bytes of one turn: READS vectors, of which the processor has to load each.
    """
    lanes = simd_bits // 64
    vector = ir.VectorType(ir.DoubleType(), lanes)

    @intrinsic
    def read(typing_context, x, turns, times):
        def codegen(context, builder, signature, arguments):
            first = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            zero = ir.Constant(vector, [0.0] * lanes)
            slots = [cgutils.alloca_once_value(builder, zero) for _ in range(READS)]
            with cgutils.for_range(builder, arguments[2]), cgutils.for_range(builder, arguments[1]) as loop:
                turn = builder.gep(first, [builder.mul(loop.index, _WORD(READS * lanes))])
                for place, slot in enumerate(slots):
                    there = builder.bitcast(builder.gep(turn, [_WORD(place * lanes)]), vector.as_pointer())
                    row = builder.load(there, align=8)
                    builder.store(builder.fadd(builder.load(slot), row), slot)
            return builder.extract_element(_sum(builder, slots), _LANE(0))

        return types.float64(x, types.int64, types.int64), codegen

    @njit("float64(float64[::1], int64, int64)", nogil=True)
    def run(x, turns, times):
        return read(x, turns, times)

    return run, READS * simd_bits // 8


def _sum(builder, slots):
    total = builder.load(slots[0])
    for slot in slots[1:]:
        total = builder.fadd(total, builder.load(slot))
    return total


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
