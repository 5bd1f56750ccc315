"""The summit: matrix products of 8-bit floating-point numbers, and kernels for NVIDIA Hopper."""

from pathlib import Path

#: Numbers of K that share a scale, and the side of the squares of B that do: SCALED in the kernels. In e4m3
#: that is also a row of a swizzled tile, 128 bytes: so the kernels bring just that much of K in a stage.
BLOCK = 128


def kernels_folder() -> Path:
    """Return the folder that holds the kernels' CUDA C++."""
    return Path(__file__).parent / "kernels"
