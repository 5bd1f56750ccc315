"""A comparison is fair, says how it was made, and ranks functions right on a busy machine."""

import contextlib
import gc
import json
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
import view_samples

from course_lib.measure import clocks, inputs, machine, timing
from course_lib.measure.comparison import Conditions
from course_lib.measure.timing import Comparison, TimedRow, compare, ratio_interval

QUICK = {"budget_s": 0.05, "min_rounds": 3, "progress": False}


def python_work(turns):
    def work(*_):
        total = 0
        for i in range(turns):
            total += i
        return total

    return work


def row(name, ratio, **changes):
    made = TimedRow(name, ratio * 1e-3, ratio * 1e-5, 9, None, ratio, ratio * 0.98, ratio * 1.02, None)
    return replace(made, **changes)


def comparison(*rows, baseline=None):
    how = Conditions(("float64 (8 x 8), C order",), "openblas 0.3", "wall time", "several threads", 9, 1e-3,
                     "certain enough", 0.01, 0.02, False, 0.1, ())  # fmt: skip
    return Comparison(tuple(rows), baseline or rows[0].name, 1, "float64", ((8, 8),), how)


# -- the numbers -------------------------------------------------------------------------------------------


def test_a_matrix_product_is_counted_and_compared():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((30, 50)), rng.standard_normal((50, 20))
    result = compare({"numpy": np.matmul, "einsum": lambda A, B: np.einsum("ik,kj->ij", A, B)}, A, B, **QUICK)
    assert [r.name for r in result.rows] == ["numpy", "einsum"]
    assert result.baseline == "numpy" and result.threads == 1
    assert result.dtype == "float64" and result.shapes == ((30, 50), (50, 20))
    for found in result.rows:
        assert found.gflops == pytest.approx(2 * 30 * 50 * 20 / found.seconds / 1e9)
        assert found.rounds >= 3 and found.spread_s >= 0
        assert found.ratio == pytest.approx(found.seconds / result.row("numpy").seconds)
        assert found.ratio_low <= found.ratio <= found.ratio_high
    base, other = result.rows
    assert (base.ratio, base.ratio_low, base.ratio_high, base.max_error) == (1, 1, 1, 0)
    assert 0 <= other.max_error < 1e-13
    assert set(result.ranking()) == {"numpy", "einsum"}
    assert result.row(result.ranking()[0]).seconds == min(r.seconds for r in result.rows)


def test_in_haste_two_rounds_do_and_the_card_says_so(monkeypatch):
    monkeypatch.setattr(timing, "TARGET", 1e-9)
    asked = {"budget_s": 0.2, "min_rounds": 9, "progress": False}
    usual = compare({"nap": time.sleep}, 0.01, **asked)
    monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
    hasty = compare({"nap": time.sleep}, 0.01, **asked)
    assert hasty.rows[0].rounds <= 4 and usual.rows[0].rounds >= 9  # 20 ms are spent after two naps
    assert hasty.rough and "in haste" in str(hasty.card()) and "in haste" not in str(usual.card())
    patient = compare({"nap": time.sleep}, 0.01, **asked, haste=False)
    assert patient.rows[0].rounds >= 9


def test_times_are_rough_where_others_held_the_cores_or_nothing_is_certain(tmp_path, monkeypatch):
    account = tmp_path / "1" / "schedstat"
    account.parent.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(clocks, "_ALL_THREADS", tmp_path)
        for ran, queued, held in ((9e9, 1e8, 0), (9e9, 3e9, 0.25), (1e6, 4e6, 0)):  # 4 ms tell nothing
            account.write_text("5 5 5")
            before = clocks.accounts()
            account.write_text(f"{ran + 5:.0f} {queued + 5:.0f} 9")
            assert clocks.held_since(before) == pytest.approx(held)
    monkeypatch.setattr(clocks, "held_since", lambda before: 0.25)
    alone = compare({"work": python_work(3000)}, **QUICK)
    if alone.conditions.clock != "wall time":  # which counts that time
        assert not alone.held and "for 25 % of its time" in alone.card()["note"]
    monkeypatch.setattr(clocks, "HAS_THREAD_CLOCK", False)
    held = compare({"nap": time.sleep}, 0.001, **QUICK)
    assert held.held and held.rough == ("nap",) and "rough" in held.card().title
    assert "for 25 % of its time" in held.card()["rough"]
    monkeypatch.setattr(clocks, "held_since", lambda before: 0.0)
    naps = cycle((2e-3, 2e-2))
    odd = compare({"odd": lambda: time.sleep(next(naps))}, **QUICK)
    assert odd.rough == ("odd",) and "odd: known to worse" in odd.card()["rough"]
    wide, sharp = row("wide", 1.0, ratio_low=0.8, ratio_high=1.2), row("sharp", 2.0)
    assert comparison(row("base", 1.0), wide, sharp).rough == ("wide",)
    assert comparison(row("base", 1.0), wide).rough == ("base", "wide")


