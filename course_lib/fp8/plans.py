"""How each kernel is started: its constants, grid, shared memory, cluster and arguments, in the order of its
text.

    problem = Problem.of(a, a_scales, b, b_scales, d)
    plan = plan_for("v6_tuned", problem, Tile(128, 160, cluster=2), sms=132)
    plan.grid, plan.threads, plan.shared_bytes, plan.arguments

A plan is made without a GPU, and so it is tested without one: against the parameters in the kernel's own
text, and by the rules of tensor maps. `launch` starts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from course_lib.fp8 import BLOCK, tensor_maps
from course_lib.fp8.quantise import in_tma, is_m_major
from course_lib.fp8.schedule import BAND
from course_lib.fp8.swizzle import panel_width
from course_lib.fp8.tensor_maps import TensorMap
from course_lib.fp8.tiles import ROWS_AT_ONCE, Tile, stages_that_fit


@dataclass(frozen=True)
class Pointer:
    """The address of a tensor on the GPU."""

    name: str
    address: int


Argument = TensorMap | Pointer | int


@dataclass(frozen=True)
class Problem:
    """A product by its addresses and sizes. With `groups` b has that many matrices, and `indices` says for
    whom.

    `rows` are the rows of a (of each group, where `masked`).
    """

    a: int
    a_scales: int
    b: int
    b_scales: int
    d: int
    rows: int
    N: int
    K: int
    groups: int = 0
    indices: int = 0
    masked: bool = False

    @classmethod
    def of(
        cls,
        a: Tensor,
        a_scales: Tensor,
        b: Tensor,
        b_scales: Tensor,
        d: Tensor,
        indices: Tensor | None = None,
    ) -> Problem:
        """Return the problem of one product; a_scales must be laid out by `quantise.m_major`.

        With `indices` it is one of groups: contiguous for a (M, K), and they are the rows' groups, or masked
        for a (groups, rows, K), and they are the groups' numbers of rows.
        """
        if not is_m_major(a_scales):
            raise ValueError("a_scales is not laid out for TMA: m_major(a_scales).")
        addresses = (x.data_ptr() for x in (a, a_scales, b, b_scales, d))
        one = cls(*addresses, rows=a.shape[-2], N=b.shape[-2], K=a.shape[-1])
        if indices is None:
            return one
        return replace(one, groups=len(b), indices=indices.data_ptr(), masked=a.dim() == 3)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, N and K: what nearly every kernel is told."""
        return self.rows, self.N, self.K

    @property
    def padded_rows(self) -> int:
        """The rows with which a's scales are laid out (see `quantise.m_major`)."""
        return in_tma(self.rows)


@dataclass(frozen=True)
class Plan:
    """A kernel and how it is started. `grid` counts blocks, `cluster` those that run together."""

    kernel: str
    constants: dict[str, int]
    grid: tuple[int, int]
    threads: int
    shared_bytes: int
    cluster: int
    arguments: tuple[Argument, ...]


def plan_for(kernel: str, problem: Problem, tile: Tile | None = None, sms: int = 132) -> Plan:
    """Return the plan of a rung for a problem; raises ValueError for a kernel or tile that does not go with
    it.

    `tile` is the rung's own where it is None. `sms` are the GPU's multiprocessors, for kernels whose blocks
    stay.
    """
    if kernel not in _PLANS:
        raise ValueError(f"kernel is {kernel!r}, but there are plans for {', '.join(_PLANS)}.")
    if bool(problem.groups) != (kernel == "v9_grouped"):
        raise ValueError(
            f"{kernel} computes {'groups' if kernel == 'v9_grouped' else 'one product'}, and this is not."
        )
    return _PLANS[kernel](problem, tile, sms)


# -- rung by rung --------------------------------------------------------------------------------------------


def _naive(p: Problem, tile: Tile | None, sms: int) -> Plan:
    arguments = (*_pointers(p, "a", "a_scales", "b", "b_scales", "d"), *p.sizes, p.padded_rows)
    return Plan("v0_naive", {}, (_up(p.N, 16), _up(p.rows, 16)), 256, 0, 1, arguments)


