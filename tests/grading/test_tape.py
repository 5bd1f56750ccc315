"""The tape: what an answer does with numbers, counted and run again on others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.grading import registry, tape
from course_lib.grading.judge import judge
from course_lib.grading.runner import Counted, InProcess
from course_lib.grading.sources import load
from course_lib.grading.tape import BadTape, Count, Operand, Tape, TapeLine, count, lines_of, replay, taped


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8), st.lists(st.floats(-10, 10), min_size=8))
def test_a_sum_of_squares_is_counted_and_can_be_run_again(values, others):
    written = Tape()
    total = 0.0
    for number in taped(values, written):
        total += number * number
    assert total.value == sum(value * value for value in values)
    assert count(written) == Count(len(values), len(values) - 1)
    fresh = others[: len(values)]
    assert replay(written, lines_of(total), (fresh,)) == sum(value * value for value in fresh)


def test_every_operation_has_its_value_and_its_line():
    written = Tape()
    a, b = taped([2.0, 3.0], written)
    results = [a * b, 2 * a, a**3, a / b, 1 / a, a + b, 1 + a, a - b, 1 - a, -a, +a]
    wanted = [6, 4, 8, 2 / 3, 0.5, 5, 3, -1, -1, -2, 2]
    assert [one.value for one in results] == wanted
    assert replay(written, lines_of(results), ([2.0, 3.0],)) == wanted
    assert count(written) == Count(4, 4)  # a**3 takes two multiplications, -a no addition
    with pytest.raises(TypeError, match="takes a number out of the count"):
        float(a)
    with pytest.raises(TypeError, match="can be counted"):
        a**0.5


def test_operands_compare_like_their_values_and_that_is_noted():
    written = Tape()
    a, b = taped([2.0, 3.0], written)
    assert a < b and b > a and a <= 2 and b >= 3 and a == 2.0 and a != b and bool(a) and repr(a) == "2.0"
    assert written.compared == 7
    assert count(written) == Count(0, 0)


def test_lists_tuples_and_arrays_are_taped_and_sizes_are_left_alone():
    written = Tape()
    copied = taped(([[1.0], [2.0]], 3, np.array([[3.0, 4.0]])), written)
    assert isinstance(copied[0][0][0], Operand) and copied[1] == 3
    product = copied[2] @ copied[2].T
    assert product[0, 0].value == 25
    assert replay(written, lines_of(product), ([[1.0], [2.0]], 3, np.array([[1.0, 2.0]]))) == [[5.0]]


def test_what_is_no_straight_line_program_is_refused():
    for written in (
        Tape([tape.ADD], [0], [0]),  # adds itself
        Tape([tape.INPUT, tape.ADD], [0, 0], [0, 2]),  # a later line
        Tape([tape.INPUT, tape.ADD], [0, -1], [0, 0]),  # from the end
        Tape([tape.INPUT, 9], [0, 0], [0, 0]),  # no such operation
        Tape([tape.CONSTANT], [0], [0], []),  # no such constant
        Tape([tape.INPUT], [0], []),  # columns of different length
        Tape([tape.INPUT], [5], [0]),  # no such input
    ):
        with pytest.raises(BadTape):
            replay(written, TapeLine(0), ([1.0, 2.0],))


def test_a_line_that_does_not_exist_is_refused():
    with pytest.raises(BadTape):
        replay(Tape([tape.INPUT], [0], [0]), [TapeLine(1)], ([1.0],))


class Forger(InProcess):
    """Ships a tape of its own making: the right number of multiplications, and the result as a constant."""

    def count(self, args):
        honest = super().count(args)
        forged = Tape([*honest.tape.codes], [*honest.tape.left], [*honest.tape.right], [])
        written = taped(args, Tape())
        value = sum(a.value * b.value for a, b in zip(*written, strict=True))
        forged.constants = [*honest.tape.constants, value]
        return Counted(forged, TapeLine(forged.write(tape.CONSTANT, len(forged.constants) - 1)))


def test_a_forged_tape_with_the_right_result_is_refused():
    task = registry.task("01.dot")
    text = "def dot(row, col):\n    return sum(a * b for a, b in zip(row, col))\n"
    assert judge(task, InProcess(load(text, "dot")), text, seed=5).passed
    forged = judge(task, Forger(load(text, "dot")), text, seed=5)
    assert forged.points == 0
    assert "do not give the right result for other numbers" in str(forged)
