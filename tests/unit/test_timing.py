"""A comparison is fair, says how it was made, and ranks functions right on a busy machine."""

import contextlib
import gc
import io
import json
import math
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib import theme
from course_lib.measure import clocks, inputs, timing
from course_lib.measure.comparison import Conditions, finding
from course_lib.measure.progress import Progress
from course_lib.measure.table import digits, seconds_in_words, times
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
    assert result.ratio == other.ratio
    assert set(result.ranking()) == {"numpy", "einsum"}
    assert result.row(result.ranking()[0]).seconds == min(r.seconds for r in result.rows)


def test_in_haste_two_rounds_do_and_the_card_says_so(monkeypatch):
    asked = {"budget_s": 0.2, "target": 1e-9, "min_rounds": 9, "progress": False}
    usual = compare({"nap": time.sleep}, 0.01, **asked)
    monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
    hasty = compare({"nap": time.sleep}, 0.01, **asked)
    assert hasty.rows[0].rounds <= 4 and usual.rows[0].rounds >= 9  # 20 ms are spent after two naps
    assert "in haste" in str(hasty.card()) and "in haste" not in str(usual.card())
    patient = compare({"nap": time.sleep}, 0.01, **asked, haste=False)
    assert patient.rows[0].rounds >= 9


def test_flops_come_from_two_matrices_or_from_the_caller_only():
    assert compare({"sum": np.sum}, np.ones(8), **QUICK).rows[0].gflops is None
    given = compare({"sum": np.sum}, np.ones(8), flops=8, **QUICK).rows[0]
    assert given.gflops == pytest.approx(8 / given.seconds / 1e9)
    assert inputs.matmul_flops((np.ones((2, 3)), np.ones((4, 5)))) is None


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


def test_max_error_compares_values_places_of_nan_and_shapes():
    reference = np.array([1.0, -4.0, math.nan, math.inf])
    for result, error in (
        ([1.0, -4.0, math.nan, math.inf], 0),
        ([1.0, -4.4, math.nan, math.inf], 0.1),
        ([1.0, -4.0, 0.0, math.inf], math.inf),
        ([1.0, -4.0, math.nan, -math.inf], math.inf),
        ([1.0], math.inf),
    ):
        assert timing.largest_error(np.array(result), reference) == pytest.approx(error), result
    assert timing.largest_error(np.zeros((0, 3)), np.zeros((0, 3))) == 0
    assert timing.largest_error(None, reference) is None


def test_a_result_in_a_reused_buffer_is_kept_as_it_was():
    buffer, calls = np.zeros((4, 4)), []

    def buffered(A):
        calls.append(1)
        return np.multiply(A, len(calls) + 1, out=buffer)

    result = compare({"plain": lambda A: 2 * A, "buffered": buffered}, np.ones((4, 4)), **QUICK)
    assert result.row("buffered").max_error == 0  # its later calls return other values


def test_a_wrong_shape_is_noted():
    result = compare({"a": lambda X: X, "b": lambda X: X[:2]}, np.ones((3, 3)), **QUICK)
    assert result.row("b").max_error == math.inf
    assert "do not do the same job" in str(result.card())
    json.dumps(result.data(), allow_nan=False)


# -- fair inputs -------------------------------------------------------------------------------------------


def test_every_function_gets_its_own_copy_and_the_original_stays():
    seen = {}
    A = np.arange(12.0).reshape(3, 4)
    functions = {name: lambda X, name=name: seen.setdefault(name, X) is None for name in "ab"}
    compare(functions, A, max_error=False, **QUICK)
    assert not np.shares_memory(seen["a"], seen["b"]) and not np.shares_memory(seen["a"], A)
    assert np.array_equal(seen["a"], A)


def test_a_copy_has_the_layout_and_the_alignment_of_the_original():
    for view in [
        lambda X: X,
        lambda X: X.T,
        lambda X: X[:, ::2],
        lambda X: X[::-1, 1:],
        lambda X: X[1:4],
        lambda X: np.broadcast_to(X[0], X.shape),
        lambda X: X[:0],
        lambda X: X[0, 0],
        lambda X: X.astype(np.float32)[:, 3],
    ]:
        X = view(np.random.default_rng(0).standard_normal((7, 9)))
        (copied,) = inputs.clone((X,))
        assert np.array_equal(copied, X), view
        assert not np.shares_memory(copied, X), view
        if isinstance(X, np.ndarray) and X.size:
            assert copied.strides == X.strides and copied.dtype == X.dtype, view
            assert copied.ctypes.data % inputs.PAGE == X.ctypes.data % inputs.PAGE, view
            assert copied.flags.writeable == X.flags.writeable, view


