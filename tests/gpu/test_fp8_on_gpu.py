"""The FP8 kernels on a Hopper GPU, in the order in which they can be trusted: one instruction, the ladder.

Every test, and every kernel of the ladder, has a process of its own, and every product is waited for with a
limit: a kernel that hangs names its test and case within seconds, and what follows finds a GPU that is free.
"""

import os
from functools import partial

import pytest
from alone import done
from each import each

from course_lib.fp8 import choice, errors, jit
from course_lib.fp8.choice import KernelChoice, candidates
from course_lib.fp8.tiles import TILES, Tile

pytestmark = pytest.mark.gpu

UNSCALED = ("v1_wgmma", "v2_tma_ring", "v3_warp_specialised")
SCALED = ("v0_naive", "v4_two_level", "v5_persistent", "v6_tuned", "v8_swap_ab")
SHAPES = (
    *((1, 16, 128), (7, 8, 16), (63, 24, 240), (64, 128, 128), (65, 136, 256), (127, 120, 144)),
    *((129, 264, 208), (128, 4096, 7168), (300, 2112, 7168), (4096, 4096, 512)),
)


def imports():
    global torch, gemm, launch, searching, Problem, plan_for, accumulate_e4m3, gemm_e4m3
    global ROW_BLOCKS, SQUARES, m_major, quantise, fp8_products, random, operands
    import torch
    from tools import fp8_products

    from course_lib.fp8 import gemm, launch, searching
    from course_lib.fp8.plans import Problem, plan_for
    from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, m_major, quantise
    from course_lib.simulators.tensor_core import accumulate_e4m3, gemm_e4m3

    random, operands = (partial(make, device="cuda") for make in (fp8_products.random, fp8_products.operands))


def run(kernel, a, a_scales, b, b_scales, tile=None, sms=None):
    """Return what a rung computes, in a D that was full of NaN; `sms`: how many blocks stay."""
    d = torch.full((len(a), len(b)), torch.nan, dtype=torch.bfloat16, device="cuda")
    laid_out = m_major(a_scales)  # must live until the kernel is done
    problem = Problem.of(a, laid_out, b, b_scales, d)
    launch.launch(plan_for(kernel, problem, tile, sms or launch.gpu(a.device).sms), a.device)
    done()
    return d


def assert_right(d, *given):
    done()  # a result that never comes is not waited for
    fp8_products.assert_right(d, *given)


