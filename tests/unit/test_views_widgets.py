"""The guess and the walks through loops, driven as a learner drives them: slider, buttons, drop-down."""

import math
import re
import warnings
from itertools import product
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import views
from course_lib.views.loop_orders import ORDERS, strides_of


def words_of(drawing):
    return ["".join(e.itertext()) for e in ElementTree.fromstring(drawing).iter() if e.tag.endswith("text")]


class TestPrediction:
    def test_has_no_value_before_it_is_locked_and_a_float_afterwards(self):
        guess = views.predict("How many times?", unit="x", low=0, high=50)
        assert guess.value is None and not guess.locked
        assert "not locked in" in guess.status.value and "no guess locked in" in guess.static().body
        guess.slider.value = 12.5
        assert guess.value is None and "<b>12.5 x</b>" in guess.status.value
        with pytest.raises(ValueError, match="No guess is locked in yet for 'How many"):
            float(guess)
        guess.button.click()
        assert guess.value == float(guess) == 12.5 and isinstance(guess.value, float) and guess.locked
        assert guess.slider.disabled and guess.button.disabled
        assert "Locked in: <b>12.5 x</b>" in guess.status.value
        assert "your guess: 12.5 x" in guess.static().body
        guess.slider.value = 30
        assert guess.value == 12.5
        with pytest.raises(ValueError, match=r"locked in at 12\.5 x: run its cell again"):
            guess.lock()

    def test_two_decades_make_a_logarithmic_slider_whose_guess_has_two_digits_and_stays_in_range(self):
        for low, high, log in ((1, 100, True), (1, 99, False), (0, 1e6, False), (-5, 5, False)):
            assert views.predict("How many?", low=low, high=high).log is log, (low, high)
        for moved, locked in ((1234.56, 1200.0), (None, 99_999.0)):
            guess = views.predict(f"How many, {moved}?", low=1, high=99_999)
            guess.slider.value = moved or guess.slider.base**guess.slider.max
            guess.button.click()
            assert guess.value == locked

    def test_the_last_guess_is_remembered_and_not_locked(self):
        question = {"question": "How <long>?", "unit": "ms", "low": 1, "high": 1000}
        first = views.predict(**question)
        assert first.last is None and "Last time" not in first.status.value
        first.lock(20)
        again = views.predict(**question)
        assert again.value is None and not again.locked and again.last == 20.0
        assert again.slider.value == pytest.approx(20) and not again.slider.disabled
        assert "Last time you locked in 20 ms; running the cell opened it." in again.status.value
        assert "20 ms" not in again.static().body
        again.button.click()
        assert again.value == 20.0
        for other in ({"unit": "s"}, {"high": 999}, {"question": "How wide?"}):
            assert views.predict(**{**question, **other}).last is None

    def test_a_store_that_makes_no_sense_or_cannot_be_used_disturbs_nobody(
        self, tmp_path, monkeypatch, capsys
    ):
        from course_lib.measure.store import Store

        guess = views.predict("How many?")
        for saved in ("far", 5000, None, [1], True):
            Store("guesses").update(lambda values, saved=saved: values.update({guess._key(): saved}))
            assert views.predict("How many?").last is None, saved
        (tmp_path / "guesses.json").write_text("{")
        for home in (tmp_path, tmp_path / "guesses.json" / "folder"):  # garbage; no folder
            monkeypatch.setenv("NINE_CIRCLES_HOME", str(home))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                guess = views.predict("How many?")
                guess.lock(7)
            assert guess.value == 7.0 and capsys.readouterr().err == ""


class TestVerdict:
    """The guess beside the measurement: the sentence tells the truth, with and without a guess."""

    def test_the_sentence(self):
        locked = views.predict("How many?")
        locked.lock(40)
        for guess, measured, unit, words in (
            (None, 27.1, "ms", "27.1 ms (no guess was locked in): lock one in above and run"),
            (270, 27, "ms", "your guess was 10 times too high"),
            (locked, 80.0, "x", "80x, your guess was 2 times too low"),
            (28, 27, "ms", "and you guessed it"),
            (50, 80, "%", "80 %, you guessed 50 %"),
            (0, 80, "ms", "80 ms, you guessed 0 ms"),
            (3, 12_345, "x", "12,345x"),
        ):
            alt = views.verdict(guess, measured, unit=unit, what="the loop").alt
            assert words in alt and "the loop" in alt
            assert ("lock one in above" in alt) is (guess is None), words

    def test_a_measurement_that_tells_nothing_judges_no_guess(self):
        cannot = "cannot be told on this run (0.3x to 1.4x): run again"
        for guess, interval, words in (
            (20, (0.3, 1.4), f"{cannot} (your guess, 20x, is above"),
            (0.1, (0.3, math.inf), "(0.3x or more): run again (your guess, 0.1x, is below all of it)"),
            (1, (0.3, 1.4), f"{cannot}."),
            (0.55, (0.4, 0.56), "0.5x, and you guessed it"),
            (5, (0.48, 0.52), "0.5x, your guess was 10 times too high"),
            (None, (0.3, 1.4), "on this run (0.3x to 1.4x): measure again, with a guess locked in above."),
        ):
            assert words in views.verdict(guess, 0.5, unit="x", what="the loop", interval=interval).alt
        busy = {"unit": "x", "interval": (0.48, 0.52), "busy": True}
        alt = views.verdict(5, 0.5, **busy).alt
        assert "this machine was busy, so it cannot be told on this run: run again." in alt
        assert "too high" not in alt
        assert "measure again, with a guess locked in above." in views.verdict(None, 0.5, **busy).alt


