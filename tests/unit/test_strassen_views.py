"""The pictures of chapter 03: true to the tables they are drawn from, readable without colour."""

from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib import theme, views
from course_lib.circles.strassen import INTO, LEFT, RIGHT
from course_lib.views import strassen_figures

MINUS = "\N{MINUS SIGN}"
TABLES = (LEFT, RIGHT, INTO)


def drawn(html: str) -> list[str]:
    """Return all texts of the one drawing in a card."""
    start, end = html.index("<svg"), html.index("</svg>") + len("</svg>")
    return ["".join(node.itertext()) for node in ElementTree.fromstring(html[start:end]).iter() if node.text]


class TestBlockProducts:
    def test_every_term_of_every_product_has_its_sign(self):
        texts = drawn(views.block_products(*TABLES).body)
        signs = [a * b for left, right in zip(LEFT, RIGHT, strict=True) for a in left for b in right]
        assert texts.count("+") == signs.count(1)
        assert texts.count(MINUS) == signs.count(-1)

    def test_says_in_words_what_it_shows(self):
        shown = views.block_products(*TABLES)
        assert "M6 = (A21 − A11) (B11 + B12), into C22" in shown.text
        assert "M2 = (A21 + A22) B11, into C21, −C22" in shown.text
        assert 'role="img"' in shown.body and "M7 = (A12 − A22) (B21 + B22), into C11" in shown.body
        assert "P1 = " in views.block_products(*TABLES, name="P").text

    @pytest.mark.parametrize(
        "tables",
        [
            (LEFT[:6], RIGHT, INTO),
            ([row[:3] for row in LEFT], RIGHT, INTO),
            (np.array(LEFT) * 2, RIGHT, INTO),
        ],
    )
    def test_tables_that_do_not_fit_are_refused(self, tables):
        with pytest.raises(ValueError, match="four signs"):
            views.block_products(*tables)


class TestCancellation:
    @pytest.mark.parametrize(
        ("block", "terms"),
        [
            ("11", "A11 B11 + A12 B21"),
            ("12", "A11 B12 + A12 B22"),
            ("21", "A21 B11 + A22 B21"),
            ("22", "A21 B12 + A22 B22"),
        ],
    )
    def test_two_terms_are_left(self, block, terms):
        shown = views.cancellation(*TABLES, block)
        assert f"leaves {terms}: all other terms" in shown.text
        assert f"C{block} = {terms}" in drawn(shown.body)

    def test_a_wrong_sign_leaves_more(self):
        wrong = [list(row) for row in LEFT]
        wrong[5][0] = 1
        assert "+2 A11 B11" in views.cancellation(wrong, RIGHT, INTO, "22").text.replace("  ", " ")

    def test_an_unknown_block_is_refused(self):
        with pytest.raises(ValueError, match="block is '33'"):
            views.cancellation(*TABLES, "33")


class TestCurves:
    def test_the_title_says_who_gains_where(self):
        def says(curves):
            return strassen_figures._gains(curves, {})

        assert says({"one": {1: 1.2, 2: 0.9, 4: 0.8}}) == "One gains from N = 2 on"
        assert says({"one": {1: 1.2}, "two": {1: 0.9}}) == "One loses at every size; two gains at every size"
        assert says({"one": {1: 0.9, 2: 1.1}}) == "One gains at some sizes only"

    @pytest.mark.parametrize(
        ("curve", "width", "words"),
        [
            ({1: 1.2, 2: 0.9, 4: 0.8}, 0.05, "One gains from N = 2 on"),
            ({1: 1.2, 2: 0.97, 4: 0.8}, 0.05, "One gains from N = 4 on (N = 2 cannot be told: run again)"),
            ({1: 1.2, 2: 0.8, 4: 0.97}, 0.05, "One gains at N = 2 (N = 4 cannot be told: run again)"),
            ({1: 1.2, 2: 0.99, 4: 1.01}, 0, "One gains nowhere for certain (N = 2, 4 cannot be told: run"),
            ({1: 0.99, 2: 1.01}, 0.0, "One cannot be told from 1 on this run"),
            ({1: 1.2, 2: 1.3}, 0.05, "One loses at every size"),
        ],
    )
    def test_noise_is_no_gain(self, curve, width, words):
        ends = {n: (ratio - width, ratio + width) for n, ratio in curve.items()}
        picture = views.time_ratios({"one": curve}, {}, intervals={"one": ends})
        assert words in picture.alt.split("by N. ")[1]

    def test_the_crossover_lies_where_the_intervals_let_it(self):
        told = {512: (1.3, 1.5), 1024: (1.0, 1.2), 2048: (0.8, 1.0), 4096: (0.7, 0.9)}
        assert views.crossover_interval(told) == pytest.approx((1024, 2048))
        low, high = views.crossover_interval({512: (1.3, 1.5), 1024: (0.9, 1.1)})
        assert 512 < low < 1024 and high == np.inf
        assert views.crossover_interval({512: (0.8, 0.9), 1024: (0.7, 0.9)}) == (512, 512)
        assert views.crossover_interval({1: (1.1, 1.2), 2: (0.8, 0.9), 4: (0.9, 1.1)})[1] == np.inf

    def test_the_crossover_lies_between_the_sizes(self):
        assert views.crossover({512: 1.4, 1024: 1.1, 2048: 0.9}) == pytest.approx(1024 * 2**0.5)
        assert views.crossover({512: 1.4, 1024: 1.0}) == pytest.approx(1024)
        assert views.crossover({512: 1.4, 1024: 1.1}) is None
        assert views.crossover({512: 0.8, 1024: 0.9}) is None

    def test_ratios_are_drawn_with_the_guess_and_told_in_words(self):
        curve = {"explicit": {512: 1.4, 2048: 0.9}}
        picture = views.time_ratios(curve, {"least": {512: 1.2, 2048: 0.8}}, guess=900)
        assert isinstance(picture, theme.Picture)
        assert "Explicit gains from N = 2048 on" in picture.alt and "1.2 at 512" in picture.alt
        assert views.time_ratios(curve, {}).png != views.time_ratios(curve, {}, guess=900).png

    def test_intervals_are_drawn(self):
        curve = {"one": {1: 1.2, 2: 0.9}}
        wide, narrow = ({"one": {n: (r - w, r + w) for n, r in curve["one"].items()}} for w in (0.06, 0.03))
        pictures = [views.time_ratios(curve, {}, intervals=ends) for ends in (wide, narrow, None)]
        assert pictures[0].alt == pictures[1].alt == pictures[2].alt  # so the title is the same
        assert len({picture.png for picture in pictures}) == 3

    def test_errors_grow_by_a_factor_a_level(self):
        measured = {"normal": {0: 1e-6, 1: 2e-6, 2: 4e-6}}
        bounds = {"Strassen": {0: 1e-3, 2: 9e-3}, "definition": {0: 1e-5, 2: 1e-5}}
        picture = views.error_levels(measured, bounds)
        assert "On average a level multiplies the error by 2.0, the bound by 3.0" in picture.alt

    def test_nothing_measured_is_one_sentence(self):
        for empty in ({}, {"one": {}}):
            with pytest.raises(ValueError, match="measured is empty"):
                views.time_ratios(empty, {})


def test_the_figures_import_no_plotting_before_they_draw():
    import subprocess
    import sys

    code = (
        "import sys; from course_lib.views import strassen_figures; "
        "print({'matplotlib', 'numba', 'ipywidgets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr
    assert strassen_figures.CELL > 0
