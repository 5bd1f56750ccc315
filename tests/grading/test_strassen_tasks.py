"""Tasks of chapter 03: what they accept beside the solution, and that what they are made from is true."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from grading_tools import answers_of
from test_answers_by_others import HONEST

from course_lib.grading import registry
from course_lib.grading.sources import load
from course_lib.grading.tape import Tape, count, taped
from course_lib.grading.tasks import strassen as declared

ROOT = Path(__file__).resolve().parents[2]


def tensor() -> np.ndarray:
    T = np.zeros((4, 4, 4), int)
    for i, k, j in np.ndindex(2, 2, 2):
        T[2 * i + k, 2 * k + j, 2 * i + j] = 1
    return T


@pytest.fixture(scope="module")
def answers() -> str:
    path = ROOT / "solutions/03_strassen/03_strassen.ipynb"
    return answers_of(json.loads(path.read_text(encoding="utf-8")))


def test_the_disguised_products_are_right_and_each_lost_one_is_the_only_answer():
    for seed in range(20):
        others = declared.STRASSEN_TABLES if seed % 2 else declared.WINOGRAD_TABLES
        tables = declared._disguised(np.random.default_rng(seed), others)
        assert np.array_equal(np.einsum("pa,pb,pc->abc", *tables), tensor()), seed
        for number in range(7):
            six = [np.delete(table, number, axis=0).tolist() for table in tables]
            l, r, c = declared.lost_product(*six)
            assert np.array_equal(np.einsum("a,b,c->abc", l, r, c), declared.left_over(*six)), seed
            assert next(x for x in l if x) == next(x for x in r if x) == 1


def test_the_formula_counts_what_the_solution_does():
    """Peeling as in the text, on numbers that count."""
    peeled, rng = (
        load(next(text for _, way, text in HONEST if "peeled" in way), "strassen"),
        np.random.default_rng(0),
    )
    for n, cutoff in ((1, 1), (2, 1), (3, 1), (5, 2), (7, 1), (8, 2), (13, 3)):
        tape = Tape()
        peeled(*taped((rng.random((n, n)), rng.random((n, n))), tape), cutoff)
        done = count(tape)
        assert (done.multiplications, done.additions) == declared.operations(n, cutoff), (n, cutoff)


def test_the_broken_table_is_right_for_two_by_two_gram_matrices_and_for_nothing_else(answers):
    broken = load(declared.BROKEN, "broken")
    rng = np.random.default_rng(1)
    for _ in range(50):
        X, Y = rng.standard_normal((2, 2, 2))
        assert np.allclose(broken(X, X.T), X @ X.T)
        assert not np.allclose(broken(X, Y), X @ Y)
    X = rng.standard_normal((4, 4))
    assert not np.allclose(broken(X, X.T), X @ X.T)
    X, Y = rng.standard_normal((2, 6, 6))
    assert np.allclose(load(answers, "repaired")(X, Y), X @ Y)


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
    close, rng = declared.close_by_norm(), np.random.default_rng(4)
    for dtype in ("float32", "float64"):
        A, B = (rng.uniform(-2, 2, (24, 24)).astype(dtype) for _ in "AB")
        exact = (A.astype(np.float64) @ B.astype(np.float64)).astype(dtype)
        for id in ("03.level", "03.winograd"):
            got = load(answers, registry.task(id).entry)(A, B)
            assert close.compare(got, exact, (A, B)) is None, (id, dtype)
        wrong = exact.copy()
        wrong[3, 5] += 0.01
        assert close.compare(wrong, exact, (A, B)) is not None, dtype
