"""The pages that are no widgets: source, bytecode, lists in memory, the map of the course, a profile."""

import random
import re
import sys
from types import SimpleNamespace

from view_samples import PROFILE

from course_lib import views
from course_lib.circles.python_lists import multiply


class TestSource:
    def test_shows_the_file_the_line_and_the_text_of_what_was_written(self):
        import functools

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
        assert repr(views.source("x = 1\n")) == "a program of its own\nx = 1\n"


class TestBytecode:
    def test_finds_and_counts_the_innermost_of_three_loops(self):
        multiply([[1.5] * 20] * 20, [[2.5] * 20] * 20)
        loop = views.innermost_loop(multiply)
        names = [i.name for i in loop.instructions]
        assert names[0] == "FOR_ITER" and names[-1] == "JUMP_BACKWARD" and loop.depth == 3
        assert loop.counts["arithmetic"] == loop.counts["loop"] == names.count("BINARY_OP") == 2
        shown = repr(views.bytecode(multiply))
        assert f"{sum(loop.counts.values())} bytecode instructions per turn" in shown
        assert "BINARY_OP_MULTIPLY_FLOAT" in shown

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


class TestMemory:
    def test_counts_real_bytes_and_an_object_that_stands_twice_once(self):
        import numpy as np

        from course_lib.views.boxes import footprint

        rows = [[random.random() for _ in range(7)] for _ in range(5)]
        size = footprint(rows)
        assert size.lists == sys.getsizeof(rows) + sum(map(sys.getsizeof, rows))
        assert size.floats == 35 * sys.getsizeof(1.5) and size.objects == 35 and size.array == 35 * 8
        assert size.array + size.header == sys.getsizeof(np.array(rows))
        assert f"{size.lists + size.floats:,} bytes" in repr(views.memory(rows))
        once = footprint([[0.5] * 4] * 3)
        assert once.objects == 1 and once.floats == sys.getsizeof(0.5)

    def test_rows_that_are_one_list_are_drawn_as_one(self):
        a, b = [1.0, 2.0], [3.0, 4.0]
        for rows, says, written in (
            ([a] * 3, "3 rows, but one list. ", ["rows 0, 1, 2: the same list"]),
            ([a, b, a], "3 rows, but 2 lists. ", ["rows 0, 2: the same list", "row 1, "]),
            ([a] * 8, "8 rows, but one list. ", ["rows 0, 1, 2 and 5 more: the same list"]),
            ([a, b], "", ["row 0, ", "row 1, "]),
        ):
            shown = views.memory(rows)
            assert shown.text.startswith(says) and (says or "but" not in shown.text)
            assert re.findall(r">(rows [^<]*the same list|row \d, )", shown.body) == written


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
            SimpleNamespace(name="aten::mm", self_us=3.0, percent=30.0),
            SimpleNamespace(name="aten::bmm", self_us=2.0, percent=20.0),
        ]
        silu = SimpleNamespace(name="aten::silu", calls=1, self_us=1000.0, total_us=1000.0, flops=0.0)
        mine = [*PROFILE, silu]
        shown = views.profile(mine, beside=there, top=2)
        words = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr.*?</tr>", shown.body)]
        assert [row[0] for row in words[1:]] == ["aten::silu", "aten::addmm", "aten::bmm", "aten::mm"]
        assert words[2][-2:] == ["37.5%", "–"]
        assert words[3][-2:] == ["12.5%", "20.0%"]  # third here, but among the first two there
        assert words[4][-2:] == ["–", "30.0%"]
        assert "aten::bmm 12.5% (the talk: 20.0%)" in repr(shown)
        assert "2 more" in views.profile(mine, beside=there, top=1).body
