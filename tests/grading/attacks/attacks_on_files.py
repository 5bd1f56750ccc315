"""Attacks by the file: no notebook, a damaged one, a zip or a link that leads elsewhere, forged metadata."""

from __future__ import annotations

import copy
import json
import os
import zipfile
from pathlib import Path

from attack_tools import (
    FULL,
    NAME,
    RIGHT,
    Attack,
    Notebook,
    code_cell,
    count,
    file,
    honest,
    text,
    worth,
)
from grading_tools import ASSIGNMENTS, ROOT, grader_of, read_notebook, solution_path, text_of

WRONG_COUNT = count("pass")


# --- ways to hand something in -----------------------------------------------------------------------------


def as_link(source: Path, student: str, data: bytes) -> None:
    os.symlink(solution_path("01").resolve(), file(source, student))


def as_folder_link(source: Path, student: str, data: bytes) -> None:
    os.symlink(solution_path("01").resolve().parent, source / student)


def as_pipe(source: Path, student: str, data: bytes) -> None:
    os.mkfifo(file(source, student))


def in_zip(*members: tuple[str, bytes | None], link: str = ""):
    """Hand in a zip with these members (None: the notebook); with `link` a symbolic link to it as well."""

    def place(source: Path, student: str, data: bytes) -> None:
        (source / student).mkdir()
        with zipfile.ZipFile(source / student / "work.zip", "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in members:
                made.writestr(name, data if content is None else content)
            if link:
                entry = zipfile.ZipInfo(f"{NAME}.ipynb")
                entry.create_system, entry.external_attr = 3, 0o120777 << 16
                made.writestr(entry, link)

    return place


def zeros(size: int) -> bytes:
    return b"\0" * size


# --- changes to a notebook ---------------------------------------------------------------------------------


def cut(notebook: Notebook) -> bytes:
    data = json.dumps(notebook).encode()
    return data[: len(data) // 2]


def with_bad_bytes(notebook: Notebook) -> bytes:
    notebook["cells"].append(code_cell("# HERE"))
    return json.dumps(notebook).encode().replace(b"HERE", b"\xff\xfe\x80")


def with_many_cells(notebook: Notebook) -> Notebook:
    notebook["cells"] += [{"cell_type": "code", "source": "x = 1"}] * 100_000
    return notebook


def with_a_huge_cell(notebook: Notebook) -> Notebook:
    notebook["cells"].append(code_cell("# " + "x" * 15_000_000))
    return notebook


def with_a_huge_text(notebook: Notebook) -> Notebook:
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "x " * 7_500_000})
    return notebook


def as_format_3(notebook: Notebook) -> Notebook:
    cells = [
        {"cell_type": "code", "input": text_of(cell), "language": "python", "outputs": []}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}


