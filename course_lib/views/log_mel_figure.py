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
SHOWN_DEVIATIONS = 3.0
MARKED_HZ = (100, 300, 1000, 2000, 4000, 8000)
MOST_COLUMNS = 1600  # more of a wave than the picture has pixels cannot be seen


def log_mel(
    samples: NDArray[np.floating], rate: int = 16_000, *, normalised: bool = False, title: str | None = None
) -> Picture:
    """Return the wave of samples (n,) and its 80 mel bands over the time, both by `speech.features`.

    rate: samples a second; anything but 16,000 is resampled first. The bands are in dB relative to the
    loudest place, or, `normalised`, in deviations from each band's mean, as the recogniser is given them.
    Raises ValueError for what is no sound of one channel, or too short for the front end.
    """
    samples = _checked(samples, rate)
    mels = _mels(samples, normalised)  # (bands, frames)
    said = title or _finding(samples, mels, normalised)
    seconds = len(samples) / 16_000
    with theme.figure(8.4, 5.0) as fig:
        wave, bands = fig.subplots(2, 1, sharex=True, height_ratios=(1, 2.4))
        _draw_wave(wave, samples, seconds)
        _draw_bands(bands, mels, seconds, normalised)
        wave.set_title(textwrap.fill(said, 60))
        return Picture.of(fig, f"{said}. {_words(samples, mels, normalised)}.")


def _checked(samples: NDArray[np.floating], rate: int) -> NDArray[np.float32]:
    """Return the samples at 16 kHz."""
    from course_lib.speech.audio import resampled

    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype.kind != "f" or not np.isfinite(samples).all():
        raise ValueError(
            f"Samples are {samples.dtype} of shape {samples.shape}, but must be finite floating-point "
            "numbers of shape (n,): take one channel, as speech.audio.read gives it."
        )
    return resampled(samples, rate, 16_000)


def _mels(samples: NDArray[np.float32], normalised: bool) -> NDArray[np.float32]:
    """Return the bands (80, frames): deviations from the mean, or dB relative to the loudest place."""
    import torch

    from course_lib.speech.features import LogMel

    front_end = LogMel(BANDS)
    batch = torch.from_numpy(samples)[None]
    mels, _ = front_end(batch) if normalised else front_end.log_mels(batch)
    shown = mels[0].numpy()
    return shown if normalised else (shown - shown.max()) * np.float32(10 / np.log(10))


def _draw_wave(axes: Axes, samples: NDArray[np.float32], seconds: float) -> None:
    """Draw the samples, or where there are too many the least and the largest of each piece of time."""
    pieces = np.array_split(samples, min(len(samples), MOST_COLUMNS))
    times = (np.arange(len(pieces)) + 0.5) * seconds / len(pieces)
    low, high = [piece.min() for piece in pieces], [piece.max() for piece in pieces]
    axes.fill_between(times, low, high, color=PINK, linewidth=0.8, zorder=3)
    reach = max(float(np.abs(samples).max()) * 1.1, 1e-3)
    axes.set(ylabel="amplitude\n(full scale 1)", ylim=(-reach, reach))


def _draw_bands(axes: Axes, mels: NDArray[np.float32], seconds: float, normalised: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("loudness", [PAPER, "#ffb3d9", PINK, VIOLET, INK])
    least, most = (-SHOWN_DEVIATIONS, SHOWN_DEVIATIONS) if normalised else (-SHOWN_DB, 0.0)
    place = (0.0, seconds, 0.5, BANDS + 0.5)
    image = axes.imshow(mels, scale, aspect="auto", origin="lower", extent=place, vmin=least, vmax=most)
    image.set_interpolation("nearest")
    axes.set(xlabel="time in s", ylabel=f"mel band (1 to {BANDS})", yticks=(1, 20, 40, 60, 80))
    axes.grid(visible=False)
    in_hz = axes.secondary_yaxis("right")
    in_hz.set_yticks([band_at(hz) for hz in MARKED_HZ], [f"{hz:,}" for hz in MARKED_HZ])
    in_hz.set_ylabel("middle of the band in Hz")
    unit = "deviations from the band's mean" if normalised else "dB relative to the loudest place"
    axes.figure.colorbar(image, ax=axes, label=unit, pad=0.02, aspect=30)


def band_at(hz: float) -> float:
    """Return which band, counted from 1, has its middle at a frequency; between two it is a fraction."""
    return 1.0 + float(np.interp(hz, _middles(), np.arange(BANDS)))


def _middles() -> NDArray[np.float64]:
    """Return the frequencies in Hz at which the 80 filters are highest."""
    import torch

    from course_lib.speech.features import hz_from_mel, mel_from_hz

    top = float(mel_from_hz(torch.tensor(8000.0, dtype=torch.float64)))
    return hz_from_mel(torch.linspace(0, top, BANDS + 2, dtype=torch.float64))[1:-1].numpy()


def _finding(samples: NDArray[np.float32], mels: NDArray[np.float32], normalised: bool) -> str:
    seconds = f"{len(samples) / 16_000:.1f} s"
    if not samples.any():
        return f"{seconds} of silence: every sample is 0"
    if normalised:
        beyond = 100 * float((np.abs(mels) > 2).mean())
        return (
            f"What the recogniser is given: each band of {seconds} of sound has mean 0 and deviation 1, "
            f"{beyond:.1f} % lie beyond 2"
        )
    band, time, hz = _loudest(mels)
    return f"{seconds} of sound, loudest at {time:.2f} s in band {band}, near {hz:,.0f} Hz"


def _loudest(mels: NDArray[np.float32]) -> tuple[int, float, float]:
    """Return the loudest place's band, counted from 1, its time in s and its frequency in Hz."""
    band, frame = np.unravel_index(int(mels.argmax()), mels.shape)
    return int(band) + 1, float(frame) * 0.01, float(_middles()[band])


def _words(samples: NDArray[np.float32], mels: NDArray[np.float32], normalised: bool) -> str:
    """Return what a picture shows to whoever cannot see it: how loudness goes over time and frequency."""
    peak = float(np.abs(samples).max())
    parts = [f"Above, the wave of {len(samples):,} samples at 16 kHz, at most {peak:.2g} of full scale"]
    unit = "standard deviations from its mean" if normalised else "dB relative to the loudest place"
    parts.append(f"below, {mels.shape[1]:,} frames of {BANDS} mel bands in {unit}")
    if samples.any() and not normalised:
        levels = [float(quarter.max()) for quarter in np.array_split(mels, 4)]
        bands = ("bands 1 to 20", "21 to 40", "41 to 60", "61 to 80")
        reached = ", ".join(f"{place} {level:.0f} dB" for place, level in zip(bands, levels, strict=True))
        parts.append(f"their loudest places: {reached}")
    return "; ".join(parts)
