"""The kernels' own text runs here, thread by thread, on the model of Hopper.

Inputs are small whole numbers and scales powers of two, so every sum is exact and so is the comparison.
"""

import ctypes
import mmap
import sys

import pytest

from course_lib.fp8 import jit
from course_lib.fp8.tiles import Tile

pytestmark = [
    pytest.mark.needs("c++ compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="the model of Hopper needs Linux"),
]
UNTOUCHED = -777.0


def imports():
    global torch, on_cpu, exact_product, run, Problem, plan_for, m_major, product
    import torch

    from course_lib.fp8 import on_cpu
    from course_lib.fp8.exact_products import exact_product
    from course_lib.fp8.on_cpu import run
    from course_lib.fp8.plans import Problem, plan_for
    from course_lib.fp8.quantise import m_major
    from course_lib.fp8.reference import product


def numbers(*shape, seed):
    """Return whole numbers from -4 to 4 in e4m3."""
    generator = torch.Generator().manual_seed(seed)
    return fenced(torch.randint(-4, 5, shape, generator=generator).float().to(torch.float8_e4m3fn))


def powers(*shape, seed):
    """Return powers of two from 1/4 to 4, float32: the scales of wholly different blocks."""
    generator = torch.Generator().manual_seed(seed)
    return fenced(torch.exp2(torch.randint(-2, 3, shape, generator=generator).float()))


def fenced(x):
    """Return a copy with nothing behind it: who reads on meets memory that nobody may touch."""
    size = x.numel() * x.element_size()
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    fence = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(fence), mmap.PAGESIZE, 0) == 0
    copy = torch.frombuffer(memory, dtype=x.dtype, count=x.numel(), offset=pages - size).reshape(x.shape)
    return copy.copy_(x)


