"""Tries a learner's kernel, in a process of its own: a text in C++ may bring down or hang what runs it.

Reads {"fetch": ..., "multiply": ...} and writes a line of JSON for each step, as it comes:
{"step": "compiler" | "model" | "gpu", "right": true | false | null, "says": ...}. null: not possible here.
The model's line has "overlaps", too: whether a product began while the one before it was in flight.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable

from course_lib.fp8 import jit, launch, on_cpu
from course_lib.fp8.exact_products import ExactProduct, exact_product
from course_lib.fp8.tiles import Tile
from course_lib.grading.optional.kernel_text import KERNEL, with_loops
from course_lib.measure import machine

#: M, N, K and the tile's width. Of 128 x 128 the ring has 7 stages: 17 blocks go round twice and a bit.
SMALL = ((128, 128, 128, 128), (64, 128, 2064, 128), (200, 136, 1168, 64))
LARGE = ((129, 264, 208, 64), (300, 2112, 7168, 128), (4096, 512, 4096, 128), (4096, 4096, 7168, 128))
ORDERS = 4  # of events, each from another seed
TIMES = 20  # that each product is computed on a GPU: a race is lost now and then only
MODEL_S = 60  # the model's products take a few seconds
LIMIT_S = 20.0
#: What a problem of the model mostly comes from.
REASONS = {
    "Everybody waits.": "Look at the parities of both waits, at the bytes that are announced, and at who "
    "arrives at `empty`: one lane of every warp, once for each block.",
    "A barrier got more arrivals than its phase has.": "`empty` waits for one lane of every consumer "
    "warp, `full` for one `barrier_expect`.",
    "wgmma began without a fence.": "`wgmma_fence()` comes before the first `wgmma_k32` of each block.",
    "Products were never committed.": "`wgmma_commit()` comes after the last `wgmma_k32` of each block.",
    "A barrier was used that does not exist.": "`full` and `empty` have one for each stage, from 0 on.",
    "A thread ended while its products were in flight.": "`wgmma_wait<0>()` is wanted after the last block.",
    "A stage was written while a product read it.": "`wgmma_wait<1>()` says that the products of the block "
    "before are over: report that block's stage empty, not this one's; and `fetch` waits for `empty`.",
    "A copy was on its way when its block ended.": "The consumers must wait for every copy that is ordered.",
}


def main() -> None:
    """Judge what stands on the standard input."""
    given = json.load(sys.stdin)
    source = with_loops(given["fetch"], given["multiply"])
    steps = (("compiler", compiled), ("model", on_model), ("gpu", on_gpu))
    for name, step in steps:
        right, says, *more = step(source)
        told = {"step": name, "right": right, "says": says} | ({"overlaps": more[0]} if more else {})
        print(json.dumps(told), flush=True)
        if right is False:
            return


def compiled(source: str) -> tuple[bool | None, str]:
    """Whether NVIDIA's compiler takes the text, without spills and without waits of its own."""
    if sentence := machine.missing("nvrtc"):
        return None, f"Not compiled for Hopper: {sentence}"
    constants = product_of(SMALL[0]).plan.constants
    try:
        binary = jit.build(KERNEL, source=source, keep=False, **constants)
    except jit.CannotBuild as problem:
        return False, str(problem)
    return True, (
        f"{binary.compiler} takes it for {jit.ARCHITECTURE}: {binary.registers} registers a thread, "
        "nothing spilled, no wait put in."
    )


def on_model(source: str) -> tuple[bool | None, str] | tuple[bool, str, bool]:
    """Whether it computes the product on the model of Hopper, and whether its products overlap."""
    if sentence := on_cpu.missing():
        return None, f"Not run on the model: {sentence}"
    signal.alarm(MODEL_S)  # the default answer to it ends this process: a loop in C++ heeds no other
    try:
        return _in_all_orders(source)
    finally:
        signal.alarm(0)


def _in_all_orders(source: str) -> tuple[bool, str] | tuple[bool, str, bool]:
    overlaps = False
    for shape in SMALL:
        product = product_of(shape)
        for seed in range(ORDERS):
            try:
                ending = product.ending(seed, source)
            except on_cpu.NotCpp as refused:
                return False, str(refused)
            if ending != "right":
                says = product.difference() if ending == "wrong" else f"{ending} {REASONS.get(ending, '')}"
                return False, f"On the model of Hopper, {words_of(shape)}: {says}".rstrip()
            overlaps |= product.overlapped(source)
    says = f"On the model of Hopper: {len(SMALL)} products, {ORDERS} orders of events each, all right."
    return True, says, overlaps


def on_gpu(source: str) -> tuple[bool | None, str]:
    """Whether it computes the product on the GPU, and how fast beside the course's loops."""
    if sentence := launch.missing_here():
        return None, f"Not run on a GPU: {sentence}"
    with launch.ends_within(6 * LIMIT_S):
        for shape in LARGE:
            product = product_of(shape, "cuda")
            if sentence := wrong_on_gpu(product, source):
                return False, f"On the GPU, {words_of(shape)}: {sentence}"
        how_fast = speed(product, source)
        if sentence := product.difference():
            return False, f"On the GPU, {words_of(shape)}, after it was timed: {sentence}"
        return True, f"On the GPU: {len(LARGE)} products, {TIMES} times each, all right. {how_fast}"


def wrong_on_gpu(product: ExactProduct, source: str) -> str:
    """Compute a product many times; return a sentence for the first that is wrong, "" for none."""
    start = start_of(product, source)
    for _ in range(TIMES):
        product.clear()
        try:
            start()
            launch.finish(product.whole.device, LIMIT_S)
            sentence = product.difference()
        except launch.Hangs as problem:
            launch.give_up(str(problem))  # an orderly end would wait for the GPU
        except RuntimeError as problem:
            return str(problem).splitlines()[0].rstrip(".") + "."
        if sentence:
            return sentence
    return ""


def product_of(shape: tuple[int, int, int, int], device: str = "cpu") -> ExactProduct:
    """Return the product of a shape (M, N, K and the tile's width)."""
    M, N, K, BN = shape
    return exact_product(KERNEL, M, N, K, Tile(128, BN), device)


def words_of(shape: tuple[int, int, int, int]) -> str:
    """Return a shape in words."""
    M, N, K, BN = shape
    return f"{M} x {N} x {K}, tiles of 128 x {BN}"


def start_of(product: ExactProduct, source: str) -> Callable[[], None]:
    """Return a function that starts a text in the place of the plan's kernel."""
    own = jit.build(KERNEL, source=source, keep=False, **product.plan.constants).cubin

    def instead(_: bytes) -> bytes:
        return own

    return lambda: launch.launch(product.plan, product.whole.device, instead)


def speed(product: ExactProduct, source: str) -> str:
    """Return how fast the learner's kernel and the course's are, in turns, with an empty L2 cache."""
    from course_lib.measure.gpu_timing import l2_flush, samples

    M, N, K = product.plan.arguments[-3:]
    starts = {
        "yours": start_of(product, source),
        "ours": lambda: launch.launch(product.plan, product.whole.device),
    }
    taken = samples(starts, budget_s=3.0, flush=l2_flush())
    yours, ours = (2e-12 * M * N * K / taken[name].median_s for name in starts)
    return f"{M} x {N} x {K}: yours {yours:.0f} TFLOP/s, the course's {KERNEL} {ours:.0f}."


if __name__ == "__main__":
    main()
