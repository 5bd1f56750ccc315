"""What the encoder took on another computer: read from files that `record --encoder` wrote there.

    encoder_recordings.newest("cpu")     the newest recording of a CPU, None if there is none
    encoder_recordings.newest("cuda")    of a GPU
    recording.origin                     "recorded on … on …": to be shown with every figure
    recording.profile, recording.points  EncoderOp rows of 64 utterances; the sweep's SpeedPoints

A recording is a JSON file in the folder of this package. As with `measure.recordings`, a file in which
something is missing or makes no sense is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.measure import recorded_fields as fields
from course_lib.measure import recorded_gpu
from course_lib.measure.recorded_fields import Range, Wrong
from course_lib.measure.recorded_gpu import Gpu
from course_lib.speech.encoder_profile import EncoderOp
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import DEVICES, Setting

FOLDER = Path(__file__).parent / "recordings"
KIND, FORMAT = "encoder", 1
LARGE_PARAMETERS = 121_435_136
VERSIONS = ("python", "numpy", "torch")
MICROSECONDS = ("self_cpu_us", "total_cpu_us", "self_device_us", "total_device_us")


def none(device_kind: str = "cpu") -> str:
    """Return what is said where there is no recording of a "cpu" or "cuda"."""
    what = "GPU" if device_kind == "cuda" else "CPU"
    return (
        f"The encoder has not been recorded on a {what} yet: `python -m course_lib record --encoder --device "
        f"{device_kind}` on a machine with one writes a file that is shown here."
    )


@dataclass(frozen=True)
class EncoderRecording:
    """One run on one device: a profile of `forwards` utterances, and a sweep over settings, in turns."""

    when: str  # ISO 8601, UTC
    commit: str  # of the course; "+changes" if files differed from it
    device_kind: str  # "cpu" or "cuda"
    device: str  # "NVIDIA H200", or the CPU's name
    memory_bytes: int  # the GPU's, or the machine's
    cpu: str
    cores: int  # of the CPU, that the process might use
    threads: int  # hardware threads of them
    simd: str  # "AVX-512"
    system: str
    cpu_mhz: Range | None  # of the cores, before and after; None: the system does not tell
    load: float | None  # processes that wanted to run just before, mean of a minute; None: not known
    gpu: Gpu | None
    versions: Mapping[str, str]  # of VERSIONS
    method: str  # how it was measured, in words
    parameters: int  # of the encoder
    profile_threads: int
    forwards: int  # in the profile, one utterance each
    audio_s: float  # of those utterances together
    profile: tuple[EncoderOp, ...]
    points: tuple[SpeedPoint, ...]
    notes: tuple[str, ...] = ()  # what could not be measured, a sentence each

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        if self.gpu:
            return fields.origin(self.device, f"driver {self.gpu.driver}", self.when)
        cores = f"{self.cores} core{'s' * (self.cores > 1)}"
        return fields.origin(self.device, f"{cores}, {self.simd}", self.when)

    @property
    def is_large(self) -> bool:
        """Whether it was the talk's encoder; others are for trying the command."""
        return self.parameters == LARGE_PARAMETERS

    def data(self) -> dict[str, Any]:
        """Return it as JSON can hold it; a point's setting lies flat beside its figures."""
        content = asdict(self)
        content["points"] = [{**point.pop("setting"), **point} for point in content["points"]]
        return {"kind": KIND, "format": FORMAT, **content}


def newest(device_kind: str = "cpu", folder: Path = FOLDER, large: bool = True) -> EncoderRecording | None:
    """Return the newest recording of a "cpu" or "cuda" device; None if there is none.

    `large` False takes recordings of other encoders than the talk's, too. Raises ValueError for another kind
    of device, MalformedRecording if any file of the folder is no recording.
    """
    if device_kind not in DEVICES:
        raise ValueError(f"device_kind is {device_kind!r}, but it must be one of {', '.join(DEVICES)}.")
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    fitting = [one for one in found if one.device_kind == device_kind and (one.is_large or not large)]
    return max(fitting, key=lambda recording: fields.moment(recording.when), default=None)


