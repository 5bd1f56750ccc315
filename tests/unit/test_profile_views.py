"""What shows a profile: three side by side, an icicle, and every operator under the roofline."""

import re
from dataclasses import replace

from view_samples import cpu_profile, forward_tree, gpu_profile, peaks

from course_lib import views


def table_rows(shown):
    rows = re.findall(r"<tr.*?</tr>", shown.body)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in rows]


def by_place(shown):
    return {(row[0], row[1]): row for row in table_rows(shown)}


class TestThreeProfiles:
    def test_everything_is_for_one_forward_and_convolutions_are_one_family(self):
        shown = views.three_profiles(cpu_profile(), forwards=2)
        rows = by_place(shown)
        assert rows["convolution", "here"][2:5] == ["56", "214 µs", " 24.0%"]
        assert rows["convolution", "talk"][2:5] == ["56", "349 µs", " 24.4%"]
        assert rows["addmm", "here"][2:4] == ["145", "207 µs"]
        talk = ["145", "252 µs", " 45.6%", "16 µs", "15.8 µs", "42.4%", "7.9x"]
        assert rows["addmm", "talk"][2:] == talk
        assert rows["copy_", "talk"][2] == "341.8"
        assert rows["handing on", "here"][2] == "210"  # linear and convolution themselves
        assert "“convolution” is the sum of _slow_conv2d_forward, mkldnn_convolution." in repr(shown)
        assert "There is no profile of a GPU here, neither measured nor recorded" in repr(shown)
        assert "addmm takes 60% of the time on this CPU, 46% on the talk's CPU" in repr(shown)
        assert "the talk's GPU 7.9x as fast" in repr(shown).split(".  ")[0]
        rest = table_rows(views.three_profiles(cpu_profile(), forwards=2, top=2))[-1]
        assert rest[0] == "rest" and rest[2] == f"{(300 + 2 + 308 + 112) / 2:.0f}"  # what is cut off

    def test_a_gpu_has_host_and_device_time_and_kernels_count_once(self):
        shown = views.three_profiles(cpu_profile(), gpu_profile(), forwards=2, gpu_forwards=4)
        rows = by_place(shown)
        # 30 ms a forward on the CPU against 1.5 ms of host and 1 ms of device
        assert rows["addmm", "here"][5:] == ["10.3 µs", "6.9 µs", "66.7%", "12x"]
        assert rows["convolution", "here"][5:] == ["17.9 µs", "8.93 µs", "33.3%", "8x"]
        assert rows["waiting for the GPU", "here"][5] == "194 µs"
        assert "sm90" not in shown.body and "no profile of a GPU" not in repr(shown)
        assert "this GPU 12x, the talk's GPU 7.9x as fast" in repr(shown)
        assert "the mean of 2 on this CPU and of 4 on this GPU" in repr(shown)
        assert rows["convolution", "talk"][-1] == "12x*"  # a ratio of different work is marked
        assert "* convolution in the talk: 56 calls" in repr(shown) and "38 calls (cudnn_conv" in repr(shown)


class TestIcicle:
    def test_the_title_is_where_the_time_goes(self):
        shown = views.icicle(forward_tree())
        assert shown.title == "90 % of 10 ms goes to the 3 layers; of these ff_<1> 70 %, conv 30 %"
        alone = replace(forward_tree(), root=replace(forward_tree().root, own_us=2.0, children=()))
        assert views.icicle(alone).title == "A forward takes 2 µs"

    def test_the_page_has_no_markup_of_names(self):
        body = views.icicle(forward_tree())._repr_html_()
        assert "ff_<1>" not in body and "$" not in re.sub(r"<script>.*?</script>", "", body, flags=re.DOTALL)


class TestOperatorsOnTheRoofline:
    def test_the_words_say_how_much_of_the_time_lies_under_which_roof(self, figures):
        alt = views.operators_roofline(cpu_profile(), threads=2, peaks=peaks()).alt
        # ridge at 10 flop/byte: addmm, both convolutions and bmm are above it; 1.1 of 100 ms move nothing
        assert "89 % of the time lies under the arithmetic roof, 9.9 % under the memory roof" in alt
        assert "1.1 % moves no data" in alt and "linear" not in alt
        assert (
            "addmm 60 %: 100 GFLOP/s at 30.0 flop/byte, 50 % of its compute roof" in alt
        )  # of the self time
        assert "silu 3.0 %: 6.67 GFLOP/s at 0.500 flop/byte, 67 % of its memory roof" in alt
        title = figures[-1].legends[0].get_title().get_text().replace("\n", " ")
        for said in (title, alt):
            assert "as if nothing stayed in a cache" in said and "may lie above the memory roof" in said
            assert "calls below 10 µs" in said and "bookkeeping" in said
            assert "Not drawn: lt, together 0.0040 % of the time." in said
        assert "fill_ 0.90 %: 10.0 GB/s without arithmetic, 3.0 µs a call" in alt
