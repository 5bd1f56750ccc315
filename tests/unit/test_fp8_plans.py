"""Plans of kernels: what is handed over is what the text asks for, fits, and is what the doors start."""

import math
import re

import pytest

from course_lib.fp8 import BLOCK, choice, jit
from course_lib.fp8.choice import KernelChoice, candidates, candidates_of_groups
from course_lib.fp8.choose import H200
from course_lib.fp8.tensor_maps import SIZES, TensorMap
from course_lib.fp8.tiles import SHARED_BYTES, TILES, Tile


def imports():
    global torch, gemm, launch, on_hopper, q, plan_for, Pointer, Problem, ONE, MASKED, CONTIGUOUS
    import torch

    from course_lib.fp8 import gemm, launch, on_hopper
    from course_lib.fp8 import quantise as q
    from course_lib.fp8.plans import Pointer, Problem, plan_for

    ONE, MASKED, CONTIGUOUS = problems()


def problems():
    """Return a dense problem, masked groups and contiguous ones, with made-up addresses."""
    from course_lib.fp8.plans import Problem

    addresses = [n << 36 for n in range(1, 6)]
    groups = {"groups": 3, "indices": 6 << 36}
    return (
        Problem(*addresses, rows=100, N=264, K=208),
        Problem(*addresses, rows=70, N=264, K=208, masked=True, **groups),
        Problem(*addresses, rows=384, N=264, K=208, **groups),
    )


def parameters(kernel):
    """(kind, name) of each parameter in the kernel's text."""
    text = re.search(rf"void {kernel}\((.*?)\) {{", jit.source_of(kernel), re.DOTALL)[1]
    found, kind = [], ""
    for part in re.sub(r"//[^\n]*", "", text).split(","):
        words = part.replace("*", " * ").split()
        if len(words) > 1:
            kind = "map" if "TensorMap" in words else "pointer" if "*" in words else "int"
        found.append((kind, words[-1]))
    return found


def kinds(plan):
    names = {"TensorMap": "map", "Pointer": "pointer", "int": "int"}
    return [names[type(argument).__name__] for argument in plan.arguments]


def test_arguments_and_constants_are_those_of_the_text():
    for kernel in jit.names():
        source = jit.source_of(kernel)
        for problem in (MASKED, CONTIGUOUS) if kernel == "v9_grouped" else (ONE,):
            plan, wanted = plan_for(kernel, problem), parameters(kernel)
            assert kinds(plan) == [kind for kind, _ in wanted], kernel
            assert plan.constants.get("MASKED", 0) == problem.masked, kernel
            for argument, (_, name) in zip(plan.arguments, wanted, strict=True):
                if isinstance(argument, int):
                    sizes = {"M": problem.rows, "M_padded": problem.padded_rows}
                    assert argument == sizes.get(name, getattr(problem, name, None)), (kernel, name)
                else:
                    assert argument.name == name.lower().removeprefix("map_"), (kernel, name)
                    assert argument.address == getattr(problem, argument.name), (kernel, name)
        for name in set(plan.constants) - {"WGMMA_N"}:
            assert re.search(rf"\b{name}\b", source), f"{kernel} has no use for {name}"
    (scaled,) = re.findall(r"constexpr int SCALED = (\d+);", jit.headers_of({})["types.cuh"])
    (alignment,) = re.findall(r"constexpr int ALIGNMENT = (\d+);", jit.source_of("v9_grouped"))
    assert int(scaled) == BLOCK == 128 and int(alignment) == gemm.ALIGNMENT == 128


def box_bytes(told):
    """Bytes that one order brings: the whole box, outside of the matrix too."""
    return math.prod(told.box) * SIZES[told.dtype]


def test_every_tile_and_every_ring_fits():
    for tile in TILES:
        for problem in (ONE, MASKED) if tile.BM > 128 else (ONE, MASKED, CONTIGUOUS):
            plan = plan_for("v9_grouped" if problem.groups else "v6_tuned", problem, tile)
            assert plan.threads in (256, 384) and plan.grid[0] % plan.cluster == 0, tile
            a, b, scales, d = plan.arguments[:4]
            stage = plan.cluster * box_bytes(a) + box_bytes(b) + box_bytes(scales)
            epilogue = tile.BN * 2 // d.swizzle * box_bytes(d)
            used = plan.constants["STAGES"] * stage + epilogue
            assert plan.shared_bytes == used <= SHARED_BYTES - 1024, tile
    for kernel in ("v2_tma_ring", "v3_warp_specialised", "v4_two_level", "v5_persistent"):
        plan = plan_for(kernel, ONE, Tile(128, 64))
        stage = sum(box_bytes(x) for x in plan.arguments if isinstance(x, TensorMap))
        assert plan.shared_bytes == plan.constants["STAGES"] * stage <= SHARED_BYTES - 1024, kernel
        assert plan.constants["STAGES"] >= 2, kernel


