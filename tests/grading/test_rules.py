"""Structural rules, judged from source text: ways around them are found, honest answers are left alone."""

import contextlib
import functools
import itertools
import re
import symtable
import textwrap
import time
from collections import Counter

from rule_texts import ROWS

#: What stands above a text, by the kind of its language.
HEADS = {
    "loops": "import numpy as np\nimport math\nfrom numba import njit\n",
    "library": "import numpy as np\nimport heapq, itertools, math\n"
    "from collections import Counter, defaultdict, deque\n",
    "wire": "import numpy as np\n",
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
        "wire": Language(("numpy",), wire=("send", "receive")),
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
    calls = f"BIG = ({'1,' * 5000})\nx = ({('pow(' * 45 + 'BIG[0]' + ',2)' * 45 + ',') * 50})"
    rules = [rule for id in ("02.matmul", "07.bmm") for rule in registry.task(id).rules]
    for made in (doubling, tables, calls, "x = " + "-" * 5000 + "1", "x = " + "(" * 99 + ")" * 99, "x = 1\0"):
        for end in ("def f(A, panel):\n    return a90(X90)", "f = a90", ""):
            whole = f"def a0(panel): return panel[0]\n{made}\n{end}\n"
            started = time.process_time()
            sentences = [rule.judge(whole, "f") for rule in (Language(), *rules)]
            assert time.process_time() - started < 2, made[:30]
            assert end.startswith("def") or all(sentences), (made[:30], end)


def test_the_names_of_a_scope_are_those_that_python_binds_there():
    from course_lib.grading.language import Language, _Reading
    from course_lib.grading.program import read_program

    class Reading(_Reading):
        def _scope(self, *about):
            found.append(sorted(super()._scope(*about)))
            return super()._scope(*about)

    binders = "(n := a)|[(n := m) for m in a]|{n: k for n, (k, *j) in a}|max(a, key=lambda n, *j, k=1: n)"
    inside = "§|max(a, key=lambda m=§: m)|max(a, key=lambda *, m=§: m)|max(a, key=lambda m: §)|[§ for x in a]"
    inside += "|[x for x in a if §]|{1: (x, §) for x in a}|a[§:§]|f'{a:{§}}'|max(a, key=§)|(§, *a)|a.count(§)"
    around = (
        "return §|v, (w, *u) = §|for v, *w in §: z = 1|with a as v: z = §|import math as v; w = §|v: int = §"
    )
    around += "|def h(v=§, *w): return n|def h(*, v=§, w=§): return §|h = lambda v=§: §|h = a.append; h(§)"
    around += "|v: int|a[§]: int = 1|try: v = §¶except ValueError as e: w = §"
    around += "|match §:¶    case [v, *w] if §: z = 1¶    case 1 as u: §"
    for parts in itertools.product(*(one.split("|") for one in (around, inside, inside, binders))):
        body = functools.reduce(lambda whole, part: whole.replace("§", part), parts).replace("¶", "\n    ")
        text, found, bound = f"def f(a, b=0):\n    {body}\n    return a\n", [], []
        with contextlib.suppress(SyntaxError):
            tables = symtable.symtable(text, "answer", "exec").get_children()
            Reading(Language(("math",)), read_program(text, "f")).judge()
            for table in tables:
                tables += table.get_children()
                bound.append([one.get_name() for one in table.get_symbols() if one.is_local()])
            own = (sorted(name for name in names if name[0] != ".") for names in bound)
            assert sorted(found) == sorted(own), text


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