def test_torch_tensors_are_copied_with_their_strides():
    import torch

    base = torch.arange(24.0).reshape(4, 6)
    for tensor in (base, base.t(), base[:, ::2], base[0].expand(3, 6), base.to(torch.bfloat16)):
        (copied,) = inputs.clone((tensor,))
        assert torch.equal(copied, tensor) and copied.dtype == tensor.dtype
        assert copied.data_ptr() != tensor.data_ptr()
        assert 0 in tensor.stride() or copied.stride() == tensor.stride()
        assert not inputs.changed((copied,), (tensor,))
    (copied,) = inputs.clone((base.clone().requires_grad_(),))
    assert copied.requires_grad and copied.is_leaf


def test_a_function_that_changes_its_inputs_gets_fresh_ones_and_is_reported():
    starts = set()

    def greedy(X):
        starts.add(float(X[0]))
        X += 1
        return X

    result = compare({"pure": lambda X: X + 1, "greedy": greedy}, np.zeros(100), **QUICK)
    assert starts == {0.0}
    assert result.row("greedy").max_error == 0
    assert "greedy changes its inputs" in str(result.card())
    assert "pure changes" not in str(result.card())


def test_a_function_that_begins_to_change_its_inputs_late_is_found():
    calls = []

    def sly(X):
        calls.append(X[0])
        if len(calls) > 60:
            X[0] += 1
        return X[0]

    result = compare({"pure": lambda X: X[0], "sly": sly}, np.zeros(100), budget_s=0.1, progress=False)
    assert "sly changes its inputs" in str(result.card())
    assert calls[-1] == 0


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
    assert gc.isenabled()
    compare({"f": lambda: states.append(gc.isenabled())}, max_error=False, **QUICK)
    assert gc.isenabled()
    assert states[0] and not any(states[1:])  # the first call is not timed
    gc.disable()
    try:
        compare({"f": lambda: None}, **QUICK)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_slow_call_is_timed_once_and_the_others_are_not_held_up():
    slow_calls = []

    def slow():
        slow_calls.append(1)
        time.sleep(0.12)

    result = compare({"slow": slow, "fast": python_work(100)}, budget_s=0.1, min_rounds=5, progress=False)
    assert len(slow_calls) == 2  # once to warm up
    assert result.row("slow").rounds == 1 and result.row("fast").rounds >= 5
    assert result.row("slow").seconds == pytest.approx(0.12, rel=0.3)
    found = result.row("fast")
    assert found.ratio == found.ratio_low == found.ratio_high
    assert "slow: one call takes 0.1 s, longer than the budget" in str(result.card())
    assert "(one call)" in str(result.table())
    json.dumps(result.data(), allow_nan=False)


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


