"""The summit: matrix products of 8-bit floating-point numbers, and kernels for NVIDIA Hopper."""

from pathlib import Path


def kernels_folder() -> Path:
    """Return the folder that holds the kernels' CUDA C++."""
    return Path(__file__).parent / "kernels"
