"""Chapter 01 in a real JupyterLab, as `make lab` starts it: a bet, the step-through, the run, the ladder."""

from __future__ import annotations

import json
import re
import time

import pytest
from lab_pages import (
    PANEL,
    cell,
    choose,
    open_notebook,
    run_cell,
    wait_for_the_last_cell,
    wait_until_usable,
)
from pace import slowness

CHAPTER = "notebooks/01_python_loops.ipynb"
USABLE_S = 15.0


def lock_a_guess(page, words, steps):
    """Move the slider of a prediction by keyboard and lock it in; return what the widget then says."""
    prediction = run_cell(page, words)
    handle = prediction.locator(".noUi-handle, .ui-slider-handle").first
    handle.focus()
    for _ in range(steps):
        page.keyboard.press("ArrowRight")
    prediction.get_by_role("button", name="Lock in my guess").click()
    prediction.get_by_text("Locked in:").wait_for()
    return prediction


@pytest.fixture(scope="module")
def chapter(lab, browser):
    """Chapter 01, opened once: the tests of this module walk through it in order."""
    page = browser.new_context(viewport={"width": 1280, "height": 1400}).new_page()
    page.set_default_timeout(30_000)
    open_notebook(page, lab, CHAPTER)
    run_cell(page, "import numpy as np")
    yield page
    page.context.close()


@pytest.mark.timing
def test_make_lab_gives_a_usable_page_in_time(lab, page, pictures):
    """From the command to a notebook with an idle kernel; the set-up of .venv is done."""
    start = time.monotonic()
    page.goto(lab.url())  # no notebook named: Lab must open the first chapter by itself
    wait_until_usable(page)
    usable_s = lab.answered_s + time.monotonic() - start
    page.screenshot(path=pictures / "00_first_screen.png")
    assert page.get_by_role("heading", name="Start here").is_visible()
    assert usable_s < USABLE_S * slowness()


def test_a_guess_is_locked_in_by_keyboard(chapter, pictures):
    prediction = lock_a_guess(chapter, "guess_ms = views.predict", steps=20)
    prediction.screenshot(path=pictures / "01_prediction.png")
    assert prediction.get_by_role("button", name="Locked in").is_disabled()


def test_the_step_through_moves(chapter, pictures):
    stepper = run_cell(chapter, "views.step_through")
    drawing = stepper.locator(".jp-OutputArea svg[role=img]")
    labels = [drawing.get_attribute("aria-label")]
    stepper.screenshot(path=pictures / "01_step_0.png")
    stepper.get_by_role("button", name="next ▶").click()
    stepper.locator(".widget-readout", has_text="1").wait_for()
    labels.append(drawing.get_attribute("aria-label"))
    stepper.locator(".noUi-handle").first.focus()
    for _ in range(5):
        chapter.keyboard.press("ArrowRight")
    stepper.locator(".widget-readout", has_text="6").wait_for()
    chapter.wait_for_timeout(500)
    labels.append(drawing.get_attribute("aria-label"))
    stepper.screenshot(path=pictures / "01_step_6.png")
    assert len(set(labels)) == 3


def test_the_chapter_runs_to_the_end_and_uses_the_guess(chapter, lab, pictures):
    evening = cell(chapter, "loops = {")
    assert not evening.is_visible(), "a second evening is folded, and runs all the same"
    cell(chapter, '@fill("01.pair")').locator(".cm-content").click()
    choose(chapter, "Run", "Run Selected Cell and All Below")
    wait_for_the_last_cell(chapter)
    verdict = cell(chapter, "views.verdict(guess_ms").locator("img")
    assert re.search("your guess was|you guessed", verdict.get_attribute("alt"))
    verdict.screenshot(path=pictures / "01_verdict.png")
    choose(chapter, "File", "Save Notebook")
    chapter.wait_for_timeout(1500)
    saved = json.loads((lab.folder / CHAPTER).read_text(encoding="utf-8"))
    code = [entry for entry in saved["cells"] if entry["cell_type"] == "code"]
    outputs = [output for entry in code for output in entry["outputs"]]
    assert len(code) > 20 and all(entry["execution_count"] for entry in code)
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]


def test_the_ladder_shows_the_rungs_just_measured(chapter, pictures):
    picture = cell(chapter, "views.ladder_plot()").locator("img").last
    picture.scroll_into_view_if_needed()
    picture.screenshot(path=pictures / "01_ladder.png")
    alt = picture.get_attribute("alt")
    assert all(f"{rung} " in alt for rung in ("python-lists", "python-ndarray", "numpy"))
    assert picture.evaluate("image => image.complete && image.naturalWidth > 800")


def test_every_output_fits_the_page(chapter, pictures):
    """No output is wider than its place: nothing has to be scrolled sideways."""
    wide = chapter.evaluate(
        """() => [...document.querySelectorAll('.jp-NotebookPanel .jp-OutputArea-output')]
               .filter(o => o.scrollWidth > o.clientWidth + 8).map(o => o.textContent.slice(0, 80))"""
    )
    assert wide == []


def test_the_exercise_opens_from_the_chapter_and_says_what_is_missing(lab, page, pictures):
    open_notebook(page, lab, "exercises/01_python_loops/01_python_loops.ipynb")
    choose(page, "Run", "Run All Cells")
    wait_for_the_last_cell(page)
    page.screenshot(path=pictures / "exercise_01.png")
    assert page.get_by_text("not started").count() >= 4
    assert page.locator(PANEL + ".jp-RenderedText[data-mime-type*='error']").count() == 0
