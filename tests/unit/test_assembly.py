"""Machine code is read right: packed against single, fused or not, innermost loops, x86 and ARM."""

import numpy as np
import pytest

from course_lib.measure import assembly
from course_lib.measure.assembly import Assembly, inspect
from course_lib.measure.instructions import read
from course_lib.views import machine_code

FUSE = frozenset({"contract", "reassoc"})


def compiled(order, fastmath, dtype=np.float64):
    """Compile the matrix product's loops in an order."""
    import numba

    from course_lib.circles.compiled import compiled_loops

    function = numba.njit(fastmath=set(fastmath))(compiled_loops(order).py_func)
    X = np.ones((4, 4), dtype)
    function(X, X, X.copy())
    return function


# -- compiled here -----------------------------------------------------------------------------------------


def test_ikj_becomes_vectors_with_fma():
    for dtype in [np.float32, np.float64]:
        hot = inspect(compiled("ikj", FUSE, dtype)).hot
        assert hot.is_vectorised and hot.n_fma, dtype
        assert hot.vector_bits >= 128, dtype
        assert hot.n_fma == hot.n_vector > 0 and hot.n_mul == hot.n_add == 0, dtype
        assert hot.n_stores == hot.n_fma and hot.n_loads >= hot.n_fma, dtype
        assert not hot.is_strided, dtype


def test_ijk_stays_scalar_because_of_its_strides():
    for fastmath in [FUSE, frozenset()]:
        code = inspect(compiled("ijk", fastmath))
        assert not code.hot.is_vectorised, fastmath
        assert code.hot.vector_bits == 0 and code.hot.n_scalar > 0, fastmath
        assert code.hot.is_strided, fastmath
        # LLVM may write a vector version for stride one, which no matrix with more than one column takes
        assert all(loop.only_for_stride_one for loop in code.loops if loop.n_vector), fastmath


def test_the_version_compiled_last_is_inspected():
    function = compiled("ikj", FUSE, np.float64)
    X = np.ones((4, 4), np.float32)
    function(X, X, X.copy())
    assert len(function.signatures) == 2
    assert inspect(function).text == function.inspect_asm(function.signatures[-1])


def test_what_is_not_compiled_is_said_in_a_sentence():
    import numba

    with pytest.raises(ValueError, match=r"lonely is not compiled yet.*call it first"):

        @numba.njit
        def lonely(x):
            return x

        inspect(lonely)
    with pytest.raises(TypeError, match="compiled with @njit, but got a builtin_function_or_method"):
        inspect(sum)


# -- one line ----------------------------------------------------------------------------------------------


#: What a line is: its kind and the bits of its vectors, what it does with memory, FLOPs, bytes loaded.
LINES = {
    "vfmadd231pd\t%ymm0, %ymm1, %ymm2": ("fma", 256, "", 8, 0),
    "vfmadd213ps\t-96(%r10,%rsi,8), %zmm1, %zmm2": ("fma", 512, "load", 32, 64),
    "vfmadd231ps\t(%rax){1to16}, %zmm2, %zmm3": ("fma", 512, "load", 32, 4),
    "vfmadd231sd\t%xmm0, %xmm1, %xmm2": ("fma", 0, "", 2, 0),
    "vmulsd\t(%rax), %xmm0, %xmm0": ("mul", 0, "load", 1, 8),
    "vmaxpd\t%ymm0, %ymm1, %ymm2": ("other", 256, "", 4, 0),
    "vmovupd\t(%rax,%rsi,8), %ymm0": ("", 0, "load", 0, 32),
    "vmovupd\t%ymm0, -96(%r10,%rsi,8)": ("", 0, "store", 0, 0),
    "vbroadcastsd\t(%r10,%r9,8), %ymm0": ("", 0, "load", 0, 8),
    "vbroadcastsd\t%xmm0, %ymm1": ("", 0, "", 0, 0),
    "addq\t$1, 16(%rsp)": ("", 0, "loadstore", 0, 0),
    "leaq\t(%r8,%rax,8), %rcx": ("", 0, "", 0, 0),
    "prefetcht0\t(%rax)": ("", 0, "", 0, 0),
    "fmla v0.4s, v1.4s, v2.4s": ("fma", 128, "", 8, 0),
    "fmla v0.4s, v1.4s, v2.s[1]": ("fma", 128, "", 8, 0),
    "fmla.4s\tv0, v1, v2": ("fma", 128, "", 8, 0),
    "fmul v0.2s, v1.2s, v2.2s": ("mul", 64, "", 2, 0),
    "fmadd\ts0, s1, s2, s0": ("fma", 0, "", 2, 0),
    "add x8, x8, #16": ("", 0, "", 0, 0),
    "ldp q0, q1, [x8], #32": ("", 0, "load", 0, 32),
    "stp q0, q1, [x8, #-16]": ("", 0, "store", 0, 0),
    "ld1r\t{ v0.4s }, [x8]": ("", 0, "load", 0, 4),
    ".LBB0_3:": ("", 0, "", 0, 0),
}