def test_the_interval_covers_the_true_ratio_and_shared_noise_cancels():
    rng = np.random.default_rng(0)
    covered, widths = 0, []
    for _ in range(60):
        disturbance = rng.lognormal(0, 0.3, 40)  # slows whole rounds
        times_a = 1.1 * disturbance * rng.lognormal(0, 0.01, 40)
        times_b = disturbance * rng.lognormal(0, 0.01, 40)
        low, high = ratio_interval(times_a, times_b)
        covered += low <= 1.1 <= high
        widths.append(high - low)
    assert covered >= 52  # of 60; 95 % would be 57
    assert np.median(widths) < 0.15  # unpaired it would be 0.3
    assert ratio_interval(times_a, times_b) == ratio_interval(times_a, times_b)  # fixed seed
    assert ratio_interval(np.array([3.0]), times_b)[0] == pytest.approx(3.0 / np.median(times_b))


def test_a_result_in_a_reused_buffer_is_kept_as_it_was():
    buffer, calls = np.zeros((4, 4)), []

    def buffered(A):
        calls.append(1)
        return np.multiply(A, len(calls) + 1, out=buffer)

    result = compare({"plain": lambda A: 2 * A, "buffered": buffered}, np.ones((4, 4)), **QUICK)
    assert result.row("buffered").max_error == 0  # its later calls return other values


def test_another_shape_and_nan_are_noted():
    functions = {"a": lambda X: X, "part": lambda X: X[:2], "nan": lambda X: X * np.nan}
    result = compare(functions, np.ones((3, 3)), **QUICK)
    assert result.row("part").max_error == result.row("nan").max_error == math.inf
    assert "do not do the same job" in str(result.card())
    json.dumps(result.data(), allow_nan=False)


# -- fair inputs -------------------------------------------------------------------------------------------


def test_a_copy_has_the_layout_and_the_alignment_of_the_original():
    X = np.random.default_rng(0).standard_normal((7, 9))
    for view in (X, X.T, X[:, ::2], X[::-1, 1:], np.broadcast_to(X[0], X.shape), X.astype("f4")[:, 3]):
        (copied,) = inputs.clone((view,))
        assert np.array_equal(copied, view) and not np.shares_memory(copied, view)
        assert copied.strides == view.strides and copied.dtype == view.dtype
        assert copied.ctypes.data % inputs.PAGE == view.ctypes.data % inputs.PAGE


def test_a_function_that_changes_its_inputs_gets_fresh_ones_and_is_reported():
    starts, zeros = set(), np.zeros(100)

    def greedy(X):
        starts.add(float(X[0]))
        X += 1
        return X

    result = compare({"pure": lambda X: X + 1, "greedy": greedy}, zeros, **QUICK)
    assert starts == {0.0} and not zeros.any()
    assert result.row("greedy").max_error == 0
    assert "greedy changes its inputs" in str(result.card())
    assert "pure changes" not in str(result.card())


# -- fair turns --------------------------------------------------------------------------------------------


def test_rounds_are_interleaved_in_shuffled_order():
    order = []
    functions = {name: lambda name=name: (order.append(name), time.sleep(0.002)) for name in "abc"}
    compare(functions, budget_s=0.15, min_rounds=10, max_error=False, progress=False)
    rounds = ["".join(order[at : at + 3]) for at in range(len(order) - 30, len(order), 3)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds), rounds
    assert len(set(rounds)) > 1


def test_the_garbage_collector_rests_during_samples_and_works_again_afterwards():
    states = []
    compare({"f": lambda: states.append(gc.isenabled())}, max_error=False, **QUICK)
    assert gc.isenabled() and states[0] and not any(states[1:])  # the first call is not timed


def test_a_slow_call_is_timed_once_and_the_others_are_not_held_up():
    slow_calls = []

    def slow():
        slow_calls.append(1)
        time.sleep(0.12)

    result = compare({"slow": slow, "fast": python_work(100)}, budget_s=0.1, min_rounds=5, progress=False)
    assert len(slow_calls) == 2  # once to warm up
    assert result.row("slow").rounds == 1 and result.row("fast").rounds >= 5
    assert "slow: one call takes 0.1 s, longer than the budget" in str(result.card())
    assert "(one call)" in str(result.table())


