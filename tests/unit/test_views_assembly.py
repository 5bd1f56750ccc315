"""The machine-code view: its verdict in words, on texts of both instruction sets."""

import pytest
from view_samples import AVX512, SCALAR

from course_lib import views

SPILLING = """
.LBB0_3:
\tvmovapd\t96(%rsp), %ymm1
\tvfmadd231pd\t(%rdi), %ymm2, %ymm1
\tvfmadd213pd\t%ymm1, %ymm2, %ymm3
\tvmovapd\t%ymm3, 96(%rsp)
\tmovq\t8(%rsp), %rax
\tjne\t.LBB0_3
"""
NEON = """
.LBB0_3:
\tldp\tq1, q2, [x8], #32
\tfmla\tv0.4s, v1.4s, v2.4s
\tb.ne\t.LBB0_3
"""
COPY = """
.LBB0_3:
\tvmovups\t(%rdi), %ymm0
\tvmovups\t%ymm0, (%rsi)
\tjne\t.LBB0_3
"""


@pytest.fixture
def parse(monkeypatch):
    """Let a text stand for the compiled function it would have come from."""
    from course_lib.measure import assembly

    monkeypatch.setattr(assembly, "inspect", assembly.Assembly)
    return assembly.Assembly


def test_the_verdict_in_words(parse):
    from course_lib.views import machine_code

    for code, words, chains in (
        (AVX512, "512-bit vectors: 16 float32 at once, FMA: yes, spills: none", 1),
        (SCALAR, "no vectors: one float64 at a time, FMA: no, spills: none", 0),
        (SPILLING, "256-bit vectors: 4 float64 at once, FMA: yes, spills: 2 instructions", 1),
        (NEON, "128-bit vectors: 4 float32 at once, FMA: yes, spills: none", 1),
        (COPY, "no floating-point arithmetic, FMA: no, spills: none", 0),
    ):
        loop = parse(code).loops[0]
        assert (machine_code.verdict(loop), machine_code.chains(loop)) == (words, chains)
    shown = views.compare_assembly({"ijk": SCALAR, "ikj": AVX512})
    assert "ijk: no vectors: one float64 at a time; ikj: 512-bit vectors: 16 float32 at once" in shown.body
    assert shown.body.count("<pre") == 2 and "$64" in shown.body
    costs = views.loop_costs({"ikj": AVX512}, ["chains", "vector bits"])
    assert (costs.columns[1:], costs.rows) == (("chains", "vector bits"), (("ikj", "1", "512"),))
    with pytest.raises(ValueError, match="one of 'loop, one turn', 'vector bits'"):
        views.loop_costs({"ikj": AVX512}, ["lanes"])
    with pytest.raises(ValueError, match="no loop that computes"):
        views.assembly(COPY)
    whole = repr(views.assembly("f:\n\tvmulsd\t%xmm2, %xmm1, %xmm1\n\tretq\n.Lfunc_end0:\n"))
    assert "no loop: 2 instructions in all" in whole and "retq" in whole and "func_end" not in whole


def test_a_really_compiled_loop_is_shown():
    import numba
    import numpy as np

    @numba.njit
    def scale(x, y):
        for i in range(x.shape[0]):
            y[i] = 3.0 * x[i]

    with pytest.raises(ValueError, match="not compiled yet"):
        views.assembly(scale)
    scale(np.ones(8), np.ones(8))
    text = views.assembly(scale).text
    assert "Hot loop of scale: " in text and "float64" in text and "FMA: no" in text
