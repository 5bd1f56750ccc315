"""The work of single calls, against numbers worked out by hand."""

import pytest

from course_lib.speech.operator_work import Arguments, CallWork, work


def call(*arguments, values=()):
    """Return the arguments of a call, each (shape, type)."""
    shapes, types = zip(*arguments, strict=True)
    return Arguments(shapes, types, values)


NUMBER = ((), "Scalar")
X, HIDDEN = ((2, 3, 4), "float"), ((2, 1, 4), "bool")
BY_HAND = {  # operator: arguments, operations, bytes
    "aten::silu": (call(X), 4 * 24, 4 * (24 + 24)),  # negate, exp, add, divide
    "aten::glu": (call(X, NUMBER), 5 * 12, 4 * (24 + 12)),  # half of what comes in
    "aten::_softmax": (call(X, NUMBER, NUMBER), 5 * 24, 4 * (24 + 24)),
    "aten::native_layer_norm": (
        call(X, NUMBER, ((4,), "float"), ((4,), "float"), NUMBER), 8 * 24, 4 * (24 + 4 + 4 + 24)
    ),
    "aten::native_batch_norm": (call(X, *[((3,), "float")] * 4), 2 * 24, 4 * (24 + 4 * 3 + 24)),
    "aten::add": (call(X, ((4,), "float"), NUMBER), 24, 4 * (24 + 4 + 24)),
    "aten::mul": (call(((3, 1), "double"), ((1, 5), "double")), 15, 8 * (3 + 5 + 15)),
    "aten::div": (call(X, NUMBER), 24, 4 * (24 + 24)),
    "aten::floor": (call(X), 24, 4 * (24 + 24)),
    "aten::clamp_min": (call(X, NUMBER), 24, 4 * (24 + 24)),
    "aten::bitwise_not": (call(HIDDEN), 0, 8 + 8),
    "aten::logical_and": (call(HIDDEN, HIDDEN), 0, 8 + 8 + 8),
    "aten::lt": (call(((5,), "long int"), ((5,), "long int")), 0, 8 * (5 + 5 + 5)),
    "aten::masked_fill_": (call(X, HIDDEN, NUMBER), 0, 4 * 24 + 8 + 4 * 24),
    "aten::copy_": (call(X, ((2, 3, 4), "c10::BFloat16"), NUMBER), 0, 4 * 24 + 2 * 24),
    "aten::fill_": (call(X, NUMBER), 0, 4 * 24),
    "aten::mm": (call(((2, 3), "float"), ((3, 5), "float")), 2 * 30, 4 * (6 + 15 + 10)),
    "aten::bmm": (call(((7, 2, 3), "c10::Half"), ((7, 3, 5), "c10::Half")), 2 * 210, 2 * 7 * (6 + 15 + 10)),
    "aten::addmm": (call(((5,), "float"), ((2, 3), "float"), ((3, 5), "float")), 60, 4 * (5 + 6 + 15 + 10)),
    "aten::_slow_conv2d_forward": (  # 7 places, steps of 2: 3 results of 2 channels, from 3 with 5 taps
        call(
            ((1, 3, 7, 1), "float"), ((2, 3, 5, 1), "float"), ((2,), "float"), *[NUMBER] * 3,
            values=[None, None, None, [2, 1], [1, 0], [1, 1]],
        ),
        2 * (2 * 3) * (3 * 5),  # (7 + 2 - 5) // 2 + 1 = 3 places
        4 * (21 + 30 + 2 + 6),
    ),
    "aten::transpose": (call(X, NUMBER, NUMBER), 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_work_by_hand(name):
    arguments, flops, moved = BY_HAND[name]
    assert work(name, arguments) == CallWork(flops, moved)


@pytest.mark.parametrize(
    ("kind", "size"),
    [("bool", 1), ("signed char", 1), ("unsigned char", 1), ("c10::Half", 2), ("c10::BFloat16", 2),
     ("float", 4), ("int", 4), ("double", 8), ("long int", 8), ("ScalarList", 0)],
)  # fmt: skip
def test_every_type_has_the_bytes_of_its_elements(kind, size):
    assert work("aten::fill_", call(((3, 5), kind), NUMBER)) == CallWork(0, 15 * size)