def test_thread_pools_are_capped_and_restored():
    import numba
    import torch
    from threadpoolctl import threadpool_info

    def pools():
        return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info()}

    torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    numba.get_num_threads()  # starts Numba's threads, which may load a library
    before = pools(), torch.get_num_threads(), numba.get_num_threads()
    seen = []

    def look():
        seen.append((*pools().values(), torch.get_num_threads(), numba.get_num_threads()))

    for threads in (1, 2):
        seen.clear()
        result = compare({"look": look}, threads=threads, max_error=False, **QUICK)
        assert {count for counts in seen for count in counts} == {min(threads, result.threads)}, threads
        assert (pools(), torch.get_num_threads(), numba.get_num_threads()) == before, threads
    with pytest.raises(ZeroDivisionError):
        compare({"bad": lambda: 1 / 0}, **QUICK)
    assert (pools(), torch.get_num_threads(), numba.get_num_threads()) == before


# -- the clock ---------------------------------------------------------------------------------------------


@pytest.mark.timing
@pytest.mark.skipif(not clocks.HAS_THREAD_CLOCK, reason="no clock for one thread here")
def test_a_sample_waits_while_other_threads_spin_and_no_longer():
    waits = {}
    for spins_s in (0, 0.08, 1):
        stop = time.perf_counter() + spins_s
        with ThreadPoolExecutor(1) as team:
            team.submit(lambda until: [None for _ in iter(lambda: time.perf_counter() < until, False)], stop)
            start = time.perf_counter()
            clocks.wait_for_other_threads()
            waits[spins_s] = time.perf_counter() - start
    assert waits[0] < 0.05 and 0.08 < waits[0.08] < 0.12 and 0.15 <= waits[1] < 0.2, waits


@pytest.mark.timing
@pytest.mark.skipif(not clocks.HAS_THREAD_CLOCK, reason="no clock for one thread here")
def test_pure_computation_is_timed_with_cpu_time():
    result = compare({"a": python_work(3000), "b": python_work(3000)}, **QUICK)
    assert result.conditions.clock == "CPU time of the calling thread"
    assert "CPU time" in result.card()["clock"]


def test_a_sleeper_brings_back_wall_time_for_all():
    result = compare({"busy": python_work(1000), "sleeper": lambda: time.sleep(0.02)}, **QUICK)
    assert result.conditions.clock == "wall time" and result.row("sleeper").seconds >= 0.02
    assert "wall and CPU time differed for sleeper (it spent" in result.card()["clock"]


# -- bad arguments and bad functions -----------------------------------------------------------------------


def test_an_exception_names_the_function():
    def broken(X):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        compare({"fine": lambda X: X, "broken one": broken}, np.ones(2), **QUICK)
    assert any("'broken one'" in note for note in caught.value.__notes__)


def test_arguments_that_make_no_sense_are_refused_in_a_sentence():
    for arguments, problem, message in [
        ({"functions": [max]}, TypeError, "functions is"),
        ({"functions": {"a": 3}}, TypeError, "must map names to functions"),
        ({"baseline": "b"}, ValueError, "baseline is 'b', but it must be one of 'a'"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"budget_s": math.nan}, ValueError, "budget_s is nan"),
    ]:
        with pytest.raises(problem, match=message):
            compare(**{"functions": {"a": lambda: None}, **arguments})


# -- what is shown -----------------------------------------------------------------------------------------


def test_the_table_has_the_agreed_columns_and_marks_the_baseline(monkeypatch):
    A = np.ones((16, 16))
    result = compare({"numpy": np.matmul, "twice": lambda A, B: 2 * (A @ B)}, A, A.copy(), **QUICK)
    assert result.table().columns == ("", "us", "GFLOP/s", "x baseline", "max error")
    assert "±" in str(result.table()) and "1e+00" in str(result.table())
    for longest, shown in (
        (30.0, ("ms", "20.0 ± 0.20")),
        (1e9, ("ms", "20.0 ± 0.20")),
        (2.0, ("us", "2,000 ± 20")),
    ):
        table = comparison(row("a", longest), row("b", min(longest, 20.0))).table()
        assert (table.columns[1], table.rows[1][1]) == shown and f"{shown[0]}: median" in table.notes[0]
    both = result._repr_html_()
    for words in ("<table", 'scope="col"', "numpy (baseline)", "<details>", "Fair comparison"):
        assert words in both
    monkeypatch.setattr(machine, "known_peaks", view_samples.peaks)  # 3.125 GHz, 50 GFLOP/s: 16 a cycle
    rows = (row("a", 1.0, gflops=25.0), row("gpu", 1.0, gflops=400.0, on_gpu=True))
    table = replace(comparison(*rows), threads=2).table()
    assert table.columns[3] == "FLOP/cycle, of 32" and [cells[3] for cells in table.rows] == ["8.00", "–"]


