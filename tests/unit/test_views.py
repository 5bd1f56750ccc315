"""The views as a room: light at the door, and every drawing readable on any page and in words."""

import random
import re
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from course_lib import views
from course_lib.circles.python_lists import multiply

PROFILE = [
    {"name": "aten::addmm", "calls": 10, "self_us": 750.0, "total_us": 800.0, "flops": 3e6},
    {"name": "aten::bmm", "calls": 4, "self_us": 250.0, "total_us": 250.0},
]


def make_memory():
    return views.memory([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])


SHOWN = {
    "prediction": lambda: views.predict("How many?", unit="x").static(),
    "stepper": lambda: views.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]]).static(),
    "walk": lambda: views.walk().static(),
    "source": lambda: views.source(multiply),
    "bytecode": lambda: views.bytecode(multiply),
    "whole bytecode": lambda: views.bytecode(multiply, inner=False),
    "memory": make_memory,
    "strides": lambda: views.strides("ikj", 4096),
    "strides table": lambda: views.strides_table(4096, 4),
    "map": views.course_map,
    "profile": lambda: views.profile(PROFILE, beside=[{"name": "aten::mm", "self_us": 1.0, "percent": 3.0}]),
}


def test_importing_the_views_loads_no_plotting_no_widgets_and_no_numba():
    script = textwrap.dedent("""
        import sys
        from course_lib import views
        heavy = {"matplotlib", "ipywidgets", "numba", "torch", "numpy", "pygments"} & set(sys.modules)
        assert not heavy, heavy
        assert "predict" in dir(views)
    """)
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", views.__all__)
def test_every_view_can_be_called_by_its_name_whatever_was_imported_before(name):
    import course_lib.views.same

    assert course_lib.views.same is views.same
    assert callable(getattr(views, name))


def test_a_view_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'prediict'"):
        views.prediict  # noqa: B018 - the access is the test


class Page(HTMLParser):
    """Collects the cells and checks that tags close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.labels = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.open.append(tag)
        if tag in ("td", "th", "pre"):
            self.cells.append(given.get("style", ""))
        if "aria-label" in given:
            self.labels.append((given.get("role"), given["aria-label"]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SHOWN)
def test_each_view_brings_its_own_colours_and_says_in_words_what_it_shows(name):
    shown = SHOWN[name]()
    page = Page(shown._repr_html_())
    assert page.open == []
    role, label = page.labels[0]
    assert role == "figure" and len(label) > 15
    assert "background:#ffffff;color:#1f1b24" in shown.body.split(">")[0]
    for style in page.cells:
        assert "background:" in style and "color:" in style
    assert len(repr(shown)) > 20 and "<" not in repr(shown).replace(" < ", "")[:60]


@pytest.mark.parametrize("name", SHOWN)
def test_each_drawing_is_an_image_with_a_label(name):
    drawings = re.findall(r"<svg.*?</svg>", SHOWN[name]().body, re.DOTALL)
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 15
        ground = root[0]
        assert ground.tag.endswith("rect") and ground.get("fill") == "#ffffff"
    if name in ("prediction", "stepper", "walk", "memory", "strides", "map"):
        assert drawings


class TestSource:
    def test_shows_the_file_the_line_and_the_text(self):
        shown = repr(views.source(multiply))
        first, _, code = shown.partition("\n")
        assert re.fullmatch(r"course_lib/circles/python_lists\.py, line \d+", first)
        assert code.startswith("def multiply(") and "total += a * b" in code

    def test_follows_dispatchers_partials_and_wrappers(self):
        import functools

        @functools.wraps(multiply)
        def wrapped(*args):
            return multiply(*args)

        def dispatcher():
            pass

        dispatcher.py_func = wrapped
        assert repr(views.source(functools.partial(dispatcher, 1))) == repr(views.source(multiply))

    def test_a_module_is_shown_from_its_first_line(self):
        from course_lib.circles import python_lists

        assert repr(views.source(python_lists)).startswith('course_lib/circles/python_lists.py\n"""')

    def test_a_method_stands_at_the_margin(self):
        assert "\ndef static(self)" in repr(views.source(views.Prediction.static))

    @pytest.mark.parametrize("code", [len, 5, "text"])
    def test_what_has_no_source_is_refused_in_a_sentence(self, code):
        with pytest.raises(ValueError, match="no Python source to show"):
            views.source(code)

    def test_markup_in_the_code_is_shown_not_obeyed(self):
        def risky():
            return "<b>&amp;</b>"

        assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in views.source(risky).body


