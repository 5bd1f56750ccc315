"""The widgets, driven as a learner drives them: slider, buttons, drop-down; and their still twins."""

import re
import warnings
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import views
from course_lib.circles.python_lists import multiply
from course_lib.views.loop_orders import ORDERS
from course_lib.views.stepper import LINES

sizes = st.integers(1, 9)


def label_of(drawing):
    return ElementTree.fromstring(drawing).get("aria-label")


class TestPrediction:
    def test_has_no_value_before_it_is_locked_and_a_float_afterwards(self):
        guess = views.predict("How many times?", unit="x", low=0, high=50)
        assert guess.value is None and not guess.locked
        guess.slider.value = 12.5
        assert guess.value is None
        guess.button.click()
        assert guess.value == 12.5 and isinstance(guess.value, float) and guess.locked
        assert float(guess) == 12.5

    def test_locking_disables_the_slider_and_says_what_was_locked(self):
        guess = views.predict("How many times?", unit="x", low=0, high=50)
        assert "not locked in" in guess.status.value and "arrow keys" in guess.status.value
        guess.slider.value = 20
        assert "<b>20 x</b>" in guess.status.value
        guess.button.click()
        assert guess.slider.disabled and guess.button.disabled
        assert "Locked in: <b>20 x</b>" in guess.status.value

    def test_a_locked_guess_stays_even_if_the_slider_moves(self):
        guess = views.predict("How many times?", high=50)
        guess.lock(20)
        guess.slider.value = 30
        assert guess.value == 20.0
        with pytest.raises(ValueError, match="locked in at 20: run its cell again"):
            guess.lock()

    def test_float_of_an_open_guess_is_a_sentence(self):
        with pytest.raises(ValueError, match="No guess is locked in yet for 'How many"):
            float(views.predict("How many?"))

    @pytest.mark.parametrize(
        ("low", "high", "log"),
        [(1, 100, True), (1, 99, False), (0, 1e6, False), (0.01, 5, True), (-5, 5, False)],
    )
    def test_two_decades_make_a_logarithmic_slider(self, low, high, log):
        assert views.predict("How many?", low=low, high=high).log is log

    def test_a_logarithmic_guess_has_two_digits_and_stays_in_range(self):
        guess = views.predict("How many?", low=1, high=99_999)
        guess.slider.value = 1234.56
        guess.button.click()
        assert guess.value == 1200.0
        top = views.predict("How many?", low=1, high=99_999)
        top.slider.value = top.slider.base**top.slider.max
        top.button.click()
        assert top.value == 99_999.0

    @given(st.floats(0.25, 7.75), st.sampled_from([0.1, 0.25, 0.5]))
    def test_a_guess_is_a_number_of_steps_from_the_low_end(self, moved, step):
        guess = views.predict("Which?", low=0.25, high=7.75, step=step)
        guess.slider.value = moved
        guess.button.click()
        steps = (guess.value - 0.25) / step
        assert abs(steps - round(steps)) < 1e-6 or guess.value == 7.75
        assert abs(guess.value - moved) <= step / 2 + 1e-9

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"question": " "}, "question is"),
            ({"question": 5}, "question is 5"),
            ({"low": 5, "high": 5}, "low must be the smaller"),
            ({"low": "0"}, "low is '0'"),
            ({"high": float("inf")}, "high is inf"),
            ({"low": 0, "log": True}, "must start above 0"),
            ({"step": 0}, "step is 0"),
            ({"step": 1000}, "at most high - low = 100"),
        ],
    )
    def test_what_makes_no_slider_is_refused_in_one_sentence(self, arguments, sentence):
        with pytest.raises(ValueError, match=sentence) as caught:
            views.predict(**{"question": "How many?", **arguments})
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("value", [101, -1, float("nan"), "5"])
    def test_lock_takes_only_numbers_of_the_range(self, value):
        guess = views.predict("How many?")
        with pytest.raises(ValueError, match="from 0 to 100"):
            guess.lock(value)
        assert not guess.locked

    def test_the_last_guess_is_remembered_and_not_locked(self):
        question = {"question": "How <long>?", "unit": "ms", "low": 1, "high": 1000}
        first = views.predict(**question)
        assert first.last is None and "Last time" not in first.status.value
        first.lock(20)
        again = views.predict(**question)
        assert again.value is None and not again.locked and again.last == 20.0
        assert again.slider.value == pytest.approx(20) and not again.slider.disabled
        assert "Last time you guessed 20 ms." in again.status.value
        assert again.static() == views.predict(**{**question, "name": "other"}).static()
        assert "20 ms" not in again.static().body
        again.button.click()
        assert again.value == 20.0
        for other in ({"unit": "s"}, {"high": 999}, {"question": "How wide?"}):
            assert views.predict(**{**question, **other}).last is None

    @pytest.mark.parametrize("saved", ["far", 5000, None, [1], True])
    def test_a_remembered_guess_that_makes_no_sense_is_passed_over(self, saved):
        from course_lib.measure.store import Store

        guess = views.predict("How many?")
        Store("guesses").update(lambda values: values.update({guess._key(): saved}))
        assert views.predict("How many?").last is None

    @pytest.mark.parametrize("trouble", ["no folder", "garbage"])
    def test_a_store_that_cannot_be_used_disturbs_nobody(self, tmp_path, monkeypatch, capsys, trouble):
        (tmp_path / "guesses.json").write_text("{")
        home = tmp_path if trouble == "garbage" else tmp_path / "guesses.json" / "folder"
        monkeypatch.setenv("NINE_CIRCLES_HOME", str(home))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            guess = views.predict("How many?")
            guess.lock(7)
        assert guess.value == 7.0 and capsys.readouterr().err == ""

    def test_the_still_twin_shows_the_guess(self):
        guess = views.predict("How <many>?", unit="x", name="slowdown")
        assert "no guess locked in" in guess.static().body
        guess.lock(42)
        assert "your guess: 42 x" in guess.static().body
        assert "How &lt;many&gt;?" in guess.static().body and guess.name == "slowdown"


