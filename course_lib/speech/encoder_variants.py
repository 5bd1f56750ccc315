"""One encoder made ready in several ways: on another device, in another number format, compiled, as a graph.

Each variant is made once and shares what it can: int8 and compiled ones have the float32 weights of the
encoder they came from, so that beside the large encoder (486 MB) bfloat16 takes another half, int8 a quarter.

"graph" follows torch's documentation ("CUDA semantics: CUDA Graphs").
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from course_lib.arguments import one_of, whole
from course_lib.measure import hardware, machine
from course_lib.measure.sizes import in_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.speech.conformer import ConformerEncoder

DEVICES = ("cpu", "cuda")
DTYPES = ("float32", "bfloat16", "int8")
#: "compiled": torch.compile, layer by layer; "graph": one CUDA graph of the whole forward.
HOWS = ("eager", "compiled", "graph")
FRAMES_A_SECOND = 100  # of mel features, one every 10 ms
GRAPH_WARM_UPS = 3
LIVE_COPIES = 3  # of the first convolution's output at once: the convolution's, the ReLU's, the next one's


class CannotMeasure(RuntimeError):
    """This setting cannot be measured here; the message is one sentence that says why."""


@dataclass(frozen=True)
class Setting:
    """How an encoder is run: `batch` rows of `frames` mel frames each.

    dtype: of weights and activations; "int8" has linear layers in int8, the rest in float32 (see
    `speech.int8`). threads: of the CPU, for torch. how: one of HOWS. Raises ValueError for what there is not.
    """

    batch: int = 1
    frames: int = 5 * FRAMES_A_SECOND
    dtype: str = "float32"
    threads: int = 1
    how: str = "eager"
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("batch", "frames", "threads"):
            whole(name, getattr(self, name))
        for name, known in (("dtype", DTYPES), ("how", HOWS), ("device", DEVICES)):
            one_of(name, getattr(self, name), known)

    @property
    def audio_s(self) -> float:
        """Seconds of audio in a forward."""
        return self.batch * self.frames / FRAMES_A_SECOND

    @property
    def length_s(self) -> float:
        """Seconds of audio in one row."""
        return self.frames / FRAMES_A_SECOND

    def but(self, **changes: Any) -> Setting:
        """Return this setting with something changed."""
        return replace(self, **changes)

    def __str__(self) -> str:
        on = "on a GPU" if self.device == "cuda" else f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"batch {self.batch} of {self.length_s:g} s, {self.dtype}, {self.how}, {on}"


def missing(setting: Setting, encoder: ConformerEncoder) -> str | None:
    """Return one sentence that says why a setting cannot be measured here, None if it should be possible.

    Whether torch.compile finds a compiler shows in the trying.
    """
    if setting.device == "cuda" and (sentence := machine.missing("torch-cuda")):
        return sentence
    if setting.how == "graph" and setting.device == "cpu":
        return "A CUDA graph needs a GPU, and the device is the CPU: take how='eager' or 'compiled'."
    if setting.threads > hardware.threads():
        return f"{setting.threads} threads were asked for, and this process may use {hardware.threads()}."
    if (needed := working_bytes(setting, encoder)) > (free := _free(setting.device)):
        return (
            f"A {setting} needs about {in_bytes(needed)} beside the weights, and {in_bytes(free)} are free: "
            "take a smaller batch."
        )
    return None


def working_bytes(setting: Setting, encoder: ConformerEncoder) -> int:
    """Return about how much memory a forward takes at its peak, in the subsampling: the weights excluded."""
    channels = encoder.pre_encode.conv[0].out_channels
    numbers = setting.batch * channels * -(-setting.frames // 2) * -(-encoder.feat_in // 2)
    return LIVE_COPIES * numbers * (2 if setting.dtype == "bfloat16" else 4)


def _free(device: str) -> int:
    if device == "cuda":
        import torch

        return torch.cuda.mem_get_info()[0]
    import psutil

    return min(psutil.virtual_memory().available, hardware.memory_bytes())


class Variants:
    """The encoder in all the ways that settings ask for; each way is made when it is first asked for."""

    def __init__(self, encoder: ConformerEncoder) -> None:
        """Raise ValueError for an encoder in training mode."""
        if encoder.training:
            raise ValueError(
                "the encoder is in training mode, but what is measured is inference: call .eval()."
            )
        self._encoder = encoder
        self._made: dict[tuple[str, str, str], ConformerEncoder] = {}

    def forward(self, setting: Setting, features: Tensor) -> Callable[[], Tensor]:
        """Return a function that encodes `features` (B, feat_in, T) as the setting says: (B, d_model, T').

        On a GPU it returns when the work is queued, not when it is done. All rows are full. Call it without
        gradients and on the setting's threads.
        """
        import torch

        dtype = torch.bfloat16 if setting.dtype == "bfloat16" else torch.float32
        features = features.to(device=setting.device, dtype=dtype)
        lengths = torch.full((features.size(0),), features.size(2), device=setting.device)
        how = "eager" if setting.how == "graph" else setting.how
        encoder = self._variant(setting.device, setting.dtype, how)

        def forward() -> Tensor:
            return encoder(features, lengths)[0]

        return Graphed(forward) if setting.how == "graph" else forward

    def _variant(self, device: str, dtype: str, how: str) -> ConformerEncoder:
        key = (device, dtype, how)
        if key not in self._made:
            self._made[key] = self._make(device, dtype, how)
        return self._made[key]

    def _make(self, device: str, dtype: str, how: str) -> ConformerEncoder:
        import torch

        from course_lib.speech.int8 import sharing_weights, with_int8_linears

        if how == "compiled":
            if not any(made_how == "compiled" for *_, made_how in self._made):
                torch.compiler.reset()  # what was compiled before counts towards the limit of recompilations
            compiled = sharing_weights(self._variant(device, dtype, "eager"))
            for layer in compiled.layers:  # one layer is compiled, the others find it done
                layer.compile(dynamic=False, fullgraph=True)
            return compiled
        if dtype == "int8":
            return with_int8_linears(self._variant(device, "float32", "eager"))
        if dtype == "bfloat16":
            return copy.deepcopy(self._encoder).to(device=device, dtype=torch.bfloat16)
        is_there = next(self._encoder.parameters()).device.type == device
        return self._encoder if is_there else copy.deepcopy(self._encoder).to(device)


class Graphed:
    """A function's GPU work recorded once and replayed as a whole: one launch instead of a thousand.

    Addresses are part of the record: the function must read the same tensors each time, and each replay
    writes its result over the one before.
    """

    def __init__(self, function: Callable[[], Tensor]) -> None:
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())  # the inputs must be there
        with torch.cuda.stream(stream):  # cuBLAS and cuDNN make their workspaces before
            for _ in range(GRAPH_WARM_UPS):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            self._result = function()
        self._function = function  # keeps what it reads alive

    def __call__(self) -> Tensor:
        """Queue the recorded work; the result is there when the current stream has come to its end."""
        self._graph.replay()
        return self._result
