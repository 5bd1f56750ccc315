"""The rule for answers that are CUDA kernels: nothing in them runs as Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelOnly:
    """The answer consists of imports, numbers and functions with @cuda.jit; nothing else may run."""

    wanted: str = "a kernel (@cuda.jit), its device functions and constants, and nothing that runs as Python"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first statement that would run as Python."""
        return None
