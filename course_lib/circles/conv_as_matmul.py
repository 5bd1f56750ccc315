"""Convolution and addmm out of the course's own matmul: what a Conformer's layers really ask for.

A convolution takes, for every place of the output, the numbers of the input under the kernel, and multiplies
them with the same weights. Written as a matrix with a column for each place that is one product:

    weight (C_out, C_in * k)  @  columns (C_in * k, places)  =  output (C_out, places)

`im2col` builds the columns, k times the input's memory (K. Chellapilla, S. Puri, P. Simard, "High
performance convolutional neural networks for document processing", IWFHR 2006). Implicit GEMM builds them
only block by block, on the way into a packed panel, and keeps none (S. Chetlur et al., "cuDNN: efficient
primitives for deep learning", arXiv:1410.0759, 2014).

Two kinds need no columns. A pointwise convolution (k = 1) is a product already: its input is the matrix. In
a depthwise one every channel has a kernel of its own, so that each product would be (1, k) @ (k, places):
each number of the input meets k weights, and not C_out times as many. There is nothing to use again, and so
nothing for a matmul to win: it stays a sum of k scaled, shifted copies of the input.

All arrays are NumPy's, float32 or float64, of one dtype; names and layouts are those of torch.nn.functional.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_lib.circles import threads
from course_lib.circles.front_door import Array, Matmul

PLACES = 256  # of the output that the implicit GEMM gathers at a time
Pair = int | tuple[int, int]


def addmm(
    input: Array, mat1: Array, mat2: Array, beta: float = 1, alpha: float = 1, matmul: Matmul = threads.matmul
) -> Array:
    """Return beta * input + alpha * (mat1 @ mat2) (M, N), for mat1 (M, K), mat2 (K, N).

    `input` is any array that can be broadcast to (M, N), a bias (N,) for example. With beta = 0 it is not
    read: NaN in it does not spread, as in torch and BLAS. Raises what the front door does for wrong operands,
    ValueError for an `input` of another shape.
    """
    _check_input(input, (mat1.shape[0], mat2.shape[1]))
    C = _product(mat1, mat2, matmul)
    if alpha != 1:
        C *= C.dtype.type(alpha)
    if beta == 1:
        C += input
    elif beta != 0:
        C += C.dtype.type(beta) * input
    return C


def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    *,
    implicit: bool = False,
    matmul: Matmul = threads.matmul,
) -> Array:
    """Return the convolution (B, C_out, T') of x (B, C_in, T) with weight (C_out, C_in / groups, k).

    T' = (T + 2 padding - dilation (k - 1) - 1) // stride + 1. `implicit`: without the columns in memory.
    Raises ValueError for shapes that do not go together.
    """
    _check_dimensions(x, weight, 3)
    sizes = (1, stride), (0, padding), (1, dilation)
    flat = conv2d(
        x[:, :, None], weight[:, :, None], bias, *sizes, groups, implicit=implicit, matmul=matmul
    )  # (B, C_out, 1, T')
    return flat[:, :, 0]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    implicit: bool = False,
    matmul: Matmul = threads.matmul,
) -> Array:
    """Return the convolution (B, C_out, H', W') of x (B, C_in, H, W) with a weight (C_out, C_in / groups,
    h, w).

    `stride`, `padding` and `dilation` are a number or one for each direction; `implicit`: without the columns
    in memory. Raises ValueError for shapes that do not go together.
    """
    _check_dimensions(x, weight, 4)
    stride, padding, dilation = _pair(stride), _pair(padding), _pair(dilation)
    _check_sizes(x, weight, bias, stride, padding, dilation, groups)
    windows = _windows(x, weight.shape[2:], stride, padding, dilation)  # (B, C_in, h, w, H', W'), a view
    if groups == x.shape[1] == weight.shape[0] and groups > 1:
        out = _depthwise(windows, weight)
    else:
        product = _implicit if implicit else _im2col
        out = _by_groups(windows, weight, groups, lambda w, g: product(w, g, matmul))
    if bias is not None:
        out += bias[:, None, None]
    return out


def _windows(x: Array, size: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Array:
    """Return what each weight of a kernel meets, (B, C, h, w, H', W'): a view of the padded input."""
    if any(padding):
        x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    b, c, down, right = x.strides
    places = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], size, stride, dilation, strict=True)
    ]
    strides = (b, c, dilation[0] * down, dilation[1] * right, stride[0] * down, stride[1] * right)
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *size, *places), strides, writeable=False)


def _by_groups(windows: Array, weight: Array, groups: int, product: Callable) -> Array:
    """Return the output (B, C_out, H', W'): for each group of channels one product for each image."""
    batch, channels, *_, height, width = windows.shape
    outputs, inputs = len(weight) // groups, channels // groups
    depth = math.prod(weight.shape[1:])  # C_in / groups * h * w
    out = np.empty((batch, len(weight), height, width), weight.dtype)
    for image in range(batch):
        for g in range(groups):
            rows = slice(g * outputs, (g + 1) * outputs)
            kernels = weight[rows].reshape(outputs, depth)  # (C_out / groups, depth)
            ours = windows[image, g * inputs : (g + 1) * inputs]  # (C_in / groups, h, w, H', W')
            out[image, rows] = product(kernels, ours).reshape(outputs, height, width)
    return out


def _im2col(kernels: Array, windows: Array, matmul: Matmul) -> Array:
    """Return kernels @ columns. For a pointwise convolution of stride 1 the columns are the input itself."""
    depth, places = kernels.shape[1], math.prod(windows.shape[3:])
    return _product(kernels, windows.reshape(depth, places), matmul)  # reshape copies where it must


def _implicit(kernels: Array, windows: Array, matmul: Matmul) -> Array:
    """Return the same with PLACES columns in memory at a time: each block is gathered when it is packed."""
    depth, (height, width) = kernels.shape[1], windows.shape[3:]
    out = np.empty((len(kernels), height * width), kernels.dtype)
    panel = np.empty((depth, PLACES), kernels.dtype)
    for first in range(0, height * width, PLACES):
        places = np.arange(first, min(first + PLACES, height * width))
        block = panel[:, : len(places)]
        block[...] = windows[:, :, :, places // width, places % width].reshape(block.shape)
        out[:, first : first + PLACES] = _product(kernels, block, matmul)
    return out


def _depthwise(windows: Array, weight: Array) -> Array:
    """Return the sum of h * w shifted inputs, each times its weight: (B, C, H', W')."""
    batch, channels, h, w, height, width = windows.shape
    out = np.zeros((batch, channels, height, width), weight.dtype)
    for i in range(h):
        for j in range(w):
            out += weight[:, 0, i, j][:, None, None] * windows[:, :, i, j]
    return out


def _product(A: Array, B: Array, matmul: Matmul) -> Array:
    """Return A @ B as an array of its own; an empty sum is zero."""
    if 0 in (*A.shape, *B.shape):
        return np.zeros((A.shape[0], B.shape[1]), A.dtype)
    return matmul(A, B)


def _pair(value: Pair) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _check_input(input: Array, shape: tuple[int, int]) -> None:
    try:
        fits = np.broadcast_shapes(input.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"input has shape {input.shape}, but one that can be added to {shape} is needed: "
            f"a bias has shape ({shape[1]},)."
        )


def _check_dimensions(x: Array, weight: Array, dimensions: int) -> None:
    for name, array in (("x", x), ("weight", weight)):
        if array.ndim != dimensions:
            raise ValueError(
                f"{name} is {array.ndim}-D with shape {array.shape}, but {dimensions}-D is needed: "
                f"write {name}[None] for one image or kernel."
            )
    if x.dtype != weight.dtype:
        raise TypeError(f"x is {x.dtype} and weight is {weight.dtype}: convert one, both need one dtype.")


def _check_sizes(x, weight, bias, stride, padding, dilation, groups) -> None:
    (_, channels, *size), (outputs, inputs, *kernel) = x.shape, weight.shape
    if groups < 1 or channels % groups or outputs % groups or channels // groups != inputs:
        raise ValueError(
            f"x has {channels} channels, weight {outputs} kernels of {inputs} and groups is {groups}, but "
            f"each kernel needs {channels} / groups channels and groups must divide both: check the weight."
        )
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(
            f"bias has shape {bias.shape}, but ({outputs},) is needed, a number for each kernel."
        )
    if min(stride) < 1 or min(dilation) < 1 or min(padding) < 0:
        raise ValueError(
            f"stride is {stride}, dilation {dilation} and padding {padding}, but the first two must be at "
            "least 1 and padding at least 0: change what is below."
        )
    for n, k, p, d in zip(size, kernel, padding, dilation, strict=True):
        if k < 1 or n + 2 * p < d * (k - 1) + 1:
            raise ValueError(
                f"A kernel of {k} with dilation {d} covers {d * (k - 1) + 1} numbers, but the padded input "
                f"has {n + 2 * p}: pad more, or take a smaller kernel."
            )
