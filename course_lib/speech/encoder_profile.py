"""The talk's experiment: an encoder profiled over 64 utterances, every call counted and put in its part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from course_lib.measure.recording_files import Count, NotNegative, Text
from course_lib.speech.operator_work import CONVOLUTIONS, CallWork, work
from course_lib.speech.profiling import labelled, part_of, steady

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from course_lib.speech.conformer import ConformerEncoder

# Frames of 10 ms, shortest and longest, and how many of 64: the mix that gives the talk's calls. The classes'
# inner bounds follow from which convolutions torch 2.13 sends to mkldnn; the outer ones are a choice.
LENGTH_CLASSES = ((100, 160, 6), (161, 256, 22), (257, 480, 36))


@dataclass(frozen=True)
class EncoderOp:
    """One operator or GPU kernel, summed over all forwards; times in microseconds, `self` without callees.

    `flops` and `bytes` are counted from shapes (see operator_work), `kind` is "operator" or "kernel".
    """

    name: Text
    kind: Literal["operator", "kernel"]
    calls: Count
    self_cpu_us: NotNegative
    total_cpu_us: NotNegative
    self_device_us: NotNegative
    total_device_us: NotNegative
    flops: NotNegative
    bytes: NotNegative


def mel_features(frames: int, seed: int, bands: int = 80) -> Tensor:
    """Return (1, bands, frames) float32, normally distributed as normalised mel features are, not speech."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, bands, frames, generator=generator)


