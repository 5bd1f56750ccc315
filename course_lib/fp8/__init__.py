"""The summit: matrix products of 8-bit floating-point numbers, and kernels for NVIDIA Hopper."""