def _mma(p: Problem, tile: Tile | None, sms: int) -> Plan:
    arguments = (*_pointers(p, "a", "b", "d"), *p.sizes)
    return Plan("v1_mma", {}, (_up(p.N, 64), _up(p.rows, 64)), 128, 0, 1, arguments)


def _wgmma(p: Problem, tile: Tile | None, sms: int) -> Plan:
    BN = tile.BN if tile else 128
    arguments = (_a(p, 64), _b(p, BN), *_pointers(p, "d"), *p.sizes)
    return Plan("v1_wgmma", {"BN": BN}, (_up(p.N, BN), _up(p.rows, 64)), 128, (64 + BN) * BLOCK, 1, arguments)


def _probe(p: Problem, tile: Tile | None, sms: int) -> Plan:
    """One instruction: a (64, 32), b (N, 32) with N up to 256; d is float32 (64, N)."""
    BN = min(p.N, 256)
    arguments = (_a(p, 64), _b(p, BN), *_pointers(p, "d"))
    return Plan("probe", {"BN": BN}, (1, 1), 128, (64 + BN) * BLOCK, 1, arguments)


def _ring(p: Problem, tile: Tile | None, sms: int, kernel: str, roles: bool, scaled: bool) -> Plan:
    """How v2, v3 and v4 are planned: a block for each tile, and a ring of stages in shared memory."""
    BM, BN = (tile.BM, tile.BN) if tile else (128, 128)
    if BM > ROWS_AT_ONCE or (scaled and BLOCK % BN):
        raise ValueError(f"{kernel} has tiles of 64 or 128 rows and, with scales, of widths that divide 128.")
    stage = (BM + BN) * BLOCK + 4 * BM * scaled
    stages = stages_that_fit(stage)
    constants = {"BM": BM, "BN": BN, "STAGES": stages}
    scales = (_s(p, BM), *_pointers(p, "b_scales")) if scaled else ()
    arguments = (_a(p, BM), _b(p, BN), *scales, *_pointers(p, "d"), *p.sizes)
    threads = 2 * BM + 128 * roles
    return Plan(kernel, constants, (_up(p.N, BN), _up(p.rows, BM)), threads, stages * stage, 1, arguments)