class TestBytecode:
    def test_finds_the_innermost_of_three_loops(self):
        from course_lib.views.interpreter import innermost_loop

        names = [i.name for i in innermost_loop(multiply).instructions]
        assert names[0] == "FOR_ITER" and names[-1] == "JUMP_BACKWARD"
        assert names.count("BINARY_OP") == 2 and names.count("FOR_ITER") == 1
        assert innermost_loop(multiply).depth == 3

    def test_counts_what_the_instructions_are_for(self):
        from course_lib.views.interpreter import innermost_loop

        loop = innermost_loop(multiply)
        assert loop.counts["arithmetic"] == 2
        assert loop.counts["loop"] == 2
        assert sum(loop.counts.values()) == len(loop.instructions)
        assert f"{len(loop.instructions)} bytecode instructions per turn" in repr(views.bytecode(multiply))

    def test_a_generator_expression_is_nested_where_it_is_made(self):
        from course_lib.views.interpreter import innermost_loop

        def product(A, B):
            for _ in A:
                pass
            return [[sum(a * b for a, b in zip(row, col, strict=True)) for col in B] for row in A]

        assert "YIELD_VALUE" in [i.name for i in innermost_loop(product).instructions]

    def test_a_while_loop_with_continue_is_one_loop(self):
        from course_lib.views.interpreter import innermost_loop

        def climb(n):
            i = 0
            while i < n:
                if i % 2:
                    i += 3
                    continue
                i *= 7
            return i

        loop = innermost_loop(climb)
        assert loop.depth == 1
        assert {"+=", "*="} <= {i.argument for i in loop.instructions}
        assert "at most" in repr(views.bytecode(climb))

    def test_without_a_loop_or_without_bytecode_it_says_so(self):
        def straight(x):
            return x + 1

        with pytest.raises(ValueError, match=r"straight\(\) has no loop"):
            views.bytecode(straight)
        assert "no loop" in repr(views.bytecode(straight, inner=False))
        with pytest.raises(ValueError, match="has no bytecode"):
            views.bytecode(len)


