"""The sliders over an encoder's measured settings and the price fields in a real browser."""

from __future__ import annotations

from functools import cache

import nbformat
import pytest
from test_chapter_in_lab import cell, open_notebook, run_cell

from course_lib import views
from course_lib.speech.costs import Purchase
from course_lib.speech.encoder_speed import SpeedPoint, grid

pytestmark = [pytest.mark.browser]

#: No measurement: made up, to have something to draw.
SOURCE = """from course_lib import views
from course_lib.speech.encoder_speed import SpeedPoint, grid
points = [SpeedPoint(one, 0.1 + 0.02 * one.audio_s, 0.001, 5, 0.0) for one in grid("cpu", threads=4)]
"""
SPEED = "views.encoder_speed(points, 'made up for a test')"
COSTS = "views.costs(20, 1000, cpu_price=0.1, gpu_price=2.0, bridge_price=1e6, currency='EUR')"


def made_up(device):
    busy = 0.05 if device == "cuda" else None
    return [SpeedPoint(one, 0.1 + 0.02 * one.audio_s, 0.001, 5, 0.0, busy) for one in grid(device, threads=4)]


@cache
def bodies():
    return dict(rendered())


def rendered():
    purchase = Purchase(30_000, 4, 700, 0.3, 100)
    costs = views.costs(
        20, 1000, cpu_price=0.1, gpu_price=purchase, bridge_price=1e6, currency="EUR",
        cpu_origin="recorded on an Intel(R) Xeon(R) Processor (2 cores, AVX-512) on 2020-01-01",
    )  # fmt: skip
    yield "costs", costs.static().body
    for device in ("cpu", "cuda"):
        view = views.encoder_speed(made_up(device), "made up for a test")
        yield f"{device}_still", view.static().body
        yield f"{device}_choice", view.frame(view.setting, "batch")


@pytest.mark.parametrize("width", [800, 1200])
def test_pictures_fit_the_page(page, pictures, width):
    page.set_viewport_size({"width": width, "height": 700})
    for name, body in bodies().items():
        page.set_content(f"<!doctype html><body>{body}")
        page.screenshot(path=pictures / f"speed_{name}_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        figure = page.get_by_role("figure")
        assert figure.evaluate("one => one.scrollWidth <= one.clientWidth"), name
        assert page.get_by_role("img").count() == 1 and page.get_by_role("table").count() == 1


def test_settings_and_prices_are_chosen_by_keyboard(lab, page, pictures):
    book = nbformat.v4.new_notebook()
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.cells = [nbformat.v4.new_code_cell(source) for source in (SOURCE, SPEED, COSTS)]
    nbformat.write(book, lab.folder / "speed.ipynb")
    open_notebook(page, lab, "speed.ipynb")
    run_cell(page, "from course_lib.speech")
    shown = run_cell(page, "views.encoder_speed")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for(timeout=90_000)  # the first picture loads matplotlib
    assert "Batch 32: " in figure.get_attribute("aria-label")

    slider = shown.locator(".noUi-handle").first
    slider.focus()
    page.keyboard.press("ArrowLeft")
    shown.get_by_text("batch 16, 2 s, float32").wait_for()
    assert "Batch 16: " in figure.get_attribute("aria-label")

    int8 = shown.get_by_role("button", name="int8")
    int8.focus()
    page.keyboard.press("Space")
    shown.get_by_text("was not measured: batch went from 16 to 8").wait_for()
    assert "int8" in figure.get_attribute("aria-label")
    shown.screenshot(path=pictures / "speed_in_lab.png")
    assert shown.locator(".jp-OutputArea-output").evaluate_all(
        "all => all.every(one => one.scrollWidth <= one.clientWidth + 8)"
    )

    shown = run_cell(page, "views.costs")
    figure = shown.locator(".jp-OutputArea [role=figure]")
    figure.wait_for()
    field = shown.get_by_role("spinbutton", name="price for an hour, EUR").first
    field.focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("0.02")
    page.keyboard.press("Enter")
    shown.get_by_text("costs 100x").wait_for()
    assert "1.00 EUR on the CPU" in figure.get_attribute("aria-label")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("-3")
    page.keyboard.press("Enter")
    shown.get_by_text("CPU: price_per_hour is -3").wait_for()
    shown.screenshot(path=pictures / "costs_in_lab.png")
    assert cell(page, "views.costs").locator("[data-mime-type*=error]").count() == 0
