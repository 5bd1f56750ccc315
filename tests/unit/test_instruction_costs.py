"""What an instruction costs and gives, and what a loop of them does for each operation."""

import numpy as np
import pytest

from course_lib import views
from course_lib.measure import assembly
from course_lib.measure.instruction_costs import (
    flops_of,
    is_broadcast,
    is_instruction,
    is_prefetch,
    loaded_bytes,
)
from course_lib.views import machine_code


def test_one_line():
    for line, flops, loaded, broadcast in [
        ("vfmadd231ps\t%zmm1, %zmm2, %zmm3", 32, 0, False),
        ("vfmadd231pd\t(%rax), %ymm2, %ymm3", 8, 32, False),
        ("vfmadd231ps\t(%rax){1to16}, %zmm2, %zmm3", 32, 4, True),
        ("vmulps\t%ymm1, %ymm2, %ymm3", 8, 0, False),
        ("addsd\txmm0, qword ptr [rax]", 1, 8, False),
        ("vmovups\t(%r9), %zmm24", 0, 64, False),
        ("vmovups\t%zmm24, (%r9)", 0, 0, False),
        ("vbroadcastss\t(%rsi,%rbx), %zmm28", 0, 4, True),
        ("vbroadcastss\t%xmm0, %zmm28", 0, 0, False),
        ("movq\t(%rsp), %rax", 0, 0, False),
        ("prefetcht1\t(%r8,%r11,4)", 0, 0, False),
        ("fmla\tv0.4s, v1.4s, v2.4s", 8, 0, False),
        ("fmadd\ts0, s1, s2, s0", 2, 0, False),
        ("ldp\tq1, q2, [x8], #32", 0, 32, False),
        ("ld1r\t{ v0.4s }, [x8]", 0, 4, True),
        (".LBB0_3:", 0, 0, False),
    ]:
        assert (flops_of(line), loaded_bytes(line), is_broadcast(line)) == (flops, loaded, broadcast), line


def test_prefetches_and_labels_are_told_apart():
    assert is_prefetch("prefetcht0\t(%rax)") and is_prefetch("prfm\tpldl1keep, [x0]")
    assert not is_prefetch("vmovups\t(%rax), %zmm0")
    assert [is_instruction(line) for line in (".LBB0_3:", ".p2align\t4", "", "incq\t%rax")] == [0, 0, 0, 1]


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
