"""The pictures about time of circle 10 in a real browser: whole at two widths, and moved by keyboard."""

from __future__ import annotations

from functools import cache

import nbformat
import pytest
from test_chapter_in_lab import cell, open_notebook, run_cell

from course_lib import views
from course_lib.views import ring_animation

pytestmark = [pytest.mark.browser]

WIDGETS = ("views.pipeline()", "views.ring()", "views.tile_choice(256, 7168, 4096)")
#: The drawings' words that do not lie wholly within their drawing.
CLIPPED = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.closest('svg').getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""


@cache
def bodies():
    return dict(rendered())


def rendered():
    pipeline, ring, tiles = views.pipeline(), views.ring(), views.tile_choice(4096, 7168, 16384)
    yield "roles", f'<div role="figure">{views.roles()._repr_html_()}</div>'
    for name, view in (("pipeline", pipeline), ("ring", ring), ("tiles", tiles)):
        yield f"{name}_still", view.static().body
    for number, variant in enumerate(ring_animation.VARIANTS):
        last = len(ring_animation.found(variant, ring.base, 0).moments) - 1
        yield f"ring_{number}", f'<div role="figure">{ring.frame(variant, last)}</div>'


@pytest.mark.parametrize("width", [800, 1200])
def test_pictures_fit_the_page_and_cut_no_word(page, pictures, width):
    page.set_viewport_size({"width": width, "height": 700})
    for name, body in bodies().items():
        page.set_content(f"<!doctype html><body>{body}")
        page.screenshot(path=pictures / f"hopper_{name}_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.get_by_role("figure").evaluate("one => one.scrollWidth <= one.clientWidth"), name
        assert page.evaluate(CLIPPED) == [], name


def test_pipeline_ring_and_tiles_are_moved_by_keyboard(lab, page, pictures):
    book = nbformat.v4.new_notebook()
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    sources = ("from course_lib import views", *WIDGETS)
    book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(book, lab.folder / "hopper.ipynb")
    open_notebook(page, lab, "hopper.ipynb")
    run_cell(page, "from course_lib")

    shown = run_cell(page, "views.pipeline")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for(timeout=90_000)  # the first picture loads matplotlib
    shown.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    shown.get_by_text("Model: with 3 stages").wait_for()
    button = shown.get_by_role("button", name="persistent")
    button.focus()
    page.keyboard.press("Space")
    shown.get_by_text("works 81 %").wait_for()
    shown.screenshot(path=pictures / "hopper_pipeline_in_lab.png")

    shown = run_cell(page, "views.ring")
    drawing = shown.locator(".jp-OutputArea svg[role=img]").first
    drawing.wait_for()
    shown.get_by_role("combobox").focus()
    for key in ("Space", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    shown.get_by_text("Left out: the flip").wait_for()
    shown.locator(".noUi-handle").first.focus()
    page.keyboard.press("End")
    shown.get_by_text("It goes wrong. A warp wanted block 4").wait_for()
    assert "It goes wrong" in drawing.get_attribute("aria-label")
    shown.screenshot(path=pictures / "hopper_ring_in_lab.png")

    shown = run_cell(page, "views.tile_choice")
    shown.get_by_text("128 x 112 (pairs): 1 wave").wait_for()
    shown.get_by_role("spinbutton", name="M").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    shown.get_by_text("M is 0, but it must be").wait_for()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("300")
    page.keyboard.press("Enter")
    shown.get_by_text("limited by").first.wait_for()
    shown.screenshot(path=pictures / "hopper_tiles_in_lab.png")
    for name in ("views.pipeline", "views.ring", "views.tile_choice"):
        assert cell(page, name).locator("[data-mime-type*=error]").count() == 0
        assert (
            cell(page, name)
            .locator(".jp-OutputArea-output")
            .evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth + 8)")
        )