def blocks(n):
    return -(-n // 128)


# -- one product -------------------------------------------------------------------------------------------

UNSCALED = ("v1_mma", "v1_wgmma", "v2_tma_ring", "v3_warp_specialised")
#: M, N and K are multiples of nothing that a kernel would like. A ring of five goes round twice; of three
#: columns of tiles the last cluster of two sticks out.
CASES = [
    ("v0_naive", (7, 24, 208), None),
    ("v1_mma", (100, 72, 208), None),
    ("v1_wgmma", (100, 136, 208), None),
    ("v2_tma_ring", (136, 72, 1168), Tile(128, 64)),
    ("v3_warp_specialised", (136, 72, 1168), Tile(128, 64)),
    ("v4_two_level", (136, 72, 1168), Tile(128, 64)),
    ("v5_persistent", (200, 264, 400), Tile(128, 128, 2)),
    ("v6_tuned", (200, 264, 400), Tile(128, 112, 2)),
    ("v8_swap_ab", (20, 264, 400), None),
]
TALL = [
    ("v4_two_level", (200, 136, 1168), None),
    ("v6_tuned", (300, 264, 400), Tile(256, 128, 2)),
    ("v6_tuned", (100, 392, 400), Tile(64, 160, 1)),
    ("v8_swap_ab", (200, 264, 400), Tile(128, 48)),
]


def planned(kernel, M, N, K, tile):
    """Return the plan of a product on four multiprocessors, where its result will be, and what it must be.

    Around the result are four rows before and four behind it that nobody may touch.
    """
    a, b = numbers(M, K, seed=1), numbers(N, K, seed=2)
    a_scales, b_scales = powers(M, blocks(K), seed=3), powers(blocks(N), blocks(K), seed=4)
    if kernel in UNSCALED:
        a_scales, b_scales = a_scales.fill_(1), b_scales.fill_(1)
    a_scales = m_major(a_scales)
    whole = torch.full((M + 8, N), UNTOUCHED, dtype=torch.bfloat16)
    plan = plan_for(kernel, Problem.of(a, a_scales, b, b_scales, whole[4:-4]), tile, sms=4)
    whole.operands = (a, a_scales, b, b_scales)  # the plan has only their addresses
    return plan, whole, product(a, a_scales, b, b_scales, simulated=False)


def test_a_kernel_computes_the_product_and_touches_nothing_else():
    others = {"v9_grouped", "probe"}  # the probe is no product
    assert {case[0] for case in CASES} | others == set(jit.names())
    computes_the_product(CASES)


@pytest.mark.slow
def test_tall_and_wide_tiles_are_right_as_well():
    computes_the_product(TALL)
    masked_groups(Tile(256, 64, 2))


def computes_the_product(cases):
    for kernel, shape, tile in cases:
        plan, whole, wanted = planned(kernel, *shape, tile)
        for seed in range(2):
            whole.fill_(UNTOUCHED)
            assert run(plan, seed) == "", (kernel, shape, seed)
            assert torch.equal(whole[4:-4], wanted), (kernel, shape, seed)
            assert (whole[:4] == UNTOUCHED).all() and (whole[-4:] == UNTOUCHED).all(), (kernel, shape, seed)


#: A line of a kernel, what stands there instead, and what the model says of it.
FAULTS = [
    ("v5_persistent", "min(n_block * BN, N - 1)", "n_block * BN", "A thread went beyond what it was given."),
    ("v5_persistent", "if (lane < CLUSTER) barrier", "if (lane < 1) barrier", "Everybody waits."),
    ("v5_persistent", "cluster_meet();  // the last", "//", "A signal went to a block that had ended."),
    ("v6_tuned", "show_to_tma();", "", "A tile was stored before it was shown to TMA."),
    ("v6_tuned", "give_registers<FEW_REGISTERS>", "give_registers<48>", "Everybody waits."),  # 1,024 too few
]


@pytest.mark.slow
def test_every_fault_has_a_name():
    for kernel, line, instead, says in FAULTS:
        source = jit.source_of(kernel)
        assert line in source
        plan, _whole, _wanted = planned(kernel, 200, 264, 400, Tile(128, 128, 2))
        assert any(run(plan, seed, source.replace(line, instead)) == says for seed in range(6)), line


def test_a_stage_that_is_reported_too_early_is_written_while_it_is_read():
    made = exact_product("v3_warp_specialised", 64, 64, 2320, Tile(64, 64))
    assert {made.ending(seed) for seed in range(3)} == {"right"}
    source, told = jit.source_of("v3_warp_specialised"), "if (lane == 0) barrier_arrive(&empty[stage]);"
    assert made.ending(0, source.replace("block / STAGES & 1", "0")) == "Everybody waits."  # never flipped
    early = source.replace(told, "").replace("wgmma_wait<0>();", f"{told} wgmma_wait<0>();")
    assert "A stage was written while a product read it." in {made.ending(seed, early) for seed in range(8)}


def test_what_the_model_cannot_take_is_a_sentence(monkeypatch):
    plan, _whole, _wanted = planned("v1_wgmma", 64, 64, 128, None)
    for instead, words in (('asm("nop");', "not know `asm`"), ("nonsense();", r", line \d+: .*nonsense")):
        with pytest.raises(on_cpu.NotCpp, match=words):
            run(plan, source=jit.source_of("v1_wgmma").replace("wgmma_fence();", instead))
    monkeypatch.setattr(on_cpu.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="install g"):
        run(plan)


# -- groups ------------------------------------------------------------------------------------------------


def contiguous_groups(tile):
    """Five tiles of rows, the last begun; the second is nobody's, the fourth of a group there is not."""
    M, N, K, groups = 560, 136, 208, 3
    a, b = numbers(M, K, seed=1), numbers(groups, N, K, seed=2)
    a_scales = m_major(powers(M, blocks(K), seed=3))
    b_scales = powers(groups, blocks(N), blocks(K), seed=4)
    indices = torch.tensor([2, -1, 0, 7, 1], dtype=torch.int32).repeat_interleave(128)[:M].contiguous()
    whole = torch.full((M + 8, N), UNTOUCHED, dtype=torch.bfloat16)
    addresses = (x.data_ptr() for x in (a, a_scales, b, b_scales, whole[4:]))
    problem = Problem(*addresses, M, N, K, groups=groups, indices=indices.data_ptr())
    assert run(plan_for("v9_grouped", problem, tile, sms=4)) == "", tile
    for first in range(0, M, 128):
        rows, owner = slice(first, min(first + 128, M)), int(indices[first])
        computed = whole[4:-4][rows]
        if owner in range(groups):
            wanted = product(a[rows], a_scales[rows], b[owner], b_scales[owner], simulated=False)
            assert torch.equal(computed, wanted), (tile, first)
        else:
            assert (computed == UNTOUCHED).all(), (tile, first)
    assert (whole[:4] == UNTOUCHED).all() and (whole[-4:] == UNTOUCHED).all(), tile


def masked_groups(tile):
    """What sticks out of a group's room does not reach the next group; tiles without rows are left out."""
    groups, rows, N, K = 4, 70, 264, 208
    a, b = numbers(groups, rows, K, seed=1), numbers(groups, N, K, seed=2)
    a_scales = m_major(powers(groups, rows, blocks(K), seed=3))
    b_scales = powers(groups, blocks(N), blocks(K), seed=4)
    counts = torch.tensor([3, -5, 1000, 64], dtype=torch.int32)  # of a group's 70 rows
    d = torch.full((groups, rows, N), UNTOUCHED, dtype=torch.bfloat16)
    addresses = (x.data_ptr() for x in (a, a_scales, b, b_scales, d))
    where = {"groups": groups, "indices": counts.data_ptr(), "masked": True}
    problem = Problem(*addresses, rows, N, K, **where)
    for seed in range(2):
        d.fill_(UNTOUCHED)
        assert run(plan_for("v9_grouped", problem, tile, sms=4), seed) == "", tile
        for group, count in enumerate(counts.tolist()):
            computed = min(-(-max(count, 0) // tile.BM) * tile.BM, rows)
            wanted = product(a[group], a_scales[group], b[group], b_scales[group], simulated=False)
            assert torch.equal(d[group, :computed], wanted[:computed]), (tile, group)
            assert (d[group, computed:] == UNTOUCHED).all(), (tile, group)


def test_groups():
    contiguous_groups(Tile(128, 112, 2))
    masked_groups(Tile(64, 112, 2))
