"""What the encoder took on another computer: read from files that `record --encoder` wrote there.

    encoder_recordings.newest("cpu")     the newest recording of a CPU, None if there is none
    encoder_recordings.newest("cuda")    of a GPU
    recording.origin                     "recorded on … on …": to be shown with every figure
    recording.profile, recording.points  EncoderOp rows of 64 utterances; the sweep's SpeedPoints

A recording is a JSON file in the folder of this package. As with `measure.recordings`, a file in which
something is missing or makes no sense is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from course_lib.arguments import one_of
from course_lib.measure import recording_files
from course_lib.measure.gpu_state import RecordedGpu
from course_lib.measure.recording_files import (
    Checked,
    Commit,
    Count,
    Moment,
    NotNegative,
    Positive,
    Range,
    RecordingFiles,
    Text,
    Versions,
    naming,
    refuse_twice,
)
from course_lib.speech.encoder_profile import EncoderOp
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import DEVICES

FOLDER = Path(__file__).parent / "recordings"
LARGE_PARAMETERS = 121_435_136
VERSIONS = ("python", "numpy", "torch")


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

    when: Moment  # ISO 8601, UTC
    commit: Commit  # of the course; "+changes" if files differed from it
    device_kind: Literal["cpu", "cuda"]
    device: Text  # "NVIDIA H200", or the CPU's name
    memory_bytes: Count  # the GPU's, or the machine's
    cpu: Text
    cores: Count  # of the CPU, that the process might use
    threads: Count  # hardware threads of them
    simd: Text  # "AVX-512"
    system: Text
    cpu_mhz: Range | None  # of the cores, before and after; None: the system does not tell
    load: NotNegative | None  # processes that wanted to run just before, mean of a minute; None: not known
    gpu: RecordedGpu | None
    versions: Annotated[Versions, naming(VERSIONS)]
    method: Text  # how it was measured, in words
    parameters: Count  # of the encoder
    profile_threads: Count
    forwards: Count  # in the profile, one utterance each
    audio_s: Positive  # of those utterances together
    profile: Annotated[tuple[EncoderOp, ...], Checked(len, "one row or more")]
    points: Annotated[tuple[SpeedPoint, ...], Checked(len, "one point or more")]
    notes: tuple[Text, ...] = ()  # what could not be measured, a sentence each

    def __post_init__(self) -> None:
        if (self.device_kind == "cuda") != (self.gpu is not None):
            raise ValueError(f"'device_kind' is '{self.device_kind}' and 'gpu' is {self.gpu}")
        refuse_twice(f"the point '{point.setting}'" for point in self.points)
        for point in self.points:
            if point.setting.device != self.device_kind:
                raise ValueError(
                    f"the point '{point.setting}' is of another device than '{self.device_kind}'"
                )

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        cores = f"{self.cores} core{'s' * (self.cores > 1)}, {self.simd}"
        what = f"driver {self.gpu.driver}" if self.gpu else cores
        return recording_files.origin(self.device, what, self.when)

    @property
    def is_large(self) -> bool:
        """Whether it was the talk's encoder; others are for trying the command."""
        return self.parameters == LARGE_PARAMETERS


FILES = RecordingFiles("encoder", EncoderRecording, FOLDER)
read, restore, write = FILES.read, FILES.restore, FILES.write


def newest(device_kind: str = "cpu", folder: Path = FOLDER) -> EncoderRecording | None:
    """Return the newest recording of the talk's encoder on a "cpu" or "cuda" device; None if there is none.

    Raises ValueError for another device, MalformedRecording if any file of the folder is no recording.
    """
    one_of("device_kind", device_kind, DEVICES)
    return FILES.newest(folder, lambda one: one.device_kind == device_kind and one.is_large)
