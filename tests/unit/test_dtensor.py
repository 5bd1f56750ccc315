"""DTensor's product beside ours, by the bytes that the kernel has counted."""

import sys

import pytest

from course_lib.distributed.launch import RankFailed, run
from course_lib.distributed.matmul import ALGORITHMS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")


def test_six_lines_send_what_summa_sends():
    from course_lib.distributed.dtensor import beside

    shape, ranks = (768, 1024, 1280), 4  # what gloo says beside the numbers is below 1 %
    sent = run(beside, ranks=ranks, shape=shape)
    mean = {name: sum(one[name] for one in sent) / ranks for name in sent[0]}
    words = 4 * ALGORITHMS["summa"].words(shape, ranks)
    assert mean == {name: pytest.approx(words, rel=0.02) for name in ("summa", "dtensor")}
    with pytest.raises(RankFailed, match=r"shape is \(5, 4, 4\), but DTensor cuts other blocks"):
        run(beside, ranks=2, shape=(5, 4, 4))
