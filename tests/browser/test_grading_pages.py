"""The pages of a class in a real browser, offline: they fit, ask for nothing, run nothing, print whole."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "grading" / "classroom"))

from verdict_maker import RUN, classroom, verdict, with_text

from course_lib.grading.classroom.pages.render import feedback_page, summary_page, teacher_page
from course_lib.grading.classroom.pages.tally import ClassTally

pytestmark = pytest.mark.browser

HOSTILE = (
    "</pre></style></title><script>alert(1)</script><img src=https://example.org/x.png onerror=alert(1)>"
    "<iframe src=//example.org></iframe>\u202e" + "x" * 400
)


def summary(people) -> str:
    return summary_page(ClassTally(people), RUN)


PAGES = {
    "feedback": lambda: feedback_page(verdict("ada", lambda choices: choices[-1])),
    "teacher": lambda: teacher_page(
        verdict("ada", lambda choices: choices[3 % len(choices)], manual=["odd"])
    ),
    "summary": lambda: summary([*classroom(40), verdict("x" * 100, manual=["odd " * 50])]),
    "hostile-feedback": lambda: feedback_page(with_text(HOSTILE)),
    "hostile-teacher": lambda: teacher_page(with_text(HOSTILE)),
    "hostile-summary": lambda: summary([with_text(HOSTILE), with_text(HOSTILE + "2")]),
}
SIZES = {"wide": 1200, "phone": 380}


@cache
def written(name):
    return PAGES[name]()


@pytest.fixture
def opened(browser, tmp_path):
    """opened(html, **settings) -> the page, offline; the test fails if it says, asks for or runs anything."""
    contexts, heard = [], []

    def open_page(content: str, **settings):
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        path = tmp_path / "page.html"
        path.write_text(content, encoding="utf-8")
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url == path.as_uri() or heard.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_asks_for_nothing(opened, pictures, name, size):
    scheme = "dark" if size == "phone" else "light"
    page = opened(written(name), viewport={"width": SIZES[size], "height": 900}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.screenshot(path=pictures / f"grading_{name}_{size}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    wide = page.evaluate(
        """() => [...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll, svg')
               && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)"""
    )
    assert wide == []
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper(opened, scheme):
    page = opened(written("feedback"), color_scheme=scheme)
    paper = luminance(page, "body", "backgroundColor")
    for place in ("h1", ".soft", "summary", ".sign.wrong", ".report > div > div:nth-child(2)"):
        low, high = sorted((paper, luminance(page, place, "color")))
        assert (high + 0.05) / (low + 0.05) >= 4.5, place


def luminance(page, place: str, property: str) -> float:
    """Return the relative luminance (WCAG 2) of a colour of the first element at `place`."""
    colour = page.locator(place).first.evaluate(f"one => getComputedStyle(one).{property}")
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_what_is_printed_shows_the_answers_on_white_and_fits_the_paper(opened):
    paper = {"width": 690, "height": 980}
    page = opened(written("feedback"), viewport=paper, color_scheme="dark")
    answer = page.locator("details pre.code").first
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert answer.evaluate("one => one.getBoundingClientRect().height") > 20
    summary_of_class = opened(written("summary"), viewport=paper)
    summary_of_class.emulate_media(media="print")
    assert summary_of_class.evaluate("document.documentElement.scrollWidth") <= paper["width"]