def test_speed_is_shown_as_a_multiple_noise_as_such_and_what_is_far_below_as_a_fraction():
    same = row("same", 1.01, ratio_low=0.98, ratio_high=1.04)
    ratios = {"fast": 0.5, "half": 2.0, "tenth": 10.0, "slow": 893.4, "slower": 12_345.0}
    table = comparison(row("base", 1.0), same, *(row(*one) for one in ratios.items())).table()
    cells = [cells[2] for cells in table.rows]
    assert cells == ["1.00", "≈ 0.990", "2.00", "0.500", "0.100", "1/893", "1/12,345"]
    for shown in (str(table), table._repr_html_()):
        assert "1/893: 893 times slower" in shown and "≈ no difference that can be told" in shown
    plain = str(comparison(row("base", 1.0), row("half", 2.0)).table())
    assert "times slower" not in plain and "≈" not in plain


def test_the_card_names_what_matters():
    result = compare({"numpy": np.matmul, "b": np.dot}, np.ones((4, 6)), np.ones((6, 4)).T.copy().T, **QUICK)
    card = result.card()
    assert card["threads"].startswith("1 for every function")
    assert "float64 (4 x 6), C order; float64 (6 x 4), Fortran order" in card["inputs"]
    assert card["baseline"].startswith("numpy") and "BLAS" in card["baseline"]
    for what in ("clock", "samples", "caches", "uncertainty", "machine"):
        assert card[what]


def test_the_title_says_the_finding(figures):
    a, unsure = row("a", 1.0), row("b", 0.48, ratio_low=0.3, ratio_high=1.4)
    for rows, speed, title in (
        ((row("rows", 1.0), row("columns", 5.2)), False, "columns take 5.2x as long as rows"),
        ((row("numpy", 1.0), row("ijk", 4.0)), True, "ijk is 0.25x as fast as numpy"),
        ((a, row("b", 1.0)), False, "take the same time, as far as can be told"),
        ((a, row("b", 0.5), row("c", 0.1)), False, "c is fastest: 10.0x as fast as a"),
        ((a, row("b", 2.0), row("c", 9.0)), False, "Nothing beats a; c takes 9.0x as long"),
        ((a, unsure, row("c", 0.5)), False, "c is 2.0x as fast as a. No difference between a and b can"),
        ((a, unsure), True, "No difference between a and b can be told in this run (0.30x to 1.4x of"),
    ):
        assert title in comparison(*rows).figure(speed=speed).alt, title
    guessed = comparison(row("rows", 1.0), row("columns", 5.2)).figure(guess=12).alt
    assert (
        "rows 1.00x (1.00 ms), columns 5.2x (5.20 ms)" in guessed
        and "dashed line marks your guess: 12x" in guessed
    )


# -- ranking on a busy machine -----------------------------------------------------------------------------


@contextlib.contextmanager
def other_programs(count=3):
    """Keep more programs busy than there are CPUs, one of them on memory."""
    spin = "while True: sum(range(1000))"
    stream = "import numpy as np\nx = np.ones(10_000_000)\nwhile True: x += 1"
    programs = [subprocess.Popen([sys.executable, "-c", code]) for code in [spin] * (count - 1) + [stream]]
    try:
        time.sleep(0.3)
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def numpy_work(turns):
    A, B = np.ones((200, 20 * turns)), np.ones((20 * turns, 200))
    return lambda: A @ B


KINDS = {"python": lambda turns: python_work(800 * turns), "numpy": numpy_work}


def ranked_right(kind, run):
    """Compare 10 units of work with 11, in an order and with a seed of its own for each run."""
    units = (10, 11) if run % 2 else (11, 10)
    functions = {f"{n}": KINDS[kind](n) for n in units}
    result = compare(functions, seed=run, max_error=False, progress=False)
    return result.ranking() == ["10", "11"]


@pytest.mark.timing
def test_ten_percent_are_told_apart_while_other_programs_run():
    with other_programs():
        outcomes = {kind: ranked_right(kind, run) for run, kind in enumerate(KINDS)}
    assert all(outcomes.values()), outcomes
