"""Choosing among settings that were measured: a choice that was not leads to the nearest one that was.

Nothing is interpolated. What is changed stays as it was chosen; the rest gives way, and a sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import DTYPES, HOWS, Setting

#: What can be chosen, in the order of the controls; on one device.
AXES = ("batch", "frames", "dtype", "threads", "how")
NAMES = {"batch": "batch", "frames": "length", "dtype": "dtype", "threads": "threads", "how": "run"}
HOW_WORDS = {"eager": "eager", "compiled": "torch.compile", "graph": "CUDA graph"}


def words(axis: str, value: Any) -> str:
    """Return a value of an axis as it is shown: 5 s, torch.compile."""
    if axis == "frames":
        return f"{value / 100:g} s"
    return HOW_WORDS[value] if axis == "how" else str(value)


def in_words(setting: Setting, but: Setting | None = None) -> str:
    """Return a setting in short; with `but`, what differs from that one (and always the batch)."""
    parts = [f"batch {setting.batch}"]
    if but is None or setting.frames != but.frames:
        parts.append(words("frames", setting.frames))
    if but is None or setting.dtype != but.dtype:
        parts.append(setting.dtype)
    if but is None or setting.how != but.how:
        parts.append(words("how", setting.how))
    if setting.device == "cpu" and (but is None or setting.threads != but.threads):
        parts.append(f"{setting.threads} thread{'s' * (setting.threads > 1)}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Chosen:
    """A measured setting, and a sentence about what had to give way for it ("" if nothing had)."""

    setting: Setting
    sentence: str = ""


class Measured:
    """The points of one sweep on one device, by setting; `base` is batch 1, float32, eager."""

    def __init__(self, points: Sequence[SpeedPoint]) -> None:
        """Raise TypeError or ValueError for what is no sweep over one device with a baseline."""
        points = list(points)
        if not points or not all(isinstance(point, SpeedPoint) for point in points):
            raise TypeError("The points must be SpeedPoints, one or more: give what measure() gave.")
        if len({point.setting.device for point in points}) > 1:
            raise ValueError("The points are of two devices: give those of one, a view for each.")
        self.points = {point.setting: point for point in points}
        plain = [one for one in self.points if (one.batch, one.dtype, one.how) == (1, "float32", "eager")]
        if not plain:
            raise ValueError(
                "No point has batch 1, float32 and eager, to compare the others with: measure that, too."
            )
        most = max(one.threads for one in plain)
        self.base = next(one for one in plain if one.threads == most)

    def __getitem__(self, setting: Setting) -> SpeedPoint:
        return self.points[setting]

    @property
    def device(self) -> str:
        """ "cpu" or "cuda"."""
        return self.base.device

    def values(self, axis: str) -> list[Any]:
        """Return what was measured of an axis, in order."""
        found = {getattr(setting, axis) for setting in self.points}
        known = {"dtype": DTYPES, "how": HOWS}.get(axis)
        return [value for value in known if value in found] if known else sorted(found)

    def choose(self, now: Setting, axis: str, value: Any) -> Chosen:
        """Return the measured setting nearest to `now` with `value` on `axis`.

        Nearest: the fewest other axes move, numbers by the smallest factor, names rather to the baseline's.
        """
        wanted = now.but(**{axis: value})
        if wanted in self.points:
            return Chosen(wanted)
        fitting = [setting for setting in self.points if getattr(setting, axis) == value]
        found = min(
            fitting,
            key=lambda one: (_moves(one, wanted), _distance(one, wanted), _moves(one, self.base)),
        )
        moved = [other for other in AXES if getattr(found, other) != getattr(wanted, other)]
        changes = " and ".join(
            f"{NAMES[other]} went from {words(other, getattr(wanted, other))} to "
            f"{words(other, getattr(found, other))}"
            for other in moved
        )
        return Chosen(found, f"{in_words(wanted).capitalize()} was not measured: {changes}.")

    def along(self, axis: str, setting: Setting) -> list[SpeedPoint]:
        """Return a setting's point and those that differ from it in one axis only, in order of that axis."""
        found = [
            point
            for one, point in self.points.items()
            if all(getattr(one, other) == getattr(setting, other) for other in AXES if other != axis)
        ]
        return sorted(found, key=lambda point: getattr(point.setting, axis))


def _distance(setting: Setting, other: Setting) -> float:
    """Return by how many doublings the numbers of two settings differ."""
    numbers = ("batch", "frames", "threads")
    return sum(abs(math.log2(getattr(setting, axis) / getattr(other, axis))) for axis in numbers)


def _moves(setting: Setting, other: Setting) -> int:
    return sum(getattr(setting, axis) != getattr(other, axis) for axis in AXES)
