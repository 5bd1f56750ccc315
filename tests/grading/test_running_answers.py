"""Sources, guarded sources, counting numbers and the in-process runner."""

import math

import numpy as np
import pytest

from course_lib.grading.runner import InProcess, clone, unchanged
from course_lib.grading.sources import guard, load
from course_lib.grading.task import Code, source

# --- guarding ---

GUARDED = source('''
    from __future__ import annotations
    import numpy as np
    import numba
    from numba import njit
    from numpy import empty as room

    @njit
    def bare(A):
        return np.empty((2, 2), A.dtype)

    @njit(cache=True, boundscheck=False)
    def options(A):
        """np.empty in a docstring stays."""
        return np.empty_like(A) + room(A.shape) / (np.empty(1, np.int64)[0] != 90)

    @numba.njit(fastmath={"contract"},)
    def beyond(A):
        return A[A.shape[0]]

    def plain(A):
        return np.empty(shape=(2,), dtype=np.float64)

    @njit
    def empty(A):
        return A[A.shape[0]]

    @njit
    def calls(A):
        return empty(A)
''')


def test_in_a_guarded_source_unwritten_memory_is_nan():
    A = np.ones((2, 2), np.float32)
    text = guard(GUARDED)
    for name in ("bare", "options", "plain"):
        result = load(text, name)(A)
        assert np.isnan(result).all(), name
    assert load(text, "bare")(A).dtype == np.float32


def test_in_a_guarded_source_every_index_is_checked():
    for name in ("beyond", "calls"):
        with pytest.raises(IndexError):
            load(guard(GUARDED), name)(np.ones(3))


# --- cloning ---


def test_a_cloned_array_has_the_values_and_strides_of_its_own():
    for view in (
        np.arange(24.0).reshape(4, 6),
        np.asfortranarray(np.arange(24.0).reshape(4, 6)),
        np.arange(24.0).reshape(4, 6).T,
        np.arange(24.0).reshape(4, 6)[::2, ::3],
        np.arange(24.0).reshape(4, 6)[::-1, 1:],
        np.arange(24.0).reshape(4, 6)[:0],
        np.arange(5),
        np.float32(3.0) * np.ones((2, 2, 2), np.float32)[:, ::2],
    ):
        copied = clone(view)
        assert unchanged(view, copied), view
        assert copied.strides == view.strides or view.size == 0, view
        assert not np.shares_memory(copied, view), view


def test_changes_are_noticed_in_lists_arrays_and_nan():
    for value in ([[1.0], [2.0]], np.array([1.0, math.nan]), (1, "a"), math.nan):
        assert unchanged(value, clone(value))
    assert not unchanged([[1.0]], [[2.0]])
    assert not unchanged([[1.0]], [[1.0], []])
    assert not unchanged([1.0], (1.0,))
    assert not unchanged(np.ones(2), np.ones(2, np.float32))
    assert not unchanged(np.array([1.0]), np.array([math.nan]))


# --- running ---


def test_a_fault_names_the_learners_own_line():
    text = "def g(A):\n    return A[7]\n\ndef f(A):\n    x = 1\n    return sorted(A, key=lambda a: g(A))\n"
    outcome = InProcess(load(text, "f")).call(([1.0],))
    assert (outcome.fault.kind, outcome.fault.line, outcome.fault.code) == ("IndexError", 2, "return A[7]")
    assert outcome.fault.sentence() == "IndexError in line 2, `return A[7]`: list index out of range."


def test_a_numba_fault_is_one_sentence_without_escape_codes():
    outcome = InProcess(
        load("from numba import njit\n@njit\ndef f(A):\n    return A.nonsense()\n", "f")
    ).call(([1.0],))
    sentence = outcome.fault.sentence()
    assert "Numba cannot compile it" in sentence
    assert "in line 4, `return A.nonsense()`: Unknown attribute 'nonsense'" in sentence
    assert "\n" not in sentence and "\x1b" not in sentence


def test_exits_and_recursion_are_faults_and_an_interrupt_is_not():
    for body, kind in (("raise SystemExit(3)", "SystemExit"), ("return f()", "RecursionError")):
        assert InProcess(load(f"def f():\n    {body}\n", "f")).call(()).fault.kind == kind
    with pytest.raises(KeyboardInterrupt):
        InProcess(load("def f():\n    raise KeyboardInterrupt\n", "f")).call(())


def test_output_and_warnings_of_an_answer_stay_off_the_page(capfd):
    text = source("""
        import sys, warnings
        def f():
            print("one")
            print("two")
            print("three", file=sys.stderr)
            warnings.warn("four")
    """)
    assert InProcess(load(text, "f")).call(()).printed == 2
    assert capfd.readouterr() == ("", "")


def test_returned_input_memory_is_noticed():
    for body, owner in (
        ("return A", 0),
        ("return B", 1),
        ("return A[:1]", 0),
        ("return B.T", 1),
        ("return A + B", None),
    ):
        outcome = InProcess(load(f"def f(A, B):\n    {body}\n", "f")).call((np.ones((2, 2)), np.ones((2, 2))))
        assert outcome.owner == owner, body


KEEPS = {
    "a list": "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n",
    "a default": "def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n",
    "a global": "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n",
    "the function itself": "def f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n\n",
    "a cache": (
        "import functools\n@functools.cache\ndef g():\n    return []\n"
        "def f(x):\n    g().append(x)\n    return len(g())\n"
    ),
    "its dict": "def f(x):\n    d = f.__dict__\n    d['n'] = d.get('n', 0) + 1\n    return d['n']\n",
}


def test_no_check_sees_what_an_earlier_one_left_in_the_module():
    first = InProcess(lambda x: x)
    for what, text in KEEPS.items():
        assert [first.guarded(Code(text, "f"))((1,)).value for _ in range(3)] == [1, 1, 1], what