def counted(A, B):
    """Multiply like `multiply`, counting, and yield the state after every pair."""
    multiplications = additions = reads = 0
    columns = []
    for j in range(len(B[0])):
        column = []
        for row in B:
            column.append(row[j])
            reads += 1
        columns.append(column)
    for i, row in enumerate(A):
        for j, col in enumerate(columns):
            total = 0.0
            for k in range(len(row)):
                a, b = row[k], col[k]
                reads += 2
                term = a * b
                multiplications += 1
                total = total + term
                additions += 1
                yield (i, j, k), (multiplications, additions, reads), total


class Number:
    """A number that counts how often it is multiplied and added."""

    multiplications = additions = 0

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        Number.multiplications += 1
        return Number(self.value * other.value)

    def __add__(self, other):
        Number.additions += 1
        return Number(self.value + getattr(other, "value", other))

    __radd__ = __add__


small = st.integers(1, 4)


class TestStepper:
    @given(small, small, small, st.randoms(use_true_random=False))
    def test_counts_and_sums_are_those_of_a_counting_reimplementation(self, M, K, N, rng):
        A = [[rng.randint(-9, 9) for _ in range(K)] for _ in range(M)]
        B = [[rng.randint(-9, 9) for _ in range(N)] for _ in range(K)]
        trace = views.step_through(A, B).trace
        pairs = [(step, at) for step, at in enumerate(trace.steps) if at.kind == "pair"]
        expected = list(counted(A, B))
        assert len(pairs) == len(expected) == M * K * N
        for (step, at), (place, counts, total) in zip(pairs, expected, strict=True):
            now = trace.counts(step)
            assert (at.i, at.j, at.k) == place
            assert (now.multiplications, now.additions, now.reads) == counts
            assert trace.total(step) == total

    def test_the_course_own_function_does_as_many_operations(self):
        Number.multiplications = Number.additions = 0
        A = [[Number(n) for n in range(3)] for _ in range(2)]
        B = [[Number(n) for n in range(4)] for _ in range(3)]
        multiply(A, B)
        end = views.step_through([[1] * 3] * 2, [[1] * 4] * 3).trace
        done = end.counts(end.last)
        assert (
            (Number.multiplications, Number.additions) == (done.multiplications, done.additions) == (24, 24)
        )

    def test_every_step_finds_its_line_in_the_real_code(self):
        trace = views.step_through([[1]], [[1]]).trace
        for start in LINES.values():
            assert sum(line.strip().startswith(start) for line in trace.code) == 1
        assert not any('"""' in line or line.startswith("def") for line in trace.code)

    def test_a_frame_spells_the_sum_out_and_gives_the_formula_in_numbers(self):
        stepper = views.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]])
        step = next(s for s, at in enumerate(stepper.trace.steps) if (at.kind, at.k) == ("pair", 1))
        drawing = stepper.frame(step)
        words = [
            "".join(text.itertext())
            for text in ElementTree.fromstring(drawing).iter()
            if text.tag.endswith("text")
        ]
        assert "row 1, column 1:  1·5 + 2·7 = 19" in words
        assert "M·N·K = 2·2·2" in words and "of 8" in words
        assert "2·M·N·K + K·N = 2·8 + 4" in words

    def test_negative_factors_stand_in_brackets(self):
        stepper = views.step_through([[-1.5]], [[-2]])
        assert "(-1.5)·(-2) = 3" in stepper.frame(3)

    def test_the_picture_keeps_its_size_from_step_to_step(self):
        stepper = views.step_through([[1, 20], [3, 4]], [[5, 6], [7, -8]])
        frames = [stepper.frame(step) for step in range(stepper.trace.last + 1)]
        assert len({re.search(r'viewBox="([^"]+)"', frame)[1] for frame in frames}) == 1
        assert len(set(frames)) == len(frames)

    def test_the_last_frame_shows_the_product(self):
        stepper = views.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]])
        for entry in (19, 22, 43, 50):
            assert f">{entry}</text>" in stepper.frame(stepper.trace.last)

    def test_slider_and_buttons_change_the_picture(self):
        stepper = views.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]])
        player = stepper.player
        assert player.picture.value == stepper.frame(0)
        player.forward.click()
        assert stepper.step == 1 and player.picture.value == stepper.frame(1)
        player.back.click()
        player.back.click()
        assert stepper.step == 0
        player.slider.value = 5
        assert player.picture.value == stepper.frame(5)
        (jump,) = player.jumps.values()
        jump.click()
        assert stepper.trace.steps[stepper.step].kind == "column"
        assert stepper.trace.steps[stepper.step].j == 1
        for _ in range(5):
            jump.click()
        assert stepper.step == stepper.trace.last == player.slider.max

    @pytest.mark.parametrize(
        ("A", "B", "sentence"),
        [
            ([[1, 2]], [[1, 2]], "as many columns as B has rows"),
            ([[1] * 7], [[1]] * 7, "at most 6 x 6"),
            ([], [[1]], "at least one row"),
            ([[1, 2], [3]], [[1]], "rows of one length"),
            (5, [[1]], "A must be a matrix of numbers"),
            ([[1]], [["x"]], "B must be a matrix of numbers"),
        ],
    )
    def test_what_cannot_be_followed_is_refused_in_a_sentence(self, A, B, sentence):
        with pytest.raises(ValueError, match=sentence):
            views.step_through(A, B)

    def test_arrays_are_welcome(self):
        stepper = views.step_through(np.eye(2, dtype=np.float32), np.ones((2, 3)))
        assert stepper.trace.shape == (2, 2, 3)


