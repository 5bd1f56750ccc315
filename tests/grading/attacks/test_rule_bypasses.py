"""Ways around the structural rules: none of them may get past."""

import pytest
from attack_tools import HEAD, LOOPS_ONLY, PLAIN

from course_lib.grading.program import CLOSED
from course_lib.grading.rules import PRODUCTS, NoCalls, NoMemory

#: Out of loops that are compiled; each defines f.
COMPILED = {
    "ctypeslib": HEAD + "x = np.ctypeslib\nf(x)",
    "lib os": HEAD + "np.lib.npyio.os.fork()",
    "f2py": HEAD + "np.f2py.compile('x')",
    "from numpy import f2py": "from numpy import f2py\n" + HEAD,
    "sub": "import numpy.f2py\n" + HEAD,
    "external": (
        "from numba import types\n"
        "import numpy as np\n"
        "from numba import njit\n"
        "@njit\n"
        "def f(A, B): return A\n"
        "g = types.ExternalFunction('system', 1)"
    ),
    "core": (
        "import numba\n"
        "import numpy as np\n"
        "from numba import njit\n"
        "@njit\n"
        "def f(A, B): return A\n"
        "numba.core.types"
    ),
    "carray": "from numba import carray\n" + HEAD,
    "intrinsic": "from numba.extending import intrinsic\n" + HEAD,
    "cfunc": "from numba import cfunc\n" + HEAD,
    "vectorize": "from numba import guvectorize\n" + HEAD,
    "sig eval": (
        "import numpy as np\nfrom numba import njit\n@njit('eval(bytes((49,50)))')\ndef f(A, B): return A\n"
    ),
    "sig exec": (
        "import numpy as np\nfrom numba import njit\n@njit('[].__class__')\ndef f(A, B): return A\n"
    ),
    "sig kw": (
        "import numpy as np\n"
        "from numba import njit\n"
        "@njit(signature_or_function='exec(input())')\n"
        "def f(A, B): return A\n"
        ""
    ),
    "sig name": (
        "S = 'exec(1)'\nimport numpy as np\nfrom numba import njit\n@njit(S)\ndef f(A, B): return A\n"
    ),
    "sig computed": (
        "S = 'ex' + 'ec(1)'\nimport numpy as np\nfrom numba import njit\n@njit([S])\ndef f(A, B): return A\n"
    ),
    "table of njit": (
        "import numpy as np\n"
        "from numba import njit\n"
        "t = [njit]\n"
        "@t[0]('exec(1)')\n"
        "def f(A, B): return A\n"
        "f = njit(f)"
    ),
    "pipeline": (
        "import numpy as np\nfrom numba import njit\n@njit(pipeline_class=f)\ndef f(A, B): return A\n"
    ),
    "linalg": HEAD + "np.linalg.norm(1)",
    "fft": HEAD + "np.fft.fft(1)",
    "convolve": HEAD + "np.convolve(1)",
    "memmap": HEAD + "np.memmap('/proc/self/mem')",
    "fromfile": HEAD + "np.fromfile('/x')",
    "tofile": HEAD + "np.zeros(3).tofile('/x')",
    "save": HEAD + "np.save('/x', 3)",
    "loads": HEAD + "np.load('/x', allow_pickle=True)",
    "array interface": HEAD + "class X:\n    __array_interface__ = {}\nnp.asarray(X())",
    "array interface by type": HEAD + "np.asarray(type('X', (), {'a': 1})())",
    "launder": HEAD + "class X:\n    os = 1\nnp.lib.npyio.os",
    "launder2": HEAD + "def g(): pass\ng.ctypeslib = 1\nnp.ctypeslib",
    "ufunc by loop": (
        "import numpy as np\n"
        "from numba import njit\n"
        "for np.zeros in [np.frompyfunc]: pass\n"
        "@njit\n"
        "def f(A, B): return A"
    ),
    "setup": (
        "import numpy as np\n"
        "from numba import njit\n"
        "def setup():\n"
        "    global helper\n"
        "    helper = np.dot\n"
        "setup()\n"
        "@njit\n"
        "def f(A, B): return helper(A, B)"
    ),
    "fill": (
        "import numpy as np\n"
        "from numba import njit\n"
        "def fill(t): t.append(np.dot)\n"
        "t = []\n"
        "fill(t)\n"
        "@njit\n"
        "def f(A, B): return t[0](A, B)"
    ),
    "random": HEAD + "np.random.seed(3)",
    "testing": HEAD + "np.testing._private",
    "seterrcall": HEAD + "np.seterrcall(f)",
    "set_printoptions": HEAD + "np.set_printoptions(formatter=f)",
    "dlpack": HEAD + "np.from_dlpack(f)",
    "frombuffer": HEAD + "np.frombuffer(f)",
    "as_strided": HEAD + "np.lib.stride_tricks.as_strided(f)",
    "polymul": HEAD + "np.polymul(1,2)",
    "polyval": HEAD + "np.polyval(1,2)",
    "interp": HEAD + "np.interp(1,2,3)",
    "cov": HEAD + "np.cov(1,2,3)",
    "corrcoef": HEAD + "np.corrcoef(1,2,3)",
    "vander": HEAD + "np.emath",
    "char": HEAD + "np.char.multiply",
    "ma": HEAD + "np.ma.dot",
    "matrix": HEAD + "np.matrix([1])*np.matrix([1])",
    "bmat": HEAD + "np.asmatrix(1)",
    "mat": HEAD + "np.mat(1)",
    "histogram": HEAD + "np.histogram(1,weights=2)",
    "bincount": HEAD + "np.bincount(1,weights=2)",
    "digitize": HEAD + "np.trapezoid(1,2)",
    "gradient": HEAD + "np.cross(1,2)",
    "nditer": HEAD + "np.nditer(1)",
    "piecewise": HEAD + "np.piecewise(1)",
    "apply": HEAD + "np.apply_along_axis(1)",
    "ufunc at": HEAD + "np.subtract.at(1,2,3)",
    "ufunc outer": HEAD + "np.subtract.outer(1,2)",
    "ufunc reduce": HEAD + "np.divide.reduce(1)",
    "bitwise_count": HEAD + "np.logaddexp(1,2)",
    "objmode": "from numba import objmode\n" + HEAD,
    "cuda": "from numba import cuda\n" + HEAD,
    "jitclass": "from numba.experimental import jitclass\n" + HEAD,
    "config": "import numba\nnumba.config.X\n" + HEAD,
    "parallel ok but": "from numba.np.ufunc import parallel\n" + HEAD,
}

