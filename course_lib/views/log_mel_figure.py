"""A sound as the recogniser meets it: the wave, and below it how loud each band of frequencies is."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from course_lib import theme
from course_lib.theme import INK, PAPER, PINK, VIOLET, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

BANDS = 80
SHOWN_DB = 80.0  # below the loudest; what is weaker is as light as the paper
MARKED_HZ = (100, 300, 1000, 2000, 4000, 8000)
MOST_COLUMNS = 1600  # more of a wave than the picture has pixels cannot be seen


def log_mel(samples: NDArray[np.floating]) -> Picture:
    """Return the wave of samples (n,), 16,000 a second, and its 80 mel bands, both by `speech.features`.

    The bands are in dB relative to the loudest place. Raises ValueError for what is no sound of one channel,
    or too short for the front end.
    """
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype.kind != "f" or not np.isfinite(samples).all():
        raise ValueError(
            f"Samples are {samples.dtype} of shape {samples.shape}, but must be finite floating-point "
            "numbers of shape (n,): take one channel, as speech.audio.read gives it."
        )
    mels = _mels(samples.astype(np.float32, copy=False))
    said = _finding(samples, mels)
    seconds = len(samples) / 16_000
    with theme.figure(8.4, 5.0) as fig:
        wave, bands = fig.subplots(2, 1, sharex=True, height_ratios=(1, 2.4))
        _draw_wave(wave, samples, seconds)
        _draw_bands(bands, mels, seconds)
        wave.set_title(textwrap.fill(said, 60))
        return Picture.of(fig, f"{said}. {_words(samples, mels)}.")


def _mels(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the bands (80, frames) in dB relative to the loudest place."""
    import torch

    from course_lib.speech.features import LogMel

    mels, _ = LogMel(BANDS).log_mels(torch.from_numpy(samples)[None])
    shown = mels[0].numpy()
    return (shown - shown.max()) * np.float32(10 / np.log(10))


def _draw_wave(axes: Axes, samples: NDArray[np.float32], seconds: float) -> None:
    """Draw the samples, or where there are too many the least and the largest of each piece of time."""
    pieces = np.array_split(samples, min(len(samples), MOST_COLUMNS))
    times = (np.arange(len(pieces)) + 0.5) * seconds / len(pieces)
    low, high = [piece.min() for piece in pieces], [piece.max() for piece in pieces]
    axes.fill_between(times, low, high, color=PINK, linewidth=0.8, zorder=3)
    reach = max(float(np.abs(samples).max()) * 1.1, 1e-3)
    axes.set(ylabel="amplitude\n(full scale 1)", ylim=(-reach, reach))


def _draw_bands(axes: Axes, mels: NDArray[np.float32], seconds: float) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("loudness", [PAPER, "#ffb3d9", PINK, VIOLET, INK])
    place = (0.0, seconds, 0.5, BANDS + 0.5)
    image = axes.imshow(mels, scale, aspect="auto", origin="lower", extent=place, vmin=-SHOWN_DB, vmax=0.0)
    image.set_interpolation("nearest")
    axes.set(xlabel="time in s", ylabel=f"mel band (1 to {BANDS})", yticks=(1, 20, 40, 60, 80))
    axes.grid(visible=False)
    in_hz = axes.secondary_yaxis("right")
    in_hz.set_yticks([band_at(hz) for hz in MARKED_HZ], [f"{hz:,}" for hz in MARKED_HZ])
    in_hz.set_ylabel("middle of the band in Hz")
    axes.figure.colorbar(image, ax=axes, label="dB relative to the loudest place", pad=0.02, aspect=30)


def band_at(hz: float) -> float:
    """Return which band, counted from 1, has its middle at a frequency; between two it is a fraction."""
    return 1.0 + float(np.interp(hz, _middles(), np.arange(BANDS)))


def _middles() -> NDArray[np.float64]:
    """Return the frequencies in Hz at which the 80 filters are highest."""
    import torch

    from course_lib.speech.features import hz_from_mel, mel_from_hz

    top = float(mel_from_hz(torch.tensor(8000.0, dtype=torch.float64)))
    return hz_from_mel(torch.linspace(0, top, BANDS + 2, dtype=torch.float64))[1:-1].numpy()


def _finding(samples: NDArray[np.float32], mels: NDArray[np.float32]) -> str:
    seconds = f"{len(samples) / 16_000:.1f} s"
    if not samples.any():
        return f"{seconds} of silence: every sample is 0"
    band, frame = np.unravel_index(int(mels.argmax()), mels.shape)
    hz = float(_middles()[band])
    return f"{seconds} of sound, loudest at {0.01 * frame:.2f} s in band {band + 1}, near {hz:,.0f} Hz"


def _words(samples: NDArray[np.float32], mels: NDArray[np.float32]) -> str:
    """Return what a picture shows to whoever cannot see it: how loudness goes over time and frequency."""
    peak = float(np.abs(samples).max())
    parts = [f"Above, the wave of {len(samples):,} samples at 16 kHz, at most {peak:.2g} of full scale"]
    parts.append(f"below, {mels.shape[1]:,} frames of {BANDS} mel bands in dB relative to the loudest place")
    if samples.any():
        levels = [float(quarter.max()) for quarter in np.array_split(mels, 4)]
        bands = ("bands 1 to 20", "21 to 40", "41 to 60", "61 to 80")
        reached = ", ".join(f"{place} {level:.0f} dB" for place, level in zip(bands, levels, strict=True))
        parts.append(f"their loudest places: {reached}")
    return "; ".join(parts)
