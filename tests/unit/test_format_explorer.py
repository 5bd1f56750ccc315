"""A number in eight bits: what is drawn is what the format stores, and the controls follow each other."""

import re
from fractions import Fraction

import numpy as np

from course_lib import views
from course_lib.fp8.formats import BFLOAT16, E4M3, E5M2, FLOAT32, FORMATS
from course_lib.views.format_explorer import frame


def cells(body):
    """The table of formats as text: rows of [format, bits, stored, step, error, kind]."""
    rows = re.findall(r"<tr.*?</tr>", body)[1:]
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def formula_value(body):
    """Compute the formula as it is written: (−1)^s · 2^(E−b) · (lead + F/whole)."""
    text = re.sub("<[^>]*>", "", re.sub(r"</?sup[^>]*>", "^", body)).replace("−", "-")
    found = re.search(
        r"\(-1\)\^(\d)\^ · 2\^(\d+)-(\d+)\^ · \((\d) \+ (\d+)/(\d+)\) = (\S+?)(?=[\s&<\d]|$)", text
    )
    sign, exponent, bias, lead, part, whole = map(int, found.groups()[:6])
    return float((-1) ** sign * Fraction(2) ** (exponent - bias) * (lead + Fraction(part, whole)))


class TestPicture:
    def test_the_title_says_what_becomes_of_the_number(self):
        for x, format, said in (
            (0.3, "e4m3", "0.3 becomes 0.3125 in e4m3 (normal): 4.2 % too large"),
            (-3.3, "e5m2", "-3.3 becomes -3.5 in e5m2 (normal): 6.1 % too far from 0"),
            (0.003, "e4m3", "0.003 becomes 0.00390625 in e4m3 (subnormal): 30 % too large"),
            (0, "e4m3", "0 is a number of e4m3: no error"),
            (450, "e4m3", "450 becomes 448 in e4m3 (normal): 0.44 % too small"),
            (1000, "e4m3", "1000 lies beyond the largest number of e4m3: saturated, 448 is stored"),
            (0.0005, "e4m3", "0.0005 becomes 0: the smallest number of e4m3 is 0.001953125"),
        ):
            still = views.explore_format(x, format).static()
            assert still.text.startswith(said) and f'aria-label="{said}' in still.body

    def test_the_formula_of_every_number_gives_its_value(self):
        for form in FORMATS.values():
            for value in form.values[np.isfinite(form.values)].tolist():
                assert formula_value(frame(form.look_at(value))) == value

    def test_the_table_has_four_formats_as_they_store_the_number(self):
        rows, looks = cells(frame(E5M2.look_at(0.3))), (E4M3.look_at(0.3), E5M2.look_at(0.3))
        stored = (*looks, BFLOAT16.store(0.3), FLOAT32.store(0.3))
        assert [row[0] for row in rows] == ["e4m3", "e5m2", "bfloat16", "float32"]
        assert [row[1] for row in rows] == [" ".join(one.bits) for one in stored]
        assert [row[2] for row in rows] == ["0.3125", "0.3125", "0.30078125", "0.300000012"]
        assert [row[4] for row in rows] == ["4.2 %", "4.2 %", "0.26 %", "4e-06 %"]


class TestWidget:
    def test_a_typed_number_and_another_format_are_shown(self):
        explorer = views.explore_format(0.3)
        assert explorer.static().body in explorer.picture.value
        assert explorer.field.value == "0.3" and "Keyboard" in explorer.status.value
        explorer.field.value = "1/3"
        assert explorer.look == E4M3.look_at(1 / 3)
        assert "0.3333333333 becomes 0.34375" in explorer.picture.value
        explorer.choice.value = "e5m2"
        assert explorer.look == E5M2.look_at(1 / 3)
        assert "1/4" in explorer.bits[7].tooltip and "exponent" in explorer.bits[5].tooltip

    def test_every_bit_flips_to_and_fro_also_to_nan(self):
        explorer = views.explore_format(0.3125)
        for place, button in enumerate(explorer.bits):
            button.click()
            code = 0x2A ^ 0x80 >> place
            assert explorer.look.code == code and explorer.look.value == E4M3.values[code]
            assert "".join(one.description for one in explorer.bits) == f"{code:08b}"
            button.click()
        assert explorer.look.code == 0x2A
        explorer.field.value = "448"
        explorer.flip(7)
        assert "is NaN" in explorer.picture.value and explorer.field.value == "nan"

    def test_what_is_no_number_is_answered_and_the_picture_stays(self):
        explorer = views.explore_format(0.3)
        before = explorer.picture.value
        for text, said in (
            ("", "There is no number: type one like 0.3"),
            ("three", "&#x27;three&#x27; is no number: type one like 0.3"),
            ("0,3", "is no number: with a point instead of the comma"),
            ("nan", "or flip bits to find NaN"),
            ("1/0", "is not finite"),
        ):
            explorer.field.value = text
            assert said in explorer.status.value and explorer.picture.value == before
            assert explorer.status.value.endswith("The picture still shows 0.3.</div>")
