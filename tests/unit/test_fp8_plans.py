"""Plans of kernels: what is handed over is what the text asks for, and fits into a multiprocessor."""

import re
from dataclasses import replace

import pytest
import torch

from course_lib.fp8 import BLOCK, gemm, jit
from course_lib.fp8.plans import Plan, Pointer, Problem, plan_for
from course_lib.fp8.quantise import m_major
from course_lib.fp8.tensor_maps import TensorMap
from course_lib.fp8.tiles import SHARED_BYTES, TILES, Tile

DENSE = [name for name in jit.names() if name != "v9_grouped"]
ONE = Problem(*(n << 36 for n in range(1, 6)), rows=100, N=264, K=208, padded_rows=100)
MASKED = Problem(
    *(n << 36 for n in range(1, 6)),
    rows=70,
    N=264,
    K=208,
    padded_rows=72,
    groups=3,
    indices=6 << 36,
    masked=True,
)
CONTIGUOUS = Problem(
    *(n << 36 for n in range(1, 6)), rows=384, N=264, K=208, padded_rows=384, groups=3, indices=6 << 36
)


def parameters(kernel):
    """(kind, name) of each parameter in the kernel's text."""
    text = re.search(rf"void {kernel}\((.*?)\) {{", jit.source_of(kernel), re.DOTALL)[1]
    text = re.sub(r"//[^\n]*", "", text)
    found = []
    kind = ""
    for part in text.split(","):
        words = part.replace("*", " * ").split()
        if len(words) > 1:
            kind = "map" if "TensorMap" in words else "pointer" if "*" in words else "int"
        found.append((kind, words[-1]))
    return found


def kinds(plan: Plan):
    return [
        "map" if isinstance(x, TensorMap) else "pointer" if isinstance(x, Pointer) else "int"
        for x in plan.arguments
    ]


@pytest.mark.parametrize("kernel", jit.names())
@pytest.mark.parametrize("masked", [False, True])
def test_arguments_are_those_of_the_text_in_its_order(kernel, masked):
    problem = (MASKED if masked else CONTIGUOUS) if kernel == "v9_grouped" else ONE
    plan, wanted = plan_for(kernel, problem), parameters(kernel)
    assert kinds(plan) == [kind for kind, _ in wanted]
    assert plan.constants.get("MASKED", 0) == (masked and kernel == "v9_grouped")
    for argument, (_, name) in zip(plan.arguments, wanted, strict=True):
        if isinstance(argument, int):
            sizes = {"M": problem.rows, "M_padded": problem.padded_rows}
            assert argument == sizes.get(name, getattr(problem, name, None))
        else:
            assert argument.name == name.lower().removeprefix("map_")
            assert argument.address == getattr(problem, argument.name)


@pytest.mark.parametrize("kernel", jit.names())
def test_constants_are_those_that_the_text_uses(kernel):
    problem = MASKED if kernel == "v9_grouped" else ONE
    constants = plan_for(kernel, problem).constants
    text = jit.source_of(kernel) + "".join(jit.headers_of(constants).values())
    for name in set(constants) - {"WGMMA_N"}:
        assert re.search(rf"\b{name}\b", jit.source_of(kernel)), f"{kernel} has no use for {name}"
    for name in ("BM", "BN", "STAGES", "CLUSTER", "BAND", "MASKED", "ROWS"):
        used = re.search(rf"\b{name}\b", re.sub(r"//[^\n]*", "", jit.source_of(kernel)))
        made = re.search(rf"constexpr int [^;]*\b{name} =", text)
        assert bool(used) == bool(made or name in constants), name


def test_numbers_that_text_and_library_both_have_are_the_same():
    (scaled,) = re.findall(r"constexpr int SCALED = (\d+);", jit.headers_of({})["types.cuh"])
    (alignment,) = re.findall(r"constexpr int ALIGNMENT = (\d+);", jit.source_of("v9_grouped"))
    assert int(scaled) == BLOCK == 128 and int(alignment) == gemm.ALIGNMENT == 128


def maps(plan: Plan):
    return {x.name: (x.dims, x.box) for x in plan.arguments if isinstance(x, TensorMap)}


