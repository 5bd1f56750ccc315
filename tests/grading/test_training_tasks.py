"""Tasks of interlude C: no order is better than the reference, and what is handed out is what is declared."""

import ast
from itertools import product

from grading_tools import read_notebook, solution_path, text_of

from course_lib.grading.tasks import training as declared
from course_lib.training import pipeline


def every_order(micro: int) -> list[list[tuple[str, int]]]:
    """Return all orders of a stage in which forward goes from 0 up and nothing backward before forward."""
    orders: list[list[tuple[str, int]]] = [[]]
    for _ in range(2 * micro):
        longer = []
        for order in orders:
            sent = sum(kind == "F" for kind, _ in order)
            left = [m for m in range(sent) if ("B", m) not in order]
            longer += [[*order, one] for one in [("F", sent)] * (sent < micro) + [("B", m) for m in left]]
        orders = longer
    return orders


def test_no_order_ends_sooner_than_the_reference_and_none_as_soon_keeps_less_on_any_stage():
    for stages, micro in ((2, 3), (3, 2), (4, 2)):
        want = declared.orders(stages, micro)
        best, kept = pipeline.timeline(want).seconds, pipeline.most_kept(want)
        for order in map(list, product(every_order(micro), repeat=stages)):
            try:
                seconds = pipeline.timeline(order).seconds
            except ValueError:  # they wait for each other
                continue
            mine = pipeline.most_kept(order)
            assert seconds > best or (seconds == best and all(map(int.__ge__, mine, kept))), order


def test_an_order_of_fewer_micro_batches_is_not_taken_for_a_fast_one():
    want = declared.orders(3, 4)
    for order in (declared.orders(3, 1), [[]] * 3, [*want[:2], want[2][:-1]], [*want[:2], want[2] + want[2]]):
        assert "needed are F and B" in declared.InTime().compare(order, want, (3, 4)).says[0]
    assert declared.InTime().compare([[("F", float("inf"))]], [[("F", 0)]], (1, 1)).form


def test_the_assignment_hands_out_the_declared_ring():
    cells = {cell["id"]: text_of(cell) for cell in read_notebook(solution_path("C"))["cells"]}
    assert ast.dump(ast.parse(cells["C-ring-given"])) == ast.dump(ast.parse(declared.RING))
