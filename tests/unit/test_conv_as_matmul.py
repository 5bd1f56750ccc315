"""Convolution and addmm out of our matmul against torch's."""

import itertools

import numpy as np
import pytest


def imports():
    global torch, functional, conv_as_matmul, addmm, conv1d, conv2d
    import torch
    from torch.nn import functional

    from course_lib.circles import conv_as_matmul
    from course_lib.circles.conv_as_matmul import addmm, conv1d, conv2d


GEOMETRY = [  # stride, padding, dilation
    (1, 0, 1),
    (2, 1, 1),
    (1, 2, 3),
    (3, 5, 2),
]


def tensors(*shapes, seed=0, dtype=None):
    torch.manual_seed(seed)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def assert_close(ours, theirs):
    assert ours.shape == tuple(theirs.shape) and ours.dtype == theirs.numpy().dtype
    assert np.allclose(ours, theirs.numpy(), rtol=1e-5, atol=2e-5)


def test_convolutions_are_torchs():
    lines = ((1, 19, 12), (3, 23, 6), (4, 601, 6))  # kernel, length, outputs
    planes = (((17, 13), (3, 2)), ((11, 20), (1, 5)))
    cases = [(conv1d, functional.conv1d, 6, (length,), (k,), out, GEOMETRY) for k, length, out in lines]
    cases += [
        (conv2d, functional.conv2d, 4, size, k, 8, [*GEOMETRY, ((1, 2), (2, 0), (2, 1))])
        for size, k in planes
    ]
    for conv, theirs, channels, size, kernel, outputs, geometries in cases:
        for geometry, groups, implicit in itertools.product(geometries, (1, 2, channels), (False, True)):
            x, weight, bias = tensors((2, channels, *size), (outputs, channels // groups, *kernel), outputs)
            for b in (bias, None):
                ours = conv(
                    x.numpy(),
                    weight.numpy(),
                    b if b is None else b.numpy(),
                    *geometry,
                    groups,
                    implicit=implicit,
                )
                assert_close(ours, theirs(x, weight, b, *geometry, groups))


def test_depthwise_calls_no_matmul_and_pointwise_copies_no_column():
    x, depth, point = tensors((1, 6, 40), (6, 1, 5), (9, 6, 1))
    assert_close(
        conv1d(x.numpy(), depth.numpy(), groups=6, padding=2, matmul=None),
        functional.conv1d(x, depth, groups=6, padding=2),
    )
    shared = []

    def multiply(A, B):
        shared.append(np.shares_memory(B, x.numpy()))
        return A @ B

    conv1d(x.numpy(), point.numpy(), matmul=multiply)
    conv1d(x.numpy(), point.numpy(), stride=2, matmul=multiply)
    conv1d(x.numpy(), tensors((9, 6, 3))[0].numpy(), matmul=multiply)
    assert shared == [True, True, False]


def test_addmm_is_torchs():
    for dtype in [torch.float32, torch.float64]:
        for shape in ((5, 7), (7,), (5, 1), (1, 7)):
            for beta, alpha in ((1, 1), (0.5, 2), (0, 1), (1, 0)):
                bias, A, B = tensors(shape, (5, 9), (9, 7), dtype=dtype)
                ours = addmm(bias.numpy(), A.numpy(), B.numpy(), beta, alpha)
                assert_close(ours, torch.addmm(bias, A, B, beta=beta, alpha=alpha))


def test_an_empty_batch_no_channels_and_no_kernels_are_torchs():
    for implicit in [False, True]:
        for x, weight in (((0, 4, 9), (6, 4, 3)), ((2, 0, 9), (6, 0, 3)), ((2, 4, 9), (0, 4, 3))):
            x, weight = tensors(x, weight)
            bias = torch.arange(1.0, len(weight) + 1)
            theirs = torch.zeros(len(x), len(weight), 7) + bias[:, None]  # torch itself refuses some of them
            assert_close(conv1d(x.numpy(), weight.numpy(), bias.numpy(), implicit=implicit), theirs)


X, W = np.zeros((1, 4, 10), "f4"), np.zeros((6, 4, 3), "f4")
REFUSED = {
    "dimensions": (lambda: conv1d(X[0], W), ValueError, "x is 2-D"),
    "channels": (lambda: conv1d(X[:, :3], W), ValueError, "x has 3 channels"),
    "groups": (lambda: conv1d(X, W, groups=3), ValueError, "groups is 3"),
    "bias": (lambda: conv1d(X, W, np.zeros(5, "f4")), ValueError, r"bias has shape \(5,\)"),
    "stride": (lambda: conv1d(X, W, stride=0), ValueError, "stride is"),
    "kernel": (lambda: conv1d(X, W, dilation=5), ValueError, "covers 11 numbers"),
    "dtype": (lambda: conv1d(X, W.astype("f8")), TypeError, "x is float32 and weight is float64"),
    "input": (lambda: addmm(np.zeros(4), np.zeros((2, 3)), np.zeros((3, 5))), ValueError, "input has shape"),
}


def test_what_makes_no_sense_is_refused_in_one_sentence():
    for case, (call, error, words) in REFUSED.items():
        with pytest.raises(error, match=words) as refusal:
            call()
        assert "\n" not in str(refusal.value) and str(refusal.value).endswith("."), case
