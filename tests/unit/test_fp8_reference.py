"""The product with block scales: right by two measures, and the usual faults are caught by one of them."""

import pytest
import torch

from course_lib.fp8 import errors
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, dequantise, quantise
from course_lib.fp8.reference import product
from course_lib.simulators.tensor_core import HOPPER

SHAPES = [(1, 16, 16), (7, 24, 128), (64, 256, 512), (65, 120, 208), (127, 136, 240), (129, 16, 1024)]


def operands(M, N, K, seed=0, wild=True):
    """Matrices with block scales; `wild` makes blocks differ by up to 2^12, so that no mix-up hides."""
    rng = torch.Generator().manual_seed(seed)
    a, a_scales = quantise(torch.randn((M, K), generator=rng), ROW_BLOCKS)
    b, b_scales = quantise(torch.randn((N, K), generator=rng), SQUARES)
    if wild:
        a_scales = a_scales * torch.exp2(12 * torch.rand(a_scales.shape, generator=rng) - 6)
        b_scales = b_scales * torch.exp2(12 * torch.rand(b_scales.shape, generator=rng) - 6)
    return a, a_scales, b, b_scales


def judged(d, a, a_scales, b, b_scales):
    """The two measures against the exact product of the dequantised matrices."""
    exact = errors.exact(
        dequantise(a, a_scales, ROW_BLOCKS, torch.float64), dequantise(b, b_scales, SQUARES, torch.float64)
    )
    d = d.double().numpy()
    return errors.calc_diff(d, exact[0]), errors.worst_element(d, *exact)


@pytest.mark.parametrize("core", [HOPPER, None], ids=["simulated", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_right_for_any_shape(shape, core):
    given = operands(*shape)
    d = product(*given, core=core)
    assert d.dtype == torch.bfloat16 and d.shape == shape[:2]
    diff, worst = judged(d, *given)
    assert diff < errors.LIMIT and worst < 0.6


def shifted(scales, dim):
    return scales.roll(1, dim)


FAULTS = {
    "scales of A a row off": lambda a, sa, b, sb: (a, shifted(sa, 0), b, sb),
    "scales of A a block of K off": lambda a, sa, b, sb: (a, shifted(sa, 1), b, sb),
    "scales of B a block of N off": lambda a, sa, b, sb: (a, sa, b, shifted(sb, 0)),
    "scales of B a block of K off": lambda a, sa, b, sb: (a, sa, b, shifted(sb, 1)),
    "the last block of K forgotten": lambda a, sa, b, sb: (
        a,
        torch.cat([sa[:, :-1], 0 * sa[:, -1:]], 1),
        b,
        sb,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_scales_is_far_from_the_limit(name):
    given = operands(64, 256, 512)
    diff, worst = judged(product(*FAULTS[name](*given)), *given)
    assert diff > 100 * errors.LIMIT and worst > 1


def test_one_wrong_element_is_caught_by_the_element():
    given = operands(64, 256, 512, wild=False)
    d = product(*given)
    d[5, 7] = -d[5, 7]
    diff, worst = judged(d, *given)
    assert diff < 1e-3 and worst > 1  # the limit that is usual for the first of them would let it pass


def test_a_row_of_nan_stays_in_its_row_and_column():
    a, a_scales, b, b_scales = operands(5, 16, 256)
    a = a.float()
    a[2, 130] = torch.nan
    d = product(a.to(torch.float8_e4m3fn), a_scales, b, b_scales)
    assert d[2].isnan().all() and not d[[0, 1, 3, 4]].isnan().any()
    assert torch.equal(d[0], product(*operands(5, 16, 256))[0])


def test_nothing_to_add_is_zero():
    a, b = (torch.zeros(n, 0).to(torch.float8_e4m3fn) for n in (3, 8))
    assert torch.equal(product(a, torch.zeros(3, 0), b, torch.zeros(1, 0)), torch.zeros(3, 8).bfloat16())
