"""Matrix products of e4m3 with block scales, as DeepSeek-V3 has them: one product, or one for each group of
tokens.

    d = fp8_gemm(a, a_scales, b, b_scales)                                    # bf16 (M, N)
    d = fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, group_indices)  # rows say whose b
    d = fp8_gemm_grouped_masked(a, a_scales, b, b_scales, masked_m, expected_m)

a has a scale for every 128 numbers of a row, b for every square of 128 x 128 (`quantise` makes both). M is
free, N a multiple of 8, K a multiple of 16; scales count begun blocks. These are the rules of Hopper's TMA;
they hold on every machine, so that what runs here runs there.

On a Hopper GPU our kernels compute them (`on_hopper`); everywhere else plain torch does (`reference`), with
the numerics of the kernels, and with a warning where a Hopper lacks but the compiler or a newer driver. The
kernels were tested and recorded on an H200 (`recordings`).
"""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

from course_lib.arguments import is_whole
from course_lib.fp8 import doors, launch, on_hopper
from course_lib.fp8.doors import Refused
from course_lib.fp8.reference import product
from course_lib.fp8.tiles import ROWS_AT_ONCE

#: Rows of A that share a group. A tile of rows has one group, and contiguous groups are computed in tiles of
#: what two warpgroups multiply at once, at most: so this is the height of a tile, and no matter of scales.
ALIGNMENT = ROWS_AT_ONCE
NOBODY = -1


def fp8_gemm(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor, out: Tensor | None = None) -> Tensor:
    """Return D = A B^T, bf16 (M, N), for a (M, K) and b (N, K) of e4m3; in `out` if it is given.

    a_scales is float32 (M, K/128), b_scales (N/128, K/128), begun blocks counted. Raises Refused (a
    ValueError) for what it cannot take.
    """
    doors.factors(a, a_scales, b, b_scales, 2, 2)
    M, N = len(a), len(b)
    doors.one_device(a=a, a_scales=a_scales, b=b, b_scales=b_scales, out=out)
    out = doors.result(out, (M, N), a, zeros=False)
    if not out.numel():
        return out
    if _ours(a):
        return on_hopper.dense(a, a_scales, b, b_scales, out)
    return out.copy_(product(a, a_scales, b, b_scales))


def fp8_gemm_grouped_contiguous(
    a: Tensor,
    a_scales: Tensor,
    b: Tensor,
    b_scales: Tensor,
    group_indices: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """Return D, bf16 (M, N): row m of a (M, K) times the matrix group_indices[m] of b (groups, N, K),
    transposed.

    group_indices is int32 (M,): the same within every 128 rows from a multiple of 128 on; rows with -1 belong
    to nobody and are left as they are in `out` (0 in a new one). b_scales is float32 (groups, N/128, K/128).
    Raises Refused for what it cannot take; indices on a GPU are not looked at.
    """
    doors.factors(a, a_scales, b, b_scales, 2, 3)
    M, (groups, N, _) = len(a), b.shape
    doors.whole_numbers("group_indices", group_indices, M, "row of a")
    doors.one_device(a=a, a_scales=a_scales, b=b, b_scales=b_scales, group_indices=group_indices, out=out)
    if group_indices.device.type == "cpu":
        _check_indices(group_indices, groups)
    out = doors.result(out, (M, N), a)
    if out.numel() and _ours(a):
        return on_hopper.grouped(a, a_scales, b, b_scales, group_indices, max(M // groups, ALIGNMENT), out)
    for start in range(0, M if N else 0, ALIGNMENT):
        rows, group = slice(start, start + ALIGNMENT), int(group_indices[start])
        if group != NOBODY:
            out[rows] = product(a[rows], a_scales[rows], b[group], b_scales[group])
    return out


def fp8_gemm_grouped_masked(
    a: Tensor,
    a_scales: Tensor,
    b: Tensor,
    b_scales: Tensor,
    masked_m: Tensor,
    expected_m: int,
    out: Tensor | None = None,
) -> Tensor:
    """Return D, bf16 (groups, rows, N): of each group the first masked_m rows of a times its b, transposed.

    a is e4m3 (groups, rows, K) with a_scales (groups, rows, K/128), b (groups, N, K) with b_scales (groups,
    N/128, K/128). masked_m is int32 (groups,), on a GPU the GPU's own: it may change between two runs of a
    captured graph. expected_m, about how many rows a group has, only helps to choose a tile. Rows from
    masked_m on are left as they are or hold products of what stands in a there; other groups' rows are never
    touched. Raises Refused.
    """
    doors.factors(a, a_scales, b, b_scales, 3, 3)
    (groups, rows, _), N = a.shape, b.shape[1]
    if len(b) != groups:
        raise Refused(f"a has {groups} groups and b {len(b)}, but each group of a needs its own matrix in b.")
    doors.whole_numbers("masked_m", masked_m, groups, "group")
    if not is_whole(expected_m) or expected_m < 0:
        raise Refused(f"expected_m is {expected_m!r}, but it must be a whole number, 0 or more.")
    doors.one_device(a=a, a_scales=a_scales, b=b, b_scales=b_scales, masked_m=masked_m, out=out)
    if masked_m.device.type == "cpu" and groups and (masked_m.min() < 0 or masked_m.max() > rows):
        raise Refused(
            f"masked_m reaches from {int(masked_m.min())} to {int(masked_m.max())}, but a has "
            f"{rows} rows a group."
        )
    out = doors.result(out, (groups, rows, N), a)
    if out.numel() and _ours(a):
        return on_hopper.grouped(a, a_scales, b, b_scales, masked_m, min(max(expected_m, 1), rows), out)
    for group, count in enumerate(masked_m.tolist() if N else ()):
        if count:
            out[group, :count] = product(a[group, :count], a_scales[group, :count], b[group], b_scales[group])
    return out


def _ours(a: Tensor) -> bool:
    """Return whether our kernels can run where `a` is; on a Hopper GPU that lacks something, warn once."""
    sentence = launch.missing(a)
    if sentence and not launch.no_hopper(a):
        _warn(sentence)
    return sentence is None


@cache  # once in a process
def _warn(sentence: str) -> None:
    warnings.warn(f"{sentence} Until then torch computes the products.", stacklevel=4)


def _check_indices(group_indices: Tensor, groups: int) -> None:
    if not len(group_indices):
        return
    least, most = int(group_indices.min()), int(group_indices.max())
    if least < NOBODY or most >= groups:
        raise Refused(
            f"group_indices reach from {least} to {most}, but b has {groups} groups: 0 to "
            f"{groups - 1}, or -1 for nobody."
        )
    firsts = group_indices[::ALIGNMENT].repeat_interleave(ALIGNMENT)[: len(group_indices)]
    wrong = torch.nonzero(firsts != group_indices)
    if len(wrong):
        row = int(wrong[0])
        raise Refused(
            f"group_indices changes at row {row}, but it must be the same within every {ALIGNMENT} "
            "rows: begin each group "
            f"at a multiple of {ALIGNMENT}."
        )
