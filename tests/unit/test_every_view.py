"""What holds for every view: light at the door, words for what it draws, a still twin, a way by keyboard."""

import re
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import pytest
import view_samples
from tools.html_page import HtmlPage
from view_samples import RACE, course, misses
from view_samples import cpu_profile as cpu

from course_lib import views

#: They give numbers, print a line, or return the house's `measure.table.Table`; `control_bits`
#: and `machine_codes` need a compiler (see test_fp8_jit).
NO_PICTURE = {
    *("same", "claim", "ladder_table", "innermost_loop", "crossover", "crossover_interval", "loop_costs"),
    *("control_bits", "machine_codes"),
}
#: The kinds of ipywidgets that are operated; the others show something or hold others.
SHOWS = ("HTML", "HBox", "VBox", "Label", "Audio")


def test_importing_the_views_loads_no_plotting_no_widgets_and_no_numba():
    script = textwrap.dedent("""
        import sys
        from course_lib import views
        heavy = {"matplotlib", "ipywidgets", "numba", "torch", "numpy", "pygments"} & set(sys.modules)
        assert not heavy, heavy
        assert "predict" in dir(views)
        from course_lib.views import (  # what they need beyond numpy is loaded when something is drawn
            figures, ladder_figure, live, paper, pipeline_explorer, strassen_figures, tile_explorer
        )
        heavy = {"matplotlib", "ipywidgets", "numba", "torch"} & set(sys.modules)
        assert not heavy, heavy
    """)
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_name_leads_to_its_view():
    for name in views.__all__:
        assert callable(getattr(views, name)), name
    with pytest.raises(AttributeError, match="no attribute 'prediict'"):
        views.prediict  # noqa: B018 - the access is the test
    assert set(view_samples.CALLS) | NO_PICTURE == set(views.__all__), "a new view joins view_samples.CALLS"


@pytest.fixture(scope="module")
def shown():
    """Every view, made once: a text stands for the function that it would have been compiled from."""
    from course_lib.measure import assembly, machine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "inspect", assembly.Assembly)
        patch.setattr(machine, "missing", lambda need: f"No {need} here.")
        return {name: make(views) for name, make in view_samples.CALLS.items()}


def still_of(view):
    return view.static() if hasattr(view, "static") else view


def player_of(view):
    from course_lib.views.live import Steps

    return view if isinstance(view, Steps) else None


def test_every_view_says_in_words_what_it_shows_in_its_own_colours(shown):
    from course_lib.theme import Picture

    for name, view in shown.items():
        still = still_of(view)
        words = still.alt if isinstance(still, Picture) else still.text
        assert len(words) > 40 and "<svg" not in words and "</" not in words, name
        assert repr(view).removeprefix("Picture: ") == words, name
        page = HtmlPage(still._repr_html_())
        alts = [given.get("alt", "") for tag, given in page.tags if tag == "img"]
        assert all(len(alt) > 40 for alt in alts), name
        if isinstance(still, Picture):
            assert still.png.startswith(b"\x89PNG") and alts == [still.alt], name
            continue
        role, label = next(
            (given.get("role"), one) for _, given in page.tags if (one := given.get("aria-label"))
        )
        assert role == "figure" and len(label) > 15, name
        assert "background:#ffffff;color:#1f1b24" in still.body.split(">")[0], name
        for style in (given.get("style", "") for tag, given in page.tags if tag in ("td", "th", "pre")):
            is_empty = style == "background:#ffffff"
            assert is_empty or ("background:" in style and ";color:" in style), name


def test_every_drawing_is_an_image_with_a_label_on_white_paper(shown):
    drawn = 0
    for name, view in shown.items():
        pages = [still_of(view)._repr_html_()]
        pages += [player_of(view).picture.value] if player_of(view) else []
        for drawing in re.findall(r"<svg.*?</svg>", "".join(pages), re.DOTALL):
            root = ElementTree.fromstring(drawing)
            assert root.get("role") == "img" and len(root.get("aria-label")) > 15, name
            assert root[0].tag.endswith("rect") and root[0].get("fill") == "#ffffff", name
            drawn += 1
    assert drawn > 50


