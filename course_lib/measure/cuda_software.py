"""What lies between Python and a GPU, and which part of it is missing: driver, torch, Numba's CUDA, compiler.

`machine.missing("cuda")` and `machine.missing("cubin")` ask here; nothing else does. Without a driver any
call into it can raise and then hang, so the questions are asked in an order in which none of them makes
one: nvidia-smi (a process of its own), then what is installed, then torch, which copes without a driver.
"""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from pathlib import Path

from course_lib.measure import hardware
from course_lib.measure.hardware import Gpu

INSTALL = '`pip install -c constraints.txt -e ".[cubin]"`'
NVIDIA_ON_PCI, DISPLAY_CLASS = "0x10de", "0x03"


def why_no_cuda(gpu: Gpu | None) -> str | None:
    """Return the sentence that says why Numba cannot run kernels here, None if it can; `gpu` as found."""
    if gpu is None:
        return _why_no_gpu()
    if not is_installed("numba_cuda"):
        return f"This needs numba-cuda, which runs Numba's kernels on the GPU: install it with {INSTALL}."
    return _why_not_torch(gpu)


def why_no_torch_cuda(gpu: Gpu | None) -> str | None:
    """Return the sentence that says why torch cannot use a GPU here, None if it can; `gpu` as found."""
    return _why_no_gpu() if gpu is None else _why_not_torch(gpu)


def why_no_cubin() -> str | None:
    """Return the sentence that says why nothing can be compiled for a GPU here, None if it can."""
    if all(map(is_installed, ("numba_cuda", "cuda.bindings", "cuda.pathfinder"))):
        from cuda import pathfinder

        if pathfinder.find_nvidia_binary_utility("nvdisasm"):
            return None
    return (
        "This needs the packages that compile for NVIDIA GPUs (about 550 MB; Linux or Windows, no GPU): "
        f"install them with {INSTALL}."
    )


def why_no_nvrtc() -> str | None:
    """Return the sentence that says why no CUDA C++ can be compiled here, None if it can."""
    if all(map(is_installed, ("cuda.bindings", "cuda.pathfinder"))):
        from cuda import pathfinder

        with contextlib.suppress(pathfinder.DynamicLibNotFoundError):
            pathfinder.load_nvidia_dynamic_lib("nvrtc")
            return None
    return (
        "This needs NVIDIA's compiler NVRTC as a Python package (Linux or Windows, no GPU): "
        f"install it with {INSTALL}."
    )


def _why_no_gpu(root: Path = Path("/")) -> str:
    devices = [file.parent for file in (root / "sys/bus/pci/devices").glob("*/vendor")]
    nvidia = [device for device in devices if hardware.text_of(device / "vendor") == NVIDIA_ON_PCI]
    if any(hardware.text_of(device / "class").startswith(DISPLAY_CLASS) for device in nvidia):
        return (
            "This needs NVIDIA's driver: there is an NVIDIA GPU in this machine, but nvidia-smi does not "
            "reach it; install the driver, or see whether CUDA_VISIBLE_DEVICES hides the GPU."
        )
    return "This needs an NVIDIA GPU, and nvidia-smi finds none on this machine."


def _why_not_torch(gpu: Gpu) -> str | None:
    if not is_installed("torch"):
        return "This needs the Python package torch: install it with `pip install torch`."
    import torch

    if torch.version.cuda is None:
        return (
            f"This needs a torch that was built for CUDA, and {torch.__version__} is not: "
            "install one as pytorch.org/get-started says."
        )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    reason = str(said[0].message).partition("\n")[0] if said else "it gives no reason"
    return f"torch cannot use the {gpu.name} (driver {gpu.driver}): {reason.rstrip('.')}."


def is_installed(module: str) -> bool:
    """Say whether a module could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is missing or broken
        return False
