"""Tasks of chapter 08: answers that all ranks call, their messages counted; references that are optimal."""

import threading
from itertools import permutations, product

import numpy as np
import pytest
from grading_tools import verdict

from course_lib.distributed.faults import overhead
from course_lib.distributed.matmul import cuts
from course_lib.distributed.wire import Stuck
from course_lib.grading import registry, stage
from course_lib.grading.compare import exact
from course_lib.grading.sandbox.bubblewrap import Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.task import source
from course_lib.grading.tasks import distributed as declared

ALL_REDUCE = registry.task("08.all_reduce")
RING_OF_TWO = ([np.arange(3.0), np.ones(3)],)

ENDLESS = source("""
    def all_reduce(wire, x):
        while wire.rank == 0:
            pass
        return x
""")
SENDS_FIRST = source("""
    def all_reduce(wire, x):
        wire.send(x, to=(wire.rank + 1) % wire.size)
        return x
""")


# --- the stage ----------------------------------------------------------------------------------------------


def test_each_rank_gets_its_own_entries_and_every_message_is_counted():
    def swapped(wire, x, n):
        return wire.exchange(x, to=1 - wire.rank, source=1 - wire.rank) + n

    values, messages = stage.play(swapped, ([np.zeros(2), np.ones(2)], [10, 20]))
    assert [value.tolist() for value in values] == [[11, 11], [20, 20]]
    assert messages.tolist() == [[0, 0, 1, 16], [0, 1, 0, 16]]


def test_a_rank_that_computes_for_ever_is_ended_and_no_thread_is_left(monkeypatch):
    monkeypatch.setattr(stage, "LONGEST_S", 0.2)
    before = set(threading.enumerate())
    with pytest.raises(Stuck, match="computes without end"):
        stage.play(ALL_REDUCE.code(ENDLESS).load().__globals__["all_reduce"], RING_OF_TWO)
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_more_messages_bytes_and_steps_than_the_reference_needs_are_refused_each_by_its_name():
    allowed = stage.OnTheWire(exact(), "send less", steps=1.5)
    want = ([1, 1], np.array([[0, 0, 1, 800], [1, 1, 0, 800]]))

    def said(*messages):
        found = allowed.compare(([1, 1], np.array(messages)), want, ())
        return found and found.says[0]

    assert said([0, 0, 1, 800], [1, 1, 0, 816]) is None
    assert said([0, 0, 1, 800], [2, 1, 0, 800]) is None
    assert "Rank 0 sends 2 messages; 1 are enough: send less." in said([0, 0, 1, 8], [1, 0, 1, 8])
    assert "Rank 1 sends 833 bytes; 800 are enough" in said([0, 0, 1, 800], [1, 1, 0, 833])
    assert "4 steps follow each other; 3 are enough" in said([0, 0, 1, 800], [3, 1, 0, 800])
    assert allowed.compare(([1, 2], want[1]), want, ()).says == (
        "On rank 1 of 2: yours is 2, expected is 1.",
    )


@pytest.mark.needs("bubblewrap")
def test_a_deadlock_is_told_with_the_learners_line_here_and_in_the_sandbox():
    from course_lib.grading.judge import judge

    here = verdict(ALL_REDUCE, SENDS_FIRST)
    with SandboxedRunner(ALL_REDUCE.code(SENDS_FIRST), Sandbox()) as runner:
        there = judge(ALL_REDUCE, runner, SENDS_FIRST, 9)
        assert runner.incidents == []
    assert here.lines == there.lines
    words = "Nobody can go on: rank 0 sends to rank 1; rank 1 sends to rank 0."
    assert here.lines[0].startswith("Stuck in line 2, `wire.send") and words in here.lines[0]