def test_what_the_copy_engine_is_told():
    """N = 264 and K = 208: two begun blocks of K, and rows of scales are filled up to a multiple of 4."""
    tile = Tile(128, 112, 2)
    assert maps(plan_for("v6_tuned", ONE, tile)) == {
        "a": ((208, 100), (128, 64)),  # half of the cluster's rows
        "b": ((208, 264), (128, 112)),
        "a_scales": ((100, 2), (128, 1)),
        "d": ((264, 100), (16, 128)),  # panels of 32 bytes
    }
    assert maps(plan_for("v9_grouped", MASKED, tile)) == {
        "a": ((208, 70, 3), (128, 64, 1)),
        "b": ((208, 3 * 264), (128, 112)),
        "a_scales": ((72, 3 * 2), (128, 1)),
        "d": ((264, 70, 3), (16, 128, 1)),
    }
    assert maps(plan_for("v9_grouped", CONTIGUOUS, tile)) == {
        "a": ((208, 384, 1), (128, 64, 1)),
        "b": ((208, 3 * 264), (128, 112)),
        "a_scales": ((384, 2), (128, 1)),
        "d": ((264, 384, 1), (16, 128, 1)),
    }
    assert maps(plan_for("v8_swap_ab", ONE, Tile(128, 32))) == {
        "a": ((208, 100), (128, 32)),  # tokens
        "b": ((208, 264), (128, 128)),  # weights
        "a_scales": ((100, 2), (32, 1)),
        "d": ((264, 100), (64, 32)),
    }


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_fits(tile):
    for problem in (ONE, MASKED) if tile.BM > 128 else (ONE, MASKED, CONTIGUOUS):
        kernel = "v9_grouped" if problem.groups else "v6_tuned"
        plan = plan_for(kernel, problem, tile)
        assert plan.shared_bytes + 1024 <= SHARED_BYTES
        assert plan.threads in (256, 384) and plan.grid[0] % plan.cluster == 0
        a, b, scales, d = plan.arguments[:4]
        stage = plan.cluster * a.box_bytes + b.box_bytes + scales.box_bytes
        way_out = tile.BN * 2 // d.swizzle * d.box_bytes
        assert plan.shared_bytes == plan.constants["STAGES"] * stage + way_out


@pytest.mark.parametrize("kernel", ["v2_tma_ring", "v3_warp_specialised", "v4_two_level", "v5_persistent"])
@pytest.mark.parametrize("BM", [64, 128])
def test_rings_fit(kernel, BM):
    plan = plan_for(kernel, ONE, Tile(BM, 64))
    maps = [x for x in plan.arguments if isinstance(x, TensorMap)]
    assert plan.shared_bytes == plan.constants["STAGES"] * sum(one.box_bytes for one in maps)
    assert plan.shared_bytes + 1024 <= SHARED_BYTES and plan.constants["STAGES"] >= 2


def test_threads_are_those_that_multiply_and_a_warpgroup_that_orders():
    threads = {name: plan_for(name, ONE).threads for name in DENSE}
    assert threads == {
        **{"probe": 128, "v0_naive": 256, "v1_mma": 128, "v1_wgmma": 128},
        "v2_tma_ring": 256,  # here those who multiply order as well
        **dict.fromkeys(("v3_warp_specialised", "v4_two_level", "v5_persistent", "v6_tuned"), 384),
        "v8_swap_ab": 256,
    }
    assert plan_for("v8_swap_ab", ONE, Tile(128, 48)).threads == 384
    assert plan_for("v9_grouped", MASKED, Tile(64, 64)).threads == 256