small, sizes = st.integers(1, 4), st.integers(2, 10)


class TestStepper:
    @given(small, small, small, st.randoms(use_true_random=False))
    def test_every_pair_has_the_place_the_counts_and_the_sum_of_three_nested_loops(self, M, K, N, rng):
        A = [[rng.randint(-9, 9) for _ in range(K)] for _ in range(M)]
        B = [[rng.randint(-9, 9) for _ in range(N)] for _ in range(K)]
        trace = views.step_through(A, B)
        pairs = [(step, at) for step, at in enumerate(trace.steps) if at.kind == "pair"]
        assert [(at.i, at.j, at.k) for _, at in pairs] == list(product(range(M), range(N), range(K)))
        for done, (step, at) in enumerate(pairs, 1):
            assert (trace.pairs(step), trace.reads(step)) == (done, K * N + 2 * done)
            assert trace.total(step) == sum(A[at.i][k] * B[k][at.j] for k in range(at.k + 1))

    def test_a_frame_spells_the_sum_out_and_gives_the_formula_in_numbers(self):
        stepper = views.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]])
        step = next(s for s, at in enumerate(stepper.steps) if (at.kind, at.k) == ("pair", 1))
        words = words_of(stepper.frame(step))
        assert "row 1, column 1:  1·5 + 2·7 = 19" in words
        assert "M·N·K = 2·2·2" in words and "of 8" in words and "2·M·N·K + K·N = 2·8 + 4" in words
        assert {"19", "22", "43", "50"} <= set(words_of(stepper.frame(stepper.last)))
        assert "(-1.5)·(-2) = 3" in views.step_through([[-1.5]], [[-2]]).frame(3)


class TestStrides:
    @given(st.sampled_from(ORDERS), sizes, st.sampled_from([2, 4, 8]))
    def test_are_what_numpy_says(self, order, n, itemsize):
        import numpy as np  # two or more rows and columns: it may choose the strides of a dimension of one

        down, along = np.empty((n, n), f"f{itemsize}").strides
        expected = {
            name: {indices[0]: down, indices[1]: along}.get(order[-1], 0)
            for name, indices in {"A": "ik", "B": "kj", "C": "ij"}.items()
        }
        assert strides_of(order, n, itemsize) == expected

    def test_the_table_says_it_in_words(self):
        assert "ijk: A moves 4 bytes a step, B jumps 16 KiB, C stays" in views.strides_table(4096, 4).text
        rows = re.findall(r"<b>([ijk]{3})</b>", views.strides_table(4096, 4).body)  # the cheapest first
        assert [set(rows[n : n + 2]) for n in (0, 4)] == [{"ikj", "kij"}, {"jki", "kji"}]


class TestWalk:
    def test_the_steps_are_those_of_three_nested_loops(self):
        for order in ORDERS:
            walker = views.walk(order)
            seen = {"A": set(), "B": set(), "C": set()}
            for step, turn in enumerate(product(range(4), repeat=3)):
                index = dict(zip(order, turn, strict=True))
                i, j, k = index["i"], index["j"], index["k"]
                seen["A"].add((i, k)), seen["B"].add((k, j)), seen["C"].add((i, j))
                label = ElementTree.fromstring(walker.frame(step)).get("aria-label")
                assert f"C[{i}, {j}] += A[{i}, {k}] * B[{k}, {j}]." in label
                for name, cells in seen.items():
                    assert f"{len(cells)} cell{'s' if len(cells) > 1 else ''} of {name}" in label

    def test_choosing_an_order_starts_anew(self):
        walker = views.walk("ikj")
        walker.slider.value = 7
        walker.order.value = "jki"
        assert walker.slider.value == 0 and "Loop order jki, step 1 of 64" in walker.picture.value
        assert re.findall(r'aria-label="Loop order (\w+)', walker.static().body) == list(ORDERS)
