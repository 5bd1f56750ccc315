"""One step of a tensor core drawn in bits: the drawing is read back and has the numbers of the model."""

import html
import re
from fractions import Fraction
from xml.etree import ElementTree

from course_lib import views
from course_lib.simulators.tensor_core import one_step
from course_lib.views.accumulator_bits import CELL, Grid, rows

A, B = [208, 2.25, -0.203125, 0.013671875], [1.75, 1.5, 0.8125, 0.21875]
SVG = "{http://www.w3.org/2000/svg}"


def drawn_rows(picture):
    """Read the rows back: (label, is it negative, bits from left to right, those that are struck through)."""
    drawing = ElementTree.fromstring(re.search("<svg.*</svg>", picture.body, re.S).group())
    texts = list(drawing.iter(f"{SVG}text"))
    struck = {
        (float(line.get("x1")), float(line.get("y1")))
        for line in drawing.iter(f"{SVG}line")
        if line.get("stroke-width") == "1.5"
    }
    found = []
    for label in (text for text in texts if text.get("x") == "8"):
        y = float(label.get("y"))
        row = [text for text in texts if float(text.get("y")) == y]
        bits = [(float(text.get("x")), text.text) for text in row if "monospace" in text.get("font-family")]
        cut = [bit for x, bit in bits if (x - CELL / 2 + 1, y - 5) in struck]
        is_negative = any(text.text == "−" for text in row)
        found.append((label.text, is_negative, "".join(bit for _, bit in bits), "".join(cut)))
    return found


def test_the_bits_that_are_drawn_are_those_of_the_step():
    for a, b, c in (
        (A, B, 0.0),
        ([1.5, 0.9375, -0.0625], [1.25, 0.15625, 0.6875], 1234.5678),
        ([-448, -416, 384, -2], [448, 448, 1, 0.375], 0.0),
        ([448] * 12, [448, 13, 0.0625] * 4, -3.0),
    ):
        step = one_step(a, b, c)
        drawn = drawn_rows(views.accumulator_figure(a, b, c))
        wanted = rows(step)
        low = Grid.of(wanted, step.unit).low
        assert [label for label, *_ in drawn] == [row.label for row in wanted]
        for (_, sign, bits, cut), row in zip(drawn, wanted, strict=True):
            number = int(bits.replace("·", "0"), 2) * Fraction(2) ** low
            assert sign == (row.value < 0)
            assert (
                number <= abs(row.value) < number + Fraction(2) ** low
            )  # what lies further right is left out
            if not row.is_sum:
                kept = bits.replace("·", "0")[: len(bits) - (step.unit - low)]
                assert int(kept, 2) * Fraction(2) ** step.unit == abs(row.value - row.lost)
                assert ("1" in cut) == bool(row.lost and abs(row.value) >= Fraction(2) ** low)


def test_the_words_have_every_number():
    picture = views.accumulator_figure(A, B)
    said = "The step gives 367.21875, exact arithmetic 367.21295: an error of 0.0016 %"
    assert picture.text.startswith(said) and f">{said}<" in picture.body
    labels = re.findall(r'aria-label="([^"]*)"', picture.body)
    assert [html.unescape(label) for label in labels] == [picture.text] * 2
    for words in (
        "The largest exponent is 7; bits below 2^-6 are cut off.",
        "208 × 1.75: 364, kept whole.",
        "-0.203125 × 0.8125: -0.16503906, of which -0.0087890625 is cut off.",
    ):
        assert words in picture.text
    assert "nothing is lost" in views.accumulator_figure([1, 2], [1, 1]).text
    assert "All terms are 0." in views.accumulator_figure([0, 2], [0, 0]).text