def write(recording: EncoderRecording, folder: Path = FOLDER) -> Path:
    """Write a recording into a file of its own and return the path; raises OSError if that cannot be done."""
    return fields.write(recording.data(), folder, restore)


def read(path: Path) -> EncoderRecording:
    """Return the recording of a file; raises MalformedRecording, or OSError if there is no such file."""
    return restore(fields.content_of(path), path.name)


def restore(content: Any, name: str = "this") -> EncoderRecording:
    """Return the recording that `data` made; raises MalformedRecording with what is wrong."""
    return fields.checked(_restored, content, name, "--encoder")


# -- what makes sense --------------------------------------------------------------------------------------


def _restored(content: Any) -> EncoderRecording:
    if not isinstance(content, dict) or (content.get("kind"), content.get("format")) != (KIND, FORMAT):
        raise Wrong(f"it does not say 'kind': '{KIND}' and 'format': {FORMAT}")
    texts = ("device", "cpu", "simd", "system", "method")
    wholes = ("memory_bytes", "cores", "threads", "parameters", "profile_threads", "forwards")
    versions = fields.value(content, "versions", dict)
    recording = EncoderRecording(
        when=fields.date(content, "when"),
        commit=fields.commit(content, "commit"),
        device_kind=_one_of(content, "device_kind", DEVICES),
        **{name: fields.text(content, name) for name in texts},
        **{name: fields.whole(content, name) for name in wholes},
        cpu_mhz=fields.perhaps(fields.span, content, "cpu_mhz"),
        load=fields.perhaps(_not_negative, content, "load"),
        gpu=fields.perhaps(recorded_gpu.restored, content, "gpu"),
        versions={name: fields.text(versions, name) for name in VERSIONS},
        audio_s=fields.number(content, "audio_s"),
        profile=fields.rows(_op, content, "profile", "row of the profile"),
        points=fields.rows(_point, content, "points", "point"),
        notes=tuple(fields.text({"notes": note}, "notes") for note in fields.value(content, "notes", list)),
    )
    _check_together(recording)
    return recording


def _check_together(recording: EncoderRecording) -> None:
    """Raise Wrong for what is well written and contradicts itself."""
    if (recording.device_kind == "cuda") != (recording.gpu is not None):
        raise Wrong(f"'device_kind' is '{recording.device_kind}' and 'gpu' is {recording.gpu}")
    for name in ("profile", "points"):
        if not getattr(recording, name):
            raise Wrong(f"'{name}' is empty")
    settings = [point.setting for point in recording.points]
    if twice := next((one for one in settings if settings.count(one) > 1), None):
        raise Wrong(f"the point '{twice}' stands there twice")
    if stray := next((one for one in settings if one.device != recording.device_kind), None):
        raise Wrong(f"the point '{stray}' is of another device than '{recording.device_kind}'")


def _op(content: dict) -> EncoderOp:
    return EncoderOp(
        name=fields.text(content, "name"),
        kind=_one_of(content, "kind", ("operator", "kernel")),
        calls=fields.whole(content, "calls"),
        **{name: _not_negative(content, name) for name in (*MICROSECONDS, "flops", "bytes")},
    )


def _point(content: dict) -> SpeedPoint:
    numbers = {name: fields.whole(content, name) for name in ("batch", "frames", "threads")}
    texts = {name: fields.text(content, name) for name in ("dtype", "how", "device")}
    try:
        setting = Setting(**numbers, **texts)
    except ValueError as problem:
        raise Wrong(str(problem).rstrip(".")) from None
    return SpeedPoint(
        setting=setting,
        seconds=fields.number(content, "seconds"),
        spread_s=_not_negative(content, "spread_s"),
        samples=fields.whole(content, "samples"),
        error=_not_negative(content, "error"),
        busy_s=fields.perhaps(fields.number, content, "busy_s"),
    )


def _not_negative(content: dict, name: str) -> float:
    return fields.number(content, name, least=0)


def _one_of(content: dict, name: str, known: tuple[str, ...]) -> str:
    found = fields.text(content, name)
    if found not in known:
        raise Wrong(f"'{name}' is {found!r}, not one of {', '.join(known)}")
    return found
