"""The time slider on a kernel in a real browser: moved by keyboard in JupyterLab, whole on any page."""

from __future__ import annotations

from functools import cache

import nbformat
import numpy as np
import pytest
from numba import cuda, float32
from test_chapter_in_lab import cell, open_notebook, run_cell

from course_lib import views

pytestmark = [pytest.mark.browser]

KERNEL = """import numpy as np
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
WIDGET = "views.gpu_steps(transpose, (2, 2), (32, 32), A, B, block=(1, 0), warp=3)"


@cuda.jit
def tiled(A, B, C):
    a = cuda.shared.array((32, 32), float32)
    b = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for first in range(0, A.shape[1], 32):
        a[y, x] = A[i, first + x] if i < A.shape[0] and first + x < A.shape[1] else float32(0)
        b[y, x] = B[first + y, j] if first + y < B.shape[0] and j < B.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(32):
            total += a[y, k] * b[k, x]
        cuda.syncthreads()
    if i < C.shape[0] and j < C.shape[1]:
        C[i, j] = total


@cuda.jit
def transpose(A, B):
    s = cuda.shared.array((32, 32), float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    s[i, j] = A[i, j]
    cuda.syncthreads()
    B[i, j] = s[j, i]


@cuda.jit
def strided(x, out, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * stride]


def zeros(*shape):
    return np.zeros(shape, np.float32)


LAUNCHES = {
    "tiled": (tiled, (3, 4), (32, 32), zeros(100, 90), zeros(90, 70), zeros(100, 70)),
    "transpose": (transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32)),
    "strided": (strided, 40, 256, zeros(10_240 * 700), zeros(10_240), 700),
}
#: The drawings' words that do not lie wholly within their drawing.
CLIPPED = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.closest('svg').getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""


@cache
def bodies(name):
    """The frame of the first costly step and the still twin, and how many steps the twin tells of."""
    live = views.gpu_steps(*LAUNCHES[name])
    still = live.static()
    shown = {"step": live.frame(live.next_costly(-1)), "still": still.body}
    return shown, len(still.text.split("Step ")[1:])


@pytest.mark.parametrize("width", [800, 1200])
@pytest.mark.parametrize("name", LAUNCHES)
def test_pictures_fit_the_page_and_cut_no_word(page, pictures, name, width):
    shown, steps = bodies(name)
    page.set_viewport_size({"width": width, "height": 700})
    for kind, body in shown.items():
        page.set_content(f"<!doctype html><body>{body}")
        page.screenshot(path=pictures / f"kernel_{name}_{kind}_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        figure = page.get_by_role("figure")
        assert figure.evaluate("one => one.scrollWidth <= one.clientWidth")
        assert page.evaluate(CLIPPED) == []
    assert page.get_by_role("img").count() == 1 + 2 * steps


def test_a_learners_kernel_is_walked_by_keyboard(lab, page, pictures):
    book = nbformat.v4.new_notebook()
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.cells = [nbformat.v4.new_code_cell(source) for source in (KERNEL, WIDGET, "print(B.any())")]
    nbformat.write(book, lab.folder / "kernel.ipynb")
    open_notebook(page, lab, "kernel.ipynb")
    run_cell(page, "import numpy")
    shown = run_cell(page, "views.gpu_steps")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    assert "Step 1 of 5: line 10: load of A" in figure.get_attribute("aria-label")

    shown.locator(".noUi-handle").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    shown.get_by_text("step 4 of 5").wait_for()
    assert "a 32-way bank conflict" in figure.get_attribute("aria-label")
    shown.screenshot(path=pictures / "kernel_in_lab.png")

    before = shown.get_by_role("img").all()[1].get_attribute("aria-label")
    warp = shown.get_by_role("spinbutton", name="warp")
    warp.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    shown.get_by_text("step 1 of 5").wait_for()
    assert "block (1, 0), warp 4" in figure.get_attribute("aria-label")
    assert "A[4, 32]" in shown.get_by_role("img").all()[1].get_attribute("aria-label") != before
    assert shown.locator(".jp-OutputArea-output").evaluate_all(
        "all => all.every(one => one.scrollWidth <= one.clientWidth + 8)"
    )

    assert "False" in run_cell(page, "print(B.any())").locator(".jp-OutputArea").inner_text()
    assert cell(page, "views.gpu_steps").locator("[data-mime-type*=error]").count() == 0
