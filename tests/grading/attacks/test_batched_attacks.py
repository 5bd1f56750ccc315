"""Answers to chapter 07 that let PyTorch or the course's own library work, and honest ones that may not."""

import pytest

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.loop_nests import depth
from course_lib.grading.program import CLOSED, Program
from course_lib.grading.rules import NestedLoops, OnlyImports
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.task import source

UNFOLD = """
        tensor = torch.tensor(x.tolist(), dtype=getattr(torch, str(x.dtype)))[None, :, None]
        sizes = (1, kernel), (1, dilation), (0, padding), (1, stride)
        return torch.nn.functional.unfold(tensor, *sizes)[0].numpy()
"""
OWN = "course_lib.grading.tasks.batched.im2col"

#: Each is right, but the work is done elsewhere: the task and the text of the answer.
ATTACKS = {
    "torch": ("07.im2col", f"import torch\ndef im2col(x, kernel, stride, padding, dilation):{UNFOLD}"),
    "torch through builtins": (
        "07.im2col",
        "import numpy as np\ndef im2col(x, kernel, stride, padding, dilation):\n"
        f"        torch = np.ma.core.builtins.__import__('torch'){UNFOLD}",
    ),
    "the course's reference": ("07.im2col", f"from {OWN} import im2col"),
    "the course's reference, by sys": (
        "07.im2col",
        "import numpy as np\ndef im2col(*a):\n"
        f"    return np.testing._private.utils.sys.modules['{OWN}'].im2col(*a)",
    ),
    "the course's reference, by numpy._core": (
        "07.im2col",
        f"import numpy\ndef im2col(*a):\n    return numpy._core._internal.sys.modules['{OWN}'].im2col(*a)",
    ),
    "the course's reference, by classes": (
        "07.im2col",
        "def im2col(*a):\n    for c in object.__subclasses__():\n"
        "        space = getattr(getattr(c, '__init__', None), '__globals__', {})\n"
        f"        if 'sys' in space: return space['sys'].modules['{OWN}'].im2col(*a)",
    ),
    "torch's softmax": (
        "07.softmax",
        "import numpy as np\ndef weights(scores, length):\n"
        "    torch = np.ma.core.builtins.__import__('torch')\n"
        "    m = np.outer(*[np.arange(len(scores)) < length] * 2)\n"
        "    return np.where(m, torch.softmax(torch.tensor(np.where(m, scores, -1e4)), 1).numpy(), 0)",
    ),
    "scipy's softmax": (
        "07.softmax",
        "from scipy.special import softmax\nimport numpy as np\ndef weights(scores, length):\n"
        "    m = np.outer(*[np.arange(len(scores)) < length] * 2)\n"
        "    return np.where(m, softmax(np.where(m, scores, -1e4), axis=1), 0)",
    ),
    "the course's rel_shift": (
        "07.rel_shift",
        "import torch\nfrom course_lib.speech import relative_attention\ndef rel_shift(scores):\n"
        "    T = len(scores)\n    whole = torch.tensor(scores.copy())[None, None]\n"
        "    return relative_attention.rel_shift(whole)[0, 0, :, :T].numpy().copy()",
    ),
    "the course's rel_shift alone": (
        "07.rel_shift",
        "from course_lib.speech.relative_attention import rel_shift",
    ),
    "the course's rel_shift, by builtins": (
        "07.rel_shift",
        "import numpy as np\ndef rel_shift(scores):\n    get = np.ma.core.builtins.__import__\n"
        "    own = get('course_lib.speech.relative_attention', fromlist=['x'])\n"
        "    whole = get('torch').tensor(scores.copy())[None, None]\n"
        "    return own.rel_shift(whole)[0, 0, :, :len(scores)].numpy().copy()",
    ),
    "an import by print": (
        "07.slow",
        "def suspect(before, after):\n    m = print.__self__.__import__('statistics')\n"
        "    b = {r[0]: r[2] / r[1] for r in before}\n"
        "    return m.mode([max((r for r in after if r[0] in b), key=lambda r: r[2] / r[1] / b[r[0]])[0]])",
    ),
    "an import by a star": ("07.im2col", "from numpy import *\ndef im2col(*a): return load('x')"),
    "an import by getattr": (
        "07.batch",
        "def largest_batch(*a):\n    return getattr(print, '__se' + 'lf__').__import__('torch')",
    ),
    "an import by a frame": (
        "07.profile",
        "def begin_with(*a):\n    try: 1 / 0\n    except Exception as e: return e.__traceback__.tb_frame",
    ),
    "an import by names of its own": (
        "07.slow",
        "import collections\nclass C:\n    sys = meta_path = find_spec = loader = load_module = 1\n"
        "def suspect(*a):\n    finder = collections.abc.sys.meta_path[-1]\n"
        "    return finder.find_spec('torch').loader.load_module('torch')",
    ),
    "files": ("07.strides", "def layout(shape, strides):\n    return open('/proc/self/maps').read()"),
}


