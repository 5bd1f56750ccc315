"""Pictures of eight-bit numbers in a real browser: they fit the page, and keys are enough."""

from __future__ import annotations

from functools import cache

import nbformat
import pytest
from test_chapter_in_lab import open_notebook, run_cell

from course_lib import views

pytestmark = [pytest.mark.browser]


@cache
def bodies():
    return dict(rendered())


def rendered():
    for x, format in ((0.3, "e4m3"), (0.003, "e4m3"), (-1e9, "e5m2")):
        yield f"format_{format}_{x:g}", views.explore_format(x, format).static().body
    small = [2.0**-9] * 4  # the longest labels, and the most places behind the line
    yield "accumulator", views.accumulator_figure(small, [-x for x in small], 0.3).body
    for width in (32, 64, 128):
        yield f"swizzle_{width}", views.swizzle_map(width).static().body


@pytest.mark.parametrize("width", [800, 1200])
def test_pictures_fit_the_page(page, pictures, width):
    page.set_viewport_size({"width": width, "height": 700})
    for name, body in bodies().items():
        page.set_content(f"<!doctype html><body>{body}")
        page.screenshot(path=pictures / f"{name}_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        figure = page.get_by_role("figure")
        assert figure.evaluate("one => one.scrollWidth <= one.clientWidth"), name


def test_a_number_is_typed_and_its_bits_are_flipped_by_keyboard(lab, page, pictures):
    book = nbformat.v4.new_notebook()
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    source = "from course_lib import views\nviews.explore_format(0.3)"
    book.cells = [nbformat.v4.new_code_cell(source)]
    nbformat.write(book, lab.folder / "format.ipynb")
    open_notebook(page, lab, "format.ipynb")
    shown = run_cell(page, "explore_format")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    shown.screenshot(path=pictures / "format_in_lab.png")
    field = shown.get_by_role("textbox", name="number")
    for typed, said in (("1000", "saturated, 448 is stored"), ("three", "is no number")):
        field.focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        shown.get_by_text(said).first.wait_for()
    last = shown.get_by_role("button", name="0", exact=True).last  # 448 is 0 1111 110
    last.focus()
    page.keyboard.press("Space")
    shown.get_by_text("Code 0x7f of e4m3 is NaN").wait_for()
    shown.get_by_role("button", name="e5m2").focus()
    page.keyboard.press("Space")
    shown.get_by_text("of e5m2 is NaN").wait_for()
    shown.screenshot(path=pictures / "format_in_lab_nan.png")
    assert shown.locator("[data-mime-type*=error]").count() == 0
