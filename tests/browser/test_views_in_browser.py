"""Views in a real browser: pictures fit their page and cut no word, widgets are moved by keyboard."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import test_icicle_page
from lab_pages import fits, open_notebook, run_cell, typed, write_notebook

sys.path.append(str(Path(__file__).resolve().parents[1] / "unit"))

import view_samples

WIDTHS = (800, 1200)
BOX = "(one => one.getBoundingClientRect())"
#: The drawings' words that do not lie wholly within their drawing.
CLIPPED = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.closest('svg').getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""
#: What lies outside of its figure; in a listing, which is scrolled, long lines end in an ellipsis.
CUT = """() => [...document.querySelectorAll('[role=figure] *')].filter(one =>
    !one.closest('[role=region]') && one.getClientRects().length && one.getBoundingClientRect().right
    > one.closest('[role=figure]').getBoundingClientRect().right + 1).map(one => one.outerHTML)"""

TRANSPOSE = """import numpy as np
from numba import cuda, float32
from course_lib import views

@cuda.jit
def transpose(A, B):
    s = cuda.shared.array((32, 32), float32)
    j, i = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y, x] = A[i, j]
    cuda.syncthreads()
    B[j, i] = s[x, y]

A = np.zeros((64, 64), np.float32)
B = np.zeros_like(A)
"""
CELLS = (
    "from course_lib import views",
    "views.pipeline()",
    "views.ring()",
    TRANSPOSE,
    "views.gpu_steps(transpose, (2, 2), (32, 32), A, B, block=(1, 0), warp=3)",
    "print(B.any())",
    "views.explore_format(0.3)",
    test_icicle_page.CELL,
)


def costs_of_long_words(views):
    where = "recorded on an Intel(R) Xeon(R) Processor (2 cores, AVX-512) on 2020-01-01"
    return views.costs(20, 1000, **view_samples.PRICES, cpu_origin=where)


def deadlocked_ring(views):
    ring = views.ring()
    ring.variant.value = next(name for name in ring.variant.options if "deadlock" in name)
    ring.slider.value = ring.last
    return ring


def warptiled():
    from course_lib.circles import cuda_warptiled

    return cuda_warptiled.kernel(cuda_warptiled.TILES[0])


#: What is longest or widest, beside the samples.
EXTREMES = {
    "accumulator, longest labels": lambda v: v.accumulator_figure([2.0**-9] * 4, [-(2.0**-9)] * 4, 0.3),
    "costs, long words": costs_of_long_words,
    "format, beyond the largest": lambda v: v.explore_format(-1e9, "e5m2"),
    "listing, longest": lambda v: v.gpu_code(warptiled()),
    "ring, deadlock": deadlocked_ring,
    "speed on a GPU": lambda v: v.encoder_speed(view_samples.speed_points("cuda"), "made up for a test"),
    "swizzle, narrowest": lambda v: v.swizzle_map(32),
    "tiles, many": lambda v: v.tile_choice(4096, 7168, 16384),
}


#: Their tables and lines are scrolled within their figure where the page is narrow.
SCROLLED = ("bytecode", "cuda_source", "costs, long words")


def drawn():
    """Yield the name and the HTML of every view: its still twin, and what its widget shows."""
    from course_lib import views

    for name, make in (view_samples.CALLS | EXTREMES).items():
        view = make(views)
        still = view.static() if hasattr(view, "static") else view
        yield name, still._repr_html_()
        shown = getattr(view, "picture", None)
        if hasattr(shown, "value"):
            yield f"{name}, live", f'<div role="figure">{shown.value}</div>'


def of_one_drawing():
    """Return what makes pictures of their own width and words, all with the pixels of the first."""
    from course_lib.theme import Picture

    real, first = Picture.of, []

    def of(fig, alt):
        first[:] = first or [real(fig, alt)]
        return replace(first[0], alt=alt, width=int(fig.get_figwidth() * fig.dpi))

    return of


def test_pictures_fit_the_page_and_cut_no_word(page, pictures, monkeypatch):
    from course_lib.measure import assembly, machine
    from course_lib.theme import Picture

    looked_at = "SCREENSHOTS" in os.environ
    if not looked_at:
        monkeypatch.setattr(Picture, "of", of_one_drawing())
    monkeypatch.setattr(assembly, "inspect", assembly.Assembly)
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")
    for name, body in drawn():
        page.set_content(f"<!doctype html><body>{body}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            assert page.evaluate(CLIPPED) == [], (name, width)
            assert page.evaluate(CUT) == [] or name.removesuffix(", live") in SCROLLED, (name, width)
        if looked_at:
            page.screenshot(path=pictures / f"{name}.png", full_page=True)


def test_the_keyboard_reaches_the_end_of_a_listing_and_opens_ptx(page):
    from course_lib import views

    page.set_viewport_size({"width": 900, "height": 700})
    page.set_content(f"<!doctype html><body>{views.gpu_code(warptiled()).static().body}")
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


# -- widgets in JupyterLab, moved by keyboard: one notebook, one kernel ------------------------------------


@pytest.fixture(scope="module")
def notebook(lab, browser):
    page = browser.new_context(viewport={"width": 1280, "height": 1600}).new_page()
    page.set_default_timeout(30_000)
    write_notebook(lab.folder / "views.ipynb", *CELLS)
    open_notebook(page, lab, "views.ipynb")
    run_cell(page, "from course_lib import views")
    yield page
    page.context.close()


def test_a_slider_buttons_and_a_list_are_moved(notebook, pictures):
    shown = run_cell(notebook, "views.pipeline")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for(timeout=90_000)  # the first picture loads matplotlib
    shown.locator(".noUi-handle").first.focus()
    notebook.keyboard.press("ArrowRight")
    shown.get_by_text("Model: with 3 stages").wait_for()
    shown.get_by_role("button", name="persistent").focus()
    notebook.keyboard.press("Space")
    shown.get_by_text("works 81 %").wait_for()
    shown.screenshot(path=pictures / "hopper_pipeline_in_lab.png")
    assert fits(shown)

    shown = run_cell(notebook, "views.ring")
    drawing = shown.locator(".jp-OutputArea svg[role=img]").first
    drawing.wait_for()
    shown.get_by_role("combobox").focus()
    for key in ("Space", "ArrowDown", "Enter"):
        notebook.keyboard.press(key)
    shown.get_by_text("Left out: the flip").wait_for()
    shown.locator(".noUi-handle").first.focus()
    notebook.keyboard.press("End")
    shown.get_by_text("It goes wrong. A warp wanted block 4").wait_for()
    assert "It goes wrong" in drawing.get_attribute("aria-label")
    shown.screenshot(path=pictures / "hopper_ring_in_lab.png")
    assert fits(shown)


def test_a_learners_kernel_is_walked(notebook, pictures):
    run_cell(notebook, "import numpy")
    shown = run_cell(notebook, "views.gpu_steps")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    assert "Step 1 of 5: line 10: load of A" in figure.get_attribute("aria-label")
    shown.locator(".noUi-handle").first.focus()
    for _ in range(3):
        notebook.keyboard.press("ArrowRight")
    shown.get_by_text("step 4 of 5").wait_for()
    assert "a 32-way bank conflict" in figure.get_attribute("aria-label")
    shown.screenshot(path=pictures / "kernel_in_lab.png")

    before = shown.get_by_role("img").all()[1].get_attribute("aria-label")
    shown.get_by_role("spinbutton", name="warp").focus()
    notebook.keyboard.press("ArrowUp")
    notebook.keyboard.press("Enter")
    shown.get_by_text("step 1 of 5").wait_for()
    assert "block (1, 0), warp 4" in figure.get_attribute("aria-label")
    assert "A[4, 32]" in shown.get_by_role("img").all()[1].get_attribute("aria-label") != before
    assert fits(shown)
    assert "False" in run_cell(notebook, "print(B.any())").locator(".jp-OutputArea").inner_text()


def test_a_number_is_typed_and_its_bits_are_flipped(notebook, pictures):
    shown = run_cell(notebook, "explore_format")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    for text, said in (("1000", "saturated, 448 is stored"), ("three", "is no number")):
        shown.get_by_role("textbox", name="number").focus()
        typed(notebook, text)
        shown.get_by_text(said).first.wait_for()
    shown.get_by_role("button", name="0", exact=True).last.focus()  # 448 is 0 1111 110
    notebook.keyboard.press("Space")
    shown.get_by_text("Code 0x7f of e4m3 is NaN").wait_for()
    shown.get_by_role("button", name="e5m2").focus()
    notebook.keyboard.press("Space")
    shown.get_by_text("of e5m2 is NaN").wait_for()
    shown.screenshot(path=pictures / "format_in_lab_nan.png")
    assert fits(shown)


def test_the_keys_belong_to_the_icicle(notebook, pictures):
    output = run_cell(notebook, "views.icicle").locator(".jp-OutputArea")
    output.get_by_role("tree").wait_for()
    test_icicle_page.item(notebook, "layers.2").click()
    focused, crumbs = test_icicle_page.focused, test_icicle_page.crumbs
    assert focused(notebook) == "layers.2" and crumbs(notebook) == "encoder › layers.2"
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        notebook.keyboard.press(key)
    assert crumbs(notebook) == "encoder › layers.2 › feed_forward1"
    notebook.keyboard.press("Escape")
    assert crumbs(notebook) == "encoder › layers.2" and focused(notebook) == "layers.2 › feed_forward1"
    notebook.set_viewport_size({"width": WIDTHS[0], "height": 900})
    notebook.wait_for_timeout(500)
    output.screenshot(path=pictures / "icicle_in_lab.png")
    assert notebook.evaluate(test_icicle_page.OUT) == []
