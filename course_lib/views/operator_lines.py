"""A profile by families of operators, for one forward: what makes profiles of different lengths comparable.

Rows are `EncoderOp` or the talk's `TalkRow`, which call the self times on host and device differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.speech.operator_work import CONVOLUTIONS, HANDING_ON, HANDS_ON
from course_lib.theme import LINE, PAPER

#: What carries out a convolution on some device: one family, whichever implementation torch chooses.
CONVOLUTION = "convolution"
PRODUCTS = frozenset({"aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm"})
_FAMILIES = {
    **dict.fromkeys(HANDS_ON, HANDING_ON),
    **dict.fromkeys(CONVOLUTIONS, CONVOLUTION),
    "aten::native_layer_norm": "layer norm",
    "aten::native_batch_norm": "batch norm",
    "aten::cudnn_batch_norm": "batch norm",
    "aten::_softmax": "softmax",
}
#: How an operator is drawn: by the kind of its work.
KINDS = ("product", "convolution", "other")


def short(name: str) -> str:
    """Return an operator's name without the library it is from."""
    return name.removeprefix("aten::")


def family(name: str) -> str:
    """Return the name of the family that an operator belongs to; most are one of their own."""
    return _FAMILIES.get(name, short(name))


def kind(name: str) -> str:
    """Return which of KINDS an operator's work is."""
    if name in PRODUCTS:
        return "product"
    return "convolution" if name in CONVOLUTIONS else "other"


LAUNCHES, WAITS = "launches", "waiting for the GPU"
RUNTIME = ("cuda", "cu", "hip")  # how the calls of a GPU's runtime library begin
ALIKE = 0.005  # counts that differ by less are the same


@dataclass(frozen=True)
class FamilyLine:
    """What a family of operators took in one profile, a forward; times in µs, share of all self time."""

    calls: float
    host_us: float
    device_us: float | None
    share: float | None
    members: tuple[str, ...]

    @property
    def us(self) -> float:
        """Host and device time together: as if neither worked while the other does."""
        return self.host_us + (self.device_us or 0.0)


Lines = Mapping[str, FamilyLine]


def by_family(rows: Iterable[Any], forwards: int, on_device: bool) -> dict[str, FamilyLine]:
    """Return the families of a profile over `forwards` forwards, most time first; shares are of the device's
    time or of the CPU's. Kernels' own rows are left out: their time is their operator's device time already.
    """
    groups: dict[str, list[Any]] = {}
    for row in rows:
        if not hasattr(row, "calls") or _host(row) is _device(row) is None:
            raise ValueError(
                f"A row of the profile is {row!r}, but every row needs a name, calls and a self time."
            )
        if getattr(row, "kind", "") != "kernel" and _host(row) is not None:
            groups.setdefault(_group(row.name), []).append(row)
    if not groups:
        raise ValueError("The profile has no operators: run the encoder under profile_encoder first.")
    time_of = _device if on_device else _host
    whole = sum(time_of(row) or 0.0 for group in groups.values() for row in group)
    lines = {name: _line(group, forwards, time_of, whole) for name, group in groups.items()}
    return dict(sorted(lines.items(), key=lambda item: -(item[1].share or 0.0)))


def together(lines: Lines, names: Sequence[str]) -> FamilyLine | None:
    """Return these families summed up, None if none of them is there."""
    some = [lines[name] for name in names if name in lines]
    if not some:
        return None
    return FamilyLine(
        sum(line.calls for line in some),
        sum(line.host_us for line in some),
        _sum([line.device_us for line in some]),
        _sum([line.share for line in some]),
        tuple(member for line in some for member in line.members),
    )


def ratio(cpu: FamilyLine | None, gpu: FamilyLine | None) -> float | None:
    """Return the CPU's time divided by the GPU's host and device time, None where one is not known."""
    return cpu.us / gpu.us if cpu and gpu and cpu.us and gpu.device_us else None


def is_other_work(cpu: FamilyLine, gpu: FamilyLine) -> bool:
    """Whether the two did not call the family equally often, so that a ratio compares different work."""
    return abs(cpu.calls - gpu.calls) > ALIKE * cpu.calls


def _line(
    rows: Sequence[Any], forwards: int, time_of: Callable[[Any], float | None], whole: float
) -> FamilyLine:
    if hasattr(rows[0], "percent"):  # the talk's, whose rows are not the whole profile
        share = sum(row.percent for row in rows) / 100
    else:
        share = sum(time_of(row) or 0.0 for row in rows) / whole if whole else None
    on_device = _sum([_device(row) for row in rows])
    return FamilyLine(
        sum(row.calls for row in rows) / forwards,
        sum(map(_host, rows)) / forwards,
        None if on_device is None else on_device / forwards,
        share,
        tuple(sorted(short(row.name) for row in rows)),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _group(name: str) -> str:
    if "Synchronize" in name:
        return WAITS
    return LAUNCHES if name.startswith(RUNTIME) else family(name)


def _host(row: Any) -> float | None:
    return getattr(row, "self_us", getattr(row, "self_cpu_us", None))


def _device(row: Any) -> float | None:
    return getattr(row, "device_us", getattr(row, "self_device_us", None))


def time_in_words(us: float) -> str:
    """Return microseconds in the unit that suits them: 12.3 µs, 4.56 ms."""
    size, unit = (1e6, "s") if us >= 1e6 else (1e3, "ms") if us >= 1e3 else (1.0, "µs")
    return f"{us / size:.3g} {unit}"


def bar(share: float, longest: float, colour: str, pixels: int) -> str:
    """Return a bar with its percentage as HTML; the longest takes so many pixels."""
    width = round(pixels * share / longest) if longest else 0
    style = f"display:inline-block;width:{width}px;height:12px;background:{colour};vertical-align:-1px"
    ground = (
        f"display:inline-block;width:{pixels}px;background:{PAPER};border-left:1px solid {LINE};line-height:1"
    )
    shown = f'<span style="{ground}"><span style="{style}"></span></span> {share:.1%}'
    return f'<span style="white-space:nowrap">{shown}</span>'
