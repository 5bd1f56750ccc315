"""Machine code is read right: packed against single, fused or not, innermost loops, x86 and ARM."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from course_lib import views
from course_lib.measure import assembly
from course_lib.measure.assembly import inspect, parse
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


def test_the_version_asked_for_is_inspected():
    function = compiled("ikj", FUSE, np.float64)
    X = np.ones((4, 4), np.float32)
    function(X, X, X.copy())
    first, last = function.signatures
    assert "float32" in inspect(function).signature
    assert inspect(function, first).signature == str(first) != str(last)
    with pytest.raises(ValueError, match="is not compiled for int64; it is for"):
        inspect(function, "int64")


def test_what_is_not_compiled_is_said_in_a_sentence():
    import numba

    with pytest.raises(ValueError, match=r"lonely is not compiled yet.*call it first"):

        @numba.njit
        def lonely(x):
            return x

        inspect(lonely)
    with pytest.raises(TypeError, match="compiled with @njit, but got a builtin_function_or_method"):
        inspect(sum)


def test_code_from_numbas_cache_is_inspected_without_a_warning(tmp_path):
    (tmp_path / "cached.py").write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from numba import njit
            from course_lib.measure import assembly

            @njit(cache=True, fastmath={"contract", "reassoc"})
            def axpy(a, x, y):
                for i in range(len(x)):
                    y[i] += a * x[i]

            axpy(2.0, np.ones(8), np.ones(8))
            hot = assembly.inspect(axpy).hot
            print(sum(axpy.stats.cache_hits.values()), hot.is_vectorised, hot.n_fma > 0)
            """
        )
    )
    for hits in (0, 1):
        done = subprocess.run([sys.executable, "cached.py"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (f"{hits} True True\n", "")


# -- one line ----------------------------------------------------------------------------------------------


#: What a line is: its kind and the bits of its vectors, what it does with memory, FLOPs, bytes loaded.
LINES = {
    "vfmadd231pd\t%ymm0, %ymm1, %ymm2": ("fma", 256, "", 8, 0),
    "vfmadd213ps\t-96(%r10,%rsi,8), %zmm1, %zmm2": ("fma", 512, "load", 32, 64),
    "vfmadd231sd\t%xmm0, %xmm1, %xmm2": ("fma", 0, "", 2, 0),
    "vmulsd\t(%rax), %xmm0, %xmm0": ("mul", 0, "load", 1, 8),
    "vaddpd\tymm0, ymm1, ymmword ptr [rdi + 8*rsi]": ("add", 256, "load", 4, 32),
    "vsubps\t%zmm0, %zmm1, %zmm2": ("add", 512, "", 16, 0),
    "vmaxpd\t%ymm0, %ymm1, %ymm2": ("other", 256, "", 4, 0),
    "vmovupd\t(%rax), %ymm0": ("", 0, "load", 0, 32),
    "vbroadcastsd\t%xmm0, %ymm1": ("", 0, "", 0, 0),
    "addq\t$16, %rsi": ("", 0, "", 0, 0),
    "fmla v0.4s, v1.4s, v2.4s": ("fma", 128, "", 8, 0),
    "fmla.4s\tv0, v1, v2": ("fma", 128, "", 8, 0),
    "fmul v0.2s, v1.2s, v2.2s": ("mul", 64, "", 2, 0),
    "fmadd d0, d1, d2, d3": ("fma", 0, "", 2, 0),
    "fmax v0.4s, v1.4s, v2.4s": ("other", 128, "", 4, 0),
    "add x8, x8, #16": ("", 0, "", 0, 0),
    "vmovupd\t(%rax,%rsi,8), %ymm0": ("", 0, "load", 0, 32),
    "vmovupd\t%ymm0, -96(%r10,%rsi,8)": ("", 0, "store", 0, 0),
    "vmovups ymm0, ymmword ptr [rdi + 4*rax]": ("", 0, "load", 0, 32),
    "vmovups ymmword ptr [rdi + 4*rax], ymm0": ("", 0, "store", 0, 0),
    "movq\t%rbx, -8(%rsp)": ("", 0, "store", 0, 0),
    "addq\t$1, 16(%rsp)": ("", 0, "loadstore", 0, 0),
    "incq\t(%rdi)": ("", 0, "loadstore", 0, 0),
    "leaq\t(%r8,%rax,8), %rcx": ("", 0, "", 0, 0),
    "prefetcht0\t(%rax)": ("", 0, "", 0, 0),
    "vbroadcastsd\t(%r10,%r9,8), %ymm0": ("", 0, "load", 0, 8),
    "ldp q0, q1, [x8], #32": ("", 0, "load", 0, 32),
    "str d0, [x8]": ("", 0, "store", 0, 0),
    "stp q0, q1, [x8, #-16]": ("", 0, "store", 0, 0),
    "fmla v0.4s, v1.4s, v2.s[1]": ("fma", 128, "", 8, 0),
    "vfmadd231ps\t%zmm1, %zmm2, %zmm3": ("fma", 512, "", 32, 0),
    "vfmadd231pd\t(%rax), %ymm2, %ymm3": ("fma", 256, "load", 8, 32),
    "vfmadd231ps\t(%rax){1to16}, %zmm2, %zmm3": ("fma", 512, "load", 32, 4),
    "vmulps\t%ymm1, %ymm2, %ymm3": ("mul", 256, "", 8, 0),
    "addsd\txmm0, qword ptr [rax]": ("add", 0, "load", 1, 8),
    "vmovups\t(%r9), %zmm24": ("", 0, "load", 0, 64),
    "vmovups\t%zmm24, (%r9)": ("", 0, "store", 0, 0),
    "vbroadcastss\t(%rsi,%rbx), %zmm28": ("", 0, "load", 0, 4),
    "vbroadcastss\t%xmm0, %zmm28": ("", 0, "", 0, 0),
    "movq\t(%rsp), %rax": ("", 0, "load", 0, 0),
    "prefetcht1\t(%r8,%r11,4)": ("", 0, "", 0, 0),
    "fmla\tv0.4s, v1.4s, v2.4s": ("fma", 128, "", 8, 0),
    "fmadd\ts0, s1, s2, s0": ("fma", 0, "", 2, 0),
    "ldp\tq1, q2, [x8], #32": ("", 0, "load", 0, 32),
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

INTEL = """
dot:
        test    rsi, rsi
        je      .LBB0_3
.LBB0_2:
        vmovups zmm1, zmmword ptr [rdi + 4*rax]
        vmulps  zmm1, zmm1, zmmword ptr [rdx + 4*rax]   # not fused
        vaddps  zmm0, zmm0, zmm1
        add     rax, 16
        cmp     rax, rsi
        jne     .LBB0_2
.LBB0_3:
        ret
"""

STRIDED = """
strided:
.LBB0_1:
	vmovupd	(%rdx,%rdi,8), %ymm6
	vfmadd231pd	(%rbp,%rdi,8), %ymm6, %ymm2
	addq	$4, %rdi
	cmpq	%rdi, %rcx
	jne	.LBB0_1
.LBB0_2:
	vmovsd	(%r15,%r10,8), %xmm3
	incq	%r10
	vfmadd231sd	(%rdi), %xmm3, %xmm2
	addq	%r11, %rdi
	decq	%r9
	jne	.LBB0_2
	retq
"""


def test_arm_code_is_read():
    code = parse(ARM)
    assert [loop.label for loop in code.loops] == [".LBB0_3", ".LBB0_4"]  # innermost, and no wrapper
    vector, scalar = code.loops
    assert (vector.n_fma, vector.n_vector, vector.vector_bits) == (2, 2, 128)
    assert (vector.n_loads, vector.n_stores, vector.is_strided) == (2, 1, False)
    assert (scalar.n_fma, scalar.n_vector, scalar.n_scalar, scalar.vector_bits) == (1, 0, 1, 0)
    assert code.hot == vector and not vector.only_for_stride_one


def test_intel_notation_is_read():
    (loop,) = parse(INTEL).loops
    assert (loop.n_fma, loop.n_mul, loop.n_add, loop.n_loads, loop.n_stores) == (0, 1, 1, 2, 0)
    assert (loop.vector_bits, loop.n_vector, loop.is_strided) == (512, 2, False)
    assert parse(INTEL.replace("add     rax, 16", "add     rax, r8")).loops[0].is_strided


def test_a_vector_version_for_stride_one_is_not_hot():
    code = parse(STRIDED)
    assert [loop.only_for_stride_one for loop in code.loops] == [True, False]
    assert not code.hot.is_vectorised
    plain = parse(STRIDED.replace("addq	%r11, %rdi", "addq	$8, %rdi"))
    assert plain.hot.is_vectorised and not plain.hot.only_for_stride_one


# -- what a loop does for each operation -------------------------------------------------------------------

KERNEL = """
.LBB0_3:
\tprefetcht1\t(%r8,%r11,4)
\tvmovups\t(%r9), %ymm4
\tvbroadcastss\t(%rsi,%rbx), %ymm5
\tvfmadd231ps\t%ymm4, %ymm5, %ymm0
\tvbroadcastss\t(%rsi,%rcx), %ymm5
\tvfmadd231ps\t%ymm4, %ymm5, %ymm1
\tincq\t%r11
\tjne\t.LBB0_3
"""


def test_a_loop_is_counted_for_each_operation():
    loop = assembly.parse(KERNEL).hot
    assert (loop.n_instructions, loop.n_loads, loop.n_broadcasts, loop.n_prefetches) == (8, 3, 2, 1)
    assert (loop.flops, loop.loaded_bytes) == (32, 40)
    assert loop.flops_per_instruction == 4 and loop.bytes_per_flop == 1.25
    said = machine_code.counts(loop)
    assert said.startswith("A turn is 8 instructions (2 FMAs, 1 load, 2 broadcasts, 1 prefetch) for 32 FLOP")
    assert "4.00 FLOP per instruction, 1.2 bytes loaded per FLOP" in said


def test_loops_are_compared_in_a_table(monkeypatch):
    monkeypatch.setattr(assembly, "inspect", assembly.parse)
    table = views.loop_costs({"two rows": KERNEL})
    assert table.rows == (("two rows", "256", "8", "2", "3", "2", "1.5", "4.00", "1.2", "0"),)
    with pytest.raises(ValueError, match="must name the functions"):
        views.loop_costs([])


def test_the_micro_kernel_of_the_simd_rung_is_found_and_has_no_spills():
    """Its loop does one step along k in a turn, or several where LLVM unrolls it for a CPU."""
    from course_lib.circles import simd

    for dtype in ("float32", "float64"):
        room = np.zeros(2**14, dtype)
        NR = simd.ROW_BYTES // room.itemsize
        simd.micro_kernel(8, room, 0, 8, room, 0, room, 2**13, NR, False, 0)
        signatures = simd.micro_kernel.signatures  # other dtypes may be compiled too
        loop = assembly.inspect(
            simd.micro_kernel, [s for s in signatures if s[1].dtype.name == dtype][-1]
        ).hot
        registers = simd.ROW_BYTES * 8 // simd.BITS
        steps, left = divmod(loop.n_fma, simd.MR * registers)
        assert steps and not left, dtype
        assert loop.flops == steps * 2 * simd.MR * NR, dtype
        assert loop.n_prefetches == steps * (1 + simd.ROW_BYTES // 64), dtype
        assert machine_code.spills(loop) == 0, dtype
        if loop.n_broadcasts:  # x86; ARM multiplies by a lane of a register instead
            assert loop.n_broadcasts == steps * simd.MR, dtype
            assert loop.n_loads - loop.n_broadcasts == steps * registers, dtype