@pytest.mark.needs("bubblewrap")
def test_ranks_talk_in_the_sandbox_as_they_do_here(solutions):
    from course_lib.grading.collect import collect
    from course_lib.grading.judge import judge

    for task in filter(lambda one: one.collective, registry.tasks()):
        text = collect([solutions[task.chapter]], task.entry).text
        with SandboxedRunner(task.code(text), Sandbox()) as runner:
            assert judge(task, runner, text, 5).passed, task.id


# --- the references -----------------------------------------------------------------------------------------


def test_messages_turn_bands_of_rows_into_bands_of_the_transposes_rows():
    for M, N, ranks in ((7, 5, 3), (3, 9, 4), (9, 2, 3), (5, 5, 1)):
        C = np.arange(M * N).reshape(M, N)
        held = np.full((ranks, M, N), -1)
        for rank, band in enumerate(cuts(M, ranks)):
            held[rank, band] = C[band]
        for sender, receiver, (row, to_row), (column, to_column) in declared.shards(M, N, ranks):
            block = np.s_[row:to_row, column:to_column]
            held[(receiver, *block)] = held[(sender, *block)]
        for rank, band in enumerate(cuts(N, ranks)):
            assert (held[rank, :, band] == C[:, band]).all(), (M, N, ranks)


def test_every_turn_of_the_skew_is_a_permutation_of_blocks_and_all_turns_are_the_product():
    q = 4
    turns = [declared.skew(q, turn) for turn in range(q)]
    for pairs in turns:
        assert {a for a, _ in pairs} == {b for _, b in pairs} == set(product(range(q), repeat=2))
    for rank in range(q * q):
        i, j = divmod(rank, q)
        assert {turn[rank] for turn in turns} == {((i, k), (k, j)) for k in range(q)}


def test_no_order_of_ranks_and_no_shares_are_better():
    for racks in ([0, 1, 0, 1, 0, 1], [2, 0, 1, 2, 1, 0]):
        best = min(declared.crossings(racks, one) for one in permutations(range(len(racks))))
        assert declared.crossings(racks, declared.order(racks)) == best
    for rows, speeds, starts in ((7, [2.0, 2.0, 1.0], [0.0] * 3), (6, [9.0, 1.0, 2.0], [3.0, 0.0, 1.0])):
        every = (one for one in product(range(rows + 1), repeat=3) if sum(one) == rows)
        best = min(declared.last_end(one, speeds, starts) for one in every)
        assert declared.last_end(declared.shares(rows, speeds, starts), speeds, starts) == best


def test_no_other_number_of_tiles_loses_less():
    for args in ((1000.0, 105.0, 1e6, 100, 10.0), (600.0, 2.0, 1e6, 64, 60.0), (1.0, 60.0, 3e7, 1000, 300.0)):
        tile_s, write_s, mtbf_s, ranks, restart_s = args
        every = [overhead(n * tile_s, write_s, mtbf_s / ranks, restart_s) for n in range(1, 4000)]
        tiles, lost = declared.interval(*args)
        assert lost == min(every) == every[tiles - 1]


def test_a_wrong_entry_anywhere_is_mended():
    rng = np.random.default_rng(3)
    right = declared._checked(rng, 4, 3, None, 0.0)
    for at in product(range(5), range(4)):
        for wrong in (1e-3, 1e300, np.inf, np.nan):
            F = right.copy()
            F[at] += wrong
            assert np.allclose(declared.repaired(F), right, rtol=1e-12, atol=1e-12), (at, wrong)


def test_a_fault_of_the_stage_names_no_line_of_ours(monkeypatch):
    from course_lib.grading.check import in_process
    from course_lib.grading.judge import judge
    from course_lib.grading.task import Code

    monkeypatch.setattr(stage, "LONGEST_S", 0.2)
    lines = range(11, 11 + len(ENDLESS.splitlines()))
    runner = in_process(ALL_REDUCE, Code(ENDLESS, ALL_REDUCE.entry), lines)
    assert judge(ALL_REDUCE, runner, ENDLESS, 9).lines[0].startswith("Stuck: The time limit of 0.2 s")
