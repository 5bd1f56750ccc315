"""Starts the kernels on a Hopper GPU, on the stream that torch works on.

    launch.missing(a)                  # None, or the sentence that says why a's device cannot run them
    launch.launch(plan, a.device)      # compiles if need be, loads once, puts the kernel into the queue
    launch.finish(a.device, 10)        # waits; raises Hangs if the GPU is not done within 10 s
    with launch.ends_within(60): ...   # ends the process if what is inside takes longer

A kernel whose blocks wait for each other can wait for ever, and then everything that waits for the GPU does,
too; only the end of the process ends it. So tests and recordings have a time limit.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import NoReturn

import torch

from course_lib.fp8 import jit
from course_lib.fp8.choose import H100, KNOWN, Hopper
from course_lib.fp8.driver import CannotLaunch, Driver
from course_lib.fp8.plans import Plan
from course_lib.measure import machine

CAPABILITY = (9, 0)
PATIENCE_S = 1e-4


class Hangs(RuntimeError):
    """The GPU did not finish in time."""


def missing(x: torch.Tensor) -> str | None:
    """Return the sentence that says why the kernels cannot run on a tensor's device; None if they can."""
    return no_hopper(x) or _no_software()


def missing_here() -> str | None:
    """Return the sentence that says why the kernels cannot run on torch's current GPU; None if they can."""
    return machine.missing("torch-cuda") or missing(torch.zeros(1, device="cuda"))


def no_hopper(x: torch.Tensor) -> str | None:
    """Return the sentence that says what a tensor is on if that is no Hopper GPU."""
    if x.device.type != "cuda":
        return f"The kernels run on a Hopper GPU, and this tensor is on {x.device}."
    capability = torch.cuda.get_device_capability(x.device)
    if capability != CAPABILITY:
        name, number = torch.cuda.get_device_name(x.device), ".".join(map(str, capability))
        return f"The kernels are for Hopper (compute capability 9.0), and {name} has {number}."
    return None


@cache  # asked at every product
def _no_software() -> str | None:
    """Return the sentence that says which of compiler and driver is missing or too old for the other.

    A driver loads machine code of its own major version of CUDA and of older ones, whatever the minor.
    """
    if sentence := machine.missing("nvrtc"):
        return sentence
    try:
        (compiler, minor), driver = jit.compiler_version(), Driver.here().version()
    except (jit.CannotBuild, CannotLaunch) as problem:
        return str(problem)
    if driver[0] >= compiler:
        return None
    return (
        f"NVIDIA's driver here is for CUDA {driver[0]}.{driver[1]}, and machine code made by NVRTC "
        f"{compiler}.{minor} needs one for CUDA {compiler}: update the driver."
    )


Change = Callable[[bytes], bytes]


def launch(plan: Plan, device: torch.device, change: Change | None = None) -> None:
    """Put a kernel into the queue of torch's current stream; raises CannotBuild or CannotLaunch.

    `change` is a function that is given the machine code and returns what is loaded in its place.
    """
    driver = Driver.here()
    with torch.cuda.device(device):
        driver.make_current(device.index or 0)
        function = _loaded(
            device.index or 0, plan.kernel, tuple(sorted(plan.constants.items())), plan.shared_bytes, change
        )
        driver.launch(function, plan, torch.cuda.current_stream(device).cuda_stream)


@cache  # machine code stays loaded as long as the process lives
def _loaded(
    device: int,
    kernel: str,
    constants: tuple[tuple[str, int], ...],
    shared_bytes: int,
    change: Change | None,
) -> int:
    cubin = jit.build(kernel, **dict(constants)).cubin
    return Driver.here().load(change(cubin) if change else cubin, kernel, shared_bytes)


@cache
def gpu(device: torch.device) -> Hopper:
    """Return the GPU as the model of tiles knows it, with as many multiprocessors as it really has.

    What is not in `choose.KNOWN` is taken for an H100 (SXM): memory and clocks of other Hoppers differ, and
    the model's order of tiles hardly.
    """
    properties = torch.cuda.get_device_properties(device)
    known = KNOWN.get(properties.name, H100)
    return Hopper(properties.name, properties.multi_processor_count, known.bytes_per_s, known.clock_hz)


def finish(device: torch.device, limit_s: float) -> None:
    """Wait until torch's current stream is done; raises Hangs after `limit_s` seconds.

    Then the GPU still computes, and whatever waits for it waits for ever.
    """
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(device))
    end = time.monotonic() + limit_s
    while not done.query():
        if time.monotonic() > end:
            raise Hangs(
                f"The GPU was not done after {limit_s:g} s, so a kernel may hang: end this process "
                "(in a notebook: restart the kernel)."
            )
        time.sleep(PATIENCE_S)


@contextlib.contextmanager
def ends_within(limit_s: float) -> Iterator[None]:
    """End the process with a sentence if what is inside takes longer: it may wait for a GPU that hangs."""
    sentence = f"The GPU was not done after {limit_s:g} s, so a kernel may hang: this process ends."
    timer = threading.Timer(limit_s, give_up, [sentence])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def give_up(sentence: str) -> NoReturn:
    """Say why, and end the process at once: an orderly end would wait for the GPU."""
    print(sentence, file=sys.stderr, flush=True)
    os._exit(3)
