"""What a compiled Numba CUDA kernel needs: registers and static shared memory.

Numba asks the driver for both. So they are read only from a kernel that is compiled already: then a driver
is there and in use. Nothing here makes the first call to a driver.
"""

from __future__ import annotations

from collections.abc import Callable


def is_compiled(kernel: Callable) -> bool:
    """Return whether Numba has compiled the kernel for a GPU. TypeError if it cannot be a kernel."""
    if not callable(kernel):
        raise TypeError(f"kernel is {kernel!r}, but it must be a @cuda.jit kernel, or None with registers=.")
    # A device function and a kernel of Numba's simulator never have registers of their own to tell.
    is_device_function = getattr(kernel, "targetoptions", {}).get("device", False)
    return bool(getattr(kernel, "overloads", None)) and not is_device_function


def resources_of(kernel: Callable) -> tuple[int, int]:
    """Return (registers per thread, static bytes of shared memory per block) of a compiled kernel.

    Raises ValueError if it is not compiled, or compiled for several signatures that differ in what they need.
    """
    name = getattr(kernel, "__name__", "the kernel")
    if not is_compiled(kernel):
        raise ValueError(
            f"{name} has not been compiled for a GPU, so its registers are not known: give registers=."
        )
    registers = _per_signature(kernel.get_regs_per_thread())
    shared_bytes = _per_signature(kernel.get_shared_mem_per_block())
    variants = sorted(set(zip(registers, shared_bytes, strict=True)))
    if len(variants) > 1:
        several = " or ".join(f"{count} registers and {size} bytes" for count, size in variants)
        raise ValueError(
            f"{name} takes {several} of shared memory, depending on its arguments: give None instead of the "
            "kernel, and registers= and shared_bytes= of the variant you mean."
        )
    return variants[0]


def _per_signature(counts: int | dict) -> list[int]:
    """Return Numba's answer, one number or one for each signature, as a list."""
    return list(counts.values()) if isinstance(counts, dict) else [counts]
