"""DTensor's product beside ours, by the bytes that the kernel has counted."""

import sys

import pytest

from course_lib.distributed.launch import RankFailed, run
from course_lib.distributed.matmul import ALGORITHMS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")


def test_six_lines_send_what_summa_sends_and_none_too_few_three_times_the_row_split():
    from course_lib.distributed.dtensor import beside

    shape, ranks = (768, 1024, 1280), 4  # what gloo says beside the numbers is below 1 %
    sent = run(beside, ranks=ranks, shape=shape)
    mean = {name: sum(one[name] for one in sent) / ranks for name in sent[0]}
    words = {name: 4 * ALGORITHMS[name].words(shape, ranks) for name in ("row", "summa")}
    assert mean["row"] == pytest.approx(words["row"], rel=0.02)
    assert mean["summa"] == pytest.approx(words["summa"], rel=0.02)
    assert mean["dtensor"] == pytest.approx(words["summa"], rel=0.02)
    # A gathered by all (gloo has no all-to-all), then C reduced by all (it cuts what an all-reduce gave)
    M, K, N = shape
    gathered, reduced = M * K * 3 / 4, 2 * M * N * 3 / 4
    assert mean["dtensor, left to itself"] == pytest.approx(4 * (gathered + reduced), rel=0.02)
    with pytest.raises(RankFailed, match=r"shape is \(5, 4, 4\), but DTensor cuts other blocks"):
        run(beside, ranks=2, shape=(5, 4, 4))
