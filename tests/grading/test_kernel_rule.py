"""The rule that nothing of a kernel answer runs as Python: honest forms pass, every trick is refused."""

IMPORT = "from numba import cuda\n"
KERNEL = "@cuda.jit\ndef k(A):\n    A[0] = 1\n"
WHOLE = IMPORT + KERNEL


def said(text: str, entry: str = "k") -> str | None:
    from course_lib.grading.program import CLOSED
    from course_lib.grading.rules_gpu import KernelOnly

    return KernelOnly().judge(f"{CLOSED}\n{text}", entry)


HONEST = {
    "types": "from numba import cuda, float32, int64 as i8\nimport math, numpy as np\n" + KERNEL,
    "constants": IMPORT + "TILE = 32\nHALF = TILE // 2\n"
    + "SHAPE = (TILE, TILE + 1)\nEPS = -1e-3\nSIZE: int = 2 ** 5\n" + KERNEL,
    "a type by another name": "from numba import cuda\nimport numpy as np\nT = np.float32\n" + KERNEL,
    "numbers of math": "import math\n" + IMPORT + "NEG = -math.inf\nTURN = 2 * math.pi\n" + KERNEL,
    "numbers of numpy": "import numpy as np\nfrom math import inf\n" + IMPORT
    + "NEG, BAD = -inf, np.nan\n" + KERNEL,
    "numbers of float": IMPORT + "NEG, LOW = float('-inf'), -float('Infinity')\nX = float(3)\n" + KERNEL,
    "a number of a type": "import numpy as np\nfrom numba import cuda, float32\n"
    + "ZERO = float32(0)\nONE = np.float32(1)\nT = np.int64\nN = T(3) + 1\n" + KERNEL,
    "two numbers at once": IMPORT + "A, B = 1, 2\n(C, D) = [A, B]\n" + KERNEL,
    "types of numba": "from numba.types import float32\n" + IMPORT + KERNEL,
    "helpers": IMPORT + "@cuda.jit(device=True, inline='always')\ndef h(x):\n    return x\n" + KERNEL,
    "settings": IMPORT + KERNEL.replace("cuda.jit", "cuda.jit(fastmath=True, max_registers=32)"),
    "the whole module": "import numba.cuda\n" + KERNEL.replace("cuda.jit", "numba.cuda.jit"),
    "the module by a name": "import numba.cuda as gpu\n" + KERNEL.replace("cuda.jit", "gpu.jit"),
    "by itself": "from numba.cuda import jit, grid, shared\n" + KERNEL.replace("cuda.jit", "jit"),
    "a constant twice": IMPORT + "N = 1\nN = 2\n" + KERNEL,
    "one import twice": IMPORT + IMPORT + KERNEL,
    "a future": "from __future__ import annotations\n" + WHOLE,
    "notes": IMPORT
    + "'What it is.'\n@cuda.jit\ndef k(A: 'array', n: int) -> None:\n    'Text.'\n    A[0] = n\n",
    "asserts and prints": IMPORT + "@cuda.jit\ndef k(A):\n    assert A.size > 0\n    print(A[0])\n",
}  # fmt: skip


def test_honest_forms_and_right_answers_pass():
    from kernel_examples import RIGHT, TASKS

    for form, text in HONEST.items():
        assert said(text) is None, form
    for task in TASKS:
        assert said(RIGHT[task.id], task.entry) is None, task.id


def _decorated(decorator: str, head: str = "def k(A):") -> str:
    return f"{IMPORT}@{decorator}\n{head}\n    A[0] = 1\n"


