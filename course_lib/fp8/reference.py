"""The product with block scales in plain torch: what the kernels compute, where there is no Hopper to compute
it.

    d = product(a, a_scales, b, b_scales)            # bf16 (M, N)

    D[m, n] = bf16( sum over blocks:  a_scales[m, block] * b_scales[n / 128, block] * inner(m, n, block) )

The inner sum, over 128 numbers, is the tensor core's; the outer one float32. For small matrices the inner sum
is the bit-exact model of Hopper's (`simulators.tensor_core`), for large ones a product in float32: after four
steps the tensor core has cut off too little to be seen in bf16 but in a last bit here and there.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_lib.fp8.quantise import SIDE
from course_lib.simulators.tensor_core import gemm_e4m3

MOST_SIMULATED = 2**24  # products: some tenths of a second


def product(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor, simulated: bool = True) -> Tensor:
    """Return bf16 (M, N) for a (M, K) and b (N, K), e4m3, with scales (M, K/128) and (N/128, K/128), rounded
    up.

    `simulated`: the model of the tensor core adds up the inner sums, where that does not take too long and
    the tensors are on the CPU; else float32 does. The arguments are taken for right: the doors in `gemm`
    check them.
    """
    (M, K), N = a.shape, b.shape[0]
    simulate = simulated and M * N * K <= MOST_SIMULATED and a.device.type == "cpu"
    inner = _simulated if simulate else _in_float32
    b_scales = b_scales.repeat_interleave(SIDE, 0)[:N]  # (N, blocks of K)
    total = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    for block, start in enumerate(range(0, K, SIDE)):
        part = slice(start, start + SIDE)
        scale = a_scales[:, block, None] * b_scales[None, :, block]
        # A fused multiply-add rounds once: so does this, but for a rare tie.
        total = (total.double() + scale.double() * inner(a[:, part], b[:, part]).double()).float()
    return total.bfloat16()


def _in_float32(a: Tensor, b: Tensor) -> Tensor:
    return a.float() @ b.float().T


def _simulated(a: Tensor, b: Tensor) -> Tensor:
    a, b = (np.asarray(x.float()) for x in (a, b))
    broken = torch.from_numpy(np.isnan(a).any(1)[:, None] | np.isnan(b).any(1)[None, :])
    summed = torch.from_numpy(gemm_e4m3(np.nan_to_num(a), np.nan_to_num(b)))
    return summed.masked_fill(broken, torch.nan)
