"""The icicle in a real browser: zoomed by click and by keyboard, without a kernel, and in JupyterLab."""

from __future__ import annotations

from functools import cache

import pytest

CELL = """import torch
from course_lib import views
from course_lib.speech.conformer import ConformerEncoder
from course_lib.speech.encoder_profile import mel_features
from course_lib.speech.forward_tree import forward_tree
small = ConformerEncoder(n_layers=6, d_model=32, n_heads=2, subsampling_channels=8).eval()
views.icicle(forward_tree(small, mel_features(60, seed=1), runs=1, threads=1))"""


#: Cells that reach out of the picture.
OUT = """() => {
    const stage = document.querySelector('[data-part=stage]'), outer = stage.getBoundingClientRect();
    return [...stage.querySelectorAll('[role=treeitem]')].filter(one => {
        const inner = one.getBoundingClientRect();
        return inner.left < outer.left - 1 || inner.right > outer.right + 1
            || inner.bottom > outer.bottom + 1;
    }).map(one => one.getAttribute('aria-label')); }"""


@cache
def tree():
    """An encoder of eighteen layers, with times that were made up."""
    from course_lib.speech.forward_tree import ForwardTree, Span

    def operator(name, us):
        return Span(f"aten::{name}", "operator", 2, us)

    def layer(number):
        attention = Span("linear_q", "part", 1, 2.0, (operator("addmm", 200.0), operator("copy_", 9.0)))
        softmax = operator("_softmax", 30.0)
        parts = (
            Span("norm", "part", 1, 3.0, (operator("native_layer_norm", 40.0),)),
            Span("self_attn", "part", 1, 30.0, (attention, operator("bmm", 100.0), softmax)),
            Span("conv", "part", 1, 20.0, (operator("mkldnn_convolution", 300.0),)),
        )
        return Span(f"layers.{number}", "part", 1, 50.0, (*parts, Span("handing on", "operator", 40, 20.0)))

    parts = (Span("pre_encode", "part", 1, 900.0), *map(layer, range(18)))
    return ForwardTree(Span("encoder", "part", 1, 80.0, parts), frames=300, runs=5, threads=2)


def drawn():
    from course_lib import views

    return views.icicle(tree())._repr_html_()


@pytest.fixture
def shown(page):
    """The icicle on a page of its own, as an exported notebook holds it."""
    page.set_viewport_size({"width": 800, "height": 700})
    faults = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.set_content(f"<!doctype html><meta charset=utf-8><body>{drawn()}")
    yield page
    assert faults == []


def item(page, begins):
    return page.get_by_role("treeitem").and_(page.locator(f"[aria-label^='{begins}:']"))


def share_of_the_width(cell):
    return cell.evaluate("one => one.getBoundingClientRect().width / one.parentElement.clientWidth")


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') || ''").split(":")[0]


def crumbs(page):
    return page.get_by_role("navigation", name="shown").inner_text()


def test_the_whole_forward_comes_first_and_fits_the_page(shown, pictures):
    for number in range(18):
        cell = item(shown, f"layers.{number}")
        assert cell.inner_text() == str(number)
        assert share_of_the_width(cell) == pytest.approx(804 / (18 * 804 + 980), rel=0.1)
    assert shown.evaluate(OUT) == []
    assert not shown.get_by_role("img").is_visible()  # the still twin is for pages without scripts
    shown.screenshot(path=pictures / "icicle.png", full_page=True)


def test_a_click_zooms_in_and_a_bar_above_zooms_out(shown, pictures):
    item(shown, "layers.7").click()
    assert crumbs(shown) == "encoder › layers.7"
    assert share_of_the_width(item(shown, "layers.7")) == pytest.approx(1, abs=0.01)
    assert item(shown, "layers.8").count() == 0
    item(shown, "layers.7 › self_attn").click()
    product = item(shown, "layers.7 › self_attn › linear_q › addmm").get_attribute("aria-label")
    assert "200 µs in 2 calls, 1.3 % of the forward, 94.8 % of linear_q" in product
    shown.screenshot(path=pictures / "icicle_zoomed.png", full_page=True)
    shown.get_by_role("navigation", name="shown").get_by_role("button", name="layers.7").click()
    assert crumbs(shown) == "encoder › layers.7"
    item(shown, "encoder").click()
    assert crumbs(shown) == "encoder" and item(shown, "layers.8").count() == 1
    shown.get_by_role("button", name="all layers added up").click()
    together = item(shown, "layers.*").get_attribute("aria-label")
    assert "14.5 ms in 18 calls, 93.7 % of the forward" in together and item(shown, "layers.3").count() == 0


def test_the_keyboard_reaches_every_part(shown):
    while focused(shown) != "encoder":
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement !== document.body"), "the tree is not in the tab order"
    for key, at in (
        ("ArrowDown", "pre_encode"),
        ("ArrowRight", "layers.0"),
        ("ArrowRight", "layers.1"),
        ("ArrowDown", "layers.1 › norm"),
        ("ArrowUp", "layers.1"),
        ("ArrowLeft", "layers.0"),
    ):
        shown.keyboard.press(key)
        assert focused(shown) == at, key
    shown.keyboard.press("Enter")
    shown.keyboard.press("ArrowRight")  # from a whole layer to the next one
    assert crumbs(shown) == "encoder › layers.1" and focused(shown) == "layers.1"
    assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key in ("ArrowDown", "ArrowRight", "Enter", "ArrowDown", "ArrowDown"):
        shown.keyboard.press(key)
    assert "addmm: 200 µs" in shown.locator("[data-part=readout]").inner_text()
    shown.keyboard.press("Escape")
    assert crumbs(shown) == "encoder › layers.1" and focused(shown) == "layers.1 › self_attn"
    shown.keyboard.press("Home")
    assert crumbs(shown) == focused(shown) == "encoder"


def test_without_scripts_the_still_twin_is_shown(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(f"<!doctype html><meta charset=utf-8><body>{drawn()}")
    assert page.get_by_role("img").is_visible()
    assert "layers.0" in page.get_by_role("img").get_attribute("alt")
    assert not page.get_by_role("tree").is_visible()
    context.close()