def controls_of(widget):
    children = getattr(widget, "children", ())
    if type(widget).__name__ not in SHOWS:
        yield widget
    for child in children:
        yield from controls_of(child)


def said_by(widget):
    yield from (getattr(widget, "value", ""), getattr(widget, "tooltip", ""))
    for child in getattr(widget, "children", ()):
        yield from said_by(child)


def test_every_widget_has_its_still_twin_and_names_its_controls_and_its_keys(shown):
    live = {name: view for name, view in shown.items() if hasattr(view, "widget")}
    assert len(live) >= 16
    for name, view in live.items():
        bundle, still = view._repr_mimebundle_(), view.static()
        assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == view.widget.model_id, name
        assert bundle["text/html"] == still._repr_html_(), name
        assert bundle["text/plain"] == repr(view) == still.text, name
        assert "<script" not in still.body and "onclick" not in still.body, (
            name
        )  # nothing that needs a kernel
        for control in controls_of(view.widget):
            hidden = control.layout.display == "none"
            assert hidden or control.description or control.tooltip or control.options, (name, control)
        keys = " ".join(text for text in said_by(view.widget) if isinstance(text, str))
        assert "Keyboard" in keys or name == "gpu_code", name  # buttons and a list, as everywhere


def test_every_player_steps_by_its_buttons_and_keeps_its_size(shown):
    for name, view in shown.items():
        player = player_of(view)
        if player is None:
            continue
        player.forward.click()
        assert player.slider.value == min(1, player.slider.max), name
        player.back.click()
        player.back.click()
        assert player.slider.value == 0, name
        sizes = set()
        for step in (0, player.slider.max // 3, player.slider.max):
            player.slider.value = step
            drawings = re.findall(r"<svg.*?</svg>", player.picture.value, re.DOTALL)
            sizes.add(
                tuple(re.search('width="([^"]*)" height="([^"]*)" role', one).groups() for one in drawings)
            )
        assert len(sizes) == 1, name
        for jump in player.jumps.values():
            jump.click()
            assert player.slider.value == player.slider.max, name


def interleaving_of(views, text, **options):
    from course_lib.simulators.interleavings import explore, run_schedule

    run = run_schedule if options else explore
    return views.interleaving(run(["work"], {"s": [0]}, source=text, **options))


#: What is asked of a view that it cannot show, and what its refusal says.
REFUSED = [
    (lambda v: v.accumulator_figure([1.0] * 13, [1.0] * 13), "a has 13 numbers, but the picture has"),
    (lambda v: v.accumulator_figure([0.3], [1.0]), "no finite number of e4m3: round first"),
    (lambda v: v.accumulator_figure([1.0], [1.0, 2.0]), "a and b have 1 and 2 numbers"),
    (lambda v: v.block_products(course("circles.strassen").LEFT[:6], *[[[1] * 4] * 7] * 2), "four signs"),
    (lambda v: v.bytecode(len), "has no bytecode"),
    (lambda v: v.bytecode(course), "course() has no loop"),
    (lambda v: v.cache_walk("xyz"), "nest is 'xyz'"),
    (lambda v: v.cancellation(*view_samples._tables(), "33"), "block is '33'"),
    (lambda v: v.compare_assembly([]), "must name the functions"),
    (lambda v: v.explore_format(0.3, "e3m4"), "format is 'e3m4', but it must be one of 'e4m3', 'e5m2'"),
    (lambda v: v.gantt([]), "no timeline to draw"),
    (lambda v: v.gpu_code(len), "a function with @cuda.jit is needed"),
    (lambda v: v.gpu_steps(course("circles.cuda_naive").naive), "gpu_steps needs the launch"),
    (lambda v: v.icicle([]), "tree is a list, but a ForwardTree is needed"),
    (lambda v: interleaving_of(v, RACE), "no schedule to show: Right in all 1 schedules"),
    (lambda v: interleaving_of(v, RACE, complete=False), "has no step"),
    (lambda v: v.kernel_loops("int32"), "float32 or float64"),
    (lambda v: v.latency_hiding({}), "no curve"),
    *((lambda v, rows=rows: v.memory(rows), "rows must")
      for rows in ([], [[]], [[1.0], [1.0, 2.0]], [1.0], "text", [(1.0,)], None)),
    (lambda v: v.miss_curves({"ikj": {}}), "holds no results"),
    (lambda v: v.miss_curves({"ikj": misses("ikj")}, {"ijk": {8: 1.0}}), "ijk was measured but not"),
    (lambda v: v.miss_curves({"a": misses("ikj", (8,)), "b": misses("ikj", (16,))}), "no x in common"),
    (lambda v: v.miss_curves({"a": misses("ikj")}, expected={"L9": {"x": {8: 1.0}}}), "expected names L9"),
    (lambda v: v.operators_roofline([], peaks=view_samples.peaks()), "No operator of the profile has a time"),
    (lambda v: v.predict(" "), "question is"),
    (lambda v: v.predict("How many?", low=5, high=5), "low must be the smaller"),
    (lambda v: v.predict("How many?", low="0"), "low is '0', but it must be a finite number: give"),
    (lambda v: v.predict("How many?", high=float("inf")), "high is inf"),
    (lambda v: v.predict("How many?", step=1000), "at most high - low = 100: give a smaller"),
    *((lambda v, guess=guess: v.predict("How many?").lock(guess), "from 0 to 100")
      for guess in (101, -1, float("nan"), "5", True)),
    (lambda v: v.profile([], []), "no rows"),
    (lambda v: v.profile([{"name": "x"}], []), "name and self_us"),
    (lambda v: v.profile(view_samples.PROFILE, [], top=0), "top is 0, but it must be a whole number"),
    (lambda v: v.promotion_figure(["error"]), "must hold PromotionErrors"),
    (lambda v: v.ring(7), "stages is 7, but it must be a whole number from 1 to 6"),
    (lambda v: v.ring(True), "stages is True"),
    *((lambda v, code=code: v.source(code), "no Python source to show") for code in (len, 5)),
    (lambda v: v.step_through([[1, 2]], [[1, 2]]), "as many columns as B has rows"),
    (lambda v: v.step_through([[0] * 7], [[0]] * 7), "at most 6 x 6"),
    (lambda v: v.step_through([], [[1]]), "at least one row"),
    (lambda v: v.step_through([[1, 2], [3]], [[1]]), "rows of one length"),
    (lambda v: v.step_through(5, [[1]]), "A must be a matrix of numbers"),
    (lambda v: v.step_through([[1]], [["x"]]), "B must be a matrix of numbers"),
    (lambda v: v.swizzle_map(48), "width is 48, but it must be one of 32, 64, 128"),
    (lambda v: v.three_profiles(cpu(), forwards=0), "forwards is 0"),
    (lambda v: v.three_profiles(cpu(), forwards=2, gpu_forwards=1.5), "gpu_forwards is 1.5"),
    (lambda v: v.three_profiles([], forwards=2), "no operators"),
    (lambda v: v.three_profiles([{"name": "mm"}], forwards=2), "needs a name, calls and a self time"),
    (lambda v: v.tile_choice(0, 64, 64), "M is 0, but it must be a whole number from 1 to 65,536"),
    (lambda v: v.tile_choice(64, 70_000, 64), "N is 70000"),
    (lambda v: v.tile_choice(64, 64, True), "K is True"),
    (lambda v: v.two_whys([]), "nothing to draw"),
    (lambda v: v.walk("iij"), "must be one of 'ijk', 'ikj'"),
    (lambda v: v.warps({}), "nothing to draw"),
    (lambda v: v.warps(view_samples.warps("simulate", 4, cycles=200), cycles=10_000), "a picture holds"),
]  # fmt: skip


def test_what_cannot_be_shown_is_refused_in_one_sentence():
    for call, sentence in REFUSED:
        with pytest.raises((ValueError, TypeError), match=re.escape(sentence)) as caught:
            call(views)
        assert "\n" not in str(caught.value), sentence


def test_without_ipywidgets_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match="needs ipywidgets, which is not installed"):
        views.predict("How many?")
