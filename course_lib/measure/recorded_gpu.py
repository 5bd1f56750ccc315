"""The GPU of a recording: what it was, and how it was while it measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.measure import gpu_state, machine
from course_lib.measure import recorded_fields as fields
from course_lib.measure.gpu_state import STATES
from course_lib.measure.recorded_fields import Range


@dataclass(frozen=True)
class Gpu:
    """A GPU and its software; `state` holds ranges of STATES, None for what nvidia-smi does not tell."""

    driver: str
    compute_capability: str  # "9.0"
    cuda: str  # version that torch was built for
    multiprocessors: int
    state: Mapping[str, Range | None]
    power_limit_w: float | None
    highest_sm_mhz: float | None


def now(watch: gpu_state.Watch) -> Gpu:
    """Return this machine's GPU, with what a watch has seen."""
    import torch

    found = machine.gpu()
    power_limit_w, highest_sm_mhz = gpu_state.limits()
    return Gpu(
        driver=found.driver,
        compute_capability=found.compute_capability,
        cuda=torch.version.cuda,
        multiprocessors=torch.cuda.get_device_properties(0).multi_processor_count,
        state=watch.ranges(),
        power_limit_w=power_limit_w,
        highest_sm_mhz=highest_sm_mhz,
    )


def restored(content: dict, name: str) -> Gpu:
    """Return the GPU in a field of a JSON object; raises recorded_fields.Wrong."""
    found = fields.value(content, name, dict)
    state = fields.value(found, "state", dict)
    return Gpu(
        **{name: fields.text(found, name) for name in ("driver", "compute_capability", "cuda")},
        multiprocessors=fields.whole(found, "multiprocessors"),
        state={name: fields.perhaps(fields.span, state, name) for name in STATES},
        power_limit_w=fields.perhaps(fields.number, found, "power_limit_w"),
        highest_sm_mhz=fields.perhaps(fields.number, found, "highest_sm_mhz"),
    )
