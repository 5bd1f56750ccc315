"""Tasks of chapter 03: what they accept beside the solution, and that what they are made from is true."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from grading_tools import answers_of
from wrong_answers import start, wrong_answer, wrong_answers

from course_lib.grading import registry
from course_lib.grading.checkpoints import checkpoint
from course_lib.grading.judge import judge
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.tape import Tape, count, taped
from course_lib.grading.tasks import strassen as declared

ROOT = Path(__file__).resolve().parents[2]


def tensor() -> np.ndarray:
    T = np.zeros((4, 4, 4), int)
    for i, k, j in np.ndindex(2, 2, 2):
        T[2 * i + k, 2 * k + j, 2 * i + j] = 1
    return T


def verdict(id: str, text: str, seed: int = 9):
    task = registry.task(id)
    return judge(task, InProcess(load(text, task.entry)), text, seed)


@pytest.fixture(scope="module")
def answers() -> str:
    path = ROOT / "solutions/03_strassen/03_strassen.ipynb"
    return answers_of(json.loads(path.read_text(encoding="utf-8")))


def test_the_solutions_get_all_points_with_other_inputs(answers):
    for task in registry.tasks("03"):
        for seed in (1, 2025):
            report = verdict(task.id, answers, seed)
            assert report.points == task.points, str(report)


def test_peeling_is_as_good_as_padding_and_as_padding_once():
    padded = """
import numpy as np

def even(A, B, cutoff):
    (M, K), N = A.shape, B.shape[1]
    if min(M, K, N) <= cutoff:
        return A @ B
    m, k, n = M // 2, K // 2, N // 2
    A11, A12, A21, A22 = A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:]
    B11, B12, B21, B22 = B[:k, :n], B[:k, n:], B[k:, :n], B[k:, n:]
    M1, M2 = even(A11 + A22, B11 + B22, cutoff), even(A21 + A22, B11, cutoff)
    M3, M4 = even(A11, B12 - B22, cutoff), even(A22, B21 - B11, cutoff)
    M5, M6 = even(A11 + A12, B22, cutoff), even(A21 - A11, B11 + B12, cutoff)
    M7 = even(A12 - A22, B21 + B22, cutoff)
    return np.block([[M1 + M4 - M5 + M7, M3 + M5], [M2 + M4, M1 - M2 + M3 + M6]])

