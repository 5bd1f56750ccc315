"""How fast an encoder is in many settings: the same inputs, everything in turns, every result checked.

    points = measure(encoder, grid("cpu"), budget_s=120)
    points[0].audio_per_s, points[0].error

A second is counted from the call until the result is there, as a service waits for it; on a GPU that
includes what the CPU needs to start the work. `busy_s` is the GPU's own time for the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from course_lib.arguments import number
from course_lib.measure import gpu_timing, hardware, timing
from course_lib.measure.recording_files import Count, NotNegative, Positive
from course_lib.speech.encoder_profile import mel_features
from course_lib.speech.encoder_variants import (
    FRAMES_A_SECOND,
    CannotMeasure,
    Setting,
    Variants,
    missing,
)
from course_lib.speech.profiling import steady

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.speech.conformer import ConformerEncoder

ROUNDS = 3  # at least: fewer samples have no spread
ROUNDS_BUSY = 7
SHARE_BUSY = 0.25  # of the budget, on a GPU, for the GPU's own time
LENGTH_S = 2  # of the utterances in the sweeps of batch, dtype and threads: in five minutes on two cores
LENGTHS_S = (1, 2, 5, 10, 20)
BATCHES = {"cpu": (1, 2, 4, 8, 16, 32), "cuda": (1, 2, 4, 8, 16, 32, 64, 128)}
OTHER_DTYPES = ("bfloat16", "int8")
METHOD = (
    "Normally distributed mel features, the same for all settings, rows of full length; settings in shuffled "
    "order, round after round; seconds of wall time from the call until the result is there, the median; "
    "spread: half the middle half; without gradients, on a heap whose memory is already mapped; TF32 off; "
    "compiled: torch.compile of each layer, CUDA graph: of the whole forward, both made before; int8: linear "
    "layers only, a scale for each output channel of the weights and for each frame, made anew in each call; "
    "error: largest difference from eager float32 on the same device over its largest value."
)


@dataclass(frozen=True)
class SpeedPoint:
    """What one setting takes for a forward, and how far its result is from that of eager float32."""

    setting: Setting
    seconds: Positive  # from the call until the result is there, the median of `samples`
    spread_s: NotNegative  # half the distance between the quartiles
    samples: Count
    error: NotNegative  # max|y - y32| / max|y32| for the encoded (B, d_model, T')
    busy_s: Positive | None = None  # of the GPU for a forward when its queue never runs dry; None on a CPU

    @property
    def audio_per_s(self) -> float:
        """Seconds of audio that are encoded in a second."""
        return self.setting.audio_s / self.seconds

    @property
    def per_utterance_s(self) -> float:
        """Seconds of the machine that one utterance costs; it waits `seconds` all the same."""
        return self.seconds / self.setting.batch


def grid(device: str = "cpu", threads: int | None = None, small: bool = False) -> list[Setting]:
    """Return the settings of the chapter's sweeps, the baseline (batch 1, eager float32) first, each once.

    Batch, length, dtype, threads and torch.compile, one after the other and not their full product; on a GPU
    CUDA graphs as well. `threads` is the most (None: the cores of this machine). `small` is for trying out.
    """
    most = 1 if device == "cuda" else threads or hardware.cores()
    base = Setting(1, LENGTH_S * FRAMES_A_SECOND, "float32", most, "eager", device)
    if small:
        base = base.but(frames=FRAMES_A_SECOND)
        settings = [base, base.but(batch=2), base.but(frames=2 * FRAMES_A_SECOND), base.but(threads=1)]
        return list(dict.fromkeys([*settings, *(base.but(dtype=dtype) for dtype in OTHER_DTYPES)]))

    def swept(**values: Iterable[Any]) -> list[Setting]:
        return [base.but(**dict(zip(values, one, strict=True))) for one in product(*values.values())]

    settings = swept(batch=BATCHES[device])
    settings += swept(frames=[length * FRAMES_A_SECOND for length in LENGTHS_S])
    settings += swept(dtype=OTHER_DTYPES, batch=(1, 8))
    powers = (2**n for n in range(most.bit_length()) if 2**n <= most)
    settings += swept(threads=sorted({*powers, most}))
    settings += swept(how=["compiled"], batch=(1, 8))
    if device == "cuda":
        settings += swept(dtype=OTHER_DTYPES, batch=[64])
        settings += swept(how=["graph"], batch=(1, 8))
        settings += swept(how=["graph"], dtype=["bfloat16"], batch=(1, 8, 64))
    return list(dict.fromkeys(settings))


def measure(
    encoder: ConformerEncoder,
    settings: Sequence[Setting],
    budget_s: float = 60.0,
    skip: Callable[[str], None] | None = None,
) -> list[SpeedPoint]:
    """Return a point for each setting, in their order; settings take turns, with equal inputs.

    Rounds are added until the ratios to the first setting are certain enough or `budget_s` seconds are spent,
    but at least three; building, compiling and the first calls (two to five of each) come on top. A
    setting that cannot be measured here raises CannotMeasure with a sentence, or, with `skip`, is left out
    and skip(sentence) called. `encoder` must be in eval mode; its weights decide the errors, not the times.
    """
    settings = list(settings)
    if not settings or not all(isinstance(setting, Setting) for setting in settings):
        raise TypeError("settings must be one Setting or more, in a list: grid() gives the chapter's.")
    if twice := next((setting for setting in settings if settings.count(setting) > 1), None):
        raise ValueError(f"the setting '{twice}' stands there twice: give each once.")
    number("budget_s", budget_s, above=0)
    with _as_a_service(max(setting.threads for setting in settings)):
        ready = _made_ready(encoder, settings, skip)
        if not ready:
            return []
        share = SHARE_BUSY if any(setting.device == "cuda" for setting in ready) else 0
        rows = _wall(ready, budget_s * (1 - share))
        busy = _busy(ready, budget_s * share)
    return [
        SpeedPoint(
            setting=setting,
            seconds=row.seconds,
            spread_s=row.spread_s,
            samples=row.rounds,
            error=error,
            busy_s=busy.get(setting),
        )
        for (setting, (_, error)), row in zip(ready.items(), rows, strict=True)
    ]


Ready = dict[Setting, tuple[Callable[[], "Tensor"], float]]  # the forward, and the error of its result


@contextmanager
def _as_a_service(threads: int) -> Iterator[None]:
    """No gradients, a grown heap, float32 that is float32 also on tensor cores and in oneDNN."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with steady(threads), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _made_ready(
    encoder: ConformerEncoder, settings: Sequence[Setting], skip: Callable[[str], None] | None
) -> Ready:
    """Build and call every setting once; those with the same input are compared with one reference."""
    variants, ready = Variants(encoder), Ready()
    #: The plain setting of a kind of input, that input, its forward and its result.
    references: dict[tuple[str, int, int], tuple[Setting, Tensor, Callable[[], Tensor], Tensor]] = {}
    for setting in settings:
        kind = setting.device, setting.batch, setting.frames
        try:
            if sentence := missing(setting, encoder):
                raise CannotMeasure(sentence)
            if kind not in references:
                plain = setting.but(dtype="float32", how="eager")
                features = _features(setting.batch, setting.frames, encoder.feat_in)
                references[kind] = plain, features, *_tried(plain, variants, features)
            plain, features, forward, reference = references[kind]
            result = reference
            if setting != plain:
                forward, result = _tried(setting, variants, features)
            ready[setting] = forward, float((result - reference).abs().max() / reference.abs().max())
        except CannotMeasure as problem:
            if skip is None:
                raise
            skip(str(problem))
    return ready


