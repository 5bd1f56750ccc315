"""How a GPU is while it measures: its clocks, its power, its temperature, as nvidia-smi tells them.

with gpu_state.Watch() as watch:
    ...                          measure
gpu_state.recorded(watch)        the GPU as a recording keeps it
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from course_lib.measure import hardware
from course_lib.measure.recording_files import Count, Positive, Range, Text, naming

STATES = ("sm_mhz", "memory_mhz", "power_w", "temperature_c")
#: Ranges of STATES; None for what nvidia-smi does not tell.
States = Annotated[Mapping[str, Range | None], naming(STATES)]
FIELDS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")  # STATES, by nvidia-smi's names
PERIOD_S = 0.25


class Watch:
    """Asks nvidia-smi again and again while a `with` block runs; `ranges()` then tells what it said.

    It may be entered several times, one after the other: what lies between is not looked at.
    """

    def __init__(self) -> None:
        self._samples: list[list[str]] = []
        self._before = 0  # samples of the blocks before the last
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        self._over.clear()
        self._before = len(self._samples)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._over.set()
        self._thread.join()

    def ranges(self) -> dict[str, Range | None]:
        """Return lowest, median and highest of each of STATES; None for what nvidia-smi does not tell."""
        return _ranges(self._samples)

    def latest(self) -> dict[str, Range | None]:
        """Return the same of the last `with` block alone."""
        return _ranges(self._samples[self._before :])

    def _look(self) -> None:
        while not self._over.is_set():
            if values := hardware.nvidia_smi(",".join(FIELDS)):
                self._samples.append(values)
            self._over.wait(PERIOD_S)


def limits() -> tuple[float | None, float | None]:
    """Return the power limit in W and the highest clock in MHz; None for what nvidia-smi does not tell."""
    values = hardware.nvidia_smi("power.limit,clocks.max.sm") or ["", ""]
    return _number(values[0]), _number(values[1])


@dataclass(frozen=True)
class RecordedGpu:
    """The GPU of a recording and its software: what it was, and how it was while it measured."""

    driver: Text
    compute_capability: Text  # "9.0"
    cuda: Text  # version that torch was built for
    multiprocessors: Count
    state: States
    power_limit_w: Positive | None
    highest_sm_mhz: Positive | None


def recorded(watch: Watch) -> RecordedGpu:
    """Return this machine's GPU, with what a watch has seen."""
    import torch

    from course_lib.measure import machine

    gpu = machine.gpu()
    power_limit_w, highest_sm_mhz = limits()
    return RecordedGpu(
        driver=gpu.driver,
        compute_capability=gpu.compute_capability,
        cuda=torch.version.cuda,
        multiprocessors=torch.cuda.get_device_properties(0).multi_processor_count,
        state=watch.ranges(),
        power_limit_w=power_limit_w,
        highest_sm_mhz=highest_sm_mhz,
    )


def _ranges(samples: list[list[str]]) -> dict[str, Range | None]:
    columns = zip(*samples, strict=True) if samples else [()] * len(STATES)
    return {name: range_of(map(_number, column)) for name, column in zip(STATES, columns, strict=True)}


def range_of(values: Iterable[float | None]) -> Range | None:
    """Return lowest, median and highest of the numbers among the values; None if there is none."""
    numbers = [value for value in values if value is not None]
    return (min(numbers), float(np.median(numbers)), max(numbers)) if numbers else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]", where a machine keeps it to itself
        return None