def test_threads_that_numba_starts_in_the_first_call_are_capped_and_others_not_started():
    code = """
        import numba, sys
        from threadpoolctl import threadpool_info
        from course_lib.measure.timing import compare
        from numba.np.ufunc import parallel
        compare({"plain": lambda: None}, budget_s=0.02, min_rounds=1)
        assert not parallel._is_initialized

        @numba.njit(parallel=True)
        def count(n):
            total = 0
            for i in numba.prange(n):
                total += 1
            return total

        seen = []
        compare({"count": lambda: (count(10), seen.append(numba.get_num_threads()))}, budget_s=0.02)
        assert parallel._is_initialized and set(seen[1:]) == {1}, seen
        assert numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# -- the clock ---------------------------------------------------------------------------------------------


needs_thread_clock = pytest.mark.skipif(not clocks.HAS_THREAD_CLOCK, reason="no clock for one thread here")


@pytest.mark.timing
@needs_thread_clock
def test_pure_computation_is_timed_with_cpu_time():
    result = compare({"a": python_work(3000), "b": python_work(3000)}, **QUICK)
    assert result.conditions.clock == "CPU time of the calling thread"
    assert "CPU time" in result.card()["clock"]


@needs_thread_clock
def test_a_sleeper_brings_back_wall_time_for_all():
    result = compare({"busy": python_work(1000), "sleeper": lambda: time.sleep(0.004)}, **QUICK)
    assert result.conditions.clock == "wall time"
    assert (
        "wall and CPU time differed for sleeper (it spent part of the time waiting" in result.card()["clock"]
    )
    assert result.row("sleeper").seconds >= 0.004


@needs_thread_clock
def test_a_function_with_threads_of_its_own_brings_back_wall_time():
    """Whatever else runs: the caller sleeps, and does not see the 10 ms of its thread in its own CPU time."""

    def work():
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass

    def in_a_thread():
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()

    # "elsewhere" first: on a busy host either may differ, and the card names the first that does
    result = compare({"elsewhere": in_a_thread, "here": python_work(1000)}, max_error=False, **QUICK)
    assert result.conditions.clock == "wall time"
    assert "wall and CPU time differed for elsewhere (" in result.card()["clock"]
    assert result.row("elsewhere").seconds >= 0.01


def test_a_trial_that_was_disturbed_once_does_not_decide():
    calm = clocks.Trial(wall=1.0, cpu=0.99, other_threads=0.0, queued=0.0)
    preempted = clocks.Trial(wall=2.0, cpu=0.99, other_threads=0.0, queued=1.0)
    asleep = clocks.Trial(wall=2.0, cpu=0.99, other_threads=0.0, queued=0.0)
    helped = clocks.Trial(wall=1.0, cpu=0.99, other_threads=0.5, queued=0.0)
    assert clocks.why_not_cpu_time([calm, asleep, helped]) is None
    assert clocks.why_not_cpu_time([preempted, preempted]) is None
    assert "waiting" in clocks.why_not_cpu_time([asleep, asleep])
    assert "other threads" in clocks.why_not_cpu_time([helped, helped])
    slightly = replace(helped, other_threads=0.15)
    briefly = clocks.Trial(wall=2e-3, cpu=1e-3, other_threads=1e-3, queued=1e-3)
    for chance in ([helped], [helped, slightly], [briefly] * 3):
        assert clocks.why_not_cpu_time(chance) is None


@pytest.mark.timing
def test_a_call_is_not_taken_for_a_long_one_because_the_last_function_left_threads_spinning():
    """As OpenBLAS's do: whatever follows within 0.1 s is slow. Seen: a product timed cold, call by call."""
    last = -math.inf

    def product():
        nonlocal last
        time.sleep(1e-3)
        last = time.perf_counter()

    def victim():
        time.sleep(30e-3 if time.perf_counter() - last < 0.1 else 1e-3)

    subjects = [timing.TimedFunction("product", product, ()), timing.TimedFunction("victim", victim, ())]
    run = timing._Run(subjects, subjects[0], 0.5, 0.02, 7, np.random.default_rng(0))
    with clocks.ThreadCap(2) as cap:
        run.warm_up(cap, 2, Progress(False))
    assert subjects[1].call_s < 5e-3
    assert subjects[1].batch > 1


# -- bad arguments and bad functions -----------------------------------------------------------------------


def test_an_exception_names_the_function():
    def broken(X):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        compare({"fine": lambda X: X, "broken one": broken}, np.ones(2), **QUICK)
    assert any("'broken one'" in note for note in caught.value.__notes__)


def test_arguments_that_make_no_sense_are_refused_in_a_sentence():
    for arguments, problem, message in [
        ({"functions": {}}, TypeError, "functions is"),
        ({"functions": [max]}, TypeError, "functions is"),
        ({"functions": {"a": 3}}, TypeError, "must map names to functions"),
        ({"functions": {3: max}}, TypeError, "must map names to functions"),
        ({"baseline": "b"}, ValueError, "baseline is 'b', but it must be one of 'a'"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"threads": 1.5}, ValueError, "threads is 1.5"),
        ({"min_rounds": True}, ValueError, "min_rounds is True"),
        ({"budget_s": 0}, ValueError, "budget_s is 0"),
        ({"budget_s": math.nan}, ValueError, "budget_s is nan"),
        ({"target": -1}, ValueError, "target is -1"),
    ]:
        functions = arguments.pop("functions", {"a": lambda: None})
        with pytest.raises(problem, match=message):
            compare(functions, **arguments)


# -- what is shown -----------------------------------------------------------------------------------------


def test_the_table_has_the_agreed_columns_and_marks_the_baseline():
    A = np.ones((16, 16))
    result = compare({"numpy": np.matmul, "twice": lambda A, B: 2 * (A @ B)}, A, A.copy(), **QUICK)
    table = result.table()
    assert table.columns == ("", "us", "GFLOP/s", "x baseline", "max error")
    text = str(table)
    assert "numpy (baseline)" in text and "±" in text and "1e+00" in text
    html = table._repr_html_()
    assert "text-align:right" in html and "numpy (baseline)" in html and 'scope="col"' in html
    both = result._repr_html_()
    assert "<table" in both and "<details>" in both and "Fair comparison" in both
    assert repr(result) == f"{table}\n\n{result.card()}"


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


