"""The tasks of chapter 04 against the simulator, brute force and the rung itself."""

import numpy as np

from course_lib.grading import registry
from course_lib.grading.judge import generator
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


def test_a_panel_is_what_the_rung_packs():
    from course_lib.circles import simd

    B = np.random.default_rng(0).standard_normal((20, 100))
    NR = simd.ROW_BYTES // 8
    j0 = 100 // NR * NR
    panel = np.empty(20 * NR)
    simd.pack(B.reshape(-1), j0, 100, 20, 100 - j0, panel)
    assert (panel == declared.pack(B, 0, j0, 20, NR)).all()
