"""A sound made by code, for whoever gives none: three vowels, the same on every machine. It is no speech.

The source is a buzz: all harmonics of a pitch that falls as in a statement, upwards 6 dB an octave weaker
(the vocal cords give 12, the mouth's opening takes 6 of them back). The throat is three resonances, the
formants, whose frequencies make the vowel (G. Fant, Acoustic Theory of Speech Production, 1960). Those here
are the means of 33 men (G. E. Peterson, H. L. Barney, "Control methods used in a study of the vowels",
J. Acoust. Soc. Am. 24(2), 1952, table II).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NAME = "synthetic vowels ah, ee, oo (made by code, no speech)"
FORMANTS_HZ = {"ah": (730, 1090, 2440), "ee": (270, 2290, 3010), "oo": (300, 870, 2240)}
WIDTHS_HZ = (80, 100, 140)  # of the resonances
PITCH_HZ = (140.0, 100.0)  # at the beginning and at the end
VOWEL_S, PAUSE_S, FADE_S = 0.5, 0.15, 0.04


def vowels(rate: int = 16_000) -> NDArray[np.float32]:
    """Return ah, ee and oo with pauses around them, 2.1 s: float32 (n,), at most 0.5, `rate` a second."""
    pause = np.zeros(round(PAUSE_S * rate))
    count = round(VOWEL_S * rate)
    pitch = np.linspace(*PITCH_HZ, count * len(FORMANTS_HZ))  # (3 * count,) Hz
    parts = [pause]
    for n, formants in enumerate(FORMANTS_HZ.values()):
        parts += [_vowel(pitch[n * count : (n + 1) * count], formants, rate), pause]
    sound = np.concatenate(parts)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def _vowel(pitch: NDArray[np.float64], formants: tuple[int, ...], rate: int) -> NDArray[np.float64]:
    """Return the sum of all harmonics of `pitch` (n,) below rate / 2, each as loud as the throat makes it."""
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = np.zeros(len(pitch))
    for harmonic in range(1, int(rate / 2 / pitch.max()) + 1):
        sound += _throat(harmonic * pitch, formants) / harmonic * np.sin(harmonic * phase)
    fade = np.clip(np.arange(len(pitch)) / (FADE_S * rate), 0, 1)
    return sound * fade * fade[::-1]


def _throat(hz: NDArray[np.float64], formants: tuple[int, ...]) -> NDArray[np.float64]:
    """Return how much louder resonances of second order make each frequency; 1 at 0 Hz."""
    gain = np.ones_like(hz)
    for middle, width in zip(formants, WIDTHS_HZ, strict=True):
        gain *= middle**2 / np.hypot(middle**2 - hz**2, width * hz)
    return gain
