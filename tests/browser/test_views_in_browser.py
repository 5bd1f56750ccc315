"""Views in a real browser: pictures fit their page and cut no word, widgets are moved by keyboard."""

from __future__ import annotations

import pytest
import test_icicle_page
from lab_pages import fits, open_notebook, run_cell, typed, write_notebook

WIDTHS = (800, 1200)
BOX = "(one => one.getBoundingClientRect())"
#: The drawings' words that do not lie wholly within their drawing.
CLIPPED = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.closest('svg').getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""
#: Words outside of a listing (where long ones end in an ellipsis) that do not lie wholly within the figure.
CUT = """() => { const figure = document.querySelector('[role=figure]').getBoundingClientRect();
    return [...document.querySelectorAll('[role=figure] *')]
        .filter(one => !one.closest('[role=region]') && one.getClientRects().length)
        .filter(one => one.getBoundingClientRect().right > figure.right + 1).map(one => one.textContent); }"""

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
#: No measurement: made up, to have something to draw.
MADE_UP = """from course_lib.speech.encoder_speed import SpeedPoint, grid
points = [SpeedPoint(one, 0.1 + 0.02 * one.audio_s, 0.001, 5, 0.0) for one in grid("cpu", threads=4)]
"""
CELLS = (
    "from course_lib import views",
    "views.pipeline()",
    "views.ring()",
    "views.tile_choice(256, 7168, 4096)",
    "from course_lib.circles import cuda_tiled\nviews.gpu_code(cuda_tiled.tiled)",
    TRANSPOSE,
    "views.gpu_steps(transpose, (2, 2), (32, 32), A, B, block=(1, 0), warp=3)",
    "print(B.any())",
    "views.explore_format(0.3)",
    MADE_UP,
    "views.encoder_speed(points, 'made up for a test')",
    "views.costs(20, 1000, cpu_price=0.1, gpu_price=2.0, bridge_price=1e6, currency='EUR')",
    test_icicle_page.CELL,
)


# -- pictures ----------------------------------------------------------------------------------------------


def code_kernels():
    from course_lib.circles import cuda_naive, cuda_tiled, cuda_warptiled

    return {
        "naive": cuda_naive.naive,
        "tiled": cuda_tiled.tiled,
        "warptiled": cuda_warptiled.kernel(cuda_warptiled.TILES[0]),
    }


def drawn():
    """Yield the name and the HTML of every picture."""
    import numpy as np

    from course_lib import views
    from course_lib.speech.encoder_speed import SpeedPoint, grid

    pipeline, ring, tiles = views.pipeline(), views.ring(), views.tile_choice(4096, 7168, 16384)
    yield "roles", f'<div role="figure">{views.roles()._repr_html_()}</div>'
    for name, view in (("pipeline", pipeline), ("ring", ring), ("tiles", tiles)):
        yield f"{name}_still", view.static().body
    for number, variant in enumerate(ring.variant.options):
        ring.variant.value = variant
        yield f"ring_{number}", f'<div role="figure">{ring.frame(ring.last)}</div>'

    for name, kernel in code_kernels().items():
        view = views.gpu_code(kernel)
        yield f"code_{name}_still", view.static().body
        view.language.value = "PTX"
        yield f"code_{name}_ptx", view.frame()
    A, B, C = (np.zeros(shape, np.float32) for shape in ((100, 700), (700, 70), (100, 70)))
    for name in ("naive", "tiled"):
        live = views.gpu_steps(code_kernels()[name], (4, 4), (32, 32), A, B, C)
        live.player.jumps["next costly »"].click()
        yield f"kernel_{name}_step", live.player.picture.value
        yield f"kernel_{name}_still", live.static().body

    for x, format in ((0.3, "e4m3"), (0.003, "e4m3"), (-1e9, "e5m2")):
        yield f"format_{format}_{x:g}", views.explore_format(x, format).static().body
    small = [2.0**-9] * 4  # the longest labels, and the most places behind the line
    yield "accumulator", views.accumulator_figure(small, [-x for x in small], 0.3).body
    for width in (32, 64, 128):
        yield f"swizzle_{width}", views.swizzle_map(width).static().body

    yield "costs", views.costs(
        20, 1000, cpu_price=0.1, gpu_price=2.0, bridge_price=1e6, currency="EUR",
        cpu_origin="recorded on an Intel(R) Xeon(R) Processor (2 cores, AVX-512) on 2020-01-01",
    ).static().body  # fmt: skip
    for device, busy in (("cpu", None), ("cuda", 0.05)):
        points = [
            SpeedPoint(one, 0.1 + 0.02 * one.audio_s, 0.001, 5, 0.0, busy) for one in grid(device, threads=4)
        ]
        view = views.encoder_speed(points, "made up for a test")
        yield f"speed_{device}_still", view.static().body
        yield f"speed_{device}_choice", view.frame(view.setting, "batch")


