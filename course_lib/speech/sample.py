"""The learner's own sample of sound: what counts as one, and where the last one is kept.

A voice is personal. It is kept in the learner's own data folder and nowhere else, so that running a cell
again, or the notebook tomorrow, does not lose it; `forget` deletes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from course_lib import whole_files
from course_lib.measure.store import data_dir
from course_lib.speech import audio
from course_lib.speech.audio import LONGEST_S

RATE = 16_000  # samples a second, what the recogniser wants
SHORTEST_S = 0.1


@dataclass(frozen=True, eq=False)
class Sample:
    """A sound of one channel: float32 (n,), 16,000 a second, and what to call it."""

    name: str
    samples: NDArray[np.float32]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / RATE

    @property
    def is_silent(self) -> bool:
        """Whether every sample is 0, as from a microphone that is switched off."""
        return not self.samples.any()

    @classmethod
    def of(cls, content: bytes, name: str) -> Sample:
        """Return the sample in a file's bytes. Raises UnreadableAudio, also for too short or too long a one.

        The files are those of `audio.read`; channels are averaged, another rate is resampled.
        """
        samples, rate = audio.from_bytes(content, name)
        seconds = len(samples) / rate
        if seconds < SHORTEST_S:
            can_be = f"{SHORTEST_S} to {LONGEST_S} s can be used"
            raise audio.UnreadableAudio(f"{name} lasts {seconds:.3g} s, but {can_be}: record again.")
        return cls(name, audio.resampled(samples, rate, RATE))


def path() -> Path:
    """Return where the last sample is kept, whether there is one or not."""
    return data_dir() / "speech.wav"


def keep(sample: Sample) -> None:
    """Keep a sample in the place of the one before: a new file is moved over it. Raises OSError."""
    whole_files.write(path(), audio.as_wav(sample.samples, RATE), private=True)


def kept() -> Sample | None:
    """Return the sample that was kept, or None. Raises UnreadableAudio for a file that has been damaged."""
    try:
        content = path().read_bytes()
    except OSError:
        return None
    return Sample("your last sample", Sample.of(content, str(path())).samples)


def forget() -> None:
    """Delete the kept sample. Raises OSError if it is there and cannot be deleted."""
    path().unlink(missing_ok=True)
