"""Self-attention that knows how far apart two frames are (Transformer-XL, Dai et al. 2019, section 3.3).

The score of query i and key j is (q_i + u)·k_j + (q_i + v)·p_(i−j), over sqrt(d_k): the first product
compares contents, the second asks how much the distance i − j matters. u and v are learned, one pair a head.
Parameter names and the order of operations are NeMo's (nemo/collections/asr/parts/submodules).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MASKED_SCORE = -10000.0


class RelativePositions(nn.Module):
    """The table of positions T−1, …, 0, …, −(T−1): not added to x, attention looks distances up in it."""

    table: Tensor

    def __init__(self, d_model: int, max_len: int = 5000) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoids(max_len, d_model), persistent=False)

    def forward(self, frames: int, like: Tensor) -> Tensor:
        """Return the rows for `frames` frames, (1, 2·frames − 1, d_model), of the dtype of `like`."""
        if 2 * frames - 1 > self.table.size(1):
            self.table = sinusoids(frames, self.d_model)
        if (self.table.dtype, self.table.device) != (like.dtype, like.device):
            frames_kept = self.table.size(1) // 2 + 1
            table = sinusoids(frames_kept, self.d_model)  # anew: a table that was half is not rounded back
            self.table = table.to(device=like.device, dtype=like.dtype)
        middle = self.table.size(1) // 2  # the row of position 0
        return self.table[:, middle - frames + 1 : middle + frames]


def sinusoids(frames: int, d_model: int) -> Tensor:
    """Return (1, 2·frames − 1, d_model) float32: sin(position · w_k) in column 2k, cos in column 2k + 1.

    w_k = 10000^(−2k / d_model), as in "Attention is all you need", section 3.5.
    """
    positions = torch.arange(frames - 1, -frames, -1, dtype=torch.float32).unsqueeze(1)
    slowness = -math.log(10000.0) / d_model
    frequencies = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * slowness)
    table = torch.zeros(2 * frames - 1, d_model)
    table[:, 0::2] = torch.sin(positions * frequencies)
    table[:, 1::2] = torch.cos(positions * frequencies)
    return table.unsqueeze(0)


def rel_shift(scores: Tensor) -> Tensor:
    """Return (B, h, T, 2T − 1) with row i moved left by T − 1 − i, so that column j is the distance i − j.

    Only columns 0 … T − 1 mean anything afterwards. No element is computed: one column of zeros on the left
    makes every row one longer, and reading the same memory as rows of T starts each a step later.
    """
    batch, heads, frames, distances = scores.shape
    padded = F.pad(scores, (1, 0))  # (B, h, T, 2T)
    padded = padded.view(batch, heads, distances + 1, frames)  # (B, h, 2T, T)
    return padded[:, :, 1:].view(batch, heads, frames, distances)  # (B, h, T, 2T − 1)


class RelPositionMultiHeadAttention(nn.Module):
    """Four projections of d_model, a fifth for the positions, and the two learned biases of every head."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads, self.d_k = n_heads, d_model // n_heads
        self.linear_q = nn.Linear(d_model, d_model)
        self.linear_k = nn.Linear(d_model, d_model)
        self.linear_v = nn.Linear(d_model, d_model)
        self.linear_out = nn.Linear(d_model, d_model)
        self.linear_pos = nn.Linear(d_model, d_model, bias=False)
        self.pos_bias_u = nn.Parameter(torch.zeros(n_heads, self.d_k))
        self.pos_bias_v = nn.Parameter(torch.zeros(n_heads, self.d_k))

    def forward(self, x: Tensor, positions: Tensor, hidden: Tensor) -> Tensor:
        """Return (B, T, d_model) for x of that shape, positions (1, 2T − 1, d_model), hidden (B, T, T) bool.

        hidden[b, i, j] True means that frame i of row b may not look at frame j.
        """
        q = self._heads(self.linear_q(x))  # (B, T, h, d_k)
        k = self._heads(self.linear_k(x)).transpose(1, 2)  # (B, h, T, d_k)
        v = self._heads(self.linear_v(x)).transpose(1, 2)  # (B, h, T, d_k)
        p = self._heads(self.linear_pos(positions)).transpose(1, 2)  # (1, h, 2T − 1, d_k)

        with_u = (q + self.pos_bias_u).transpose(1, 2)  # (B, h, T, d_k)
        with_v = (q + self.pos_bias_v).transpose(1, 2)  # (B, h, T, d_k)
        by_content = torch.matmul(with_u, k.transpose(-2, -1))  # (B, h, T, T)
        by_distance = rel_shift(torch.matmul(with_v, p.transpose(-2, -1)))  # (B, h, T, 2T − 1)
        scores = (by_content + by_distance[..., : x.size(1)]) / math.sqrt(self.d_k)  # (B, h, T, T)

        attended = torch.matmul(masked_softmax(scores, hidden.unsqueeze(1)), v)  # (B, h, T, d_k)
        return self.linear_out(attended.transpose(1, 2).reshape(x.shape))  # (B, T, d_model)

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(projected.size(0), -1, self.n_heads, self.d_k)


def masked_softmax(scores: Tensor, hidden: Tensor) -> Tensor:
    """Return the softmax over the last axis with weight 0 where `hidden` is True.

    A row that is hidden altogether (a frame of padding) would be uniform after the first fill: the second one
    makes it zero.
    """
    weights = torch.softmax(scores.masked_fill(hidden, MASKED_SCORE), dim=-1)
    return weights.masked_fill(hidden, 0.0)