def test_a_line_is_read_right():
    for line, (kind, bits, traffic, flops, loaded) in LINES.items():
        found = read(line)
        assert (found.kind, found.vector_bits) == (kind, bits), line
        assert "load" * found.loads + "store" * found.stores == traffic, line
        assert (found.flops, found.loaded_bytes) == (flops, loaded), line
        assert found.is_broadcast == (
            ("broadcast" in line and loaded > 0) or "{1to16}" in line or "ld1r" in line
        )
        assert found.is_prefetch == line.startswith("pr"), line


# -- texts of other machines -------------------------------------------------------------------------------

ARM = """
	.globl	_ZN4axpyE
_ZN4axpyE:
	cbz	x2, .LBB0_5
	mov	x8, xzr
.LBB0_2:                                // the outer loop
	mov	x9, xzr
.LBB0_3:
	ldp	q1, q2, [x10, #-16]             // two vectors
	ldp	q3, q4, [x11]
	fmla	v3.2d, v1.2d, v0.d[0]
	fmla	v4.2d, v2.2d, v0.d[0]
	stp	q3, q4, [x11], #32
	add	x10, x10, #32
	subs	x9, x9, #4
	b.ne	.LBB0_3
.LBB0_4:
	ldr	d1, [x10], #8
	ldr	d2, [x11]
	fmadd	d1, d0, d1, d2
	str	d1, [x11], #8
	subs	x12, x12, #1
	b.ne	.LBB0_4
	add	x8, x8, #1
	cmp	x8, x2
	b.lt	.LBB0_2
.LBB0_5:
	ret
_ZN7cpythonE:
.LBB1_1:
	fmla	v3.2d, v1.2d, v0.2d
	fmla	v3.2d, v1.2d, v0.2d
	fmla	v3.2d, v1.2d, v0.2d
	b	.LBB1_1
"""


def test_arm_code_is_read():
    code = Assembly(ARM)
    assert [loop.lines[0] for loop in code.loops] == [".LBB0_3:", ".LBB0_4:"]  # innermost, and no wrapper
    vector, scalar = code.loops
    assert (vector.n_fma, vector.n_vector, vector.vector_bits) == (2, 2, 128)
    assert (vector.n_loads, vector.n_stores, vector.is_strided) == (2, 1, False)
    assert (scalar.n_fma, scalar.n_vector, scalar.n_scalar, scalar.vector_bits) == (1, 0, 1, 0)
    assert code.hot == vector and not vector.only_for_stride_one


# -- what a loop does for each operation -------------------------------------------------------------------


def test_the_micro_kernel_of_the_simd_rung_is_found_and_has_no_spills():
    """Its loop does one step along k in a turn, or several where LLVM unrolls it for a CPU."""
    from course_lib.circles import simd

    for dtype in ("float32", "float64"):
        room = np.zeros(2**14, dtype)
        NR = simd.ROW_BYTES // room.itemsize
        simd.micro_kernel(8, room, 0, 8, room, 0, room, 2**13, NR, False, 0)
        signatures = simd.micro_kernel.signatures  # other dtypes may be compiled too
        signature = [s for s in signatures if s[1].dtype.name == dtype][-1]
        loop = Assembly(assembly._text(simd.micro_kernel, signature)).hot
        registers = simd.ROW_BYTES * 8 // simd.BITS
        steps, left = divmod(loop.n_fma, simd.MR * registers)
        assert steps and not left, dtype
        assert loop.flops == steps * 2 * simd.MR * NR, dtype
        assert loop.n_prefetches == steps * (1 + simd.ROW_BYTES // 64), dtype
        assert machine_code.spills(loop) == 0, dtype
        if loop.n_broadcasts:  # x86; ARM multiplies by a lane of a register instead
            assert loop.n_broadcasts == steps * simd.MR, dtype
            assert loop.n_loads - loop.n_broadcasts == steps * registers, dtype
