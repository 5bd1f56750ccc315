"""A page of JupyterLab, used as a learner does: open a notebook, run a cell, look at what it shows."""

from __future__ import annotations

import re
import time
from pathlib import Path

#: How a browser is started: it asks nobody for anything.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden) "
RUN_LIMIT_S = 150.0


def open_notebook(page, lab, path):
    """Open a notebook and wait until its kernel is idle: the moment a learner can begin."""
    page.goto(lab.url(path))
    wait_until_usable(page)


def wait_until_usable(page):
    """Wait for the cells and for a kernel that has started."""
    page.wait_for_selector(PANEL + ".jp-Cell", state="visible")
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def cell(page, words):
    """Return the code cell whose source has these words."""
    return page.locator(PANEL + ".jp-CodeCell").filter(has=page.locator(".cm-content", has_text=words)).first


def choose(page, *path):
    """Choose a command from the menu bar."""
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{path[0]}$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{path[1]}$")).click()


def wait_until_done(page, limit_s=RUN_LIMIT_S):
    """Wait until no cell is running or queued, twice in a row: between two cells is a moment of rest."""
    deadline = time.monotonic() + limit_s
    rests = 0
    while time.monotonic() < deadline:
        page.wait_for_timeout(400)
        prompts = page.locator(PANEL + ".jp-InputPrompt").all_inner_texts()
        rests = 0 if any("*" in prompt for prompt in prompts) else rests + 1
        if rests == 2:
            return
    raise AssertionError(f"the notebook was still running after {limit_s} s")


def wait_for_the_last_cell(page, limit_s=RUN_LIMIT_S):
    """Wait until the notebook's last code cell has run."""
    last = page.locator(PANEL + ".jp-CodeCell .jp-InputPrompt").last
    deadline = time.monotonic() + limit_s
    while not re.search(r"\d", last.inner_text()):
        assert time.monotonic() < deadline, f"the last cell had not run after {limit_s} s"
        page.wait_for_timeout(400)


def run_cell(page, words):
    """Run one cell as a learner does: click into it, Shift+Enter."""
    cell(page, words).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    wait_until_done(page)
    return cell(page, words)


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook of these code cells."""
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


def typed(page, text: str) -> None:
    """Replace what stands in the field that has the focus."""
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def fits(cell) -> bool:
    """Whether no output of the cell is wider than its place, and none is an error."""
    outputs = cell.locator(".jp-OutputArea-output")
    return cell.locator("[data-mime-type*=error]").count() == 0 and outputs.evaluate_all(
        "all => all.every(one => one.scrollWidth <= one.clientWidth + 8)"
    )