def test_pictures_fit_the_page_and_cut_no_word(page, pictures):
    for name, body in drawn():
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 700})
            page.set_content(f"<!doctype html><body>{body}")
            page.screenshot(path=pictures / f"{name}_{width}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            figure = page.get_by_role("figure")
            assert figure.evaluate("one => one.scrollWidth <= one.clientWidth"), name
            assert page.evaluate(CLIPPED) == [], name
            if name.startswith("code_"):
                assert page.evaluate(CUT) == [], name
                words = page.locator("[role=region] td:first-child").first
                assert words.evaluate("one => one.scrollWidth <= one.clientWidth"), "the kind is never cut"
            if name == "kernel_naive_still":
                steps = page.get_by_role("figure").inner_text().count("Step ")
                assert page.get_by_role("img").count() == 1 + 2 * steps or steps == 0
            if name.startswith("speed_"):
                assert page.get_by_role("img").count() == page.get_by_role("table").count() == 1, name


def test_the_keyboard_reaches_the_end_of_a_listing_and_opens_ptx(page):
    from course_lib import views

    page.set_viewport_size({"width": 900, "height": 700})
    page.set_content(f"<!doctype html><body>{views.gpu_code(code_kernels()['warptiled']).static().body}")
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


def test_words_of_a_listing_stand_out_from_their_ground():
    """A contrast of 4.5 to 1 at least (WCAG 2.1, 1.4.3)."""
    from course_lib.views import kernel_code

    def luminance(colour):
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for kind, (_, ground, ink) in kernel_code.LOOKS.items():
        dark, light = sorted((luminance(ground), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, kind


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


def test_pipeline_ring_and_tiles(notebook, pictures):
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

    shown = run_cell(notebook, "views.tile_choice")
    shown.get_by_text("128 x 112 (pairs): 1 wave").wait_for()
    shown.get_by_role("spinbutton", name="M").focus()
    typed(notebook, "0")
    shown.get_by_text("M is 0, but it must be").wait_for()
    typed(notebook, "300")
    shown.get_by_text("limited by").first.wait_for()
    shown.screenshot(path=pictures / "hopper_tiles_in_lab.png")
    assert fits(shown)


def test_machine_code(notebook, pictures):
    shown = run_cell(notebook, "views.gpu_code")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    assert "tiled for compute capability 9.0" in figure.get_attribute("aria-label")
    shown.get_by_role("button", name="PTX").focus()
    notebook.keyboard.press("Enter")
    shown.get_by_text("fma.rn.f32").first.wait_for()
    shown.get_by_role("button", name="barrier").focus()
    notebook.keyboard.press("Enter")
    figure.get_by_text("fma.rn.f32").first.wait_for(state="detached")
    assert figure.get_by_text("bar.sync 0").count() == 2
    shown.get_by_role("button", name="8.0").focus()
    notebook.keyboard.press("Space")
    shown.locator("[role=figure][aria-label*='capability 8.0']").wait_for()
    before = notebook.viewport_size
    for width in WIDTHS:
        notebook.set_viewport_size({"width": width, "height": 900})
        notebook.wait_for_timeout(500)
        shown.screenshot(path=pictures / f"code_in_lab_{width}.png")
        assert fits(shown)
        end = shown.locator(".jp-OutputArea-output").last.evaluate(f"one => {BOX}(one).right")
        assert figure.evaluate(f"one => {BOX}(one).right") <= min(end, width)
    notebook.set_viewport_size(before)


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


def test_settings_and_prices_are_chosen(notebook, pictures):
    run_cell(notebook, "from course_lib.speech")
    shown = run_cell(notebook, "views.encoder_speed")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for(timeout=90_000)  # the first picture loads matplotlib
    assert "Batch 32: " in figure.get_attribute("aria-label")
    shown.locator(".noUi-handle").first.focus()
    notebook.keyboard.press("ArrowLeft")
    shown.get_by_text("batch 16, 2 s, float32").wait_for()
    assert "Batch 16: " in figure.get_attribute("aria-label")
    shown.get_by_role("button", name="int8").focus()
    notebook.keyboard.press("Space")
    shown.get_by_text("was not measured: batch went from 16 to 8").wait_for()
    assert "int8" in figure.get_attribute("aria-label")
    shown.screenshot(path=pictures / "speed_in_lab.png")
    assert fits(shown)

    shown = run_cell(notebook, "views.costs")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    shown.get_by_role("spinbutton", name="price for an hour, EUR").first.focus()
    typed(notebook, "0.02")
    shown.get_by_text("costs 100x").wait_for()
    assert "1.00 EUR on the CPU" in figure.get_attribute("aria-label")
    typed(notebook, "-3")
    shown.get_by_text("CPU: price_per_hour is -3").wait_for()
    shown.screenshot(path=pictures / "costs_in_lab.png")
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
    for width in WIDTHS:
        notebook.set_viewport_size({"width": width, "height": 900})
        notebook.wait_for_timeout(500)
        output.screenshot(path=pictures / f"icicle_in_lab_{width}.png")
        assert output.get_by_role("figure").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert notebook.evaluate(test_icicle_page.OUT) == []