class TestStrides:
    @given(st.sampled_from(ORDERS), sizes, sizes, sizes, st.sampled_from([2, 4, 8]))
    def test_are_what_numpy_says(self, order, M, K, N, itemsize):
        # two or more rows and columns: NumPy may choose the strides of a dimension of one element
        M, K, N = M + 1, K + 1, N + 1
        dtype = {2: np.float16, 4: np.float32, 8: np.float64}[itemsize]
        axes = {"A": ("ik", (M, K)), "B": ("kj", (K, N)), "C": ("ij", (M, N))}
        expected = {}
        for name, (indices, shape) in axes.items():
            byte_strides = dict(zip(indices, np.empty(shape, dtype).strides, strict=True))
            expected[name] = byte_strides.get(order[-1], 0)
        assert views.strides_of(order, M, K, N, itemsize) == expected

    def test_the_example_of_the_lesson(self):
        assert views.strides_of("ijk", 4096, 4096, 4096, 4) == {"A": 4, "B": 16384, "C": 0}
        assert views.strides_of("ikj", 4096, 4096, 4096, 4) == {"A": 0, "B": 4, "C": 4}
        assert views.strides_of("jki", 4096, 4096, 4096, 4) == {"A": 16384, "B": 0, "C": 16384}

    def test_the_drawing_says_it_in_words(self):
        text = views.strides("ijk", 4096).text
        assert "A moves 4 bytes a step; B jumps 16 KiB; C stays" in text

    def test_the_table_has_all_six_orders_the_cheapest_first(self):
        body = views.strides_table(4096, 4).body
        found = re.findall(r"<b>([ijk]{3})</b>", body)
        assert sorted(found) == sorted(ORDERS)
        assert set(found[:2]) == {"ikj", "kij"} and set(found[-2:]) == {"jki", "kji"}

    @pytest.mark.parametrize("order", ["iij", "abc", "", "ij", None])
    def test_other_orders_are_refused_in_a_sentence(self, order):
        for call in (
            lambda: views.strides_of(order, 2, 2, 2, 4),
            lambda: views.strides(order),
            lambda: views.walk(order),
        ):
            with pytest.raises(ValueError, match="must be one of ijk, ikj"):
                call()

    @pytest.mark.parametrize("n", [0, -1, 2.5, True, 7])
    def test_sizes_that_cannot_be_walked_are_refused_in_a_sentence(self, n):
        with pytest.raises(ValueError, match=r"^n is "):
            views.walk(n=n)