@pytest.mark.parametrize(("rows", "tokens"), [(64, 16), (128, 48), (128, 128)])
def test_tokens_and_weights_fit(rows, tokens):
    """Scales of tokens begin at multiples of 128 bytes, and a panel of D of each 64 rows goes out at once."""
    plan = plan_for("v8_swap_ab", ONE, Tile(rows, tokens))
    stage = (rows + tokens) * 128 + -(-tokens // 32) * 128
    way_out = rows // 64 * tokens * 128
    assert plan.shared_bytes == plan.constants["STAGES"] * stage + way_out <= SHARED_BYTES - 1024
    assert plan.constants["STAGES"] == 8 or plan.shared_bytes + stage > SHARED_BYTES - 1024


def test_the_grid_covers_d():
    for kernel, tile in (
        ("v0_naive", (16, 16)),
        ("v1_mma", (64, 64)),
        ("v1_wgmma", (64, 128)),
        ("v4_two_level", (128, 128)),
    ):
        plan = plan_for(kernel, ONE)
        assert plan.grid == (-(-264 // tile[1]), -(-100 // tile[0]))
    for kernel, problem in (("v5_persistent", ONE), ("v6_tuned", ONE), ("v9_grouped", MASKED)):
        assert plan_for(kernel, problem, Tile(128, 128, 2), sms=131).grid == (130, 1)
    assert plan_for("v8_swap_ab", ONE, sms=7).grid == (7, 1)
    assert plan_for("v8_swap_ab", ONE).grid == (2 * 5, 1)  # 64 tokens and 64 rows of weights a tile


@pytest.mark.parametrize(("rows", "tokens"), [(1, 16), (16, 16), (17, 32), (64, 64), (500, 64)])
def test_tokens_come_in_sixteens(rows, tokens):
    problem = Problem(0, 0, 0, 0, 0, rows=rows, N=64, K=128, padded_rows=-(-rows // 4) * 4)
    plan = plan_for("v8_swap_ab", problem)
    assert plan.constants["WGMMA_N"] == tokens and plan.shared_bytes + 1024 <= SHARED_BYTES


def test_a_problem_from_tensors():
    a, b, d = (
        torch.zeros(6, 256, dtype=torch.uint8),
        torch.zeros(24, 256, dtype=torch.uint8),
        torch.zeros(6, 24),
    )
    scales = torch.ones(6, 2)
    with pytest.raises(
        ValueError, match=r"a_scales is not laid out for the copy engine: m_major\(a_scales\)"
    ):
        Problem.of(a, scales, b, torch.ones(1, 2), d)
    with pytest.raises(
        ValueError, match=r"b_scales has strides \(1, 2\), but its rows must follow each other"
    ):
        Problem.of(a, m_major(scales), b, torch.ones(2, 2).T, d)
    problem = Problem.of(a, m_major(scales), b, torch.ones(1, 2), d)
    assert (problem.rows, problem.N, problem.K, problem.padded_rows, problem.blocks) == (6, 24, 256, 8, 2)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="kernel is 'v7', but there are plans for probe, v0_naive"):
        plan_for("v7", ONE)
    with pytest.raises(ValueError, match="v9_grouped computes groups, and this is not"):
        plan_for("v9_grouped", ONE)
    with pytest.raises(ValueError, match="v6_tuned computes one product, and this is not"):
        plan_for("v6_tuned", MASKED)
    with pytest.raises(
        ValueError, match="v4_two_level has tiles of 64 or 128 rows and, with scales, of widths"
    ):
        plan_for("v4_two_level", ONE, Tile(128, 112))
    with pytest.raises(ValueError, match="v5_persistent has tiles of 64 or 128 rows"):
        plan_for("v5_persistent", ONE, Tile(256, 128))
    with pytest.raises(ValueError, match="v8_swap_ab has 64 or 128 rows of weights"):
        plan_for("v8_swap_ab", ONE, Tile(128, 144))
    with pytest.raises(
        ValueError, match="contiguous groups begin at multiples of 128 rows, and the tile has 256"
    ):
        plan_for("v9_grouped", CONTIGUOUS, Tile(256, 128))


@pytest.mark.parametrize("N", [16, 128, 256])
def test_the_probe_takes_as_many_columns_as_b_has_rows(N):
    plan = plan_for("probe", replace(ONE, N=N, K=32, rows=64))
    assert plan.constants == {"BN": N} and plan.shared_bytes == (64 + N) * 128
    assert [one.box for one in plan.arguments[:2]] == [(128, 64), (128, N)]


def test_a_gpu_with_one_multiprocessor_still_gets_a_pair():
    grids = [plan_for(name, ONE, Tile(64, 64, 2), sms=1).grid for name in ("v5_persistent", "v6_tuned")]
    assert grids == [(2, 1), (2, 1)]
    assert plan_for("v9_grouped", CONTIGUOUS, Tile(64, 64, 2), sms=1).grid == (2, 1)
