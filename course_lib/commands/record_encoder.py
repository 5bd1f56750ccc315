"""`python -m course_lib record --encoder`: a profile and a sweep of the talk's encoder, for other computers.

On the CPU or on a GPU; the JSON file goes into `course_lib/speech/recordings/`, which
`course_lib.speech.encoder_recordings` reads. The weights are untrained: times do not depend on their values.

On a GPU the sweep has run; the profile has not yet, as a whole.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from typing import Any

from course_lib.commands import record_order
from course_lib.commands.record_order import CannotRecord, RecordOrder, WrongResult
from course_lib.measure import gpu_state, machine
from course_lib.speech import encoder_recordings
from course_lib.speech.encoder_recordings import EncoderRecording
from course_lib.speech.encoder_speed import METHOD, SpeedPoint, grid, measure
from course_lib.speech.encoder_variants import FRAMES_A_SECOND

#: Seconds of measuring; what is built and called before takes as long again, and compiling a minute or two.
BUDGET_S = {"cpu": 120.0, "cuda": 60.0}
UTTERANCES = 64
#: A variant that is further off than this is broken, not rounded: 0.01 to 0.03 was seen on the large encoder.
WORST_ERROR = {"float32": 1e-4, "bfloat16": 0.1, "int8": 0.1}
BUSY = 0.5  # processes a core that wanted to run before the measuring: the file says it, and so does a line
SMALL = {"n_layers": 2, "d_model": 64, "n_heads": 4}


def run(order: RecordOrder) -> int:
    """Measure, print the points and write the file; return the exit code."""
    folder = order.folder_or(encoder_recordings.FOLDER)
    if order.device == "cuda":
        record_order.refuse(machine.missing("torch-cuda"))
    recording = measured(order)
    print(f"\n{recording.origin}. {recording.method}", *recording.notes, sep="\n")
    for point in recording.points:
        took = f"{point.seconds * 1e3:8.4g} ms  {point.audio_per_s:8.4g} audio s/s"
        print(f"{point.setting!s:60} {took}  error {point.error:.0e}")
    record_order.write(encoder_recordings.write, recording, folder)
    return 0


def measured(order: RecordOrder) -> EncoderRecording:
    """Return what this machine does; raises WrongResult if a variant gives no rounding of the result."""
    from course_lib.speech.encoder_profile import profile_encoder, utterances

    load, mhz = _load(), _cpu_mhz()
    here = machine.describe()
    if load is not None and load > BUSY * here.cores:
        print(
            f"The load is {load:.1f} on {here.cores} cores: other programs will be in the figures.",
            flush=True,
        )
    encoder = _encoder(order)
    spoken = utterances(2 if order.small else UTTERANCES)
    watch = gpu_state.Watch()
    with watch if order.device == "cuda" else contextlib.nullcontext():
        print(f"profile of {len(spoken)} utterances …", flush=True)
        profile = profile_encoder(encoder, spoken, order.device, threads=here.cores)
        points, notes = _swept(encoder, order)
    check(points)
    return EncoderRecording(
        when=record_order.now(),
        commit=order.commit,
        device_kind=order.device,
        **_device(order.device),
        cpu=here.cpu,
        cores=here.cores,
        threads=here.threads,
        simd=here.simd,
        system=here.system,
        cpu_mhz=gpu_state.range_of(mhz + _cpu_mhz()),
        load=load,
        gpu=gpu_state.recorded(watch) if order.device == "cuda" else None,
        versions=record_order.versions("numpy", "torch"),
        method=METHOD,
        parameters=sum(weights.numel() for weights in encoder.parameters()),
        profile_threads=here.cores,
        forwards=len(spoken),
        audio_s=sum(features.size(2) for features in spoken) / FRAMES_A_SECOND,
        profile=tuple(profile),
        points=tuple(points),
        notes=tuple(notes),
    )


def _encoder(order: RecordOrder) -> Any:
    """Return the encoder in eval mode on the device, with the same untrained weights every time."""
    import torch

    from course_lib.speech.conformer import ConformerEncoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = ConformerEncoder(**SMALL) if order.small else ConformerEncoder.large()
    return encoder.eval().to(order.device)


def _swept(encoder: Any, order: RecordOrder) -> tuple[list[SpeedPoint], list[str]]:
    """Return the sweep's points, and why others are missing."""
    settings = grid(order.device, small=order.small)
    print(f"sweep over {len(settings)} settings, compiling takes a minute or two …", flush=True)
    notes: list[str] = []
    points = measure(encoder, settings, order.budget_s or BUDGET_S[order.device], skip=notes.append)
    for note in notes:
        print(f"left out: {note}", flush=True)
    if not points:
        raise CannotRecord("none of the settings can be measured here: see what was left out.")
    return points, notes


def check(points: Sequence[SpeedPoint]) -> None:
    """Raise WrongResult for a point whose error no rounding explains."""
    for point in points:
        if not point.error <= WORST_ERROR[point.setting.dtype]:
            raise WrongResult(
                f"{point.setting} is wrong: it is off by {point.error:.1e} of the largest value, more than "
                f"{WORST_ERROR[point.setting.dtype]:.0e}, which {point.setting.dtype} could explain."
            )


def _device(device: str) -> dict[str, Any]:
    """Return the name and the memory of the device."""
    here = machine.describe()
    if device == "cpu":
        return {"device": here.cpu, "memory_bytes": here.memory_bytes}
    import torch

    return {"device": here.gpu.name, "memory_bytes": torch.cuda.get_device_properties(0).total_memory}


def _load() -> float | None:
    """Return how many processes wanted to run in the last minute, None where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _cpu_mhz() -> list[float]:
    """Return the present clock of each core, nothing where the system does not tell."""
    import psutil

    try:
        return [core.current for core in psutil.cpu_freq(percpu=True) or () if 0 < core.current < math.inf]
    except (AttributeError, NotImplementedError, OSError, RuntimeError):
        return []