def run_unscaled(kernel, a, b):
    """Return what a rung computes of codes alone: those with scales get ones."""
    blocks = -(-a.shape[1] // 128)
    ones_a, ones_b = (torch.ones(n, blocks, device="cuda") for n in (len(a), -(-len(b) // 128)))
    return run(kernel, a, ones_a, b, ones_b)


# -- one instruction -----------------------------------------------------------------------------------------


def one_wgmma(a, b, c):
    """Return c + a b^T, float32 (64, N), as one instruction computes it on the GPU."""
    d = c.clone()
    addresses = (a.data_ptr(), 0, b.data_ptr(), 0, d.data_ptr())
    problem = Problem(*addresses, rows=64, N=len(b), K=32)
    launch.launch(plan_for("probe", problem), a.device)
    done()
    return d


@each("N", [16, 64, 128, 256])
@each("spread", [0, 2, 4])
@each("start", [0.0, 1.0, 1e4, -3e-3])
def test_one_wgmma_is_the_simulators_step_to_the_bit(N, spread, start):
    """Terms of sizes near and far, to accumulators that are 0, larger, much larger, of the other sign."""
    a = (random(64, 32, seed=N) * torch.exp2(spread * random(64, 32, seed=N + 1))).clamp(-448, 448)
    b = (random(N, 32, seed=N + 2) * torch.exp2(spread * random(N, 32, seed=N + 3))).clamp(-448, 448)
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    c = start * random(64, N, seed=N + 4) if start else torch.zeros(64, N, device="cuda")
    model = accumulate_e4m3(*(x.float().cpu().numpy() for x in (a, b, c)))
    assert torch.equal(one_wgmma(a, b, c).cpu(), torch.from_numpy(model))


def test_every_pair_of_codes_multiplies_as_the_simulator_says():
    bits = torch.arange(256, dtype=torch.uint8)
    codes = bits[bits.view(torch.float8_e4m3fn).float().isfinite()].view(torch.float8_e4m3fn)
    for start in range(0, len(codes), 64):
        a, b = torch.zeros(64, 32).to(codes.dtype), torch.zeros(256, 32).to(codes.dtype)
        part = codes[start : start + 64]
        a.view(torch.uint8)[: len(part), 7] = part.view(torch.uint8)
        b.view(torch.uint8)[: len(codes), 7] = codes.view(torch.uint8)
        d = one_wgmma(a.cuda(), b.cuda(), torch.zeros(64, 256, device="cuda")).cpu()
        assert torch.equal(d[: len(part), : len(codes)], part.float()[:, None] * codes.float()[None, :])


@each("K", [64, 128, 512, 4096])
def test_a_long_sum_loses_what_the_simulator_loses(K):
    a, b = (random(64, K, seed=K, kind="relu"), random(128, K, seed=K + 1, kind="absolute"))
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    d = run_unscaled("v1_wgmma", a, b)
    model = gemm_e4m3(a.float().cpu().numpy(), b.float().cpu().numpy())
    assert torch.equal(d.cpu(), torch.from_numpy(model).bfloat16())


# -- the ladder ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", UNSCALED)
@each("shape", SHAPES)
def test_rungs_without_scales(kernel, shape):
    M, N, K = shape
    a, b = (random(M, K).to(torch.float8_e4m3fn), random(N, K, seed=1).to(torch.float8_e4m3fn))
    d = run_unscaled(kernel, a, b)
    exact, size = (torch.from_numpy(x) for x in errors.exact(a.double().cpu(), b.double().cpu()))
    assert not d.isnan().any()
    # never promoted: a step cuts off up to 2^-13 of the largest term so far, and there are K / 32 steps
    assert ((d.double().cpu() - exact).abs() <= 2.0**-8 * exact.abs() + (K / 32 + 2) * 2.0**-13 * size).all()


def test_mma_sync_promotes_every_32():
    """Two HMMAs from zero and an FADD for each step: what the disassembly says, seen in the sum."""
    a, b = random(64, 4096, kind="relu"), random(64, 4096, seed=1, kind="absolute")
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    d = run_unscaled("v1_mma", a, b)
    exact, _ = errors.exact(a.double().cpu(), b.double().cpu())
    assert abs(errors.mean_signed_error(d.double().cpu(), exact)) < errors.MOST_BIAS


@pytest.mark.parametrize("kernel", SCALED)
@each("shape", SHAPES)
def test_rungs_with_scales(kernel, shape):
    given = operands(*shape)
    assert_right(run(kernel, *given), *given)


@each("tile", TILES)
def test_every_tile_is_right(tile):
    given = operands(300, 520, 400)
    assert_right(run("v6_tuned", *given, tile), *given)
    given = operands(1100, 1064, 1040)
    assert_right(run("v6_tuned", *given, tile, sms=4), *given)  # many tiles a block, many laps of the ring


@each("M", [1, 16, 17, 63, 64, 65, 100, 128])
def test_few_rows(M):
    given = operands(M, 264, 400)
    for one in candidates(M, 264, 400)[:40]:
        assert_right(run(one.kernel, *given, one.tile), *given)


@pytest.mark.parametrize("kernel", ["v4_two_level", "v5_persistent", "v6_tuned", "v8_swap_ab"])
def test_sums_of_one_sign_are_promoted_every_128(kernel):
    """No promotion loses 3.4 % here, every 512 loses 0.2 %: calc_diff alone sees neither."""
    a, a_scales = quantise(random(64, 16384, kind="relu"), ROW_BLOCKS)
    b, b_scales = quantise(random(256, 16384, seed=1, kind="absolute"), SQUARES)
    d = run(kernel, a, a_scales, b, b_scales)
    exact, _ = fp8_products.exact_of(a, a_scales, b, b_scales)
    assert abs(errors.mean_signed_error(d.double().cpu(), exact)) < errors.MOST_BIAS


@pytest.mark.parametrize("kernel", SCALED)
def test_the_same_again_is_the_same_to_the_bit(kernel):
    given = operands(300, 520, 1040)
    first = run(kernel, *given)
    assert all(torch.equal(run(kernel, *given), first) for _ in range(20))


@each("columns", [1, 3, 5, 17, 33])
def test_pairs_of_blocks_never_hang_where_a_tile_is_left_over(columns):
    for tile in (Tile(128, 128, 2), Tile(64, 64, 2), Tile(256, 64, 2)):
        given = operands(1000, tile.BN * columns, 256)
        assert_right(run("v6_tuned", *given, tile), *given)


# -- through the doors ---------------------------------------------------------------------------------------


@each("shape", SHAPES)
def test_the_door_is_right(shape):
    given = operands(*shape)
    assert_right(gemm.fp8_gemm(*given), *given)


LOW_TILES = [Tile(64, 64, 2), Tile(128, 128, 2), Tile(128, 160)]
GROUPED = [(tile, masked) for masked in (False, True) for tile in LOW_TILES] + [(Tile(256, 128, 2), True)]


@each("grouped", GROUPED)
def test_groups_for_few_blocks_that_stay(grouped):
    """So few blocks that each walks through many tiles and groups, as large products make all of them do."""
    tile, masked = grouped
    shape, counts = ((3, 300), [300, 0, 129]) if masked else ((640,), [2, 2, -1, 0, 1])
    a, a_scales, b, b_scales = operands(shape[-1], 520, 1040, groups=3, rows_in_groups=masked)
    indices = torch.tensor(counts, dtype=torch.int32, device="cuda")
    indices = indices if masked else indices.repeat_interleave(128)
    d = torch.zeros((*shape, 520), dtype=torch.bfloat16, device="cuda")
    laid_out = m_major(a_scales)
    problem = Problem.of(a, laid_out, b, b_scales, d, indices)
    launch.launch(plan_for("v9_grouped", problem, tile, 4), a.device)
    done()
    for place, count in enumerate(counts):
        part = (place, slice(count or None)) if masked else slice(128 * place, 128 * (place + 1))
        group = place if masked else count
        if count > 0 or (not masked and count == 0):
            assert_right(d[part], a[part], a_scales[part], b[group], b_scales[group])
        else:
            assert (d[part] == 0).all()


def test_contiguous_groups():
    rows = torch.tensor([2] * 128 + [-1] * 128 + [0] * 256 + [2] * 40, dtype=torch.int32, device="cuda")
    a, a_scales, b, b_scales = operands(len(rows), 264, 400, groups=3)
    out = torch.full((len(rows), 264), 7.0, device="cuda").bfloat16()
    d = gemm.fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, rows, out)
    for start in range(0, len(rows), 128):
        part, group = slice(start, start + 128), int(rows[start])
        if group < 0:
            assert (d[part] == 7).all()
        else:
            assert_right(d[part], a[part], a_scales[part], b[group], b_scales[group])


def assert_groups_right(d, counts, a, a_scales, b, b_scales):
    for group, count in enumerate(counts):
        if count:
            given = (a[group, :count], a_scales[group, :count], b[group], b_scales[group])
            assert_right(d[group, :count], *given)


@each("room", [70, 100, 256])
def test_masked_groups_never_touch_their_neighbours(room):
    counts = torch.tensor([room, 0, 33, room], dtype=torch.int32, device="cuda")
    a, a_scales, b, b_scales = operands(room, 264, 400, groups=4, rows_in_groups=True)
    whole = torch.full((6, room, 264), torch.nan, device="cuda").bfloat16()
    d = gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, 32, whole[1:5])
    assert_groups_right(d, counts.tolist(), a, a_scales, b, b_scales)
    assert d[1].isnan().all()  # behind a group whose last tile sticks out, and itself skipped
    assert whole[0].isnan().all() and whole[5].isnan().all()


def test_masked_counts_may_change_in_a_captured_graph():
    counts = torch.tensor([5, 60], dtype=torch.int32, device="cuda")
    given = operands(64, 264, 256, groups=2, rows_in_groups=True)
    a, a_scales, b, b_scales = given
    a_scales = m_major(a_scales)
    out = torch.zeros(2, 64, 264, device="cuda").bfloat16()
    gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, 32, out)  # compiles and loads
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, 32, out)
    for counted in ([64, 1], [0, 33]):
        counts.copy_(torch.tensor(counted, dtype=torch.int32))
        out.zero_()
        graph.replay()
        done()
        assert_groups_right(out, counted, a, a_scales, b, b_scales)


