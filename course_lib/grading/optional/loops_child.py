"""Tries a learner's kernel, in a process of its own: a text in C++ may bring down or hang what runs it.

Reads {"fetch": ..., "multiply": ...} and writes a line of JSON for each step, as it comes:
{"step": "compiler" | "model" | "gpu", "right": true | false | null, "says": ...}. null: not possible here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import torch

from course_lib.fp8 import jit, launch, on_cpu
from course_lib.fp8.plans import Plan, Problem, plan_for
from course_lib.fp8.quantise import m_major
from course_lib.fp8.tiles import Tile
from course_lib.grading.optional.kernel_text import KERNEL, with_loops
from course_lib.measure import machine

#: M, N, K and the tile's width. Of 128 x 128 the ring has 7 stages: 17 blocks go round twice and a bit.
SMALL = ((128, 128, 128, 128), (64, 128, 2064, 128), (200, 136, 1168, 64))
LARGE = ((129, 264, 208), (300, 2112, 7168), (4096, 512, 4096), (4096, 4096, 7168))
ORDERS = 4  # of events, each from another seed
LIMIT_S = 20.0
UNTOUCHED = -777.0
#: What a problem of the model mostly comes from.
REASONS = {
    "Everybody waits.": "Look at the parities of both waits, at the bytes that are announced, and at who "
    "arrives at `empty`: one lane of every warp, once for each block.",
    "A barrier got more arrivals than its phase has.": "`empty` waits for one lane of every warp that "
    "multiplies, `full` for one `barrier_expect`.",
    "wgmma began without a fence.": "`wgmma_fence()` comes before the first `wgmma_k32` of each block.",
    "A copy was on its way when its block ended.": "Who multiplies must wait for every copy that is ordered.",
}

Say = Callable[[str, bool | None, str], None]


def main() -> None:
    """Judge what stands on the standard input."""
    given = json.load(sys.stdin)
    source = with_loops(given["fetch"], given["multiply"])
    steps = (("compiler", compiled), ("model", on_model), ("gpu", on_gpu))
    for name, step in steps:
        right, says = step(source)
        print(json.dumps({"step": name, "right": right, "says": says}), flush=True)
        if right is False:
            return


def compiled(source: str) -> tuple[bool | None, str]:
    """Whether NVIDIA's compiler takes the text, without spills and without waits of its own."""
    if sentence := machine.missing("nvrtc"):
        return None, f"Not compiled for Hopper: {sentence}"
    plan, *_ = product(*SMALL[0])
    try:
        binary = jit.build(KERNEL, source=source, keep=False, **plan.constants)
    except jit.CannotBuild as problem:
        return False, str(problem)
    return True, (
        f"{binary.compiler} takes it for {jit.ARCHITECTURE}: {binary.registers} registers a thread, "
        "nothing spilled, no wait put in."
    )


def on_model(source: str) -> tuple[bool | None, str]:
    """Whether it computes the product on the model of Hopper, whatever the order of events."""
    if sentence := on_cpu.missing():
        return None, f"Not run on the model: {sentence}"
    for shape in SMALL:
        plan, whole, wanted, what = product(*shape)
        for seed in range(ORDERS):
            whole.fill_(UNTOUCHED)
            try:
                problem = on_cpu.run(plan, seed, source)
            except on_cpu.NotCpp as refused:
                return False, str(refused)
            if problem:
                return False, f"On the model of Hopper, {what}: {problem} {REASONS.get(problem, '')}".rstrip()
            if sentence := difference(whole, wanted):
                return False, f"On the model of Hopper, {what}: {sentence}"
    return True, f"On the model of Hopper: {len(SMALL)} products, {ORDERS} orders of events each, all right."


def on_gpu(source: str) -> tuple[bool | None, str]:
    """Whether it computes the product on the GPU, and how fast beside the course's loops."""
    if sentence := launch.missing_here():
        return None, f"Not run on a GPU: {sentence}"
    with launch.ends_within(6 * LIMIT_S):
        for shape in LARGE:
            plan, whole, wanted, what = product(*shape, 128, device="cuda")
            start_of(plan, source)()
            launch.finish(whole.device, LIMIT_S)
            if sentence := difference(whole, wanted):
                return False, f"On the GPU, {what}: {sentence}"
        return True, f"On the GPU: {len(LARGE)} products, all right. {speed(plan, source)}"


def start_of(plan: Plan, source: str) -> Callable[[], None]:
    """Return a function that starts a text in the place of the plan's kernel."""
    own = jit.build(KERNEL, source=source, **plan.constants).cubin

    def instead(_: bytes) -> bytes:
        return own

    return lambda: launch.launch(plan, torch.device("cuda"), instead)


def speed(plan: Plan, source: str) -> str:
    """Return how fast the learner's kernel and the course's are, in turns, with an empty L2 cache."""
    from course_lib.measure.gpu_timing import l2_flush, samples

    M, N, K = plan.arguments[-3:]
    starts = {"yours": start_of(plan, source), "ours": lambda: launch.launch(plan, torch.device("cuda"))}
    taken = samples(starts, budget_s=3.0, flush=l2_flush())
    yours, ours = (2e-12 * M * N * K / taken[name].median_s for name in starts)
    return f"{M} x {N} x {K}: yours {yours:.0f} TFLOP/s, the course's {KERNEL} {ours:.0f}."


def product(
    M: int, N: int, K: int, BN: int, device: str = "cpu"
) -> tuple[Plan, torch.Tensor, torch.Tensor, str]:
    """Return a plan, where its result will be (four rows before and behind), what it must be, and its name.

    Of -1, 0 and 1 every partial sum is exact, on Hopper's accumulator too, up to K = 8192.
    """
    operands = [_signs(rows, K, seed, device) for seed, rows in enumerate((M, N))]
    a, b = operands
    blocks = -(-K // 128)
    a_scales = m_major(torch.ones(M, blocks, device=device))
    b_scales = torch.ones(-(-N // 128), blocks, device=device)
    whole = torch.full((M + 8, N), UNTOUCHED, dtype=torch.bfloat16, device=device)
    plan = plan_for(KERNEL, Problem.of(a, a_scales, b, b_scales, whole[4:-4]), Tile(128, BN))
    whole.operands = (a, a_scales, b, b_scales)  # the plan has only their addresses
    wanted = (a.float() @ b.float().T).bfloat16()
    return plan, whole, wanted, f"{M} x {N} x {K}, tiles of 128 x {BN}"


def _signs(rows: int, K: int, seed: int, device: str) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 2, (rows, K), generator=random).float().to(device, torch.float8_e4m3fn)


def difference(whole: torch.Tensor, wanted: torch.Tensor) -> str:
    """Return a sentence for a result that is not the product, "" for one that is."""
    got = whole[4:-4]
    if (whole[:4] != UNTOUCHED).any() or (whole[-4:] != UNTOUCHED).any():
        return "memory beside D was written to."
    if torch.equal(got, wanted):
        return ""
    wrong = (got != wanted).cpu()
    row, column = (int(x) for x in wrong.nonzero()[0])
    value = float(got[row, column])
    yours = "nothing was written" if value == UNTOUCHED else f"yours is {value:g}"
    share = f"{int(wrong.sum())} of {wrong.numel()} elements are wrong"
    return f"{share}; at [{row}, {column}] {yours}, expected {float(wanted[row, column]):g}."


if __name__ == "__main__":
    main()
