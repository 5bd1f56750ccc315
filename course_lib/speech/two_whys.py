"""The talk's two "why?": a model of why its GPU is 7.90 times as fast at addmm, and 11.46 at convolutions.

The GPU multiplies in tiles (`ampere_sgemm_64x32_sliced1x4_tn`: 64 x 32). A tile is computed by one
multiprocessor, so a product takes as long as the tiles of the busiest one, and a start:

    device = start + max(ceil(tiles / SMs) * FLOP of a tile / rate of an SM, bytes / bandwidth)
    host   = calls * what a call costs, without the driver's launch (a row of its own in torch's profiles)
    CPU    = FLOP / rate

None of the predicted rows (addmm, convolution) is looked at. The CPU's rate is taken from the talk's row of
mm, the cost of a call from that of bmm, the start from that of the kernel with tiles of 128 x 128, which
computes the attention's scores; what an SM reaches is what cuBLAS reached of a GPU's peak in published
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.arguments import one_of, whole
from course_lib.measure.gpu_published import BOEHM, PublishedGpu
from course_lib.speech.profiling import TalkProfile, TalkRow

TILE = (64, 32)  # of the kernel that the talk lists with most calls and most time
SCORE_TILE, SCORE_SUM = (128, 128), 64  # of the kernel that computes the scores; they are sums over 64
SCORE_KERNEL = "ampere_sgemm_128x128_tn"
LAYERS, D, CHANNELS, BANDS, TAPS, WIDER = 18, 512, 512, 80, 31, 4  # the large encoder
FORWARDS = 64  # in the talk's tables
SLOW_NUMBERS, SLOW_FRAMES = 20_480, 256  # up to here torch calls a convolution _slow_conv2d_forward


@dataclass(frozen=True)
class Product:
    """So many products (M, K) @ (K, N) of float32; `groups` independent ones in each call."""

    family: str  # "addmm", "mm" or "convolution"
    what: str
    calls: int
    M: int
    K: int
    N: int
    groups: int = 1
    inputs: int = 0  # numbers that a convolution reads, since its columns repeat them; 0: groups · K · N
    slow: bool = False  # on the CPU torch counts it as _slow_conv2d_forward

    @property
    def flops(self) -> float:
        """FLOP of all calls."""
        return 2.0 * self.calls * self.groups * self.M * self.K * self.N

    @property
    def bytes(self) -> float:
        """Bytes of all calls: what is given read and the result written once, without columns or a bias."""
        inputs = self.inputs or self.groups * self.K * self.N
        return 4.0 * self.calls * (self.groups * self.M * (self.K + self.N) + inputs)

    @property
    def tiles(self) -> int:
        """Tiles of one call."""
        return self.groups * math.ceil(self.M / TILE[0]) * math.ceil(self.N / TILE[1])


def products(mel_frames: int, batch: int = 1, layers: int = LAYERS) -> list[Product]:
    """Return the products of one forward of the large encoder; a convolution as the product it amounts to.

    Raises ValueError unless both are whole numbers from 1 on.
    """
    whole("mel_frames", mel_frames)
    whole("batch", batch)
    half = math.ceil(mel_frames / 2)
    T = math.ceil(half / 2)  # frames that the subsampling leaves: about a quarter
    rows, bands = batch * T, math.ceil(BANDS / 4)
    slow = batch == 1 and D * T <= SLOW_NUMBERS
    return [
        Product("addmm", "feed forward, 512 to 2048", 2 * layers, rows, D, WIDER * D),
        Product("addmm", "feed forward, 2048 to 512", 2 * layers, rows, WIDER * D, D),
        Product("addmm", "query, key, value, out", 4 * layers, rows, D, D),
        Product("addmm", "behind the subsampling", 1, rows, CHANNELS * bands, D),
        Product("mm", "positions", layers, 2 * T - 1, D, D),
        Product("convolution", "pointwise, 512 to 1024", layers, 2 * D, D, rows, slow=slow),
        Product("convolution", "pointwise, 512 to 512", layers, D, D, rows, slow=slow),
        Product("convolution", "depthwise", layers, 1, TAPS, rows, groups=D, inputs=D * rows),
        Product(
            "convolution",
            "3 x 3, first",
            1,
            CHANNELS,
            9,
            batch * half * BANDS // 2,
            inputs=batch * mel_frames * BANDS,
            slow=batch == 1 and mel_frames <= SLOW_FRAMES,
        ),
        Product(
            "convolution",
            "3 x 3, second",
            1,
            CHANNELS,
            9 * CHANNELS,
            rows * bands,
            inputs=batch * half * CHANNELS * BANDS // 2,
        ),
    ]


@dataclass(frozen=True)
class Constants:
    """What the model knows of the talk's two machines."""

    cpu_flops_per_s: float
    call_s: float  # what a call itself costs the host, the profiler included
    start_s: float  # what a kernel takes besides its tiles
    sm_flops_per_s: float
    sms: int
    bytes_per_s: float
    peak_flops: float

    def device_s(self, product: Product) -> float:
        """Return the time of all calls on the device."""
        tile_s = 2.0 * math.prod(TILE) * product.K / self.sm_flops_per_s
        busiest = math.ceil(product.tiles / self.sms) * tile_s
        call_s = self.start_s + max(busiest, product.bytes / product.calls / self.bytes_per_s)
        return product.calls * call_s


