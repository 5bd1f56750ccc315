"""Operands of FP8 products on any device, and whether a result is their product; imports torch, so late."""

import torch

from course_lib.fp8 import errors
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, dequantise, quantise


def random(*shape, seed=0, kind="normal", device="cpu"):
    x = torch.randn(shape, generator=torch.Generator(device).manual_seed(seed), device=device)
    return {"normal": x, "relu": x.relu(), "absolute": x.abs()}[kind]


def quantised(shape, block, seed, device):
    """Codes, and scales that differ from block to block by powers of two: a swapped one is seen."""
    codes, scales = quantise(random(*shape, seed=seed, device=device), block)
    rng = torch.Generator(device).manual_seed(seed)
    powers = torch.randint(-6, 7, scales.shape, generator=rng, device=device).float()
    return codes, scales * torch.exp2(powers)


def operands(M, N, K, groups=None, rows_in_groups=False, seed=0, device="cpu"):
    """Return a, a_scales, b, b_scales; with groups b, and a if its rows are in groups, has them in front."""
    front = () if groups is None else (groups,)
    a = quantised((*(front if rows_in_groups else ()), M, K), ROW_BLOCKS, seed, device)
    return (*a, *quantised((*front, N, K), SQUARES, seed + 1, device))


def exact_of(a, a_scales, b, b_scales):
    a = dequantise(a, a_scales, ROW_BLOCKS).cpu()
    return errors.exact(a, dequantise(b, b_scales, SQUARES).cpu())


def assert_right(d, *given):
    exact = exact_of(*given)
    d = d.double().cpu().numpy()
    diff, worst = errors.calc_diff(d, exact[0]), errors.worst_element(d, *exact)
    assert diff < errors.LIMIT and worst < 1, (d.shape, diff, worst)