#: Out of plain Python, without any import.
PYTHON = {
    "map getattr": "def f(A, B): return next(map(getattr, [f], ['__glo' + 'bals__'.lower()]))",
    "getattr as argument": "def g(h): return h(A, 'x'.upper())\ndef f(A, B): return g(getattr)",
    "getattr in list": "def f(A, B): return [getattr][0](A, 'tod'[::-1])",
    "print self": "def f(A, B): return print.__self__.getattr(A, 'x'.upper())",
    "locals": "def f(A, B): return A\nlocals()['x' + 'y']",
    "match args": (
        "class M(type):\n"
        "    def __instancecheck__(s, o): return True\n"
        "class C(metaclass=M):\n"
        "    __match_args__ = (''.join(['__glob', 'als__']),)\n"
        "def f(A, B):\n"
        "    match f:\n"
        "        case C(g): return g"
    ),
    "match args by type": (
        "def f(A, B):\n    C = type('C', (), {})\n    match f:\n        case C(g): return g"
    ),
    "match positional": "C = 3\ndef f(A, B):\n    match f:\n        case C(g): return g",
    "match rebound": "int = 3\ndef f(A, B):\n    match f:\n        case int(g): return g",
    "gi_code": "def f(A, B): return (x for x in A).gi_code.replace(co_names=())",
    "type three": "def f(A, B): return type('x', (), {})",
    "type starred": "def f(A, B): return type(*A)",
    "type in map": "def f(A, B): return map(type, A, B, A)",
    "class type": "class M(type): pass\ndef f(A, B): return M('x', (), {})",
    "loader": "def f(A, B): return __loader__.load_module('sys')",
    "build class": "def f(A, B): return __build_class__",
    "builtins attr": "def f(A, B): return f.__builtins__",
    "class": "def f(A, B): return A.__class__",
    "reduce": "def f(A, B): return A.__reduce_ex__(2)",
    "open": "def f(A, B): return open('/proc/self/mem', 'r+b')",
    "input": "def f(A, B): return input()",
    "breakpoint": "def f(A, B): return breakpoint()",
    "license": "def f(A, B): return license._Printer__filenames",
    "help": "def f(A, B): return help()",
    "setattr": "def f(A, B): return setattr(f, 'x', 1)",
    "fullwidth eval": "def f(A, B): return ｅｖａｌ('1')",
    "fullwidth attr": "def f(A, B): return f.__ｇlobals__",
    "mro": "def f(A, B): return type(A).mro()",
    "init subclass": (
        "class C:\n    def __init_subclass__(cls): pass\nclass D(C): pass\ndef f(A, B): return D()"
    ),
    "class getattr": ("class C:\n    def __getattr__(self, n): return n\ndef f(A, B): return C().x"),
    "tape": "def f(A, B): return A[0].tape.codes.clear()",
    "operand class": "def f(A, B):\n    type(A[0]).__mul__ = lambda a, b: a\n    return A",
    "cell": "def f(A, B):\n    return (lambda: A).__closure__[0].cell_contents",
    "with exit": (
        "class C:\n"
        "    def __enter__(s): return s\n"
        "    def __exit__(s, a, b, tb): tb.tb_frame\n"
        "def f(A, B): return C()"
    ),
    "coroutine": "async def g(): pass\ndef f(A, B): return g().cr_frame",
    "star getattr": "def f(A, B): return getattr(*[A, 'x'])",
    "aliased": "g = getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "default": "def f(A, B, g=getattr): return g(A, 'x'.upper())",
    "walrus": "def f(A, B): return (g := getattr)(A, 'x'.upper())",
    "for": "def f(A, B):\n    for g in [getattr]: return g(A, 'x'.upper())",
    "decorator": "@getattr\ndef f(A, B): return A",
    "conditional": "g = abs if 0 else getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "second alias": "g = abs\ng = getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "second alias dotted": ("import math\ng = math.sin\ng = getattr\ndef f(A, B): return g(A, 'x'.upper())"),
    "tuple alias": "g, h = getattr, 3\ndef f(A, B): return g(A, 'x'.upper())",
    "global": ("def s():\n    global g\n    g = getattr\ns()\ndef f(A, B): return g(A, 'x'.upper())"),
    "annotations": "def f(A: eval('1'), B): return A",
    "del": "def f(A, B):\n    del f.__globals__\n    return A",
    "nonlocal types": "def f(A, B): return f.__type_params__",
    "kwdefaults": "def f(A, B): f.__kwdefaults__ = {}",
    "code": "def f(A, B): f.__code__ = 1",
    "super": (
        "class C:\n    def go(self): return super().__getattribute__('x')\ndef f(A, B): return C().go()"
    ),
    "exec in class": "class C:\n    exec('1')\ndef f(A, B): return C()",
    "try star": ("def f(A, B):\n    try: pass\n    except* Exception as e: e.__traceback__"),
    "vars alias": "v = vars\ndef f(A, B): return v(f)",
    "object new": "def f(A, B): return object.__new__(A)",
    "memoryview cast": "def f(A, B): return memoryview(b'').obj.__class__",
    "id": "def f(A, B): return __name__.__class__",
    "exc obj": ("def f(A, B):\n    try: A.foo\n    except AttributeError as e: return e.obj"),
    "dunder file": "def f(A, B): return __file__",
    "dunder spec": "def f(A, B): return __spec__",
    "shadowed elsewhere": "def unused(eval): return 0\ndef f(A, B): return eval('1')",
    "shadowed at the top": "if 0: eval = 1\ndef f(A, B): return eval('1')",
    "shadowed in a class": "class C:\n    x = eval\n    eval = 1\ndef f(A, B): return C.x('1')",
    "two imports by one name": (
        "from math import sin as g\n"
        "def s():\n"
        "    global g\n"
        "    from numba import njit as g\n"
        "s()\n"
        "def f(A, B): return g('exec(1)')"
    ),
    "a decorator that is none": "@type\ndef f(A, B): return A",
}

