"""Tasks of chapter 08: answers that all ranks call, their messages counted; references that are optimal."""

import inspect
import threading
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import psutil
import pytest
from grading_tools import verdict

from course_lib.distributed.faults import overhead
from course_lib.distributed.matmul import cuts
from course_lib.distributed.wire import Stuck
from course_lib.grading import registry, stage
from course_lib.grading.compare import exact
from course_lib.grading.judge import NOT_BY_MESSAGES, judge
from course_lib.grading.sandbox.bubblewrap import Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sources import load
from course_lib.grading.task import Case, Code, source
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

    values, messages, _ = stage.play(swapped, ([np.zeros(2), np.ones(2)], [10, 20]))
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
    here = verdict(ALL_REDUCE, SENDS_FIRST)
    with SandboxedRunner(ALL_REDUCE.code(SENDS_FIRST), Sandbox()) as runner:
        there = judge(ALL_REDUCE, runner, SENDS_FIRST, 9)
        assert runner.incidents == []
    assert here.lines == there.lines
    words = "Nobody can go on: rank 0 sends to rank 1; rank 1 sends to rank 0."
    assert here.lines[0].startswith("Stuck in line 2, `wire.send") and words in here.lines[0]


KEPT_BY_ALL = source("""
    TABLE = []
    def own_table(wire, x):
        TABLE.append(wire.rank)
        return len(TABLE)
""")


def test_ranks_have_tables_of_their_own_and_what_they_print_is_counted_once(capsys):
    def passed_on(wire, x):
        print(wire.rank)
        if wire.rank:
            x = x + wire.receive(x, source=wire.rank - 1)
        if wire.rank + 1 < wire.size:
            wire.send(x, to=wire.rank + 1)
        return x

    values, *_ = stage.play(passed_on, ([np.full(2, 1.0), np.full(2, np.nan), np.full(2, 4.0)],))
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "2"]
    assert values[0].tolist() == [1, 1] and np.isnan(values[2]).all()
    assert stage.play(load(KEPT_BY_ALL, "own_table"), ([1, 2],))[0] == [1, 1]


def largest(wire, x):
    """Return the largest of all ranks' numbers; they go round."""
    found = x
    for _ in range(wire.size - 1):
        x = wire.exchange(x, to=(wire.rank + 1) % wire.size, source=(wire.rank - 1) % wire.size)
        found = np.maximum(found, x)
    return found


HONEST = source(inspect.getsource(largest))
#: The ranks' numbers, found where threads find them: in memory that all have. The messages are empty words.
SHARED = source("""
    def largest(wire, x, shared=[]):
        shared.append(x)
        for _ in range(wire.size - 1):
            wire.exchange(x * 0, to=(wire.rank + 1) % wire.size, source=(wire.rank - 1) % wire.size)
        return np.max(shared[-wire.size:], axis=0)
""")
#: Right by its messages; but one of them has a number in it that counts the calls, and the error is caught.
COUNTED = source("""
    def largest(wire, x, calls=[0]):
        calls[0] += 1
        other, said = 1 - wire.rank, np.array([NUMBER], np.uint64).view(np.float64)
        found = np.maximum(x, wire.exchange(x, to=other, source=other))
        try:
            wire.exchange(said, to=other, source=other)
        except LookupError:
            pass
        return found
""")


def twice(wire, x):
    return largest(wire, largest(wire, x))


@pytest.mark.needs("bubblewrap")
def test_a_rank_knows_what_messages_tell_it_and_nothing_else():
    def task_of(reference, *sizes):
        def cases(rng):
            for ranks in sizes:
                yield Case(([rng.uniform(1, 9, 3) for _ in range(ranks)],), f"{ranks} ranks")

        other = {"cases": cases, "reference": stage.played(reference), "entry": "largest"}
        return replace(ALL_REDUCE, rules=(), lookalikes={}, **other)

    once, again = task_of(largest, 2, 3, 6), task_of(twice, 2)
    for task, text, earned in (
        (once, HONEST, True),
        (once, SHARED, False),
        (again, COUNTED.replace("NUMBER", "7"), True),
        (again, COUNTED.replace("NUMBER", "calls[0]"), False),
        (again, COUNTED.replace("NUMBER", "0x7FF8000000000000 + calls[0]"), False),  # NaN equals NaN
    ):
        text = "import numpy as np\n" + text
        with SandboxedRunner(task.code(text), Sandbox()) as runner:
            for report in (verdict(task, text), judge(task, runner, text, 9)):
                assert (report.points > 0) is earned, (text, report)
                assert earned or report.lines == (NOT_BY_MESSAGES,), report


#: Its derivatives lie in memory column by column: over the wire out of the sandbox come their values alone.
TURNED = source("""
    def mlp(wire, x, A, B, dy):
        h = x @ A
        dh = (dy @ B.T) * (h > 0)
        a = np.maximum(h, 0)
        y, dx = ring_sum(wire, np.stack([a @ B, dh @ A.T]))
        return y, dx, (dh.T @ x).T, (dy.T @ a).T
""")


@pytest.mark.needs("bubblewrap")
def test_a_result_may_lie_in_memory_as_it_likes():
    task = registry.task("C.tensor")
    text = f"import numpy as np\n\n\n{task.rules[0].given}\n\n{TURNED}"
    with SandboxedRunner(task.code(text), Sandbox()) as runner:
        for report in (verdict(task, text), judge(task, runner, text, 9)):
            assert report.passed, report


def test_a_rank_alone_is_not_told_what_it_sent_and_returned():
    nan, other = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64).reshape(2, 1)

    def passed_on(wire, x):
        wire.send(x, to=1)
        return wire.receive(x, source=1)

    value, sent = again = stage.part_again(passed_on, 0, 2, (nan,), [(1, np.ones(1))])
    assert value == 1 and stage.is_the_same([(1, nan)], np.ones(1), again)
    for before, was in (([(1, other)], value), ([], value), (sent * 2, value), (sent, value + 1)):
        assert not stage.is_the_same(before, was, again)
    for reply in (None, True, (value,), (value, 3), (value, [3]), (value, [(1, 1.0)])):
        assert not stage.is_the_same(sent, value, reply)
    for messages in ([], [(1, np.ones(2))], [(0, np.ones(1))], [(1, np.ones(1))] * 2):
        assert stage.part_again(passed_on, 0, 2, (nan,), messages) is None


@pytest.mark.needs("bubblewrap")
def test_there_is_a_process_for_each_place_and_it_stays():
    code = Code("def f(x, seen=[]):\n    seen.append(x)\n    return seen\n", "f")
    with SandboxedRunner(code, Sandbox()) as runner:
        calls = [runner.call, runner.elsewhere(code, 0), runner.elsewhere(code, 1), runner.elsewhere(code, 0)]
        assert [call((x,)).value for x, call in enumerate(calls)] == [[0], [1], [2], [1, 3]]
        at_work = [one for one in psutil.Process().children() if "bwrap" in " ".join(one.cmdline())]
        assert len(at_work) == 3
    assert runner.process_seconds > 0 and not psutil.wait_procs(at_work, timeout=10)[1]


@pytest.mark.needs("bubblewrap")
def test_ranks_talk_in_the_sandbox_as_they_do_here(solutions):
    from course_lib.grading.collect import collect

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
    right = declared._checked(rng, 4, 3)
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
