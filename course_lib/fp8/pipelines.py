"""The timeline model's numbers for a rung: what its block does, in cycles, with a tile of D.

    timeline(pipeline_of("v4_two_level", Tile(128, 128), K=1024, tiles=2))

Cycles follow from the constants of `choose`: 4096 products a cycle, 64 bytes a cycle from L2, 128 promotions.
Latency is an assumption (`simulators.pipeline.COPY_LATENCY`). A block is seen alone. v1_wgmma's blocks are so
small that several share a multiprocessor and cover for each other; the model does not show that.
"""

from __future__ import annotations

import math

from course_lib.arguments import whole
from course_lib.fp8.choose import L2_BYTES_A_CYCLE, PRODUCTS_A_CYCLE, PROMOTIONS_A_CYCLE
from course_lib.fp8.tiles import BLOCK, Tile, stages_that_fit
from course_lib.simulators.pipeline import COPY_LATENCY, Pipeline

ROLES_OF = {
    "v1_wgmma": "one",
    "v2_tma_ring": "one",
    "v3_warp_specialised": "specialised",
    "v4_two_level": "specialised",
    "v5_persistent": "persistent",
    "v6_tuned": "persistent",
}
SCALED = ("v4_two_level", "v5_persistent", "v6_tuned")  # these promote, and fetch A's scales


def pipeline_of(
    kernel: str,
    tile: Tile | None = None,
    K: int = 1024,
    tiles: int = 1,
    stages: int | None = None,
) -> Pipeline:
    """Return the pipeline of a rung that computes `tiles` tiles (default 128 x 128), K products an element.

    v1_wgmma computes 64 rows a tile, so twice as many. stages: None for as many as the kernel takes. Raises
    ValueError for a kernel that has no pipeline and for K below 1.
    """
    if kernel not in ROLES_OF:
        raise ValueError(f"kernel is {kernel!r}, but a timeline is known of {', '.join(ROLES_OF)}.")
    whole("K", K)
    tile = tile or Tile(128, 128)
    rows = 64 if kernel == "v1_wgmma" else tile.BM
    roles, scaled = ROLES_OF[kernel], kernel in SCALED
    a_shared_by = tile.cluster if roles == "persistent" else 1
    fetched = (rows / a_shared_by + tile.BN) * BLOCK + 4 * rows * scaled  # bytes for a block of K
    return Pipeline(
        stages=_stages(kernel, tile) if stages is None else stages,
        copy_latency=COPY_LATENCY,
        copy_cycles=math.ceil(fetched / L2_BYTES_A_CYCLE),
        math_cycles=math.ceil(rows * tile.BN * BLOCK / PRODUCTS_A_CYCLE),
        blocks_of_k=-(-K // BLOCK),
        tiles=tiles * (tile.BM // rows),
        epilogue_cycles=math.ceil(rows * tile.BN * 2 / L2_BYTES_A_CYCLE),
        roles=roles,
        consumers=1 if rows == 64 else 2,
        promotion_cycles=math.ceil(rows * tile.BN / PROMOTIONS_A_CYCLE) if scaled else 0,
        async_store=kernel == "v6_tuned",
    )


def _stages(kernel: str, tile: Tile) -> int:
    if kernel == "v1_wgmma":
        return 1
    if ROLES_OF[kernel] == "persistent":
        return tile.stages
    stage = (tile.BM + tile.BN) * BLOCK + 4 * tile.BM * (kernel in SCALED)
    return stages_that_fit(stage)
