"""Convolution and addmm out of our matmul against torch's, and our addmm inside torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from course_lib.circles import conv_as_matmul
from course_lib.circles.addmm_in_torch import our_addmm
from course_lib.circles.conv_as_matmul import addmm, conv1d, conv2d

GEOMETRY = [  # stride, padding, dilation
    (1, 0, 1),
    (2, 1, 1),
    (1, 2, 3),
    (3, 5, 2),
]


def tensors(*shapes, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def assert_close(ours, theirs):
    assert ours.shape == tuple(theirs.shape) and ours.dtype == theirs.numpy().dtype
    assert np.allclose(ours, theirs.numpy(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("geometry", GEOMETRY, ids=str)
def test_conv1d_is_torchs(geometry, groups, implicit):
    for kernel, length, outputs in ((1, 19, 12), (3, 23, 6), (4, 601, 6)):
        x, weight, bias = tensors((2, 6, length), (outputs, 6 // groups, kernel), outputs)
        theirs = functional.conv1d(x, weight, bias, *geometry, groups)
        ours = conv1d(x.numpy(), weight.numpy(), bias.numpy(), *geometry, groups, implicit=implicit)
        assert_close(ours, theirs)
        without = conv1d(x.numpy(), weight.numpy(), None, *geometry, groups, implicit=implicit)
        assert_close(without, functional.conv1d(x, weight, None, *geometry, groups))


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("geometry", [*GEOMETRY, ((1, 2), (2, 0), (2, 1))], ids=str)
def test_conv2d_is_torchs(geometry, groups, implicit):
    for size, kernel in (((17, 13), (3, 2)), ((11, 20), (1, 5))):
        x, weight, bias = tensors((2, 4, *size), (8, 4 // groups, *kernel), 8)
        theirs = functional.conv2d(x, weight, bias, *geometry, groups)
        ours = conv2d(x.numpy(), weight.numpy(), bias.numpy(), *geometry, groups, implicit=implicit)
        assert_close(ours, theirs)


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


def test_implicit_gathers_no_more_than_a_block():
    widths = []
    x, weight = tensors((1, 3, 700), (4, 3, 5))
    conv1d(x.numpy(), weight.numpy(), implicit=True, matmul=lambda A, B: widths.append(B.shape[1]) or A @ B)
    assert widths == [256, 256, 696 - 512] and conv_as_matmul.PLACES == 256


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_addmm_is_torchs(dtype):
    for shape in ((5, 7), (7,), (5, 1), (1, 7)):
        for beta, alpha in ((1, 1), (0.5, 2), (0, 1), (1, 0)):
            bias, A, B = tensors(shape, (5, 9), (9, 7), dtype=dtype)
            ours = addmm(bias.numpy(), A.numpy(), B.numpy(), beta, alpha)
            assert_close(ours, torch.addmm(bias, A, B, beta=beta, alpha=alpha))


def test_addmm_with_beta_zero_does_not_read_its_input():
    A, B = tensors((3, 4), (4, 5))
    assert np.isfinite(addmm(np.full(5, np.nan, "f4"), A.numpy(), B.numpy(), beta=0)).all()


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


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()


# -- our addmm inside torch --------------------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(20, 33), torch.nn.SiLU(), linear(33, 40, bias=False), linear(40, 7))


def test_a_network_gives_the_same_by_our_addmm_and_torchs_comes_back():
    net, (x,) = network(), tensors((3, 11, 20))
    with torch.no_grad():
        theirs = net(x)
        with our_addmm() as calls:
            ours = net(x)
            assert_close(torch.addmm(x[0, 0], x[0], torch.eye(20), alpha=2).numpy(), x[0, 0] + 2 * x[0])
        assert (ours - theirs).abs().max() <= 1e-5
        assert (calls.ours, calls.left_to_torch) == (4, 0)
        net(x)
        assert calls.ours == 4


def test_torchs_comes_back_after_an_exception():
    def broken(A, B):
        raise ArithmeticError("broken")

    net, (x,) = network(), tensors((2, 20))
    with torch.no_grad():
        theirs = net(x)
        with pytest.raises(ArithmeticError), our_addmm(broken):
            net(x)
        assert torch.equal(net(x), theirs)


def test_gradients_and_other_dtypes_are_torchs():
    net, (x,) = network(), tensors((2, 20))
    with our_addmm() as calls:
        net(x).sum().backward()
        assert net[0].weight.grad is not None
        with torch.no_grad():
            net.bfloat16()(x.bfloat16())
    assert (calls.ours, calls.left_to_torch) == (0, 6)