def without_metadata(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id", None)
    return {**notebook, "metadata": {}}


def deep(notebook: Notebook) -> bytes:
    return b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


def not_texts(notebook: Notebook) -> Notebook:
    notebook["cells"][:0] = [3, None, {"cell_type": 7}, {"cell_type": "code", "source": {"a": 1}}]
    return notebook


def points_cells(notebook: Notebook) -> list[dict]:
    return [cell for cell in notebook["cells"] if grader_of(cell).get("grade")]


def without_tests(notebook: Notebook) -> Notebook:
    notebook["cells"] = [cell for cell in notebook["cells"] if grader_of(cell).get("solution")]
    return notebook


def edited_tests(notebook: Notebook) -> Notebook:
    for cell in points_cells(notebook):
        cell["source"] = f"{cell['metadata']['nbgrader']['points']}"
    return notebook


def doubled_tests(notebook: Notebook) -> Notebook:
    extra = copy.deepcopy(points_cells(notebook))
    for cell in extra:
        cell["source"] = "100.0"
    notebook["cells"] += extra
    return notebook


def backwards(notebook: Notebook) -> Notebook:
    notebook["cells"].reverse()
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            cell["execution_count"] = 100 - number
    return notebook


def a_thousand_points(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        if marks := grader_of(cell):
            marks.update(points=1000, grade=True, locked=False, checksum="0" * 32, schema_version=3)
    return notebook


def swapped_ids(notebook: Notebook) -> Notebook:
    marks = [cell["metadata"]["nbgrader"] for cell in points_cells(notebook)]
    names = [one["grade_id"] for one in marks]
    for one, name in zip(marks, [*names[1:], names[0]], strict=True):
        one["grade_id"] = name
    answers = [cell for cell in notebook["cells"] if grader_of(cell).get("solution")]
    ids = [(cell["id"], cell["metadata"]) for cell in answers]
    for cell, (id, metadata) in zip(answers, [*ids[1:], ids[0]], strict=True):
        cell["id"], cell["metadata"] = id, metadata
    return notebook


def forged_outputs(notebook: Notebook) -> Notebook:
    shown = {
        "text/plain": "3.0",
        "text/html": "<b>Right</b><script>alert(1)</script>",
        "application/json": 1000,
    }
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {"output_type": "stream", "name": "stdout", "text": "12 of 12 points\nAll tests passed"},
                {"output_type": "display_data", "data": shown, "metadata": {}},
                {"output_type": "execute_result", "data": shown, "metadata": {}, "execution_count": 1},
            ]
            cell["execution_count"] = 1
    return notebook


def other_assignment(notebook: Notebook) -> Notebook:
    return read_notebook(ROOT / "exercises" / ASSIGNMENTS["02"] / f"{ASSIGNMENTS['02']}.ipynb")


def in_one_cell(notebook: Notebook) -> Notebook:
    return {**notebook, "cells": [code_cell("\n\n".join(RIGHT.values()))]}


def moved_answers(notebook: Notebook) -> Notebook:
    """Leave the stubs where they are and write every answer in a cell at the end."""
    notebook["cells"] += [code_cell(one, f"mine-{n}") for n, one in enumerate(RIGHT.values())]
    return notebook


# --- the attacks -------------------------------------------------------------------------------------------

DOT = worth("01.dot")
#: Right answers in a form that must not cost a point, and broken files.
FILES = (
    Attack("empty-file", "hands in nothing", edit=lambda _: b"", flagged=True),
    Attack("pdf", "a PDF by a notebook's name", flagged=True,
           edit=lambda _: b"%PDF-1.7\n1 0 obj <<>>\n%%EOF"),
    Attack("truncated", "half of a notebook", honest(*FULL), flagged=True, edit=cut),
    Attack("bad-bytes", "bytes that are no text", honest("01.dot"), DOT, True, edit=with_bad_bytes),
    Attack("utf-16", "another encoding", honest("01.dot"), DOT,
           edit=lambda notebook: json.dumps(notebook).encode("utf-16")),
    Attack("deep-json", "JSON that takes the reader's stack", flagged=True, edit=deep),
    Attack("not-texts", "cells that are no cells", honest("01.dot"), DOT, True, edit=not_texts),
    Attack("many-cells", "100,000 cells", honest("01.dot"), DOT, True, edit=with_many_cells),
    Attack("huge-cell", "a code cell of 15 MB: nobody reads it, so somebody has to look", honest("01.dot"),
           flagged=True, edit=with_a_huge_cell),
    Attack("huge-text", "15 MB of text around right answers", honest("01.dot"), DOT, edit=with_a_huge_text),
    Attack("format-3", "an old notebook format", honest("01.dot", "01.count"),
           worth("01.dot", "01.count"), edit=as_format_3),
    Attack("other-assignment", "another assignment's notebook by this one's name", edit=other_assignment),
    Attack("all-stubs", "the released notebook as it is"),
    Attack("metadata-stripped", "a right notebook that lost all its metadata", honest(*FULL), FULL,
           edit=without_metadata),
    Attack("one-cell", "all right answers in a cell of its own", {}, FULL, edit=in_one_cell),
    Attack("moved-answers", "right answers below, stubs above", {}, FULL, edit=moved_answers),
    Attack("magics", "a right notebook with magics and shell commands in other cells", honest(*FULL), FULL,
           before=("!pip install numpy\n%matplotlib inline", "%%bash\nrm -rf /", "%load_ext autoreload"),
           after=("%time C = matmul([[1.0]], [[2.0]])\n%timeit 1 + 1", "%%time\nx = 1\ny = ?", "matmul?")),
    Attack("link", "a link to the solution", place=as_link, flagged=True),
    Attack("folder-link", "a folder that is a link to the solutions", place=as_folder_link, flagged=True),
    Attack("pipe", "a pipe that blocks its reader", place=as_pipe, flagged=True),
    Attack("zip-slip", "a zip whose notebook is to land on another student", honest("01.dot"), DOT, True,
           place=in_zip((f"../../honest-m/{NAME}/{NAME}.ipynb", None), ("/etc/cron.d/x", b"x"))),
    Attack("zip-bomb", "a small zip that unpacks to 400 MB", flagged=True,
           place=in_zip((f"{NAME}.ipynb", zeros(400_000_000)))),
    Attack("zip-link", "a zip with a link to the solution in it", flagged=True,
           place=in_zip(link=str(solution_path("01")))),
    Attack("honest-zip", "a right notebook in a zip", honest("01.dot"), DOT,
           place=in_zip((f"{NAME}.ipynb", None))),
)  # fmt: skip

WRONG = {"01.count": WRONG_COUNT, **honest("01.dot")}
#: The first task is wrong, the second right: neither may change by what stands around.
FORGERIES = (
    Attack("tests-deleted", "takes the test cells away", WRONG, DOT, edit=without_tests),
    Attack("tests-edited", "test cells that give full points", WRONG, DOT, edit=edited_tests),
    Attack("tests-doubled", "test cells twice, the second kind", WRONG, DOT, edit=doubled_tests),
    Attack("cells-backwards", "a right notebook from back to front, run in no order", honest(*FULL), FULL,
           edit=backwards),
    Attack("a-thousand-points", "raises points, unlocks, marks answers as graded", WRONG, DOT,
           edit=a_thousand_points),
    Attack("swapped-ids", "swaps ids between cheap and expensive tasks", WRONG, DOT, edit=swapped_ids),
    Attack("forged-outputs", "printed scores and rich outputs", WRONG, DOT, edit=forged_outputs),
    Attack("right-then-wrong", "two definitions, the last one wrong",
           {"01.count": RIGHT["01.count"] + "\n\n" + WRONG_COUNT, **honest("01.dot")}, DOT),
    Attack("wrong-then-right", "two definitions, the last one right",
           {"01.count": WRONG_COUNT + "\n\n" + RIGHT["01.count"], **honest("01.dot")},
           worth("01.count", "01.dot")),
    Attack("markup", "markup in code, in errors and in results",
           {"01.count": count("raise ValueError('<script>alert(1)</script><img src=x onerror=alert(1)>')"),
            "01.dot": "def dot(row, col):\n    # <script>alert(1)</script>\n"
            "    return '<script>alert(1)</script>'",
            "01.predict_time": text("""
                def extrapolate(sizes, seconds, N):
                    class Evil(Exception): pass
                    Evil.__name__ = '<script>alert(1)</script>'
                    raise Evil
            """)}),
    Attack("huge-message", "an error message of 100 MB",
           {"01.count": count("raise ValueError('x' * 10**8)"), **honest("01.dot")}, DOT),
    Attack("strange-name", "a student's name that leads elsewhere", honest("01.dot"), DOT,
           place=lambda source, student, data: (source / "etc <b>x & 'y'.ipynb").write_bytes(data),
           id="etc_b_x_y"),
)  # fmt: skip

#: What cells around the answer do to the notebook's kernel: the grader never runs them.
PATCHES = {
    "allclose": "import numpy as np\nnp.allclose = np.array_equal = np.isclose = lambda *a, **k: True",
    "array-ufunc": "import numpy as np\nnp.isfinite = np.abs = lambda *a, **k: np.ones(3, bool)\n"
    "class Yes:\n    __array_ufunc__ = lambda *a, **k: True\n    __eq__ = lambda *a: True",
    "builtins": "import builtins\nbuiltins.abs = builtins.max = builtins.len = builtins.zip = lambda *a: 0\n"
    "builtins.isinstance = lambda *a: True",
    "time": "import time\ntime.perf_counter = time.time = time.process_time = lambda: 0.0\n"
    "time.clock_gettime = lambda *a: 0.0",
    "transformer": "def blank(lines):\n    return ['1000.0\\n'] if 'check(' in ''.join(lines) else lines\n"
    "get_ipython().input_transformers_post.append(blank)\nget_ipython().input_transformers_cleanup.append(blank)",
    "events": "def hook(*a):\n    import os; os._exit(0)\nfor when in ('pre_run_cell', 'post_run_cell', "
    "'pre_execute'):\n    get_ipython().events.register(when, hook)",
    "trace": "import sys, threading\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)",
    "grading": "import course_lib.grading.judge as j, course_lib.grading as g\nj.judge = None\n"
    "g.check = check = lambda *a, **k: type('R', (), {'points': 1000.0})()",
    "modules": "import sys\nclass Fake:\n    def __getattr__(self, name): return lambda *a, **k: True\n"
    "sys.modules['numpy'] = sys.modules['math'] = Fake()",
    "getattr-of-module": "import course_lib\ncourse_lib.__path__ = []\n__builtins__ = {}",
}
AROUND = tuple(
    Attack(f"patched-{name}", f"a cell that patches: {name}", WRONG, DOT, before=(code,), after=(code,))
    for name, code in PATCHES.items()
)

#: Texts that take the reader's time, memory or stack.
BOMBS = {
    "parentheses": "return " + "(" * 50_000 + "1" + ")" * 50_000,
    "sum": "return " + "1+" * 100_000 + "1",
    "unary": "return " + "-" * 100_000 + "1",
    "f-strings": "return " + 'f"{' * 150 + "1" + '}"' * 150,
    "digits": "return " + "9" * 100_000,
    "power": "return 9 ** 9 ** 9 ** 9",
    "string": "return 'x' * 10**12",
    "indent": "\n".join(" " * n + "if 1:" for n in range(4, 100)) + "\n" + " " * 100 + "pass",
    "names": "return [" + ",".join(f"a{n}" for n in range(5_000)) + "]",
    "nul": "return 1 \x00",
    "surrogate": "return '\ud800'",
    "brackets": "return " + "[" * 190 + "]" * 190,
}
TEXT_BOMBS = tuple(
    Attack(
        f"text-bomb-{name}",
        f"source text that is hard to read: {name}",
        {"01.count": f"def operations(M, K, N):\n    {body.lstrip()}\n", **honest("01.dot")},
        DOT,
        flagged=name in ("sum", "unary", "surrogate", "brackets"),
    )
    for name, body in BOMBS.items()
)

ALL = (*FILES, *FORGERIES, *AROUND, *TEXT_BOMBS)