def _tried(setting: Setting, variants: Variants, features: Tensor) -> tuple[Callable[[], Tensor], Tensor]:
    """Return the setting's forward and its first result, float32 on the CPU; raises CannotMeasure."""
    import torch

    try:
        forward = variants.forward(setting, features)
        torch.set_num_threads(setting.threads)
        # from a GPU this waits for the work
        result = forward().to(device="cpu", dtype=torch.float32, copy=True)
    except Exception as problem:  # a compiler, a driver, memory: whatever it is, the other settings go on
        raise CannotMeasure(_why(setting, problem)) from problem
    if not bool(result.isfinite().all()):
        raise CannotMeasure(f"A {setting} gives no finite numbers, so its time means nothing.")
    return forward, result


def _why(setting: Setting, problem: Exception) -> str:
    if "InvalidCxxCompiler" in f"{type(problem).__name__} {problem}":
        return (
            "torch.compile needs a C++ compiler for the CPU, and none works here: install g++ "
            "(Debian: apt install g++)."
        )
    problem = getattr(problem, "inner_exception", problem)  # what torch.compile's backend stumbled over
    first = str(problem).strip().partition("\n")[0].rstrip(".")
    return f"A {setting} cannot be measured here ({type(problem).__name__}: {first})."


def _features(batch: int, frames: int, bands: int) -> Tensor:
    """Return (batch, bands, frames) float32; row 3 of a batch is the same in every batch."""
    import torch

    return torch.cat([mel_features(frames, seed=row, bands=bands) for row in range(batch)])


def _wall(ready: Ready, budget_s: float) -> list[timing.TimedRow]:
    """Return the row of each setting: wall time, because `compare` takes it for two threads and more."""
    functions = {str(setting): _until_done(setting, forward) for setting, (forward, _) in ready.items()}
    threads = max(max(2 * (setting.device == "cuda"), setting.threads) for setting in ready)
    rows = timing.compare(functions, threads=threads, budget_s=budget_s, min_rounds=ROUNDS, max_error=False)
    return [rows.row(str(setting)) for setting in ready]  # two may have one name: threads, on a GPU


def _until_done(setting: Setting, forward: Callable[[], Tensor]) -> Callable[[], None]:
    import torch

    def run() -> None:
        torch.set_num_threads(setting.threads)
        forward()
        if setting.device == "cuda":
            torch.cuda.synchronize()

    return run


def _busy(ready: Ready, budget_s: float) -> dict[Setting, float]:
    """Return the GPU's own seconds for a forward of each setting there."""
    named = {str(setting): forward for setting, (forward, _) in ready.items() if setting.device == "cuda"}
    taken = gpu_timing.samples(named, ROUNDS_BUSY, budget_s) if named else {}
    return {setting: taken[str(setting)].median_s for setting in ready if str(setting) in taken}
