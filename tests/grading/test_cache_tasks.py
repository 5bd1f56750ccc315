"""The tasks of chapter 04 against the simulator, brute force and the rung itself."""

import itertools

import numpy as np
from grading_tools import read_notebook, solution_path, text_of
from wrong_answers import wrong_answer

from course_lib.grading import registry
from course_lib.grading.judge import generator, judge
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.tasks import cache_and_simd as declared


def test_a_column_conflicts_exactly_if_the_simulator_misses_it_again():
    from course_lib.simulators.cache import Level, simulate

    for row_bytes in (8, 24, 4096, 4104, 4160, 960):
        for size, ways, line in ((32768, 8, 64), (49152, 12, 64), (15 * 3 * 64, 3, 64)):
            column = np.arange(40, dtype=np.uint64) * row_bytes
            once = simulate(column, [Level(size, ways, line)]).misses[0]
            twice = simulate(np.tile(column, 2), [Level(size, ways, line)]).misses[0]
            _, most, verdict = declared.column_sets(40, row_bytes, size, ways, line)
            assert (verdict == "conflict") == (twice > once) == (most > ways), (row_bytes, size)


def test_a_block_fits_and_the_next_one_does_not():
    for cache, itemsize, multiple in itertools.product((3000, 32768, 49152, 10**6), (4, 8), (1, 4, 16)):
        b = declared.block_size(cache, itemsize, multiple)
        assert b % multiple == 0 and b >= multiple
        assert 3 * b * b * itemsize <= cache or b == multiple
        assert 3 * (b + multiple) ** 2 * itemsize > cache


def test_the_visits_are_all_triples_in_blocks():
    order = declared.visits(9, 10, 17, 2048)
    assert sorted(map(tuple, order.tolist())) == list(itertools.product(range(9), range(10), range(17)))
    assert (order[:8] == [(0, 0, j) for j in range(8)]).all()  # the first row of a block of 8


def test_the_target_needs_blocks_that_depend_on_the_cache():
    task = registry.task("04.visits")
    beaten = set()
    for case in task.cases(generator(task, 1)):
        M, K, N, _ = case.args
        for b in (2, 8, 64):
            got = declared.in_blocks(M, K, N, b)
            if task.comparison.compare(got, task.reference(*case.args), case.args):
                beaten.add(b)
    assert beaten == {2, 8, 64}


def test_another_order_of_the_blocks_is_as_good():
    task = registry.task("04.visits")
    args = (40, 40, 40, 2048)
    order = declared.visits(*args)
    assert task.comparison.compare(order[::-1].copy(), order, args) is None
    assert task.comparison.compare(order.astype(np.int32), order, args) is None


def test_what_is_not_an_order_is_refused():
    task, args = registry.task("04.visits"), (6, 5, 7, 4096)
    right = declared.visits(*args)
    for wrong in (right[:-1], right.astype(float), right + 1, list(right)):
        assert task.comparison.compare(wrong, right, args), wrong


def said(id: str, name: str) -> tuple[str, ...]:
    """Return the lines of the report on a typical wrong answer."""
    task = registry.task(id)
    text = wrong_answer(id, name).source
    return judge(task, InProcess(load(text, task.entry)), text, 9).lines


def test_a_list_of_visits_is_not_said_to_be_rounded():
    (line,) = said("04.visits", "a list")
    assert "np.array(list of (i, k, j))" in line


def test_blocks_too_large_and_a_step_of_whole_lines_are_named():
    assert "do not fit into the cache together" in said("04.visits", "one block fills the cache")[0]
    assert "multiply first and divide then" in said("04.sets", "a constant step of whole lines")[0]


def test_what_the_text_says_of_the_sides_is_true():
    text = "".join(
        text_of(cell)
        for cell in read_notebook(solution_path("04"))["cells"]
        if cell["id"] == "04-visits-task"
    )
    assert "their sides are not always multiples of your block" in text and "odd" not in text
    task = registry.task("04.visits")
    for seed in range(3):
        sides = {side for case in task.cases(generator(task, seed)) for side in case.args[:3]}
        assert any(side % 8 for side in sides) and any(side % 8 == 0 for side in sides)


