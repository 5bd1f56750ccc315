"""The pages that are no widgets: source, bytecode, lists in memory, the map of the course, a profile."""

import random
import re
import sys
from xml.etree import ElementTree

import pytest
from view_samples import PROFILE

from course_lib import views
from course_lib.circles.python_lists import multiply


class TestSource:
    def test_shows_the_file_the_line_and_the_text_of_what_was_written(self):
        import functools

        from course_lib.circles import python_lists
        from course_lib.views.live import Live

        shown = repr(views.source(multiply))
        first, _, code = shown.partition("\n")
        assert re.fullmatch(r"course_lib/circles/python_lists\.py, line \d+", first)
        assert code.startswith("def multiply(") and "total += a * b" in code

        @functools.wraps(multiply)
        def wrapped(*args):
            return multiply(*args)

        def dispatcher():
            return "<b>&amp;</b>"

        assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in views.source(dispatcher).body  # shown, not obeyed
        dispatcher.py_func = wrapped
        assert repr(views.source(functools.partial(dispatcher, 1))) == shown
        assert repr(views.source(python_lists)).startswith('course_lib/circles/python_lists.py\n"""')
        assert "\ndef static(self)" in repr(views.source(Live.static))  # at the margin


class TestBytecode:
    def test_finds_and_counts_the_innermost_of_three_loops(self):
        loop = views.innermost_loop(multiply)
        names = [i.name for i in loop.instructions]
        assert names[0] == "FOR_ITER" and names[-1] == "JUMP_BACKWARD"
        assert names.count("BINARY_OP") == 2 and names.count("FOR_ITER") == 1 and loop.depth == 3
        assert loop.counts["arithmetic"] == loop.counts["loop"] == 2
        assert sum(loop.counts.values()) == len(loop.instructions)
        assert f"{len(loop.instructions)} bytecode instructions per turn" in repr(views.bytecode(multiply))

    def test_a_while_loop_with_continue_is_one_loop(self):
        def climb(n):
            i = 0
            while i < n:
                if i % 2:
                    i += 3
                    continue
                i *= 7
            return i

        loop = views.innermost_loop(climb)
        assert loop.depth == 1 and {"+=", "*="} <= {i.argument for i in loop.instructions}
        assert "at most" in repr(views.bytecode(climb))

    def test_without_a_loop_or_without_bytecode_it_says_so(self):
        def straight(x):
            return x + 1

        with pytest.raises(ValueError, match=r"straight\(\) has no loop"):
            views.bytecode(straight)
        with pytest.raises(ValueError, match="has no bytecode"):
            views.bytecode(len)


class TestMemory:
    def test_counts_real_bytes_and_an_object_that_stands_twice_once(self):
        import numpy as np

        from course_lib.views.boxes import footprint

        rows = [[random.random() for _ in range(7)] for _ in range(5)]
        size = footprint(rows)
        assert size.lists == sys.getsizeof(rows) + sum(map(sys.getsizeof, rows))
        assert size.floats == 35 * sys.getsizeof(1.5) and size.objects == 35 and size.array == 35 * 8
        assert size.as_array == sys.getsizeof(np.array(rows)) and size.ratio == size.as_lists / size.as_array
        assert f"{size.as_lists:,} bytes" in repr(views.memory(rows))
        once = footprint([[0.5] * 4] * 3)
        assert once.objects == 1 and once.floats == sys.getsizeof(0.5)

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
        assert boxes == arrows == 3 + 2  # the pointers to rows, and those of the one list
        a, b = [1.0, 2.0], [3.0, 4.0]
        shown, words, boxes, _ = self.drawn([a, b, a])
        assert shown.text.startswith("3 rows, but 2 lists. ") and boxes == 3 + 4
        assert "rows 0, 2: the same list" in words and f"row 1, {sys.getsizeof(b)} bytes" in words
        assert "rows 0, 1, 2 and 5 more: the same list" in self.drawn([a] * 8)[1]
        shown, words, boxes, _ = self.drawn([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
        assert "but" not in shown.text and boxes == 3 + 6 and not any("same list" in w for w in words)


class TestMap:
    def test_links_exactly_the_chapters_that_exist(self, tmp_path):
        names = ("00_start_here", "02_compiled_loops", "A_derivative")
        for name in names:
            (tmp_path / f"{name}.ipynb").touch()
        shown = views.course_map(tmp_path)
        assert set(re.findall(r'href="([^"]+)"', shown.body)) == {f"{name}.ipynb" for name in names}
        assert "1 of 9 are open" in shown.body and shown.body.count("<ellipse") == 9
        assert "Circle 2, Compiled loops (open)" in shown.text
        assert "Circle 3, Strassen (not yet open)" in shown.text


class TestProfile:
    def test_shares_are_of_all_self_time_unless_a_percentage_is_stated(self):
        from course_lib.speech.profiling import talk_profile

        text = repr(views.profile(PROFILE, talk_profile().cpu))
        assert "aten::addmm 75.0% (the talk: 45.6%)" in text and "aten::bmm 25.0%" in text

    def test_two_profiles_are_aligned_by_name(self):
        there = [
            {"name": "aten::mm", "self_us": 3.0, "percent": 30.0},
            {"name": "aten::bmm", "self_us": 2.0, "percent": 20.0},
        ]
        mine = [*PROFILE, {"name": "aten::silu", "self_us": 1000.0}]
        shown = views.profile(mine, beside=there, top=2)
        words = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr.*?</tr>", shown.body)]
        assert [row[0] for row in words[1:]] == ["aten::silu", "aten::addmm", "aten::bmm", "aten::mm"]
        assert words[2][-2:] == ["37.5%", "–"]
        assert words[3][-2:] == ["12.5%", "20.0%"]  # third here, but among the first two there
        assert words[4][-2:] == ["–", "30.0%"]
        assert "aten::bmm 12.5% (the talk: 20.0%)" in repr(shown)

    def test_what_is_cut_off_is_summed_and_what_is_no_profile_is_refused(self):
        rows = [{"name": f"op{n}", "calls": 1, "self_us": 10.0} for n in range(10)]
        body = views.profile(rows, rows[:1], top=4).body
        assert "6 more" in body and "60.0%" in body
        for rows, top, sentence in (([], 10, "no rows"), ([{"name": "x"}], 10, "name and self_us")):
            with pytest.raises(ValueError, match=sentence):
                views.profile(rows, PROFILE, top=top)
        with pytest.raises(ValueError, match="top is 0, but it must be a whole number of at least 1"):
            views.profile(PROFILE, PROFILE, top=0)