class CannotBe(ValueError):
    """The talk's figures contradict the GPU that the model was given."""


def constants(talk: TalkProfile, lengths: Sequence[int], gpu: PublishedGpu) -> Constants:
    """Return the model's constants from rows that are not to be predicted; lengths in mel frames.

    Raises CannotBe if an SM of this GPU would need longer for a tile of the scores than the talk measured.
    """
    cpu, device = _by_name(talk)
    mm = sum(p.flops for length in lengths for p in products(length) if p.family == "mm")
    mm_s = 1e-6 * _us(cpu["aten::mm"]) / FORWARDS
    scores, bmm = device[SCORE_KERNEL], device["aten::bmm"]
    tile_flops = 2.0 * math.prod(SCORE_TILE) * SCORE_SUM
    measured_s = 1e-6 * (scores.device_us or 0.0) / scores.calls
    at_peak_s = tile_flops / (gpu.peak_flops / gpu.sms)
    if at_peak_s >= measured_s:  # a kernel computes whole tiles, at the matrix's edge as well
        raise CannotBe(
            f"A tile of {SCORE_TILE[0]} x {SCORE_TILE[1]} and a sum over {SCORE_SUM} takes an SM of the "
            f"{gpu.name} {1e6 * at_peak_s:.1f} us at its peak, but {SCORE_KERNEL} took "
            f"{1e6 * measured_s:.1f} us: the talk's GPU was another one, if that kernel computes whole tiles."
        )
    sm = BOEHM.of_peak("torch") * gpu.peak_flops / gpu.sms
    return Constants(
        cpu_flops_per_s=mm / len(lengths) / mm_s,
        call_s=1e-6 * _us(bmm) / bmm.calls,
        start_s=measured_s - tile_flops / sm,
        sm_flops_per_s=sm,
        sms=gpu.sms,
        bytes_per_s=gpu.bytes_per_s,
        peak_flops=gpu.peak_flops,
    )


@dataclass(frozen=True)
class Times:
    """What one family of calls takes: seconds for the talk's 64 forwards."""

    cpu_s: float
    host_s: float
    device_s: float

    @property
    def ratio(self) -> float:
        """The slides' ratio: the CPU's time over the sum of the host's and the device's."""
        return self.cpu_s / (self.host_s + self.device_s)

    @property
    def device_ratio(self) -> float:
        """The CPU's time over the device's alone, as if calls were free."""
        return self.cpu_s / self.device_s


@dataclass(frozen=True)
class Why:
    """One of the two questions: what the model says, and what the talk measured."""

    name: str
    predicted: Times
    talk: Times
    at_peak: float  # the ratio, did the GPU run at its peak and were calls free
    calls: int  # on the GPU

    @property
    def miss(self) -> float:
        """How far the predicted ratio is from the talk's, as a part of the talk's: 0.1 is 10 % too high."""
        return self.predicted.ratio / self.talk.ratio - 1


def predict(talk: TalkProfile, lengths: Sequence[int], gpu: PublishedGpu) -> tuple[Why, Why]:
    """Return addmm and the convolutions: predicted, and as the talk has them.

    lengths: the mel frames of the utterances; times are those of the talk's 64 forwards. The convolutions on
    the CPU are those of `mkldnn_convolution`, on the GPU those of `cudnn_convolution`, which lacks the
    depthwise ones. Raises CannotBe as `constants` does.
    """
    known = constants(talk, lengths, gpu)
    scale = FORWARDS / len(lengths)
    cpu, device = _by_name(talk)

    def why(name: str, on_cpu: TalkRow, on_gpu: TalkRow) -> Why:
        calls = [product for length in lengths for product in products(length) if product.family == name]
        there = [call for call in calls if call.groups == 1]  # depthwise convolutions run elsewhere
        flops = sum(call.flops for call in there)
        cpu_s = scale * sum(call.flops for call in calls if not call.slow) / known.cpu_flops_per_s
        count = round(scale * sum(call.calls for call in there))
        return Why(
            name,
            Times(cpu_s, count * known.call_s, scale * sum(map(known.device_s, there))),
            Times(1e-6 * _us(on_cpu), 1e-6 * _us(on_gpu), 1e-6 * (on_gpu.device_us or 0.0)),
            at_peak=cpu_s / (scale * flops / known.peak_flops),
            calls=count,
        )

    return (
        why("addmm", cpu["aten::addmm"], device["aten::addmm"]),
        why("convolution", cpu["aten::mkldnn_convolution"], device["aten::cudnn_convolution"]),
    )


def share_of_peak(family: str, mel_frames: int, batch: int, known: Constants) -> float:
    """Return which part of the GPU's peak the model expects of a family of calls, without the host's time."""
    one_of("family", family, ("addmm", "mm", "convolution"))
    calls = [
        product
        for product in products(mel_frames, batch)
        if product.family == family and product.groups == 1  # depthwise convolutions run elsewhere
    ]
    flops = sum(product.flops for product in calls)
    return flops / sum(map(known.device_s, calls)) / known.peak_flops


def _by_name(talk: TalkProfile) -> tuple[dict[str, TalkRow], dict[str, TalkRow]]:
    """Return the CPU's rows and the GPU's."""
    return {row.name: row for row in talk.cpu}, {row.name: row for row in talk.gpu}


def _us(row: TalkRow) -> float:
    return row.self_us or 0.0