def _staying(
    kernel: str, tile: Tile, sms: int, shared: int, arguments: tuple[Argument, ...], **more: int
) -> Plan:
    """Return the plan of a kernel whose blocks stay: as many as there are multiprocessors."""
    grid = (max(sms // tile.cluster, 1) * tile.cluster, 1)
    constants = tile.constants() | more
    return Plan(kernel, constants, grid, tile.math_threads + 128, shared, tile.cluster, arguments)


def _persistent(p: Problem, tile: Tile | None, sms: int) -> Plan:
    tile = tile or Tile(128, 128, 2)
    if tile.BM > ROWS_AT_ONCE or tile.straddles:
        raise ValueError("v5_persistent has tiles of 64 or 128 rows and of widths that divide 128.")
    maps = (_a(p, tile.BM // tile.cluster), _b(p, tile.BN), _s(p, tile.BM))
    arguments = (*maps, *_pointers(p, "b_scales", "d"), *p.sizes)
    return _staying("v5_persistent", tile, sms, tile.stages * tile.stage_bytes, arguments)


def _tuned(p: Problem, tile: Tile | None, sms: int) -> Plan:
    tile = tile or Tile(128, 128, 2)
    arguments = (*_maps(p, tile), *_pointers(p, "b_scales"), *p.sizes)
    return _staying("v6_tuned", tile, sms, tile.shared_bytes, arguments)


def _swapped(p: Problem, tile: Tile | None, sms: int) -> Plan:
    """The tile's BM are rows of B (64 or 128), its BN tokens."""
    tile = tile or Tile(64, min(_up(max(p.rows, 1), 16) * 16, 64))
    rows, tokens = tile.BM, tile.BN
    if rows > BLOCK or tokens > BLOCK:
        raise ValueError(
            f"v8_swap_ab has 64 or 128 rows of weights and up to 128 tokens, and this is {rows} x {tokens}."
        )
    stage = (rows + tokens) * BLOCK + _up(4 * tokens, 128) * 128  # scales begin at multiples of 128 bytes
    epilogue = rows // 64 * tokens * 128
    stages = stages_that_fit(stage, epilogue)
    constants = {"ROWS": rows, "WGMMA_N": tokens, "STAGES": stages, "BAND": BAND}
    maps = (_a(p, tokens), _b(p, rows), _s(p, tokens), _d(p, tokens, 128))
    arguments = (*maps, *_pointers(p, "b_scales"), *p.sizes)
    blocks = min(sms, _up(p.rows, tokens) * _up(p.N, rows))
    return Plan("v8_swap_ab", constants, (blocks, 1), 2 * rows + 128, epilogue + stages * stage, 1, arguments)


def _grouped(p: Problem, tile: Tile | None, sms: int) -> Plan:
    tile = tile or Tile(128, 128, 2)
    if not p.masked and tile.BM > ROWS_AT_ONCE:
        raise ValueError(
            f"contiguous groups begin at multiples of {ROWS_AT_ONCE} rows, and the tile has {tile.BM}."
        )
    maps = _maps(p, tile, p.groups if p.masked else 1)
    arguments = (*maps, *_pointers(p, "b_scales", "indices"), p.groups, *p.sizes)
    return _staying("v9_grouped", tile, sms, tile.shared_bytes, arguments, MASKED=int(p.masked))


_PLANS: dict[str, Callable[[Problem, Tile | None, int], Plan]] = {
    "probe": _probe,
    "v0_naive": _naive,
    "v1_mma": _mma,
    "v1_wgmma": _wgmma,
    "v2_tma_ring": partial(_ring, kernel="v2_tma_ring", roles=False, scaled=False),
    "v3_warp_specialised": partial(_ring, kernel="v3_warp_specialised", roles=True, scaled=False),
    "v4_two_level": partial(_ring, kernel="v4_two_level", roles=True, scaled=True),
    "v5_persistent": _persistent,
    "v6_tuned": _tuned,
    "v8_swap_ab": _swapped,
    "v9_grouped": _grouped,
}


def _pointers(p: Problem, *names: str) -> tuple[Pointer, ...]:
    return tuple(Pointer(name, getattr(p, name)) for name in names)


def _maps(p: Problem, tile: Tile, matrices: int | None = None) -> tuple[TensorMap, ...]:
    """Return the four maps of the last rungs; `matrices` of a and d, where groups have them."""
    return (
        _a(p, tile.BM // tile.cluster, matrices),
        _b(p, tile.BN),
        _s(p, tile.BM, matrices or 1),
        _d(p, tile.BM, panel_width(tile.BN), matrices),
    )


def _a(p: Problem, box_rows: int, matrices: int | None = None) -> TensorMap:
    return tensor_maps.of_operand("a", p.a, p.rows, p.K, box_rows, matrices)


def _b(p: Problem, box_rows: int) -> TensorMap:
    return tensor_maps.of_operand("b", p.b, max(p.groups, 1) * p.N, p.K, box_rows)


def _s(p: Problem, box_rows: int, matrices: int = 1) -> TensorMap:
    blocks = matrices * _up(p.K, BLOCK)
    return tensor_maps.of_scales("a_scales", p.a_scales, p.padded_rows, blocks, box_rows)


def _d(p: Problem, box_rows: int, width: int, matrices: int | None = None) -> TensorMap:
    return tensor_maps.of_result("d", p.d, p.rows, p.N, box_rows, width, matrices)


def _up(n: int, size: int) -> int:
    return -(-n // size)
