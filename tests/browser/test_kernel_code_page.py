"""The machine code of a kernel in a real browser: it fits the page, and the keyboard reaches all of it."""

from __future__ import annotations

from functools import cache

import nbformat
import pytest
from test_chapter_in_lab import open_notebook, run_cell

from course_lib import views
from course_lib.circles import cuda_naive, cuda_tiled, cuda_warptiled
from course_lib.views import kernel_code

pytestmark = [pytest.mark.browser]

KERNELS = {
    "naive": cuda_naive.naive,
    "tiled": cuda_tiled.tiled,
    "warptiled": cuda_warptiled.kernel(cuda_warptiled.TILES[0]),
}
#: Words outside of the listing (where long ones end in an ellipsis) that do not lie wholly within the figure.
CUT = """() => { const figure = document.querySelector('[role=figure]').getBoundingClientRect();
    return [...document.querySelectorAll('[role=figure] *')]
        .filter(one => !one.closest('[role=region]') && one.getClientRects().length)
        .filter(one => one.getBoundingClientRect().right > figure.right + 1).map(one => one.textContent); }"""


CELL = """from course_lib import views
from course_lib.circles import cuda_tiled
views.gpu_code(cuda_tiled.tiled)"""
BOX = "(one => one.getBoundingClientRect())"


@cache
def bodies(name):
    view = views.gpu_code(KERNELS[name])
    still = view.static().body
    view.language.value = "PTX"
    return {"still": still, "ptx": view.frame()}


@pytest.mark.parametrize("width", [800, 1200])
@pytest.mark.parametrize("name", KERNELS)
def test_pictures_fit_the_page(page, pictures, name, width):
    page.set_viewport_size({"width": width, "height": 700})
    for kind, body in bodies(name).items():
        page.set_content(f"<!doctype html><body>{body}")
        page.screenshot(path=pictures / f"code_{name}_{kind}_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.get_by_role("figure").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert page.evaluate(CUT) == []
        words = page.locator("[role=region] td:first-child").first
        assert words.evaluate("one => one.scrollWidth <= one.clientWidth")  # the kind is never cut


def test_the_keyboard_reaches_the_end_of_the_loop_and_opens_ptx(page):
    page.set_viewport_size({"width": 900, "height": 700})
    page.set_content(f"<!doctype html><body>{views.gpu_code(KERNELS['warptiled']).static().body}")
    region = page.get_by_role("region", name="SASS of the inner loop, line by line")
    page.keyboard.press("Tab")
    assert region.evaluate("one => document.activeElement === one && one.scrollTop === 0")
    page.keyboard.press("End")
    last = region.get_by_role("row").last
    page.wait_for_function("document.activeElement.scrollTop > 100")
    page.wait_for_timeout(300)  # scrolling may be smooth
    assert last.evaluate(f"one => {BOX}(one).bottom <= {BOX}(one.closest('[role=region]')).bottom + 2")
    head = region.get_by_role("columnheader", name="what it does")
    assert head.evaluate(f"one => Math.abs({BOX}(one).top - {BOX}(one.closest('[role=region]')).top) < 4")

    assert not page.get_by_role("region", name="PTX").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="PTX").wait_for()


@pytest.mark.parametrize("kind", kernel_code.LOOKS)
def test_words_stand_out_from_their_ground(kind):
    """A contrast of 4.5 to 1 at least (WCAG 2.1, 1.4.3)."""
    _, ground, ink = kernel_code.LOOKS[kind]

    def luminance(colour):
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(ground), luminance(ink)))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_choices_are_made_by_keyboard_in_the_notebook(lab, page, pictures):
    book = nbformat.v4.new_notebook()
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.cells = [nbformat.v4.new_code_cell(CELL)]
    nbformat.write(book, lab.folder / "code.ipynb")
    open_notebook(page, lab, "code.ipynb")
    shown = run_cell(page, "views.gpu_code")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    assert "tiled for compute capability 9.0" in figure.get_attribute("aria-label")
    shown.get_by_role("button", name="PTX").focus()
    page.keyboard.press("Enter")
    shown.get_by_text("fma.rn.f32").first.wait_for()
    shown.get_by_role("button", name="barrier").focus()
    page.keyboard.press("Enter")
    figure.get_by_text("fma.rn.f32").first.wait_for(state="detached")
    assert figure.get_by_text("bar.sync 0").count() == 2
    shown.get_by_role("button", name="8.0").focus()
    page.keyboard.press("Space")
    shown.locator("[role=figure][aria-label*='capability 8.0']").wait_for()
    shown.screenshot(path=pictures / "code_in_lab.png")
    for width in (1200, 800):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(500)
        shown.screenshot(path=pictures / f"code_in_lab_{width}.png")
        assert shown.locator(".jp-OutputArea-output").evaluate_all(
            "all => all.every(one => one.scrollWidth <= one.clientWidth + 8)"
        )
        end = shown.locator(".jp-OutputArea-output").last.evaluate(f"one => {BOX}(one).right")
        assert figure.evaluate(f"one => {BOX}(one).right") <= min(end, width)
