"""What the judge says about answers that misbehave rather than miscalculate, and how reports look."""

import dataclasses

from course_lib.grading import registry
from course_lib.grading.judge import judge
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
        ("def repaired(A, B):\n    return A\n", "wrong"),
        ("def repaired(A, B):\n    A[0][0] = 5.0\n    return A\n", "changed its input, the first argument"),
        (
            "def repaired(A, B):\n    B.append([1.0])\n    return A\n",
            "changed its input, the second argument",
        ),
        ("def repaired(A):\n    return A\n", "takes 1 positional argument but 2 were given"),
        ("def repaired(A, B):\n    yield A\n", "generator"),
        ("def repaired(A, B):\n    return [['x'] * 3] * 3\n", "holds the text 'x', but only numbers"),
        (
            "def repaired(A, B):\n    return 1 / 0\n",
            "ZeroDivisionError in line 2, `return 1 / 0`: division by zero.",
        ),
        ("def repaired(A, B):\n    import sys\n    sys.exit(0)\n", "imports sys"),
    ):
        report = judged("01.alias", text)
        assert (report.points, report.passed) == (0, False), text
        assert words in str(report), text


def test_returning_the_inputs_own_memory_is_reported(judged):
    text = "def repaired(A, B):\n    return B\n"
    task = dataclasses.replace(
        registry.task("01.alias"),
        reference=lambda A, B: B,
        counts=None,
        cases=lambda rng: [Case(([[1.0]], [[2.0]]), "one by one")],
        lookalikes={},
    )
    report = judge(task, InProcess(load(text, "repaired")), text, 1)
    assert "memory of its own input, the second argument" in str(report)


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


def test_the_report_lists_five_entries_and_says_how_many_more(judged):
    text = "def repaired(A, B):\n    return [[0.5] * len(B[0]) for _ in A]\n"
    report = judged("01.alias", text)
    assert len(report.mismatch.rows) == 5
    assert "… and 4 more" in str(report)
    assert "Input (A 3 x 3, B 3 x 3): A = [[" in str(report)


def test_html_is_escaped_and_carries_the_same_words(judged):
    text = "def repaired(A, B):\n    raise ValueError('<b>bold</b> & `ticks`')\n"
    report = judged("01.alias", text)
    html = report._repr_html_()
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold&lt;/b&gt; &amp;" in html
    assert "0 of 2 points" in html


def test_a_heat_map_is_drawn_when_the_pattern_teaches(judged):
    whole = "[[sum([a * b for a, b in zip(row, col)]) for col in [*zip(*B)][:-1]] + [0.0] for row in A]"
    text = f"def repaired(A, B):\n    return {whole}\n"
    html = judged("01.alias", text)._repr_html_()
    assert 'role="img"' in html
    assert "3 entries are wrong" in html
    assert html.count("<rect") == 9


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
