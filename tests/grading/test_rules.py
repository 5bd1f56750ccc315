"""Structural rules, judged from source text: ways around them are found, honest answers are left alone."""

import re
import textwrap
import time
from collections import Counter

from rule_texts import ROWS

#: What stands above a text, by the kind of its language.
HEADS = {
    "loops": "import numpy as np\nimport math\nfrom numba import njit, prange\n",
    "library": "import numpy as np\nimport heapq, itertools, math\n"
    "from collections import Counter, defaultdict, deque\n",
    "kernel": "import math\nimport numpy as np\nfrom numba import cuda, float32\n",
}
#: A compiler for each function that has no decorator yet.
BARE = re.compile(r"^(?<!\)\n)(?<!jit\n)(?=def )", re.MULTILINE)


def said(rules: str, code: str) -> str | None:
    """Return what the rules of this name say of a text."""
    from course_lib.grading.language import KERNEL, LOOPS, Language
    from course_lib.grading.tasks.threads import LOCKS, THREADS

    rule = {
        "python": Language(own="this task is to write it yourself"),
        "loops": LOOPS,
        "as it is": LOOPS,
        "library": Language(("numpy", "math", "collections", "itertools", "heapq", "numba")),
        "threads": THREADS,
        "kernel": KERNEL,
    }[rules]
    compiler = "@njit\n" if rules == "loops" else ""
    if rules == "kernel" and code.startswith("def f(A, B):"):
        compiler = "@cuda.jit\n"
    head = LOCKS if rules == "threads" else HEADS.get(rules, "")
    return rule.judge(f"{head}{BARE.sub(compiler, code)}", "f")


def test_every_way_around_is_refused_and_what_honest_learners_write_is_left_alone():
    for verdict, rules, name, words, body in ROWS:
        sentence = said(rules, body)
        assert bool(sentence) == (verdict == "refused"), (rules, name, sentence)
        if sentence:
            assert words in sentence and sentence.endswith("."), (rules, name, sentence)
    counted = Counter((row[0], row[1]) for row in ROWS)
    for kind in ("python", "loops", "library", "threads", "kernel"):
        assert counted["fine", kind] >= 10 and counted["refused", kind] >= 15, kind


def test_reading_ends_soon_whatever_is_read():
    from course_lib.grading import registry
    from course_lib.grading.language import Language

    ranges = range(90)
    doubling = "\n".join(f"def a{n + 1}(panel):\n    return a{n}(a{n}(panel))" for n in ranges)
    tables = "X0 = 1\n" + "\n".join(f"X{n + 1} = X{n} + X{n}" for n in ranges)
    rules = [rule for id in ("04.tile", "02.order", "07.bmm") for rule in registry.task(id).rules]
    for made in (doubling, tables, "x = " + "-" * 5000 + "1", "x = " + "(" * 99 + ")" * 99, "x = 1\0"):
        for end in ("def f(A, panel):\n    return a90(X90)", "f = a90", ""):
            whole = f"def a0(panel): return panel[0]\n{made}\n{end}\n"
            started = time.monotonic()
            sentences = [rule.judge(whole, "f") for rule in (Language(), *rules)]
            assert time.monotonic() - started < 5, made[:30]
            assert end.startswith("def") or all(sentences), (made[:30], end)


def test_a_refusal_says_what_where_and_why():
    for rules, code, words in (
        (
            "loops",
            "def f(A):\n    return np.fft.fft(A)",
            ".fft in `return np.fft.fft(A)`: this task takes plain Python, and of NumPy and Numba "
            "what makes arrays, numbers and compiled loops.",
        ),
        (
            "library",
            "def f(): return np.ma.core.x('torch')",
            ".x in `def f(): return np.ma.core.x('torch')`: this task takes plain Python, and "
            "of a library what computes with numbers and arrays.",
        ),
        (
            "python",
            "def f(A, B):\n    return A @ B",
            "the operator @ in `return A @ B`: this task is to write",
        ),
        (
            "python",
            "def f(A):\n    import math",
            "math in `import math`: allowed is nothing but plain Python.",
        ),
    ):
        assert said(rules, code).split(" ", 3)[3].startswith(words), code


def test_an_answer_must_be_compiled_itself():
    for before, compiler in (("", ""), ("@njit\n", ""), ("", "@njit\n")):
        whole = f"from numba import njit\n{before}def g(A): return A\n{compiler}def f(A): return g(A)\n"
        assert " is not compiled: put @njit in front of its `def`" in said("as it is", whole), whole


def test_stubs_are_told_from_answers():
    from course_lib.grading.program import is_stub

    stubs = (
        "raise NotImplementedError",
        "raise NotImplementedError()",
        '"""Say what."""\nraise NotImplementedError("not yet")',
        "for a in A:\n    raise NotImplementedError()",
        "...",
        "pass",
        "return ...",
        '"""Say what."""',
        "for k in A:\n    for i in A:\n        raise NotImplementedError\nreturn C",
        "x = 1\nraise NotImplementedError",
    )
    answers = (
        "return A",
        "raise ValueError(A)",
        "try:\n    return A\nexcept E:\n    raise",
        "if len(A) != 3:\n    raise NotImplementedError('3 rows only')\nreturn A",
        "if len(A) == 3:\n    return A\nraise NotImplementedError('3 rows only')",
        "try:\n    return A\nexcept E:\n    raise NotImplementedError",
    )
    for body in (*stubs, *answers):
        code = f"def f(A):\n{textwrap.indent(body, '    ')}\n"
        assert is_stub(code, "f") == (body in stubs), body