class TestMemory:
    def test_counts_real_bytes(self):
        import numpy as np

        from course_lib.views.boxes import footprint

        rows = [[random.random() for _ in range(7)] for _ in range(5)]
        size = footprint(rows)
        assert size.lists == sys.getsizeof(rows) + sum(map(sys.getsizeof, rows))
        assert size.floats == 35 * sys.getsizeof(1.5) and size.objects == 35
        assert size.as_array == sys.getsizeof(np.array(rows))
        assert size.array == 35 * 8
        assert size.ratio == size.as_lists / size.as_array
        assert f"{size.as_lists:,} bytes" in repr(views.memory(rows))

    def test_an_object_that_stands_twice_counts_once(self):
        from course_lib.views.boxes import footprint

        size = footprint([[0.5] * 4] * 3)
        assert size.objects == 1 and size.floats == sys.getsizeof(0.5)

    @staticmethod
    def drawn(rows):
        """Return the words in the picture, and how many arrows and boxes of rows it has."""
        shown = views.memory(rows)
        root = ElementTree.fromstring(re.search(r"<svg.*?</svg>", shown.body, re.DOTALL)[0])
        kinds = [(element.tag.split("}")[-1], element) for element in root.iter()]
        words = ["".join(element.itertext()) for kind, element in kinds if kind == "text"]
        boxes = [e for kind, e in kinds if kind == "rect" and e.get("fill") == "#ffe3f0"]
        arrows = [e for kind, e in kinds if kind == "line"]
        return shown, words, len(boxes), len(arrows)

    def test_rows_that_are_one_list_are_drawn_as_one(self):
        shown, words, boxes, arrows = self.drawn([[0.0] * 2] * 3)
        assert shown.text.startswith("3 rows, but one list. ")
        assert words.count("rows 0, 1, 2: the same list") == 1
        assert not any(word.startswith("row ") for word in words)
        assert boxes == 3 + 2  # the pointers to rows, and those of the one list
        assert arrows == 3 + 2

    def test_some_rows_may_be_one_list_and_some_may_not_be_drawn(self):
        a, b = [1.0, 2.0], [3.0, 4.0]
        shown, words, boxes, _ = self.drawn([a, b, a])
        assert shown.text.startswith("3 rows, but 2 lists. ") and boxes == 3 + 4
        assert "rows 0, 2: the same list" in words and f"row 1, {sys.getsizeof(b)} bytes" in words
        assert "rows 0, 1, 2 and 5 more: the same list" in self.drawn([a] * 8)[1]
        shown, words, boxes, _ = self.drawn([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
        assert "but" not in shown.text and boxes == 3 + 6 and not any("same list" in w for w in words)

    def test_shows_the_objects_by_their_real_addresses(self):
        from course_lib.views.boxes import offset

        rows = [[1.25, 2.25], [3.25, 4.25]]
        addresses = sorted(id(x) for row in rows for x in row)
        body = views.memory(rows).body
        assert f"{addresses[0]:#x}" in body
        for address in addresses:
            assert f">{offset(address - addresses[0])}<" in body

    def test_far_addresses_are_written_short(self):
        from course_lib.views.boxes import offset

        assert [offset(0), offset(9_999), offset(3 << 20)] == ["+0", "+9,999", "+3 MiB"]

    @pytest.mark.parametrize("rows", [[], [[]], [[1.0], [1.0, 2.0]], [1.0], "text", [["a"]], [(1.0,)], None])
    def test_what_is_no_list_of_lists_is_refused_in_a_sentence(self, rows):
        with pytest.raises(ValueError, match="rows must"):
            views.memory(rows)


class TestMap:
    def test_links_exactly_the_chapters_that_exist(self, tmp_path):
        for name in ("00_start_here", "02_compiled_loops", "A_derivative"):
            (tmp_path / f"{name}.ipynb").touch()
        shown = views.course_map(tmp_path)
        assert set(re.findall(r'href="([^"]+)"', shown.body)) == {
            "00_start_here.ipynb",
            "02_compiled_loops.ipynb",
            "A_derivative.ipynb",
        }
        assert "1 of 9 are open" in shown.body
        assert "Circle 2, Compiled loops (open)" in shown.text
        assert "Circle 3, Strassen (not yet open)" in shown.text

    def test_every_circle_has_a_row_and_a_ring(self, tmp_path):
        from course_lib.views.nine_circles import CIRCLES

        body = views.course_map(tmp_path).body
        assert [chapter.circle for chapter in CIRCLES] == list(range(1, 10))
        assert body.count("<ellipse") == 9


class TestProfile:
    def test_shares_are_of_all_self_time(self):
        text = repr(views.profile(PROFILE))
        assert "aten::addmm 75.0%" in text and "aten::bmm 25.0%" in text

    def test_a_stated_percentage_wins_because_the_rows_may_be_only_the_top(self):
        rows = [SimpleNamespace(name="aten::addmm", calls=3, self_us=2.0, percent=45.62)]
        assert "45.6%" in repr(views.profile(rows))

    def test_two_profiles_are_aligned_by_name(self):
        there = [
            {"name": "aten::mm", "self_us": 3.0, "percent": 30.0},
            {"name": "aten::bmm", "self_us": 2.0, "percent": 20.0},
        ]
        mine = [*PROFILE, {"name": "aten::silu", "self_us": 1000.0}]
        shown = views.profile(mine, beside=there, top=2, names=("here", "there"))
        rows = re.findall(r"<tr.*?</tr>", shown.body)
        words = [re.sub(r"<[^>]+>", " ", row).split() for row in rows]
        assert [row[0] for row in words[1:]] == ["aten::silu", "aten::addmm", "aten::bmm", "aten::mm"]
        assert words[2][-2:] == ["37.5%", "–"]
        assert words[3][-2:] == ["12.5%", "20.0%"]  # third here, but among the first two there
        assert words[4][-2:] == ["–", "30.0%"]
        assert "aten::bmm 12.5% (there: 20.0%)" in repr(shown)

    def test_what_is_cut_off_is_summed(self):
        rows = [{"name": f"op{n}", "calls": 1, "self_us": 10.0} for n in range(10)]
        body = views.profile(rows, top=4).body
        assert "6 more" in body and "60.0%" in body

    def test_the_talks_table_can_stand_beside_ones_own(self):
        from course_lib.speech.profiling import talk_profile

        assert "aten::addmm 75.0% (the talk: 45.6%)" in repr(views.profile(PROFILE, talk_profile().cpu))

    @pytest.mark.parametrize(
        ("rows", "top", "sentence"),
        [([], 10, "no rows"), ([{"name": "x"}], 10, "name and self_us"), (PROFILE, 0, "top is 0")],
    )
    def test_what_is_no_profile_is_refused_in_a_sentence(self, rows, top, sentence):
        with pytest.raises(ValueError, match=sentence):
            views.profile(rows, top=top)
