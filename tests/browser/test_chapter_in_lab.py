"""Chapter 01 in a real JupyterLab: opened as `make lab` opens it, run from top to bottom, bets and all."""

from __future__ import annotations

import re
import time

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timing]

NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) "
TO_USABLE_S = 15.0
RUN_LIMIT_S = 150.0


def open_notebook(page, lab, path):
    """Open a notebook and wait until its kernel is idle: the moment a learner can begin."""
    page.goto(lab.url(path))
    page.wait_for_selector(NOTEBOOK + ".jp-Cell", state="visible")
    page.wait_for_selector(NOTEBOOK + ".jp-Notebook-ExecutionIndicator[data-status='idle']", state="attached")


def cell(page, cell_id):
    """Scroll to the cell (far cells are not in the page until they come near) and return its output area."""
    return page.locator(f"{NOTEBOOK} .jp-Cell[data-windowed-list-index]").filter(has_text=cell_id)


def run_all(page):
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("Run All Cells$")).click()


def wait_until_done(page, limit_s=RUN_LIMIT_S):
    """Wait until no cell is running or queued."""
    deadline = time.monotonic() + limit_s
    time.sleep(1)
    while time.monotonic() < deadline:
        busy = page.evaluate(
            """() => [...document.querySelectorAll('.jp-NotebookPanel .jp-InputPrompt')]
                     .filter(p => p.textContent.includes('[*]')).length"""
        )
        status = page.get_attribute(NOTEBOOK + ".jp-Notebook-ExecutionIndicator", "data-status")
        if not busy and status == "idle":
            return
        time.sleep(0.5)
    raise AssertionError(f"the notebook was still running after {limit_s} s")


def test_make_lab_gives_a_usable_page_in_time(lab, page):
    answered = lab.wait()
    start = time.monotonic()
    open_notebook(page, lab, "notebooks/00_start_here.ipynb")
    assert answered + time.monotonic() - start < TO_USABLE_S + 5