def strassen(A, B, cutoff):
    (M, K), N = A.shape, B.shape[1]
    levels = 0
    while -(-min(M, K, N) // 2**levels) > cutoff:
        levels += 1
    step = 2**levels
    A = np.pad(A, ((0, -M % step), (0, -K % step)))
    B = np.pad(B, ((0, -K % step), (0, -N % step)))
    return even(A, B, cutoff)[:M, :N].copy()
"""
    for seed in range(3):
        for text in (start("03.any"), padded):
            report = verdict("03.any", text, seed)
            assert report.passed, str(report)


def test_the_tables_of_the_task_are_those_of_the_rung():
    from course_lib.circles import strassen

    assert (declared.LEFT, declared.RIGHT, declared.INTO) == (strassen.LEFT, strassen.RIGHT, strassen.INTO)


def test_the_disguised_products_are_right_and_each_lost_one_is_the_only_answer():
    for seed in range(20):
        tables = declared._disguised(np.random.default_rng(seed))
        assert np.array_equal(np.einsum("pa,pb,pc->abc", *tables), tensor()), seed
        for number in range(7):
            six = [np.delete(table, number, axis=0).tolist() for table in tables]
            l, r, c = declared.lost_product(*six)
            assert np.array_equal(np.einsum("a,b,c->abc", l, r, c), declared.left_over(*six)), seed
            assert next(x for x in l if x) == next(x for x in r if x) == 1


def test_the_formula_counts_what_the_rungs_tables_do():
    """Peeling as in the text, on numbers that count."""
    from course_lib.circles import strassen

    def run(A, B, cutoff):
        n, half = len(A), len(A) // 2
        if n <= cutoff:
            return A @ B
        C = np.empty((n, n), object)
        As, Bs = strassen.blocks(A, half, half), strassen.blocks(B, half, half)
        M = [
            run(strassen.combined(As, left), strassen.combined(Bs, right), cutoff)
            for left, right in zip(strassen.LEFT, strassen.RIGHT, strict=True)
        ]
        for block, signs in zip(
            strassen.blocks(C, half, half), zip(*strassen.INTO, strict=True), strict=True
        ):
            block[...] = strassen.combined(M, signs)
        if n % 2:
            C[:-1, :-1] += A[:-1, -1:] @ B[-1:, :-1]
            C[:-1, -1:] = A[:-1] @ B[:, -1:]
            C[-1:] = A[-1:] @ B
        return C

    rng = np.random.default_rng(0)
    for n, cutoff in ((1, 1), (2, 1), (3, 1), (5, 2), (7, 1), (8, 2), (13, 3)):
        tape = Tape()
        A, B = taped((rng.random((n, n)), rng.random((n, n))), tape)
        run(A, B, cutoff)
        done = count(tape)
        assert (done.multiplications, done.additions) == declared.operations(n, cutoff), (n, cutoff)


def test_an_odd_size_just_above_the_cutoff_does_one_level():
    task = registry.task("03.count")
    (wrong,) = (
        answer for answer in wrong_answers("03.count") if answer.name.startswith("the definition for")
    )
    for n, cutoff, right, slip in ((3, 2, (26, 32), (27, 18)), (9, 8, (665, 824), (729, 648))):
        assert declared.operations(n, cutoff) == right
        assert declared._stops_at_even(n, cutoff) == slip == load(wrong.source, "operations")(n, cutoff)
    report = verdict("03.count", wrong.source)
    assert report.points == 0
    assert report.lines[0].startswith("An odd n just above the cutoff still does one level, on m = n - 1")
    for seed in range(3):  # and such sizes are among the inputs of every seed
        sizes = {case.args for case in task.cases(np.random.default_rng(seed))}
        assert {(3, 2), (9, 8)} < {(n, cutoff) for n, cutoff in sizes if n % 2 and n == cutoff + 1}


def test_counts_are_whole_numbers():
    compare = declared.WholeNumbers().compare
    assert compare((7, 18), (7, 18), ()) is None
    assert compare((np.int64(7), 18), (7, 18), ()) is None
    found = compare((7, 18.0), (7, 18), ())
    assert found.form and found.says[0].startswith("additions: 18.0 is right, but a float")
    assert "expected is 7" in compare((8.0, 18.0), (7, 18), ()).says[0]


def test_too_many_operations_are_not_compared_with_the_definition():
    for id, name, says in (
        (
            "03.level",
            "eight products",
            "8 multiplications on this input, more than the 7 of Strassen's level.",
        ),
        (
            "03.winograd",
            "the common sum twice",
            "16 additions on this input, more than the 15 that are enough.",
        ),
    ):
        said = str(verdict(id, wrong_answer(id, name).source))
        assert says in said and "definition" not in said, id


def test_rows_that_are_arrays_are_not_said_to_be_rounded(answers):
    assert ".tolist()" in answers
    said = str(verdict("03.lost", answers.replace(".tolist()", "")))
    assert "but a list is needed" in said and "round" not in said


def test_two_of_winograds_sums_are_built_on_none():
    hint = registry.task("03.winograd").hints[1]
    assert "on the one before" not in hint and "two of them are built on earlier ones" in hint


def test_an_exponent_with_two_digits_is_nearly_right():
    assert "third digit" in checkpoint("03.exponent", 2.79).says
    assert checkpoint("03.exponent", 2.792).right


def test_the_broken_table_is_right_for_two_by_two_gram_matrices_and_for_nothing_else():
    broken = load(declared.BROKEN, "broken")
    rng = np.random.default_rng(1)
    for _ in range(50):
        X, Y = rng.standard_normal((2, 2, 2))
        assert np.allclose(broken(X, X.T), X @ X.T)
        assert not np.allclose(broken(X, Y), X @ Y)
    X = rng.standard_normal((4, 4))
    assert not np.allclose(broken(X, X.T), X @ X.T)
    X, Y = rng.standard_normal((2, 6, 6))
    assert np.allclose(load(start("03.bug"), "repaired")(X, Y), X @ Y)


def test_what_stands_in_the_assignment_is_what_the_tasks_are_made_from():
    cells = json.loads((ROOT / "solutions/03_strassen/03_strassen.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]
    text = {cell["id"]: "".join(cell["source"]) for cell in cells}
    broken = "\n".join(("import numpy as np", text["03-bug-table"], text["03-bug-given"]))
    assert ast.dump(ast.parse(broken)) == ast.dump(ast.parse(declared.BROKEN))
    given = ast.dump(ast.parse(declared.GIVEN).body[1])
    assert any(ast.dump(node) == given for node in ast.parse(text["03-lost-answer"]).body)


def test_the_crossover_is_where_both_times_are_equal():
    gflops, gbps, itemsize, sums = 150.0, 16.0, 4, 18
    N = declared.crossover(gflops, gbps, itemsize, sums)
    classical = 2 * N**3 / (1e9 * gflops)
    one_level = 7 * 2 * (N / 2) ** 3 / (1e9 * gflops) + sums * 3 * itemsize * (N / 2) ** 2 / (1e9 * gbps)
    assert one_level == pytest.approx(classical, rel=1e-12)


def test_the_allowed_error_lets_rounding_pass_and_nothing_else(answers):
    close, rng = declared.close_by_norm(1), np.random.default_rng(4)
    for dtype in ("float32", "float64"):
        A, B = (rng.uniform(-2, 2, (24, 24)).astype(dtype) for _ in "AB")
        exact = (A.astype(np.float64) @ B.astype(np.float64)).astype(dtype)
        for id in ("03.level", "03.winograd"):
            got = load(answers, registry.task(id).entry)(A, B)
            assert close.compare(got, exact, (A, B)) is None, (id, dtype)
        wrong = exact.copy()
        wrong[3, 5] += 0.05
        assert close.compare(wrong, exact, (A, B)) is not None, dtype