@pytest.mark.parametrize(("id", "text"), ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("head", ["", CLOSED + "\n"], ids=["in a notebook", "in a class"])
def test_another_library_does_not_work_for_an_answer(id, text, head):
    task = registry.task(id)
    (rule,) = (one for one in task.rules if isinstance(one, OnlyImports))
    assert rule.judge(head + source(text), task.entry)


def test_an_import_is_named_before_what_is_done_with_it():
    said = OnlyImports().judge("def f(x):\n    return torch.softmax(x)\nif f:\n    import torch", "f")
    assert said.startswith("Your answer imports torch")


def test_what_leads_to_other_modules_is_named():
    said = OnlyImports(("numpy",)).judge("import numpy as np\ndef f(): return np.ma.core.x('torch')", "f")
    assert said == (
        "Your answer uses numpy.ma.core.x in `def f(): return np.ma.core.x('torch')`: "
        "this task takes plain Python, and of a library what computes with numbers and arrays."
    )


#: Bodies of 07.bmm: how they begin is the same for all. Deep enough?
NESTS = {
    "four": (
        "for b in range(n):\n for i in range(M):\n  for j in range(N):\n   for k in range(K): C[b,i]+=A[k,j]",
        4,
    ),
    "a slice": ("for b in range(n):\n for i in range(M):\n  for k in range(K): C[b,i]+=A[b,i,k]*B[b,k]", 3),
    "ndindex": ("for b,i,j in np.ndindex(C.shape):\n for k in range(K): C[b,i,j]+=A[b,i,k]*B[b,k,j]", 4),
    "ndindex, bare": ("for at in np.ndindex(n, M, N):\n for k in range(K): C[at]+=A[at[0],at[1],k]", 4),
    "a helper": ("for b in range(n): product(A[b], B[b], C[b])", 4),
    "while": (
        "b=0\nwhile b < n:\n for i in range(M):\n  for k in range(K): C[b,i]+=A[b,i,k]*B[b,k]\n b+=1",
        3,
    ),
    "pairs": ("for a,b,c in zip(A,B,C):\n for k in range(K): c += a[:,k:k+1]*b[k]", 2),
    "all at once": ("for k in range(K): C += A[:,:,k:k+1]*B[:,k:k+1]", 1),
    "idle loops": ("for x in range(1):\n for y in range(M):\n  for k in range(K): C += A[:,:,k:k+1]", 1),
    "none": ("C = A * B", 0),
}


@pytest.mark.parametrize(("body", "deep"), NESTS.values(), ids=NESTS)
def test_loops_are_counted_and_whole_arrays_do_not_stand_for_them(body, deep):
    head = """
        def product(A, B, C):
            for i in range(A.shape[0]):
                for j in range(B.shape[1]):
                    for k in range(A.shape[1]):
                        C[i, j] += A[i, k] * B[k, j]
    """
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    text = f"{source(head)}\ndef bmm(A, B):\n{lines}\n    return C\n"
    assert depth(Program(text, "bmm")) == deep
    said = NestedLoops(3, "write four").judge(text, "bmm")
    assert (said is None) == (deep >= 3)
    assert said is None or said == f"The deepest nest of loops in your answer has {deep}: write four."


#: Other ways to write what is asked for: the task and the text of the answer.
HONEST = {
    "windows": (
        "07.im2col",
        """
        import numpy as np
        def im2col(x, kernel, stride, padding, dilation):
            C, T = x.shape
            p = np.pad(x, ((0, 0), (padding, padding)))
            width = dilation * (kernel - 1) + 1
            w = np.lib.stride_tricks.sliding_window_view(p, width, axis=1)[:, ::stride, ::dilation]
            return w.transpose(0, 2, 1).reshape(C * kernel, -1)
        """,
    ),
    "strides": (
        "07.im2col",
        """
        import numpy as np, math
        def im2col(x, kernel, stride, padding, dilation):
            C, T = x.shape
            p = np.pad(x, ((0, 0), (padding, padding)))
            n = math.floor((T + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1
            s, t = p.strides
            view = np.lib.stride_tricks.as_strided(p, (C, kernel, n), (s, dilation * t, stride * t))
            return view.reshape(C * kernel, n)
        """,
    ),
    "an index of windows": (
        "07.rel_shift",
        """
        from numpy.lib.stride_tricks import sliding_window_view
        import numpy as np
        def rel_shift(scores):
            T = len(scores)
            rows = np.arange(T)
            return sliding_window_view(scores, T, axis=1)[rows, T - 1 - rows].copy()
        """,
    ),
    "loops and math": (
        "07.softmax",
        """
        import numpy as np, math
        def weights(scores, length):
            T = len(scores)
            out = np.zeros((T, T))
            for i in range(length):
                filled = [scores[i, j] if j < length else -1e4 for j in range(T)]
                powers = [math.exp(one - max(filled)) for one in filled]
                for j in range(length):
                    out[i, j] = powers[j] / sum(powers)
            return out
        """,
    ),
    "logaddexp": (
        "07.softmax",
        """
        import numpy as np
        def weights(scores, length):
            m = np.zeros(scores.shape, bool)
            m[:length, :length] = True
            s = np.where(m, scores, -1e4)
            return np.exp(s - np.logaddexp.reduce(s, axis=1, keepdims=True)) * m
        """,
    ),
    "compiled": (
        "07.im2col",
        """
        import numpy as np
        from numba import njit
        @njit
        def im2col(x, kernel, stride, padding, dilation):
            C, T = x.shape
            n = (T + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            out = np.zeros((C * kernel, n), x.dtype)
            for c in range(C):
                for k in range(kernel):
                    for t in range(n):
                        frame = t * stride + k * dilation - padding
                        if 0 <= frame < T:
                            out[c * kernel + k, t] = x[c, frame]
            return out
        """,
    ),
    "argmax": (
        "07.profile",
        """
        import numpy as np
        def begin_with(rows, gflops, gbytes):
            gains = [r[2] - max(r[4] / gflops, r[5] / gbytes) / 1000 for r in rows]
            i, time = int(np.argmax(gains)), sum(r[2] for r in rows)
            return rows[i][0], rows[i][2] / time, time / (time - gains[i])
        """,
    ),
    "a defaultdict": (
        "07.slow",
        """
        from collections import defaultdict
        def suspect(before, after):
            usual = defaultdict(float)
            for name, calls, own, _ in before:
                usual[name] = own / calls
            return max((r for r in after if usual[r[0]]), key=lambda r: r[2] / r[1] / usual[r[0]])[0]
        """,
    ),
    "a sum that begins in the dtype of A": (
        "07.bmm",
        """
        import numpy as np
        from numba import njit
        @njit
        def product(A, B, C):
            for i in range(A.shape[0]):
                for j in range(B.shape[1]):
                    total = A.dtype.type(0)
                    for k in range(A.shape[1]):
                        total += A[i, k] * B[k, j]
                    C[i, j] = total
        @njit
        def bmm(A, B):
            C = np.empty((A.shape[0], A.shape[1], B.shape[2]), A.dtype)
            for b in range(A.shape[0]):
                product(A[b], B[b], C[b])
            return C
        """,
    ),
    "a list of NumPy's numbers": (
        "07.strides",
        """
        import numpy as np
        def layout(shape, strides):
            B, H, M, N = shape
            b, h, row, column = strides
            starts = [i * b + j * h for i in range(B) for j in range(H)]
            steps = np.unique(np.diff(starts))
            if len(steps) == 1 and column == 1 and row >= N:
                return "plain", row, int(steps[0])
            if len(steps) == 1 and row == 1 and column >= M:
                return "transposed", column, int(steps[0])
            return "copy", 0, 0
        """,
    ),
    "largest of a math.inf": (
        "07.batch",
        """
        import math
        def largest_batch(measured, rate, target):
            best, worst = (0, 0.0), -math.inf
            for b, s in measured:
                if (b - 1) / rate + s <= target and b / s >= rate and b > max(best[0], worst):
                    best = b, b / s
            return best
        """,
    ),
}


@pytest.mark.parametrize(("id", "text"), HONEST.values(), ids=HONEST)
def test_another_way_to_write_it_gets_all_points(id, text):
    task, text = registry.task(id), source(text)
    report = judge(task, InProcess(load(text, task.entry)), text, 9)
    assert report.points == task.points, str(report)
    assert all(rule.judge(f"{CLOSED}\n{text}", task.entry) is None for rule in task.rules)