def test_work_keeps_its_order_on_torchs_streams():
    a, a_scales, b, b_scales = operands(512, 512, 512)
    gemm.fp8_gemm(a, a_scales, b, b_scales)
    late = torch.zeros_like(b_scales)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(20_000_000)
        late.copy_(b_scales)
        d = gemm.fp8_gemm(a, a_scales, b, late)
        torch.cuda.current_stream().synchronize()
    assert_right(d, a, a_scales, b, b_scales)


def test_a_search_ends_with_a_choice_that_the_door_then_uses(monkeypatch, tmp_path):
    from course_lib.measure.gpu_timing import samples

    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setenv(jit.FOLDER_VARIABLE, os.environ.get(jit.FOLDER_VARIABLE, str(tmp_path)))
    monkeypatch.setattr(choice, "_known", {})
    given = operands(256, 2112, 512)
    d = torch.empty(256, 2112, dtype=torch.bfloat16, device="cuda")
    laid_out = (given[0], m_major(given[1]), *given[2:])
    found = searching.of(
        laid_out, d, searching.exact_of(*given), lambda starts: samples(starts, rounds=3), tried=4
    )
    assert len(found) == 4 and all(isinstance(one, KernelChoice) for one in found)
    assert all(1e-6 < seconds < 1e-2 for seconds in found.values())
    assert choice.best(256, 2112, 512, launch.gpu(d.device)) == next(iter(found))
    assert_right(gemm.fp8_gemm(*given), *given)