def test_a_panel_is_what_the_rung_packs():
    from course_lib.circles import simd

    B = np.random.default_rng(0).standard_normal((20, 100))
    NR = simd.ROW_BYTES // 8
    j0 = 100 // NR * NR
    panel = np.empty(20 * NR)
    simd.pack(B.reshape(-1), j0, 100, 20, 100 - j0, panel)
    assert (panel == declared.pack(B, 0, j0, 20, NR)).all()


def test_inputs_of_tiles_catch_a_product_that_skips_zeros():
    for id in ("04.tile", "04.edge"):
        task = registry.task(id)
        meets = [case for case in task.cases(generator(task, 3)) if "every row" in case.label]
        assert len(meets) == 1
        A, B = meets[0].args
        with np.errstate(invalid="ignore"):
            product = task.reference(A, B)
        rows = len(A)
        assert np.isnan(product[:, rows]).all() and np.isnan(product[:, rows + 1]).all()


def test_tiles_without_columns_are_among_the_inputs():
    for id in ("04.tile", "04.edge"):
        task = registry.task(id)
        assert any(len(A) >= 4 and B.shape[1] == 0 for A, B in (one.args for one in _inputs(task)))


def test_inputs_of_fast_have_two_tiles_and_every_rest():
    large = [case.args[0].shape for case in _inputs(registry.task("04.fast")) if min(case.args[0].shape) >= 8]
    assert {M % 4 for M, _ in large} == {K % 4 for _, K in large} == {0, 1, 2, 3}


def test_fast_must_not_skip_four_k_for_one_number():
    task = registry.task("04.fast")
    A, B = args = next(case.args for case in _inputs(task) if "at each of four k" in case.label)
    with np.errstate(invalid="ignore"):
        terms = (A[:, :, None] * B).reshape(-1, 4, 4, B.shape[1])  # row, fours, k, column
        for row, k in itertools.product(range(4), range(4)):
            for special in (lambda X: X == 0, lambda X: ~np.isfinite(X)):
                for_A, for_B = terms.copy(), terms.copy()
                for_A[row::4][special(A)[row::4, k::4]] = 0.0
                for_B[row::4].swapaxes(2, 3)[:, special(B)[k::4]] = 0.0
                sums = [one.sum(axis=(1, 2)) for one in (terms, for_A, for_B)]
                found = [task.comparison.compare(one, task.reference(*args), args) for one in sums]
                assert found[0] is None and found[1] and found[2], (row, k)


def _inputs(task):
    return list(task.cases(generator(task, 3)))


TILES = {
    "a function of its own": """
@njit
def column(A, B, j, K):
    c0 = c1 = c2 = c3 = 0.0
    for k in range(K):
        b = B[k, j]
        c0, c1, c2, c3 = c0 + A[0, k] * b, c1 + A[1, k] * b, c2 + A[2, k] * b, c3 + A[3, k] * b
    return c0, c1, c2, c3


@njit
def tile(A, panel):
    C = np.empty((4, panel.shape[1]), A.dtype)
    for j in range(panel.shape[1]):
        C[0, j], C[1, j], C[2, j], C[3, j] = column(A, panel, j, len(panel))
    return C
""",
    "two steps of k at once": """
@njit
def tile(A, panel):
    K, NR = panel.shape
    C = np.empty((4, NR), A.dtype)
    for j in range(NR):
        c0 = c1 = c2 = c3 = 0.0
        for k in range(0, K - 1, 2):
            x, y = panel[k, j], panel[k + 1, j]
            c0 += A[0, k] * x + A[0, k + 1] * y
            c1 += A[1, k] * x + A[1, k + 1] * y
            c2 += A[2, k] * x + A[2, k + 1] * y
            c3 += A[3, k] * x + A[3, k + 1] * y
        if K % 2:
            x = panel[K - 1, j]
            c0, c1 = c0 + A[0, K - 1] * x, c1 + A[1, K - 1] * x
            c2, c3 = c2 + A[2, K - 1] * x, c3 + A[3, K - 1] * x
        C[0, j], C[1, j], C[2, j], C[3, j] = c0, c1, c2, c3
    return C
""",
}


def test_other_tiles_that_read_each_number_once_are_right():
    task = registry.task("04.tile")
    for how, tile in TILES.items():
        text = "import numpy as np\nfrom numba import njit\n" + tile
        report = judge(task, InProcess(load(text, task.entry)), text, 3)
        assert report.passed, f"{how}\n{report}"
