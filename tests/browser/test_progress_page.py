"""The progress page in a real browser, on a light and a dark page that styles tables in its own way."""

import pytest

from course_lib import views
from course_lib.grading import registry
from course_lib.measure.store import Store

#: What notebooks do to tables in an output: ink and stripes of the page's theme, cells kept in one line.
THEME = """
    body {{ background: {ground}; color: {ink}; font: 14px sans-serif; margin: 0 }}
    table {{ color: {ink} !important; table-layout: fixed }} tr:nth-child(even) {{ background: {stripe} }}
    td, th {{ white-space: nowrap; max-width: none }} a {{ color: {ink} }}
"""
THEMES = {
    "light": THEME.format(ground="#ffffff", ink="#000000", stripe="#eeeeee"),
    "dark": THEME.format(ground="#111111", ink="#eeeeee", stripe="#333333"),
}
WHEN = "2026-05-03T12:00:00+00:00"


def shown() -> str:
    """Return the page of somebody who passed a task, fails in one, and is half-way in another."""
    found = {"01.dot": ("right", 1.0), "01.alias": ("wrong", 0.0), "01.faster": ("partly", 1.0)}

    def fill(values):
        for id, (state, points) in found.items():
            best = {
                "state": state,
                "points": points,
                "max_points": registry.task(id).points,
                "when": WHEN,
            }
            values[id] = {"best": best, "latest": best, "tries": 2, "hints": 1, "answer": ""}

    Store("tasks").update(fill)
    return views.progress()._repr_html_()


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_keeps_its_ink_and_paper_and_fits(theme, page, pictures):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 900, "height": 900})
    page.set_content(f"<!doctype html><style>{THEMES[theme]}</style>{shown()}")
    figure = page.get_by_role("figure")
    figure.screenshot(path=pictures / f"progress_{theme}.png")
    assert page.get_by_role("rowheader").count() == 7
    assert page.get_by_role("columnheader").count() == 7
    assert page.get_by_role("img", name="Bar of chapter 01").is_visible()
    grounds = figure.evaluate(
        "f => [...f.querySelectorAll('tr, td, th')].map(cell => getComputedStyle(cell).backgroundColor)"
    )
    inks = figure.evaluate("f => [...f.querySelectorAll('td, th')].map(cell => getComputedStyle(cell).color)")
    assert set(grounds) == {"rgb(255, 255, 255)"} and set(inks) == {"rgb(31, 27, 36)"}
    squeezed = figure.evaluate(
        "f => [f, ...f.querySelectorAll('th, td')].filter(e => e.scrollWidth > e.clientWidth).length"
    )
    heights = figure.evaluate("f => [...f.querySelectorAll('tbody tr')].map(row => row.offsetHeight)")
    assert squeezed == 0 and max(heights) < 60 and not asked


def test_on_a_narrow_page_the_table_scrolls_inside_its_card(page, pictures):
    page.set_viewport_size({"width": 380, "height": 900})
    page.set_content(f"<!doctype html><style>{THEMES['light']}</style>{shown()}")
    page.get_by_role("figure").screenshot(path=pictures / "progress_narrow.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