#: Ways to keep something from one call to the next.
MEMORY = {
    "bound method": ("cache = []\nadd = cache.append\ndef f(A, B):\n    add(A)\n    return cache[-1]"),
    "bound method inside": (
        "cache = []\ndef f(A, B):\n    add = cache.append\n    add(A)\n    return cache[-1]"
    ),
    "map append": ("cache = []\ndef f(A, B):\n    list(map(cache.append, [A]))\n    return cache[-1]"),
    "next": "it = iter(range(10**9))\ndef f(A, B):\n    return next(it)",
    "lambda shadows": ("cache = [None]\ndef f(A, B):\n    (lambda cache: 0)\n    cache[0] = A\n    return A"),
    "comprehension shadows": (
        "cache = [None]\ndef f(A, B):\n    [0 for cache in ()]\n    cache[0] = A\n    return A"
    ),
    "helper argument": (
        "cache = []\ndef put(t, x): t.append(x)\ndef f(A, B):\n    put(cache, A)\n    return A"
    ),
    "for alias": ("cache = [0]\ndef f(A, B):\n    for t in [cache]: t[0] = A\n    return A"),
    "index alias": ("cache = [0]\ndef f(A, B):\n    t = [cache][0]\n    t[0] = A\n    return A"),
    "function alias": "def f(A, B):\n    me = f\n    me.cache = A\n    return me.cache",
    "function alias 2": ("def g(): pass\ndef f(A, B):\n    for me in [g]: me.cache = A\n    return A"),
    "generator": (
        "def g():\n    last = None\n    while 1: last = yield last\nco = g()\ndef f(A, B): return co.send(A)"
    ),
    "closure read": (
        "def make():\n"
        "    cache = []\n"
        "    def put(t, x): t.append(x)\n"
        "    def inner(A, B):\n"
        "        put(cache, A)\n"
        "        return A\n"
        "    return inner\n"
        "f = make()"
    ),
    "tuple": "cache = ([],)\ndef f(A, B):\n    cache[0].append(A)\n    return A",
    "tuple 2": ("cache = ([],)\ndef f(A, B):\n    x, = cache\n    x.append(A)\n    return A"),
    "dict inner": ("cache = {'a': []}\ndef f(A, B):\n    x = cache.get('a')\n    x.append(A)\n    return x"),
    "iadd": "cache = [0]\ndef f(A, B):\n    c = cache\n    c += [A]\n    return c",
    "bytearray": (
        "cache = bytearray(9)\ndef f(A, B):\n    m = memoryview(cache)\n    m[0] = 1\n    return m[0]"
    ),
    "default function": "def g(x=[]): return x\ndef f(A, B):\n    g().append(A)\n    return A",
    "unpack": ("cache = [0]\ndef f(A, B):\n    [*x] = [cache]\n    x[0][0] = A\n    return A"),
    "conditional": ("cache = [0]\ndef f(A, B):\n    x = cache if A else 0\n    x[0] = A\n    return A"),
    "boolean": ("cache = [0]\ndef f(A, B):\n    x = 0 or cache\n    x[0] = A\n    return A"),
    "identity": ("cache = [0]\ndef f(A, B):\n    x = max([cache])\n    x[0] = A\n    return A"),
    "warn": ("import math\ncache = math\ndef f(A, B):\n    cache.x = A\n    return A"),
    "lambda cache": "f = (lambda c: lambda A, B: c.append(A) or c[-1])([])",
    "default in lambda": "f = lambda A, B, c=[]: c.append(A) or c[-1]",
    "with": ("cache = [0]\ndef f(A, B):\n    with C() as cache[0]: pass\n    return A"),
    "del": "cache = [0]\ndef f(A, B):\n    del cache[0]\n    return A",
    "rebind by import": ("def f(A, B):\n    global cache\n    import math as cache\n    return A"),
    "star target": "def f(A, B):\n    (f.cache, x) = A, B\n    return f.cache",
    "exec": "d = dict(c=1)\ndef f(A, B):\n    d.update(c=A)\n    return A",
    "or": "d = {}\ndef f(A, B):\n    d.__setitem__(0, A)\n    return A",
    "ior": "d = {}\ndef f(A, B):\n    x = d.setdefault\n    return x(0, A)",
}


def judged(rules, text: str) -> list[str]:
    """Return what the rules say about a text that is all the answer's, as in a graded class."""
    return [said for rule in rules if (said := rule.judge(f"{CLOSED}\n{text}", "f"))]


@pytest.mark.parametrize("text", COMPILED.values(), ids=COMPILED)
def test_no_way_leads_out_of_compiled_loops(text):
    assert judged(LOOPS_ONLY, text)


@pytest.mark.parametrize("text", PYTHON.values(), ids=PYTHON)
def test_no_way_leads_out_of_plain_python(text):
    assert judged(PLAIN, text)


@pytest.mark.parametrize("text", MEMORY.values(), ids=MEMORY)
def test_nothing_is_kept_between_calls(text):
    assert judged((NoMemory(),), text)


def test_a_refusal_says_what_and_why():
    said = NoCalls(PRODUCTS).judge("import numpy as np\ndef f(A):\n    return np.fft.fft(A)", "f")
    assert said.startswith("Your answer uses numpy.fft.fft in `return np.fft.fft(A)`: this task takes")
