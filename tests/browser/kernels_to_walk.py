"""Launches whose steps are shown in a browser: with tiles, with a bank conflict, and with a costly stride."""

from gpu_kernels.stepped import strided, tiled, transpose, zeros

LAUNCHES = {
    "tiled": (tiled, (3, 4), (32, 32), zeros(100, 90), zeros(90, 70), zeros(100, 70)),
    "transpose": (transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32)),
    "strided": (strided, 40, 256, zeros(10_240 * 700), zeros(10_240), 700),
}