#: What is refused -> the answer, and what the sentence names.
REFUSED = {
    "float of a text": (IMPORT + "X = float('1' * 9)\n" + KERNEL, "something else than a number"),
    "float of words": (IMPORT + "X = float('nine')\n" + KERNEL, "something else than a number"),
    "another float": (
        "from numba import cuda, cuda as float\nX = float('inf')\n" + KERNEL,
        "something else than a number",
    ),
    "a call": (WHOLE + "print(1)\n", "an expression"),
    "a call in a constant": (IMPORT + "N = int(32)\n" + KERNEL, "`N = …` with something else"),
    "an alias": (IMPORT + "jit = cuda.jit\n@jit\ndef k(A):\n    A[0] = 1\n", "`jit = …` with something else"),
    "cuda anew": (IMPORT + "cuda = 3\n" + KERNEL, "a second meaning of the name cuda"),
    "cuda by another import": (
        "from numba import cuda\nimport math as cuda\n" + KERNEL,
        "a second meaning of the name cuda",
    ),
    "not cuda at all": ("from numba import types as cuda\n" + KERNEL, "a decorator that is not cuda.jit"),
    "a shadowed type": ("from numba import cuda, float32\nfloat32 = 4\n" + KERNEL, "a second meaning"),
    "a second kernel": (WHOLE + KERNEL, "a second meaning of the name k"),
    "a kernel that is a number": (WHOLE + "k = 3\n", "a second meaning of the name k"),
    "a condition": (IMPORT + "if 1:\n    @cuda.jit\n    def k(A):\n        A[0] = 1\n", "a statement (if)"),
    "a loop": (IMPORT + "for i in range(3):\n    N = i\n" + KERNEL, "a statement (for)"),
    "a try": (IMPORT + "try:\n    N = 1\nfinally:\n    pass\n" + KERNEL, "a statement (try)"),
    "with": (IMPORT + "with open('x'):\n    pass\n" + KERNEL, "a statement (with)"),
    "a class": (IMPORT + "class C:\n    N = print(1)\n" + KERNEL, "a class"),
    "a lambda": (IMPORT + "k = lambda A: A\n", "`k = …` with something else"),
    "a kernel from a lambda": (IMPORT + "k = cuda.jit(lambda A: None)\n", "`k = …` with something else"),
    "a comprehension": (IMPORT + "N = [print(i) for i in range(3)]\n" + KERNEL, "`N = …`"),
    "a walrus": (IMPORT + "N = (M := 3)\n" + KERNEL, "`N = …`"),
    "a text": (IMPORT + "N = 'text'\n" + KERNEL, "`N = …`"),
    "a subscript": (IMPORT + "N = (1, 2)[0]\n" + KERNEL, "`N = …`"),
    "an f-string": (IMPORT + "N = f'{print(1)}'\n" + KERNEL, "`N = …`"),
    "builtins": (IMPORT + "N = __builtins__\n" + KERNEL, "the name __builtins__"),
    "builtins as a target": (IMPORT + "__builtins__ = 3\n" + KERNEL, "the name __builtins__"),
    "builtins in a kernel": (WHOLE.replace("= 1", "= __import__('os')"), "the name __import__"),
    "a dunder attribute": (WHOLE.replace("= 1", "= A.__class__"), "the name __class__"),
    "a name without end": (WHOLE + "y" * 101 + " = 3\n", "a name of 101 letters"),
    "a dunder parameter": (IMPORT + "@cuda.jit\ndef k(A, __x):\n    A[0] = 1\n", "the name __x"),
    "a module's attribute": (IMPORT + "cuda.syncthreads = 3\n" + KERNEL, "something else than a name"),
    "a tuple of targets": (IMPORT + "M, cuda.grid = 1, 2\n" + KERNEL, "something else than a name"),
    "a tuple with a call": (IMPORT + "M, N = 1, print(2)\n" + KERNEL, "`N = …` with something else"),
    "too few numbers": (IMPORT + "M, N = 1, 2, 3\n" + KERNEL, "not written beside them"),
    "a star of numbers": (IMPORT + "M, *N = 1, 2\n" + KERNEL, "something else than a name"),
    "a number unpacked": (IMPORT + "P = 1, 2\nM, N = P\n" + KERNEL, "not written beside them"),
    "a tuple that hides cuda": (IMPORT + "N, cuda = 1, 2\n" + KERNEL, "a second meaning of the name cuda"),
    "a type of a call": ("from numba import cuda, float32\nN = float32(print(1))\n" + KERNEL, "`N = …`"),
    "a type of a type": ("from numba import cuda, float32\nN = float32(float32)\n" + KERNEL, "`N = …`"),
    "a type of a tuple": ("import numpy as np\n" + IMPORT + "N = np.float32((1, 2))\n" + KERNEL, "`N = …`"),
    "a type with a word": ("import numpy as np\n" + IMPORT + "N = np.int64(x=3)\n" + KERNEL, "`N = …`"),
    "a function of math": ("import math\n" + IMPORT + "N = math.sqrt(2)\n" + KERNEL, "`N = …`"),
    "math itself": ("import math\n" + IMPORT + "N = math\n" + KERNEL, "`N = …`"),
    "a function of numba.types": ("from numba.types import Array\n" + WHOLE, "an import of Array"),
    "an augmented constant": (IMPORT + "N = 1\nN += 1\n" + KERNEL, "a change of a name"),
    "a deletion": (IMPORT + "N = 1\ndel N\n" + KERNEL, "a statement (delete)"),
    "a star": ("from numba.cuda import *\n" + KERNEL.replace("cuda.jit", "jit"), "an import of *"),
    "another module": ("import os\n" + WHOLE, "an import of os"),
    "the library": ("from course_lib.simulators import gpu\n" + WHOLE, "an import from course_lib"),
    "behind numba": ("from numba.core import config\n" + WHOLE, "an import from numba.core"),
    "not of numba": ("from numba import njit, cuda\n" + KERNEL, "an import of njit"),
    "a driver": ("from numba.cuda import to_device\n" + WHOLE, "an import of to_device"),
    "relative": ("from . import x\n" + WHOLE, "an import from ."),
    "another decorator": (_decorated("print"), "a decorator that is not cuda.jit"),
    "two decorators": (IMPORT + "@print\n@cuda.jit\ndef k(A):\n    A[0] = 1\n", "a decorator"),
    "link": (_decorated("cuda.jit(link='x.cu')"), "link= for cuda.jit"),
    "debug with a call": (_decorated("cuda.jit(debug=print(1))"), "debug= for cuda.jit"),
    "a setting with a call": (_decorated("cuda.jit(fastmath=print(1))"), "fastmath= for cuda.jit"),
    "settings unpacked": (_decorated("cuda.jit(**{'device': print(1)})"), "** for cuda.jit"),
    "types": (_decorated("cuda.jit('void(float32[:])')"), "types for cuda.jit"),
    "types computed": (_decorated("cuda.jit(print(1))"), "types for cuda.jit"),
    "a call of a call": (_decorated("cuda.jit()(print)"), "a decorator that is not cuda.jit"),
    "a default": (_decorated("cuda.jit", "def k(A, n=print(1)):"), "a parameter with a default"),
    "a keyword default": (_decorated("cuda.jit", "def k(A, *, n=print(1)):"), "a parameter with a default"),
    "stars": (_decorated("cuda.jit", "def k(*A):"), "parameters that are not plain names"),
    "an annotation": (_decorated("cuda.jit", "def k(A: print(1)):"), "an annotation that would run"),
    "a return annotation": (_decorated("cuda.jit", "def k(A) -> print(1):"), "an annotation that would run"),
    "an annotated constant": (IMPORT + "N: print(1) = 3\n" + KERNEL, "an annotation that would run"),
    "an async function": (IMPORT + "async def k(A):\n    pass\n", "an async function"),
    "a plain helper": (IMPORT + "def h(x):\n    return x\n" + KERNEL, "the plain function h"),
    "inside: a function": (WHOLE + "\n    def g(): pass\n", "a function inside"),
    "inside: a global": (WHOLE.replace("A[0] = 1", "global N\n    N = 1"), "global"),
    "inside: an import": (WHOLE.replace("A[0] = 1", "import os\n    A[0] = 1"), "an import inside"),
    "inside: a lambda": (WHOLE.replace("A[0] = 1", "A[0] = (lambda: 1)()"), "a lambda"),
    "inside: a generator": (WHOLE.replace("A[0] = 1", "yield A"), "yield"),
    "no kernel": (IMPORT + "N = 1\n", "no kernel `k`"),
    "a device function": (_decorated("cuda.jit(device=True)"), "leave device=True away"),
}  # fmt: skip


def test_every_trick_is_refused_in_a_sentence_that_names_it():
    for trick, (text, words) in REFUSED.items():
        sentence = said(text)
        assert sentence and words in sentence and sentence.endswith((".", "it.")), (trick, sentence)


def test_a_text_that_is_not_closed_is_judged_by_what_the_kernel_reaches():
    from course_lib.grading.rules_gpu import KernelOnly

    apart = "print('a try of mine')\n" + WHOLE
    assert KernelOnly().judge(apart, "k") is None
    assert said(apart)
