"""The pictures of chapter 03: true to the tables they are drawn from, readable without colour."""

from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib import views

MINUS = "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def tables():
    """The algorithm's left, right and into; its module brings a compiler."""
    from course_lib.circles.strassen import INTO, LEFT, RIGHT

    return LEFT, RIGHT, INTO


def drawn(html: str) -> list[str]:
    """Return all texts of the one drawing in a card."""
    start, end = html.index("<svg"), html.index("</svg>") + len("</svg>")
    return ["".join(node.itertext()) for node in ElementTree.fromstring(html[start:end]).iter() if node.text]


def test_every_term_of_every_product_has_its_sign_and_its_words(tables):
    LEFT, RIGHT, _ = tables
    shown = views.block_products(*tables)
    signs = [a * b for left, right in zip(LEFT, RIGHT, strict=True) for a in left for b in right]
    assert drawn(shown.body).count("+") == signs.count(1)
    assert drawn(shown.body).count(MINUS) == signs.count(-1)
    assert "M6 = (A21 − A11) (B11 + B12), into C22" in shown.text
    assert "M2 = (A21 + A22) B11, into C21, −C22" in shown.text


def test_two_terms_are_left_of_a_block_and_a_wrong_sign_leaves_more(tables):
    LEFT, RIGHT, INTO = tables
    for block, terms in (
        ("11", "A11 B11 + A12 B21"),
        ("12", "A11 B12 + A12 B22"),
        ("21", "A21 B11 + A22 B21"),
        ("22", "A21 B12 + A22 B22"),
    ):
        shown = views.cancellation(*tables, block)
        assert f"leaves {terms}: all other terms" in shown.text and f"C{block} = {terms}" in drawn(shown.body)
    wrong = [list(row) for row in LEFT]
    wrong[5][0] = 1
    assert "+2 A11 B11" in views.cancellation(wrong, RIGHT, INTO, "22").text.replace("  ", " ")


@pytest.mark.usefixtures("figures")
def test_the_title_says_who_gains_where_and_noise_is_no_gain():
    for curves, words in (
        ({"one": {1: 1.2, 2: 0.9, 4: 0.8}}, "One gains from N = 2 on"),
        ({"one": {1: 1.2}, "two": {1: 0.9}}, "One loses at every size; two gains at every size"),
    ):
        assert words in views.time_ratios(curves, {}).alt
    for curve, width, words in (
        ({1: 1.2, 2: 0.9, 4: 0.8}, 0.05, "One gains from N = 2 on"),
        ({1: 1.2, 2: 0.97, 4: 0.8}, 0.05, "One gains from N = 4 on (N = 2 cannot be told: run again)"),
        ({1: 1.2, 2: 0.8, 4: 0.97}, 0.05, "One gains at N = 2 (N = 4 cannot be told: run again)"),
        ({1: 0.99, 2: 1.01}, 0.0, "One cannot be told from 1 on this run"),
        ({1: 1.2, 2: 1.3}, 0.05, "One loses at every size"),
    ):
        ends = {n: (ratio - width, ratio + width) for n, ratio in curve.items()}
        picture = views.time_ratios({"one": curve}, {}, intervals={"one": ends})
        assert words in picture.alt.split("by N. ")[1]


def test_the_crossover_lies_between_the_sizes_where_the_intervals_let_it():
    for ratios, size in (
        ({512: 1.4, 1024: 1.1, 2048: 0.9}, 1024 * 2**0.5),
        ({512: 1.4, 1024: 1.1}, None),
    ):
        assert views.crossover(ratios) == pytest.approx(size), ratios
    told = {512: (1.3, 1.5), 1024: (1.0, 1.2), 2048: (0.8, 1.0), 4096: (0.7, 0.9)}
    assert views.crossover_interval(told) == pytest.approx((1024, 2048))
    assert views.crossover_interval({1: (1.1, 1.2), 2: (0.8, 0.9), 4: (0.9, 1.1)})[1] == np.inf
