"""The order of loops is read from what they index, not from what they are called."""

from course_lib.grading.rules import LoopOrder
from course_lib.grading.task import source

HEAD = source("""
    import numpy as np
    from numba import njit


""")
FUNCTION = """\
@njit
def matmul_kij(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = np.zeros((M, N), A.dtype)
{body}
    return C
"""
IJK = "for i in range(M):\n    for j in range(N):\n        for k in range(K):\n            "
KIJ = "for k in range(K):\n    for i in range(M):\n        for j in range(N):\n            "
STEP = "C[i, j] += A[i, k] * B[k, j]"


def text(body: str) -> str:
    indented = "\n".join(f"    {line}" for line in source(body).rstrip().splitlines())
    return HEAD + FUNCTION.format(body=indented)


RIGHT = {
    "plain": KIJ + STEP,
    "other names": KIJ.replace("k in", "kk in").replace("i in", "ii in").replace("j in", "jj in")
    + "C[ii, jj] += A[ii, kk] * B[kk, jj]",
    "letters of another order": "for i in range(K):\n    for j in range(M):\n        for k in range(N):\n"
    "            C[j, k] += A[j, i] * B[i, k]",
    "a number taken out": "for k in range(K):\n    for i in range(M):\n        a = A[i, k]\n"
    "        for j in range(N):\n            C[i, j] += a * B[k, j]",
    "rows taken out": "for k in range(K):\n    b = B[k]\n    for i in range(M):\n        c = C[i]\n"
    "        for j in range(N):\n            c[j] += A[i, k] * b[j]",
    "brackets twice": KIJ + "C[i][j] = C[i][j] + A[i][k] * B[k][j]",
    "zeroed by hand": "for i in range(M):\n    for j in range(N):\n        C[i, j] = 0.0\n" + KIJ + STEP,
    "something else in other loops": "for i in range(M):\n    for j in range(2):\n        x = i * j\n"
    + KIJ
    + STEP,
}

CHEATS = {
    "letters renamed": (
        "for k in range(M):\n    for i in range(N):\n        for j in range(K):\n"
        "            C[k, i] += A[k, j] * B[j, i]",
        "i, j, k (you call them k, i, j)",
    ),
    "a dead nest": (KIJ.replace("range(N)", "range(0)") + "pass\n" + IJK + STEP, "i, j, k"),
    "a dead nest that writes": (KIJ.replace("range(K)", "range(0)") + STEP + "\n" + IJK + STEP, "i, j, k"),
    "a sum in a local name": (
        "for i in range(M):\n    for j in range(N):\n        total = 0.0\n        for k in range(K):\n"
        "            total += A[i, k] * B[k, j]\n        C[i, j] = total",
        "i, j, k",
    ),
    "through another name": (
        "D = C\n" + KIJ.replace("range(K)", "range(0)") + STEP + "\n" + IJK + STEP.replace("C[", "D["),
        "i, j, k",
    ),
    "through a view": (
        KIJ.replace("range(K)", "range(0)") + STEP + "\nD = C.T\n" + IJK + "D[j, i] += A[i, k] * B[k, j]",
        "i, j, k",
    ),
    "an outer loop of one step": (
        "for k in range(1):\n    " + (IJK + STEP).replace("\n", "\n    "),
        "k, i, j, k;",
    ),
    "indices renamed inside": (
        KIJ.replace("range(K)", "range(M)")
        .replace("i in range(M)", "i in range(N)")
        .replace("j in range(N)", "j in range(K)")
        + "r = k\n            c = i\n            s = j\n            C[r, c] += A[r, s] * B[s, c]",
        "?",
    ),
    "a while loop": (
        "k = 0\nwhile k < K:\n    for i in range(M):\n        for j in range(N):\n"
        "            C[i, j] += A[i, k] * B[k, j]\n    k += 1",
        "?",
    ),
    "two loops and a slice": (
        "for k in range(K):\n    for i in range(M):\n        C[i, :] += A[i, k] * B[k, :]",
        "run over k, i;",
    ),
    "no loops": ("pass", "not nested"),
}


def test_the_right_order_is_recognised_in_every_form():
    for name, body in RIGHT.items():
        assert LoopOrder("kij").judge(text(body), "matmul_kij") is None, name


def test_another_order_in_disguise_is_refused():
    for name, (body, words) in CHEATS.items():
        said = LoopOrder("kij").judge(text(body), "matmul_kij")
        assert said is not None and words in said, name
        assert "wants k, i, j" in said, name


def test_the_task_takes_the_renamed_right_answer_and_refuses_the_renamed_wrong_one(judged):
    assert judged("02.order", text(RIGHT["other names"])).passed
    report = judged("02.order", text(CHEATS["letters renamed"][0]))
    assert report.points == 0
    assert "you call them" in str(report)