def utterances(count: int = 64, seed: int = 7) -> list[Tensor]:
    """Return `count` (a multiple of 64 keeps the talk's mix exact) utterances of mel features (1, 80, T).

    Classes take turns in proportion, so that any first part is about as mixed as the whole.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    whole = sum(share for *_, share in LENGTH_CLASSES)
    turns = sorted(
        ((turn + 0.5) / share, index)
        for index, (*_, share) in enumerate(LENGTH_CLASSES)
        for turn in range(share)
    )
    chosen = [LENGTH_CLASSES[turns[number % whole][1]] for number in range(count)]
    frames = [int(rng.integers(shortest, longest + 1)) for shortest, longest, _ in chosen]
    return [mel_features(length, seed + number) for number, length in enumerate(frames)]


def profile_encoder(
    encoder: ConformerEncoder, utterances: Iterable[Tensor], device: str = "cpu", threads: int = 2
) -> list[EncoderOp]:
    """Return one row for each operator (and kernel, on a GPU), summed over a forward of each utterance.

    Utterances are features (1, 80, T), one a forward, without gradients, on `threads` torch threads; the
    first is run once before, unmeasured. Most self time first: on the device, then on the CPU. The profiler's
    bookkeeping is in the times, so use them as shares; calls, flops and bytes are exact.
    """
    import numpy as np

    sums: dict[tuple[str, str], NDArray[np.float64]] = defaultdict(lambda: np.zeros(7))
    for events in recorded_forwards(encoder, utterances, device, threads):
        for event in events:
            needs = _work_of(event)
            sums[event.name, "operator" if event.device_type.name == "CPU" else "kernel"] += (
                event.count,
                event.self_cpu_time_total,
                event.cpu_time_total,
                event.self_device_time_total,
                event.device_time_total,
                needs.flops,
                needs.bytes,
            )
    rows = [EncoderOp(*key, int(total[0]), *total[1:].tolist()) for key, total in sums.items()]
    return sorted(rows, key=lambda row: (-row.self_device_us, -row.self_cpu_us))


def calls_in_parts(
    encoder: ConformerEncoder, utterances: Iterable[Tensor], threads: int = 2
) -> Counter[tuple[str, str]]:
    """Return how often each part of the encoder called an operator: {("layers.*.self_attn", "aten::mm"): …}.

    It runs on the CPU. A call belongs to the innermost part that was running; all layers are added up in
    "layers.*".
    """
    counted: Counter[tuple[str, str]] = Counter()
    with labelled(_parts(encoder)):
        for events in recorded_forwards(encoder, utterances, "cpu", threads):
            for event in events:
                if event.name.startswith("aten::"):
                    counted[part_of(event) or _HERE, event.name] += 1
    return counted


_HERE = "encoder"
# Calls of one forward, batch of 1. Convolutions are counted by what they all go through, aten::convolution.
_ONCE = {
    "pre_encode": {
        "convolution": 2,
        "addmm": 1,
        "add": 2 * 2,  # two convolutions: length + padding − kernel, and + 1
        # lengths to float, int32, int64: 3; three constants in each of two formulas: 6;
        # the first convolution's input in rows, the flattening, the bias of the linear layer: 3
        "copy_": 3 + 6 + 3,
    },
    _HERE: {"copy_": 1 + 1},  # the constant sqrt(d_model), the mask for all queries
}
_FEED_FORWARD = {"addmm": 2, "silu": 1, "copy_": 2}  # copied: the bias of each addmm
_EACH_LAYER = {
    "layers.*": {"add": 4, "copy_": 2},  # the residual connections; the constant ½, twice
    "layers.*.feed_forward1": _FEED_FORWARD,
    "layers.*.feed_forward2": _FEED_FORWARD,
    "layers.*.self_attn": {
        "addmm": 4,  # query, key, value, out
        "mm": 1,  # positions: no bias
        "bmm": 3,  # scores by content, scores by distance, weights · values
        "add": 3,  # u, v, and the two scores
        # the biases: 4; rel_shift's column: 1; the constant sqrt(d_k): 1; two masks: 2; heads side by side: 1
        "copy_": 4 + 1 + 1 + 2 + 1,
    },
    "layers.*.conv": {
        "convolution": 3,  # pointwise, depthwise, pointwise
        "silu": 1,
        "copy_": 3,  # time last for the first convolution, the mask, the padding
    },
    **{
        f"layers.*.norm_{place}": {"native_layer_norm": 1}
        for place in ("feed_forward1", "self_att", "conv", "feed_forward2", "out")
    },
}


def calls_by_part(n_layers: int = 18, forwards: int = 1) -> Counter[tuple[str, str]]:
    """Return the calls that the architecture asks for: {(part, operator): calls}, as `calls_in_parts` counts.

    For a batch of one row on the CPU, in the old mode. addmm: n_layers · (2 + 2 + 4) + 1, 145 for 18 layers.
    A convolution that torch does not give to mkldnn (`_slow_conv2d_forward`) makes one copy_ more.
    """
    calls: Counter[tuple[str, str]] = Counter()
    for times, parts in ((forwards, _ONCE), (forwards * n_layers, _EACH_LAYER)):
        for part, operators in parts.items():
            calls.update({(part, f"aten::{name}"): times * each for name, each in operators.items()})
    return calls


def recorded_forwards(
    encoder: Any, utterances: Iterable[Tensor], device: str, threads: int
) -> Iterator[Sequence[Any]]:
    """Yield the profiler's events of a forward of each utterance (1, 80, T); the first is run once before.

    One profile each keeps memory bounded. Raises ValueError for an encoder in training mode.
    """
    import torch

    if encoder.training:
        raise ValueError("the encoder is in training mode, but what is measured is inference: call .eval().")
    with steady(threads):
        for number, features in enumerate(utterances):
            features = features.to(device)
            lengths = torch.tensor([features.size(2)], device=device)
            if number == 0:
                _profiled(encoder, features, lengths)
            yield _profiled(encoder, features, lengths)


def _profiled(encoder: Any, features: Tensor, lengths: Tensor) -> Sequence[Any]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if features.is_cuda:
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True) as recording:
        encoder(features, lengths)
        if features.is_cuda:
            torch.cuda.synchronize(features.device)
    events = recording.events()
    if events and not hasattr(events[0], "input_dtypes"):
        _take_dtypes(events, recording.profiler.kineto_results.events())
    return events


def _take_dtypes(events: Iterable[Any], read: Iterable[Any]) -> None:
    """Give events the dtypes of their inputs: torch 2.11 leaves them in the recording that it reads.

    A kernel there has no inputs, but may have the number of an operator.
    """
    dtypes = {one.correlation_id(): one.dtypes() for one in read if one.shapes()}
    for event in events:
        event.input_dtypes = dtypes.get(event.id, [])


def _work_of(event: Any) -> CallWork:
    """Return the work of one event; a convolution's shapes are its aten::convolution's."""
    name = event.name
    if name in CONVOLUTIONS:
        while event is not None and event.name != "aten::convolution":
            event = event.cpu_parent
    if event is None or not event.input_shapes:
        return CallWork()
    return work(name, event.input_shapes, event.input_dtypes, event.concrete_inputs)


def _parts(encoder: ConformerEncoder) -> Iterator[tuple[str, Any]]:
    """Yield the parts that calls are put in, all layers under one name."""
    yield "pre_encode", encoder.pre_encode
    yield "pos_enc", encoder.pos_enc
    for layer in encoder.layers:
        yield "layers.*", layer
        for name, part in layer.named_children():
            yield f"layers.*.{name}", part