# -- what the doors start where there is a Hopper ------------------------------------------------------------


@pytest.fixture
def started(monkeypatch, tmp_path):
    """As if every tensor lay on an H200: plans are written down instead of started."""
    plans = []
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(launch, "missing", lambda x: None)
    monkeypatch.setattr(launch, "gpu", lambda device: H200)
    monkeypatch.setattr(launch, "launch", lambda plan, device: plans.append(plan))
    monkeypatch.setattr(choice, "best", lambda M, N, K, gpu: candidates(M, N, K, gpu)[0])
    return plans


def operands(*shape_of_a, N=264, groups=None, K=208):
    a, a_scales = q.quantise(torch.randn(*shape_of_a, K))
    b, b_scales = q.quantise(torch.randn(*([groups] if groups else []), N, K), q.SQUARES)
    return a, a_scales, b, b_scales


def handed_over(plan):
    """Return maps and pointers by name, and the sizes."""
    by_name = {x.name: x for x in plan.arguments if isinstance(x, TensorMap | Pointer)}
    return by_name, [x for x in plan.arguments if isinstance(x, int)]


def test_a_dense_product_is_one_launch_on_the_given_tensors(started, monkeypatch):
    a, _, b, b_scales = given = operands(100)
    out = torch.full((100, 264), torch.nan, dtype=torch.bfloat16)
    assert gemm.fp8_gemm(*given, out) is out
    (plan,) = started
    handed, sizes = handed_over(plan)
    assert (plan.kernel, sizes) == (candidates(100, 264, 208)[0].kernel, [100, 264, 208])
    assert plan.grid[0] <= H200.sms
    for name, x in (("a", a), ("b", b), ("d", out), ("b_scales", b_scales)):
        assert handed[name].address == x.data_ptr(), name
    best = KernelChoice("v6_tuned", Tile(64, 48))
    on_hopper.dense(*given, out, best)  # the choice can be given, and a search is listened to
    monkeypatch.setattr(choice, "best", lambda M, N, K, gpu: best)
    gemm.fp8_gemm(*given)
    for plan in started[1:]:
        assert (plan.constants["BM"], plan.constants["BN"], plan.grid) == (64, 48, (H200.sms, 1))


def test_groups_are_one_launch(started):
    a, a_scales, b, b_scales = operands(384, groups=3)
    indices = torch.tensor([2, -1, 0], dtype=torch.int32).repeat_interleave(128)
    gemm.fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, indices)
    plan = started.pop()
    handed, sizes = handed_over(plan)
    assert (plan.kernel, plan.constants["MASKED"], sizes) == ("v9_grouped", 0, [3, 384, 264, 208])
    assert handed["indices"].address == indices.data_ptr()
    assert handed["a"].dims == (208, 384, 1) and handed["b"].dims == (208, 3 * 264)
    assert handed["a_scales"].dims == (384, 2) and handed["d"].dims == (264, 384, 1)
    given, counts = operands(3, 70, groups=3), torch.tensor([70, 0, 3], dtype=torch.int32)
    for expected in (0, 5, 64, 10_000):
        gemm.fp8_gemm_grouped_masked(*given, counts, expected)
        plan = started.pop()
        handed, sizes = handed_over(plan)
        assert (plan.kernel, plan.constants["MASKED"], sizes) == ("v9_grouped", 1, [3, 70, 264, 208])
        assert handed["a"].dims == (208, 70, 3) and handed["d"].dims == (264, 70, 3)
        assert handed["a_scales"].dims == (72, 3 * 2)
        best = candidates_of_groups(3, min(max(expected, 1), 70), 264, 208, True)[0]
        assert plan.constants["BN"] == best.tile.BN, expected
