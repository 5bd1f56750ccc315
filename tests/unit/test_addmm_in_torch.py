"""Our addmm in the place of torch's: in small networks, and in a whole Conformer."""

import functools

import pytest


def imports():
    global torch, functional, threads, Calls, our_addmm
    import torch
    from torch.nn import functional

    from course_lib.circles import threads
    from course_lib.circles.addmm_in_torch import Calls, our_addmm


def without_gradients(test):
    """As torch.no_grad(), which would import torch while tests are collected."""

    @functools.wraps(test)
    def run(*arguments, **fixtures):
        with torch.no_grad():
            return test(*arguments, **fixtures)

    return run


def tensors(*shapes, dtype=None):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def network():
    torch.manual_seed(0)
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(20, 33), torch.nn.SiLU(), linear(33, 40, bias=False), linear(40, 7))


def counting(A, B):
    """The rung that is used by default, with its calls counted in `counting.calls`."""
    counting.calls += 1
    return threads.matmul(A, B)


@without_gradients
def test_a_network_gives_the_same_by_our_addmm_and_torchs_comes_back():
    net, (x,) = network(), tensors((3, 11, 20))
    theirs = net(x)
    with our_addmm() as calls:
        ours = net(x)
        assert calls == Calls(addmm=2, mm=1) and calls.ours == 3
    assert ours.is_contiguous() and (ours - theirs).abs().max() <= 1e-5
    net(x)
    assert calls.ours == 3


@without_gradients
def test_addmm_with_its_factors_and_the_matmul_that_was_asked_for():
    for dtype in [torch.float32, torch.float64]:
        bias, A, B = tensors((7,), (5, 9), (9, 7), dtype=dtype)
        counting.calls = 0
        for factors in ({}, {"beta": 0.5}, {"alpha": 2}, {"beta": 0, "alpha": -1}):
            theirs = torch.addmm(bias, A, B, **factors)
            with our_addmm(counting) as calls:
                ours = torch.addmm(bias, A, B, **factors)
            assert ours.dtype == dtype and torch.allclose(ours, theirs, rtol=1e-5, atol=2e-5), dtype
            assert calls == Calls(addmm=1), dtype
        assert counting.calls == 4, dtype


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
    assert calls == Calls(left_to_torch=6)


@without_gradients
def test_what_we_cannot_answer_is_torchs():
    x, weight, place = tensors((4, 20), (6, 20), (4, 6))
    questions = {
        "a result's place": lambda: torch.addmm(place, x, weight.T, out=torch.empty(4, 6)),
        "a sparse matrix": lambda: torch.addmm(place, x.to_sparse(), weight.T),
        "no vectors": lambda: functional.linear(x[:0], weight),
    }
    for name, ask in questions.items():
        theirs = ask()
        with our_addmm() as calls:
            assert torch.equal(ask(), theirs), name
        assert calls == Calls(left_to_torch=1), name
    with our_addmm() as calls:
        x @ weight.T, torch.mm(x, weight.T), torch.bmm(x[None], weight.T[None])
    assert calls == Calls()


@without_gradients
def test_pointwise_convolutions_only_when_asked_for_and_nothing_but_those():
    x, one, three = tensors((2, 6, 40), (8, 6, 1), (8, 6, 3))
    bias = torch.arange(8.0)
    conv = functional.conv1d
    others = {
        "a kernel of three": lambda: conv(x, three, bias),
        "a stride": lambda: conv(x, one, bias, 2),
        "groups": lambda: conv(x, one[:, :3], bias, groups=2),
        "no batch": lambda: conv(x[0], one, bias),
    }
    for name, ask in others.items():
        theirs = ask()
        with our_addmm(pointwise=True) as calls:
            assert torch.equal(ask(), theirs), name
        assert calls == Calls(), name
    turned = torch.randn(2, 40, 6).transpose(1, 2)
    for ask in (lambda: conv(x, one, bias), lambda: conv(turned, one, None, (1,), (0,), (1,), 1)):
        theirs = ask()
        counting.calls = 0
        with our_addmm(counting, pointwise=True) as calls:
            assert torch.allclose(ask(), theirs, atol=1e-5)
        assert calls == Calls(pointwise=1)
        assert counting.calls == len(theirs)  # one product for each row of the batch


# -- in the Conformer --------------------------------------------------------------------------------------


def conformer(layers, classes=7, **sizes):
    """Return a ConformerCTC of random weights, the small one by default."""
    from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder

    torch.manual_seed(3)
    encoder = ConformerEncoder(n_layers=layers, **sizes)
    return ConformerCTC(encoder, ConvDecoder(encoder.d_model, classes)).eval()


SMALL = {"feat_in": 16, "d_model": 24, "n_heads": 4, "conv_kernel": 7}


@without_gradients
def assert_same_by_ours(model, layers, features, lengths):
    """Our addmm gives torch's log-probabilities to 1e-5 of the largest, and is called as the facts count.

    Of a layer: 4 linear layers of the two feed-forward steps and 4 of attention with a bias (addmm), that of
    the positions without one (mm), and 2 pointwise convolutions. Besides them the subsampling's linear layer
    and the decoder, a pointwise convolution. The 3 products of attention (bmm) a layer stay torch's.
    """
    theirs, _ = model(features, lengths)
    for pointwise in (False, True):
        with our_addmm(pointwise=pointwise) as calls:
            ours, _ = model(features, lengths)
        assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()
        convolutions = 2 * layers + 1 if pointwise else 0
        assert calls == Calls(addmm=8 * layers + 1, mm=layers, pointwise=convolutions)


def test_a_small_conformer_gives_the_same_by_our_addmm():
    torch.manual_seed(4)
    assert_same_by_ours(conformer(2, **SMALL), 2, torch.randn(3, 16, 61), torch.tensor([61, 40, 5]))