def test_the_title_says_the_finding(monkeypatch):
    monkeypatch.setattr(theme.Picture, "of", lambda fig, alt: theme.Picture(b"", alt, 0))  # no pixels
    a, unsure = row("a", 1.0), row("b", 0.48, ratio_low=0.3, ratio_high=1.4)
    near = row("b", 0.8, ratio_low=0.6, ratio_high=1.4)
    for rows, speed, title in (
        ((row("rows", 1.0), row("columns", 5.2)), False, "columns take 5.2x as long as rows"),
        ((row("numpy", 1.0), row("ijk", 98.3)), False, "ijk takes 98.3x as long as"),
        ((row("numpy", 1.0), row("ijk", 4.0)), True, "ijk is 0.25x as fast as numpy"),
        ((row("python", 1.0), row("numba", 0.02)), False, "numba is 50.0x as fast as python"),
        ((a, row("b", 1.0)), False, "take the same time, as far as can be told"),
        ((a, row("b", 0.5), row("c", 0.1)), False, "c is fastest: 10.0x as fast as a"),
        ((a, row("b", 2.0), row("c", 9.0)), False, "Nothing beats a; c takes 9.0x as long"),
        ((a, unsure, row("c", 9.0)), False, "No difference between a and b can be told in this run: run"),
        ((a, unsure, row("c", 0.5)), False, "c is 2.0x as fast as a. No difference between a and b can"),
        ((a, near, row("c", 0.5)), False, "c is fastest: 2.0x as fast as a"),  # b does not come near
        ((a, unsure), True, "No difference between a and b can be told in this run (0.30x to 1.4x of"),
    ):
        made = comparison(*rows)
        assert title in finding(made, speed), title
        assert finding(made, speed) in made.figure(speed=speed).alt, title


def test_the_figure_draws_the_guess_and_says_so():
    made = comparison(row("rows", 1.0), row("columns", 5.2))
    plain = made.figure()
    assert plain.png.startswith(b"\x89PNG") and "dashed" not in plain.alt
    assert "rows 1.00x (1.00 ms), columns 5.2x (5.20 ms)" in plain.alt
    for guess in (12, SimpleNamespace(value=12)):
        drawn = made.figure(guess=guess, guess_label="your bet")
        assert "A dashed line marks your bet: 12x" in drawn.alt and drawn.png != plain.png
    assert made.figure(guess=SimpleNamespace(value=None)).alt == plain.alt


def test_titles_and_the_labels_behind_long_whiskers_stay_inside_the_picture(monkeypatch):
    drawn = []
    monkeypatch.setattr(theme.Picture, "of", staticmethod(lambda fig, alt: drawn.append(fig)))
    made = comparison(row("BLAS alone", 1.0), row("WWW mine x 12 MMM BLAS", 1.7, spread_s=2e-3),
                      row("2 mine x 1 BLAS", 0.63, ratio_high=1.1))  # fmt: skip
    made.figure()
    (figure,) = drawn
    figure.canvas.draw()
    words = [*figure.axes[0].texts, figure._suptitle]
    assert len(words) == 4
    assert all(one.get_window_extent().x1 <= figure.bbox.x1 for one in words)


def test_numbers_ratios_and_durations_are_rounded_for_reading():
    numbers = (1234.5, 12.345, 1.0, 0.0123, 0.00001234, 0.0, None, math.nan, math.inf)
    assert " ".join(map(digits, numbers)) == "1,234 12.3 1.00 0.0123 1.23e-05 0 – – inf"
    ratios = (5.21, 0.187, 1.04, 17.34, 1734.2)
    assert " ".join(map(times, ratios)) == "5.2x 0.19x 1.04x 17.3x 1,730x"
    assert [seconds_in_words(s) for s in (5e-7, 0.0123, 4.5)] == ["0.500 us", "12.3 ms", "4.50 s"]


# -- the progress bar --------------------------------------------------------------------------------------


def run_quietly(**arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        compare({"a": python_work(1000), "b": python_work(2000)}, budget_s=0.1, **arguments)
    return out.getvalue(), err.getvalue()


def test_only_long_work_shows_a_bar_and_wipes_it(monkeypatch):
    assert run_quietly() == run_quietly(progress=False) == ("", "")
    monkeypatch.setattr("course_lib.measure.progress.PATIENCE_S", 0.0)
    monkeypatch.setattr("course_lib.measure.progress.REDRAW_S", 0.0)
    out, err = run_quietly()
    assert "round" in out and err == ""
    assert out.split("\r")[-1].strip() == ""
    before = threading.active_count()
    with contextlib.redirect_stdout(io.StringIO()), Progress(True) as bar:
        bar.update(2.0, "a name that is very much longer than the bar has room for")
        assert threading.active_count() == before  # tqdm's watching thread would disturb the measurement


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


def numba_work(turns):
    import numba

    @numba.njit
    def horner(x, n):
        for _ in range(n):
            x = x * 0.999 + 0.5
        return x

    return lambda: horner(1.0, 3000 * turns)


KINDS = {"python": lambda turns: python_work(800 * turns), "numpy": numpy_work, "numba": numba_work}


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