class TestWalk:
    @pytest.mark.parametrize("order", ORDERS)
    def test_the_steps_are_those_of_three_nested_loops(self, order):
        walker = views.walk(order, n=3)
        assert walker.player.slider.readout is False  # the picture counts its steps, from 1
        seen = {"A": set(), "B": set(), "C": set()}
        for step, turn in enumerate(product(range(3), repeat=3)):
            index = dict(zip(order, turn, strict=True))
            i, j, k = index["i"], index["j"], index["k"]
            seen["A"].add((i, k)), seen["B"].add((k, j)), seen["C"].add((i, j))
            label = label_of(walker.frame(order, step))
            assert f"C[{i}, {j}] += A[{i}, {k}] * B[{k}, {j}]." in label
            for name, cells in seen.items():
                assert f"{len(cells)} cell{'s' if len(cells) > 1 else ''} of {name}" in label

    def test_choosing_an_order_starts_anew(self):
        walker = views.walk("ikj", n=3)
        walker.player.slider.value = 7
        assert walker.player.picture.value == walker.frame("ikj", 7)
        walker.order.value = "jki"
        assert walker.player.slider.value == 0
        assert walker.player.picture.value == walker.frame("jki", 0)
        (jump,) = walker.player.jumps.values()
        jump.click()
        assert walker.player.slider.value == 3
        assert jump.description.startswith("next k")

    def test_the_still_twin_has_all_six_orders(self):
        labels = re.findall(r'aria-label="Loop order (\w+)', views.walk().static().body)
        assert labels == list(ORDERS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: views.predict("How many?"),
        lambda: views.step_through([[1]], [[2]]),
        lambda: views.walk(),
    ],
)
def test_a_widget_shows_its_twin_where_no_widget_can(make):
    live = make()
    bundle = live._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == live.widget.model_id
    assert bundle["text/html"] == live.static()._repr_html_()
    assert bundle["text/plain"] == repr(live) == live.static().text


def test_without_ipywidgets_one_sentence_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match="needs ipywidgets, which is not installed"):
        views.predict("How many?")
