"""How much arithmetic and how many bytes one call of an operator needs, from the shapes of its arguments.

Bytes are the least that must move: every tensor read once, the result written once, nothing kept in a cache
between calls. Products of matrices and convolutions count 2 operations for each multiply-add, as torch's own
counter does; the others by the formula of one element (an exponential or a root counts as one operation).
Operators that only hand on or rearrange a view (linear, transpose, …) need nothing themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Shape = Sequence[int]

ELEMENT_BYTES = {
    "bool": 1,
    "signed char": 1,
    "unsigned char": 1,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "float": 4,
    "int": 4,
    "double": 8,
    "long int": 8,
}

CONVOLUTIONS = frozenset(
    {
        "aten::mkldnn_convolution",
        "aten::_slow_conv2d_forward",
        "aten::cudnn_convolution",
        "aten::_conv_depthwise2d",
    }
)
PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1}  # operator -> place of the left matrix
PER_ELEMENT = {  # operations for one element of the result
    "aten::add": 1,
    "aten::mul": 1,
    "aten::div": 1,
    "aten::floor": 1,
    "aten::clamp_min": 1,
    "aten::silu": 4,  # x / (1 + exp(−x)): negate, exp, add, divide
    "aten::glu": 5,  # a · sigmoid(b)
    "aten::_softmax": 5,  # largest, subtract, exp, sum, divide
    "aten::native_layer_norm": 8,  # mean 1; variance 3; subtract, scale; weight, bias
    "aten::native_batch_norm": 2,  # in inference one scale and one shift for each channel
    "aten::logical_and": 0,
    "aten::bitwise_not": 0,
    "aten::lt": 0,
    "aten::masked_fill_": 0,
}

_HANDS_ON = """
    _batch_norm_impl_index _convolution _reshape_alias _to_copy _unsafe_view alias as_strided as_strided_
    batch_norm chunk clone constant_pad_nd contiguous conv1d conv2d convolution detach empty empty_like
    empty_strided expand expand_as flatten layer_norm lift_fresh linear masked_fill matmul narrow new_empty
    new_zeros numpy_T pad permute relu reshape resize_ resolve_conj resolve_neg select slice softmax split
    squeeze squeeze_ t thnn_conv2d to transpose transpose_ unsafe_split unsqueeze unsqueeze_ view view_as
    zero_ zeros zeros_like
"""
#: What only checks, chooses who does the work, hands on, makes room for a result or gives a view of a tensor.
HANDS_ON = frozenset(f"aten::{name}" for name in _HANDS_ON.split())
HANDING_ON = "handing on"  # what they are summed up as


class CallWork(NamedTuple):
    """Operations and bytes of one call."""

    flops: float = 0.0
    bytes: float = 0.0


def work(name: str, shapes: Sequence[Shape], types: Sequence[str], values: Sequence[object] = ()) -> CallWork:
    """Return the work of one call; for a convolution give the arguments of its `aten::convolution`.

    They are what the profiler records: the shape of each, empty for one that is no tensor, C++ names of their
    types ("float"), and the numbers and lists among them, None for tensors.
    """
    if name in PRODUCTS:  # (…, M, K) @ (…, K, N)
        left, right = shapes[PRODUCTS[name]], shapes[PRODUCTS[name] + 1]
        results, each = math.prod(left[:-1]) * right[-1], 2 * left[-1]
    elif name in CONVOLUTIONS:  # x (B, C, places…), weight (C', C / groups, taps…)
        results, each = _results_of_convolution(*shapes[:2], *values[3:6]), 2 * math.prod(shapes[1][1:])
    elif name in PER_ELEMENT:
        operands = (
            shapes[:1] if name.endswith("_norm") else shapes[:2]
        )  # a norm's weights lie along a channel
        results, each = math.prod(np.broadcast_shapes(*map(tuple, operands))), PER_ELEMENT[name]
        if name == "aten::glu":
            results //= 2
    elif name in ("aten::copy_", "aten::fill_"):  # what they write into is among the arguments
        results, each = 0, 0
    else:
        return CallWork()
    sizes = [ELEMENT_BYTES.get(type, 0) for type in types]
    moved = sum(math.prod(shape) * size for shape, size in zip(shapes, sizes, strict=True) if shape)
    return CallWork(float(each * results), float(moved + results * sizes[0]))


def _results_of_convolution(x: Shape, weight: Shape, stride: Shape, padding: Shape, dilation: Shape) -> int:
    places = [
        (size + 2 * pad - step * (taps - 1) - 1) // stride_ + 1
        for size, taps, stride_, pad, step in zip(x[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    return x[0] * weight[0] * math.prod(places)
