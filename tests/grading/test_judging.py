"""What the judge says about answers that misbehave rather than miscalculate, and how reports look."""

import dataclasses

import numpy as np
from wrong_answers import wrong_answer

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.report import heat_map, heat_map_teaches
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.task import Case, source

RIGHT = source("""
    from numba import njit
    import numpy as np

    @njit
    def matmul(A, B):
        C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
        for i in range(A.shape[0]):
            for k in range(A.shape[1]):
                for j in range(B.shape[1]):
                    C[i, j] += A[i, k] * B[k, j]
        return C
""")


def test_misbehaviour_is_named(judged):
    for text, words in (
        ("def matmul(A, B):\n    return A\n", "wrong"),
        ("def matmul(A, B):\n    A[0][0] = 5.0\n    return A\n", "changed its input, the first argument"),
        ("def matmul(A, B):\n    B.append([1.0])\n    return A\n", "changed its input, the second argument"),
        ("def matmul(A):\n    return A\n", "takes 1 positional argument but 2 were given"),
        ("def matmul(A, B):\n    yield A\n", "generator"),
        ("def matmul(A, B):\n    return [['x'] * 3] * 3\n", "holds the text 'x', but only numbers"),
        (
            "def matmul(A, B):\n    return 1 / 0\n",
            "ZeroDivisionError in line 2, `return 1 / 0`: division by zero.",
        ),
        ("def matmul(A, B):\n    import sys\n    sys.exit(0)\n", "imports sys"),
    ):
        report = judged("01.matmul", text)
        assert (report.points, report.passed) == (0, False), text
        assert words in str(report), text


def test_returning_the_inputs_own_memory_is_reported(judged):
    text = "def matmul(A, B):\n    return B\n"
    task = dataclasses.replace(
        registry.task("01.matmul"),
        reference=lambda A, B: B,
        counts=None,
        cases=lambda rng: [Case(([[1.0]], [[2.0]]), "one by one")],
        lookalikes=(),
    )
    report = judge(task, InProcess(load(text, "matmul")), text, 1)
    assert "memory of its own input, the second argument" in str(report)


def test_a_case_may_ask_for_an_exception():
    task = dataclasses.replace(
        registry.task("01.matmul"),
        counts=None,
        cases=lambda rng: [Case(([[1.0]], []), "B without rows", expect=ValueError)],
    )
    for body, words in (
        ("raise ValueError('no')", "visible tests pass"),
        ("raise UnicodeError('no')", "visible tests pass"),  # a kind of ValueError
        ("raise KeyError('no')", "must raise ValueError"),
        ("return 3", "It returned the int 3, but it must raise ValueError"),
    ):
        text = f"def matmul(A, B):\n    {body}\n"
        assert words in str(judge(task, InProcess(load(text, "matmul")), text, 1))


def test_a_value_that_breaks_the_comparison_is_a_wrong_value(judged):
    text = "def matmul(A, B):\n    return [[10 ** 400] * 3 for _ in A]\n"
    assert judged("01.matmul", text).points == 0


def test_printing_is_mentioned_when_something_is_wrong(judged):
    text = "def matmul(A, B):\n    print(A)\n    return None\n"
    assert "printed 1 line during the check (not shown)" in str(judged("01.matmul", text))


def test_only_a_guarded_run_shows_what_is_right_by_luck(judged):
    out_of_bounds = RIGHT.replace("range(A.shape[1])", "range(A.shape[1] + 1)")
    report = judged("02.matmul", out_of_bounds)
    assert "reads or writes outside an array" in str(report)
    assert "second run" in str(report)
    report = judged("02.matmul", RIGHT.replace("np.zeros", "np.empty"))
    assert "memory that was never written" in str(report)
    assert "NaN where another value is expected" in str(report)
    report = judged("02.matmul", RIGHT)
    assert report.passed and "all tests" not in str(report).lower()


def test_an_answer_that_needs_the_notebook_around_it_is_told_so(judged):
    text = RIGHT.replace("return C", "return C * missing")
    assert "missing" in str(judged("02.matmul", text))


def test_the_report_lists_five_entries_and_says_how_many_more(judged):
    text = "def matmul(A, B):\n    return [[0.5] * len(B[0]) for _ in A]\n"
    report = judged("01.matmul", text)
    assert len(report.mismatch.rows) == 5
    assert "… and 4 more" in str(report)
    assert "Input (A 3 x 3, B 3 x 3): A = [[" in str(report)


def test_html_is_escaped_and_carries_the_same_words(judged):
    text = "def matmul(A, B):\n    raise ValueError('<b>bold</b> & `ticks`')\n"
    report = judged("01.matmul", text)
    html = report._repr_html_()
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold&lt;/b&gt; &amp;" in html
    assert "0 of 3 points" in html


def test_a_heat_map_is_drawn_when_the_pattern_teaches(judged):
    text = wrong_answer("01.matmul", "forgets the last column").source
    html = judged("01.matmul", text)._repr_html_()
    assert 'role="img"' in html
    assert "3 entries are wrong" in html
    assert html.count("<rect") == 9


def test_a_heat_map_teaches_when_some_entries_are_wrong_and_some_are_not():
    for errors, teaches in (
        (np.zeros((3, 3)), False),
        (np.ones((3, 3)), False),
        (np.eye(3), True),
        (np.array([[0.0, 1.0]]), False),
        (np.array([[0.0, np.nan], [0.0, 0.0]]), True),
    ):
        assert heat_map_teaches(errors) == teaches, errors


def test_a_large_heat_map_shows_the_worst_of_each_block():
    errors = np.zeros((100, 70))
    errors[99, 69], errors[0, 0] = 1.0, np.nan
    svg = heat_map(errors)
    assert svg.count("<rect") == 24 * 24
    assert svg.count("#9700ff") == 1  # the one NaN
    assert svg.count("#ff007f") == 1  # the one wrong entry
    assert "over the 100 x 70 result: 2 entries are wrong" in svg


def test_nan_that_the_answer_writes_itself_is_not_called_memory_never_written(judged):
    text = source("""
        import numpy as np
        from numba import njit

        @njit
        def matmul(A, B):
            C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
            C[:] = np.nan
            return C
    """)
    said = str(judged("02.matmul", text))
    assert "never written" not in said and "wrong" in said
