"""The Conformer is not slower than the same arithmetic from torch's own modules."""

import statistics
import time

import pytest
import torch
from torch import nn

from course_lib.speech.conformer import ConformerEncoder

FRAMES = 1001  # 10 s of 10 ms each, and one


def stock_layer() -> list[nn.Module]:
    """Return a layer's parts; nn.MultiheadAttention has no relative positions, so it does less."""
    d = 512

    def feed_forward():
        return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

    convolution = nn.Sequential(
        nn.Conv1d(d, 2 * d, 1),
        nn.GLU(dim=1),
        nn.Conv1d(d, d, 31, padding=15, groups=d),
        nn.BatchNorm1d(d),
        nn.SiLU(),
        nn.Conv1d(d, d, 1),
    )
    attention = nn.MultiheadAttention(d, 8, batch_first=True)
    positions = nn.Linear(d, d, bias=False)
    return [feed_forward(), attention, convolution, feed_forward(), positions]


class Stock(nn.Module):
    """The large encoder of stock modules; the distance scores are one more product of matrices each head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 512, 3, 2, 1), nn.ReLU(), nn.Conv2d(512, 512, 3, 2, 1), nn.ReLU()
        )
        self.out = nn.Linear(10240, 512)
        self.layers = nn.ModuleList(nn.ModuleList(stock_layer()) for _ in range(18))
        self.table = torch.randn(1, 2 * 251 - 1, 512)  # of positions, for 251 frames
        self.norms = nn.ModuleList(nn.ModuleList(nn.LayerNorm(512) for _ in range(3)) for _ in range(18))

    def forward(self, features):
        x = self.out(self.conv(features.transpose(1, 2).unsqueeze(1)).transpose(1, 2).flatten(2))
        frames = x.size(1)
        for (first, attention, convolution, second, positions), (a, b, c) in zip(
            self.layers, self.norms, strict=True
        ):
            x = x + 0.5 * first(x)
            y = a(x)
            p = positions(self.table).view(-1, 8, 64).permute(1, 2, 0)  # (h, d_k, 2T − 1)
            by_distance = torch.bmm(y[0].view(-1, 8, 64).transpose(0, 1), p)[..., :frames] / 8
            x = x + attention(y, y, y, attn_mask=by_distance, need_weights=False)[0]
            x = x + convolution(b(x).transpose(1, 2)).transpose(1, 2)
            x = c(x + 0.5 * second(x))
        return x


@pytest.mark.slow
@pytest.mark.timing
@torch.no_grad()
def test_not_slower_than_stock_modules():
    """Ratio of the medians of ten runs each, in turns, after two that warm up: 10 s of audio, 2 threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        ours, stock = ConformerEncoder.large().eval(), Stock().eval()
        features, lengths = torch.randn(1, 80, FRAMES), torch.tensor([FRAMES])
        times = {"ours": [], "stock": []}
        for _ in range(12):
            for name, run in (
                ("ours", lambda: ours(features, lengths)),
                ("stock", lambda: stock(features)),
            ):
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)
    medians = {name: statistics.median(seconds[2:]) for name, seconds in times.items()}
    ratio = medians["ours"] / medians["stock"]
    print(f"ratio of medians {ratio:.3f}", medians, {name: min(seconds) for name, seconds in times.items()})
    assert ratio <= 1.05, medians
