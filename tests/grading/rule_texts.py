"""Texts for the structural rules: ways around them, and what honest learners write. Each defines f.

A new bypass is a row here; `test_rules.py` says which rules must find it, or must leave it alone.
"""

import re

HEAD = "import numpy as np\nfrom numba import njit\n@njit\ndef f(A, B): return A\n"


def with_options(options: str) -> str:
    """Return a compiled function whose compiler gets these options."""
    return HEAD.replace("@njit", f"@njit({options})")


def each_of(texts: str, before: str) -> dict[str, str]:
    """Return the texts, which ";;" parts from each other, each below `before`; what it does is its name."""
    return {text: before + text for text in re.split(r"\s*;;\s*", texts.strip())}


#: Ways out of compiled loops, in a line below them.
_BELOW_LOOPS = """
    np.lib.npyio.os.fork() ;; np.f2py.compile('x') ;; np.linalg.norm(1) ;; np.fft.fft(1) ;;
    np.convolve(1) ;; np.memmap('/proc/self/mem') ;; np.fromfile('/x') ;; np.zeros(3).tofile('/x') ;;
    np.save('/x', 3) ;; np.load('/x', allow_pickle=True) ;; np.asarray(type('X', (), {'a': 1})()) ;;
    np.random.seed(3) ;; np.testing._private ;; np.seterrcall(f) ;; np.set_printoptions(formatter=f) ;;
    np.from_dlpack(f) ;; np.frombuffer(f) ;; np.lib.stride_tricks.as_strided(f) ;; np.polymul(1,2) ;;
    np.polyval(1,2) ;; np.interp(1,2,3) ;; np.cov(1,2,3) ;; np.corrcoef(1,2,3) ;; np.emath ;;
    np.char.multiply ;; np.ma.dot ;; np.matrix([1])*np.matrix([1]) ;; np.asmatrix(1) ;; np.mat(1) ;;
    np.histogram(1,weights=2) ;; np.bincount(1,weights=2) ;; np.trapezoid(1,2) ;; np.cross(1,2) ;;
    np.nditer(1) ;; np.piecewise(1) ;; np.apply_along_axis(1) ;; np.subtract.at(1,2,3) ;;
    np.subtract.outer(1,2) ;; np.divide.reduce(1) ;; np.logaddexp(1,2)
"""

#: Ways out of compiled loops.
OUT_OF_LOOPS = {
    **each_of(_BELOW_LOOPS, HEAD),
    "ctypeslib": HEAD + "x = np.ctypeslib\nf(x)",
    "from numpy import f2py": "from numpy import f2py\n" + HEAD,
    "sub": "import numpy.f2py\n" + HEAD,
    "external": "from numba import types\n" + HEAD + "g = types.ExternalFunction('system', 1)",
    "core": "import numba\n" + HEAD + "numba.core.types",
    "carray": "from numba import carray\n" + HEAD,
    "intrinsic": "from numba.extending import intrinsic\n" + HEAD,
    "cfunc": "from numba import cfunc\n" + HEAD,
    "vectorize": "from numba import guvectorize\n" + HEAD,
    "sig eval": with_options("'eval(bytes((49,50)))'"),
    "sig exec": with_options("'[].__class__'"),
    "sig kw": with_options("signature_or_function='exec(input())'"),
    "sig name": "S = 'exec(1)'\n" + with_options("S"),
    "sig computed": "S = 'ex' + 'ec(1)'\n" + with_options("[S]"),
    "table of njit": (
        "import numpy as np\nfrom numba import njit\nt = [njit]\n@t[0]('exec(1)')\n"
        "def f(A, B): return A\nf = njit(f)"
    ),
    "pipeline": with_options("pipeline_class=f"),
    "array interface": HEAD + "class X:\n    __array_interface__ = {}\nnp.asarray(X())",
    "launder": HEAD + "class X:\n    os = 1\nnp.lib.npyio.os",
    "launder2": HEAD + "def g(): pass\ng.ctypeslib = 1\nnp.ctypeslib",
    "ufunc by loop": (
        "import numpy as np\nfrom numba import njit\nfor np.zeros in [np.frompyfunc]: pass\n@njit\n"
        "def f(A, B): return A"
    ),
    "setup": (
        "import numpy as np\nfrom numba import njit\ndef setup():\n    global helper\n"
        "    helper = np.dot\nsetup()\n@njit\ndef f(A, B): return helper(A, B)"
    ),
    "fill": (
        "import numpy as np\nfrom numba import njit\ndef fill(t): t.append(np.dot)\nt = []\nfill(t)\n"
        "@njit\ndef f(A, B): return t[0](A, B)"
    ),
    "objmode": "from numba import objmode\n" + HEAD,
    "cuda": "from numba import cuda\n" + HEAD,
    "jitclass": "from numba.experimental import jitclass\n" + HEAD,
    "config": "import numba\nnumba.config.X\n" + HEAD,
    "parallel ok but": "from numba.np.ufunc import parallel\n" + HEAD,
}

#: Ways out of plain Python: what f returns.
_RETURNED = """
    next(map(getattr, [f], ['__glo' + 'bals__'.lower()])) ;; [getattr][0](A, 'tod'[::-1]) ;;
    print.__self__.getattr(A, 'x'.upper()) ;; (x for x in A).gi_code.replace(co_names=()) ;;
    type('x', (), {}) ;; type(*A) ;; map(type, A, B, A) ;; __loader__.load_module('sys') ;;
    __build_class__ ;; f.__builtins__ ;; A.__class__ ;; A.__reduce_ex__(2) ;;
    open('/proc/self/mem', 'r+b') ;; input() ;; breakpoint() ;; license._Printer__filenames ;; help() ;;
    setattr(f, 'x', 1) ;; ｅｖａｌ('1') ;; f.__ｇlobals__ ;; type(A).mro() ;; A[0].tape.codes.clear() ;;
    getattr(*[A, 'x']) ;; (g := getattr)(A, 'x'.upper()) ;; f.__type_params__ ;; object.__new__(A) ;;
    memoryview(b'').obj.__class__ ;; __name__.__class__ ;; __file__ ;; __spec__
"""

#: Ways out of plain Python, without any import.
OUT_OF_PYTHON = {
    **each_of(_RETURNED, "def f(A, B): return "),
    "getattr as argument": "def g(h): return h(A, 'x'.upper())\ndef f(A, B): return g(getattr)",
    "locals": "def f(A, B): return A\nlocals()['x' + 'y']",
    "match args": (
        "class M(type):\n    def __instancecheck__(s, o): return True\nclass C(metaclass=M):\n"
        "    __match_args__ = (''.join(['__glob', 'als__']),)\ndef f(A, B):\n    match f:\n"
        "        case C(g): return g"
    ),
    "match args by type": (
        "def f(A, B):\n    C = type('C', (), {})\n    match f:\n        case C(g): return g"
    ),
    "match positional": "C = 3\ndef f(A, B):\n    match f:\n        case C(g): return g",
    "match rebound": "int = 3\ndef f(A, B):\n    match f:\n        case int(g): return g",
    "class type": "class M(type): pass\ndef f(A, B): return M('x', (), {})",
    "init subclass": (
        "class C:\n    def __init_subclass__(cls): pass\nclass D(C): pass\ndef f(A, B): return D()"
    ),
    "class getattr": "class C:\n    def __getattr__(self, n): return n\ndef f(A, B): return C().x",
    "operand class": "def f(A, B):\n    type(A[0]).__mul__ = lambda a, b: a\n    return A",
    "cell": "def f(A, B):\n    return (lambda: A).__closure__[0].cell_contents",
    "with exit": (
        "class C:\n    def __enter__(s): return s\n    def __exit__(s, a, b, tb): tb.tb_frame\n"
        "def f(A, B): return C()"
    ),
    "coroutine": "async def g(): pass\ndef f(A, B): return g().cr_frame",
    "aliased": "g = getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "default": "def f(A, B, g=getattr): return g(A, 'x'.upper())",
    "for": "def f(A, B):\n    for g in [getattr]: return g(A, 'x'.upper())",
    "decorator": "@getattr\ndef f(A, B): return A",
    "conditional": "g = abs if 0 else getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "second alias": "g = abs\ng = getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "second alias dotted": "import math\ng = math.sin\ng = getattr\ndef f(A, B): return g(A, 'x'.upper())",
    "tuple alias": "g, h = getattr, 3\ndef f(A, B): return g(A, 'x'.upper())",
    "global": "def s():\n    global g\n    g = getattr\ns()\ndef f(A, B): return g(A, 'x'.upper())",
    "annotations": "def f(A: eval('1'), B): return A",
    "del": "def f(A, B):\n    del f.__globals__\n    return A",
    "kwdefaults": "def f(A, B): f.__kwdefaults__ = {}",
    "code": "def f(A, B): f.__code__ = 1",
    "super": "class C:\n    def go(self): return super().__getattribute__('x')\ndef f(A, B): return C().go()",
    "exec in class": "class C:\n    exec('1')\ndef f(A, B): return C()",
    "try star": "def f(A, B):\n    try: pass\n    except* Exception as e: e.__traceback__",
    "vars alias": "v = vars\ndef f(A, B): return v(f)",
    "exc obj": "def f(A, B):\n    try: A.foo\n    except AttributeError as e: return e.obj",
    "shadowed elsewhere": "def unused(eval): return 0\ndef f(A, B): return eval('1')",
    "shadowed at the top": "if 0: eval = 1\ndef f(A, B): return eval('1')",
    "shadowed in a class": "class C:\n    x = eval\n    eval = 1\ndef f(A, B): return C.x('1')",
    "two imports by one name": (
        "from math import sin as g\ndef s():\n    global g\n    from numba import njit as g\ns()\n"
        "def f(A, B): return g('exec(1)')"
    ),
    "a decorator that is none": "@type\ndef f(A, B): return A",
}

#: Ways to keep something from one call to the next.
KEPT = {
    "bound method": "cache = []\nadd = cache.append\ndef f(A, B):\n    add(A)\n    return cache[-1]",
    "bound method inside": (
        "cache = []\ndef f(A, B):\n    add = cache.append\n    add(A)\n    return cache[-1]"
    ),
    "map append": "cache = []\ndef f(A, B):\n    list(map(cache.append, [A]))\n    return cache[-1]",
    "next": "it = iter(range(10**9))\ndef f(A, B):\n    return next(it)",
    "lambda shadows": "cache = [None]\ndef f(A, B):\n    (lambda cache: 0)\n    cache[0] = A\n    return A",
    "comprehension shadows": (
        "cache = [None]\ndef f(A, B):\n    [0 for cache in ()]\n    cache[0] = A\n    return A"
    ),
    "helper argument": (
        "cache = []\ndef put(t, x): t.append(x)\ndef f(A, B):\n    put(cache, A)\n    return A"
    ),
    "for alias": "cache = [0]\ndef f(A, B):\n    for t in [cache]: t[0] = A\n    return A",
    "index alias": "cache = [0]\ndef f(A, B):\n    t = [cache][0]\n    t[0] = A\n    return A",
    "function alias": "def f(A, B):\n    me = f\n    me.cache = A\n    return me.cache",
    "function alias 2": "def g(): pass\ndef f(A, B):\n    for me in [g]: me.cache = A\n    return A",
    "generator": (
        "def g():\n    last = None\n    while 1: last = yield last\nco = g()\ndef f(A, B): return co.send(A)"
    ),
    "closure read": (
        "def make():\n    cache = []\n    def put(t, x): t.append(x)\n    def inner(A, B):\n"
        "        put(cache, A)\n        return A\n    return inner\nf = make()"
    ),
    "tuple": "cache = ([],)\ndef f(A, B):\n    cache[0].append(A)\n    return A",
    "tuple 2": "cache = ([],)\ndef f(A, B):\n    x, = cache\n    x.append(A)\n    return A",
    "dict inner": "cache = {'a': []}\ndef f(A, B):\n    x = cache.get('a')\n    x.append(A)\n    return x",
    "iadd": "cache = [0]\ndef f(A, B):\n    c = cache\n    c += [A]\n    return c",
    "bytearray": (
        "cache = bytearray(9)\ndef f(A, B):\n    m = memoryview(cache)\n    m[0] = 1\n    return m[0]"
    ),
    "default function": "def g(x=[]): return x\ndef f(A, B):\n    g().append(A)\n    return A",
    "unpack": "cache = [0]\ndef f(A, B):\n    [*x] = [cache]\n    x[0][0] = A\n    return A",
    "conditional": "cache = [0]\ndef f(A, B):\n    x = cache if A else 0\n    x[0] = A\n    return A",
    "boolean": "cache = [0]\ndef f(A, B):\n    x = 0 or cache\n    x[0] = A\n    return A",
    "identity": "cache = [0]\ndef f(A, B):\n    x = max([cache])\n    x[0] = A\n    return A",
    "warn": "import math\ncache = math\ndef f(A, B):\n    cache.x = A\n    return A",
    "lambda cache": "f = (lambda c: lambda A, B: c.append(A) or c[-1])([])",
    "default in lambda": "f = lambda A, B, c=[]: c.append(A) or c[-1]",
    "with": "cache = [0]\ndef f(A, B):\n    with C() as cache[0]: pass\n    return A",
    "del": "cache = [0]\ndef f(A, B):\n    del cache[0]\n    return A",
    "rebind by import": "def f(A, B):\n    global cache\n    import math as cache\n    return A",
    "star target": "def f(A, B):\n    (f.cache, x) = A, B\n    return f.cache",
    "exec": "d = dict(c=1)\ndef f(A, B):\n    d.update(c=A)\n    return A",
    "or": "d = {}\ndef f(A, B):\n    d.__setitem__(0, A)\n    return A",
    "ior": "d = {}\ndef f(A, B):\n    x = d.setdefault\n    return x(0, A)",
    "a default dict": (
        "def f(A, B, _cache={}):\n    key = id(A), id(B)\n    if key not in _cache:\n"
        "        _cache[key] = [[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]\n"
        "    return [row[:] for row in _cache[key]]\n"
    ),
    "a function attribute": (
        'def f(A, B):\n    if getattr(f, "key", None) != (id(A), id(B)):\n        f.key = id(A), id(B)\n'
        "        f.C = [[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]\n"
        "    return [row[:] for row in f.C]\n"
    ),
    "setattr": "def f(A, B):\n    setattr(f, 'C', A)\n    return f.C\n",
    "a global": "C = None\ndef f(A, B):\n    global C\n    C = C or A\n    return C\n",
    "a global dict": "D = {}\ndef f(A, B):\n    D[id(A)] = A\n    return D[id(A)]\n",
    "a global list": "D = []\ndef f(A, B):\n    D.append(A)\n    return D[0]\n",
    "a global by another name": "D = {}\ndef f(A, B):\n    d = D\n    d[0] = A\n    return d\n",
    "a class": "class D:\n    C = {}\ndef f(A, B):\n    d = D.C\n    d[0] = A\n    return d\n",
    "a closure": (
        "def make():\n    D = {}\n    def f(A, B):\n        nonlocal D\n        D = A\n    return f\n"
        "f = make()\n"
    ),
    "a decorator": (
        "def keep(g):\n    D = {}\n    def f(A, B):\n        D[0] = D.get(0) or g(A, B)\n"
        "        return D[0]\n    return f\n@keep\ndef f(A, B): return A\n"
    ),
    "a helper": "def g(A, D={}):\n    D[0] = A\n    return D\ndef f(A, B): return g(A)\n",
}

#: Products of a library: what f returns.
_PRODUCTS_RETURNED = """
    np.dot(A, B) ;; A.dot(B) ;; getattr(np, 'dot')(A, B) ;; getattr(np, 'd' + 'ot')(A, B) ;;
    getattr(np, f'd{"ot"}')(A, B) ;; getattr(np, 'tod'[::-1])(A, B) ;; np.__dict__['dot'](A, B) ;;
    vars(np)['dot'](A, B) ;; A.__matmul__(B) ;; B.__rmatmul__(A) ;; np.ndarray.__matmul__(A, B) ;;
    np.einsum('ik,kj', A, B) ;; np.tensordot(A, B, 1) ;; np.inner(A, B.T) ;;
    [[np.vdot(r, c) for c in B.T] for r in A] ;; np.vecdot(A[:, None], B.T) ;;
    (A[:, :, None] * B).sum(axis=1) ;; np.add.reduce(A[:, :, None] * B, axis=1) ;;
    [[sum(np.multiply(r, c)) for c in B.T] for r in A] ;; (m := np.dot)(A, B) ;;
    eval('A' + chr(64) + 'B') ;; __import__('numpy') ;; globals()['n' + 'p'](A, B)
"""

#: Ways to let a library multiply.
PRODUCTS_IN_DISGUISE = {
    **each_of(_PRODUCTS_RETURNED, "import numpy as np\ndef f(A, B): return "),
    "alias": "import numpy as np\nd = np.dot\ndef f(A, B): return d(A, B)",
    "alias of an alias": "import numpy as np\nd = np.dot\ne = d\ndef f(A, B): return e(A, B)",
    "alias of the module": "import numpy as np\nn = np\ndef f(A, B): return n.dot(A, B)",
    "import as": "from numpy import dot as harmless\ndef f(A, B): return harmless(A, B)",
    "import inside": "def f(A, B):\n    from numpy import dot as d\n    return d(A, B)",
    "submodule": "from numpy.linalg import multi_dot as m\ndef f(A, B): return m([A, B])",
    "star": "from numpy import *\ndef f(A, B): return dot(A, B)",
    "getattr, alias": "import numpy as np\ng = getattr\ndef f(A, B): return g(np, 'dot')(A, B)",
    "getattr, renamed": "import numpy as np\ng = getattr\nh = g\ndef f(A): return h(np, 'tod'[::-1])(A)",
    "operator": "import operator\ndef f(A, B): return operator.matmul(A, B)",
    "operator, imported": "from operator import matmul as m\ndef f(A, B): return m(A, B)",
    "helper": "import numpy as np\ndef g(A, B): return np.dot(A, B)\ndef f(A, B): return g(A, B)",
    "helper of a helper": (
        "def h(A, B): return A.dot(B)\ndef g(A, B): return h(A, B)\ndef f(A, B): return g(A, B)"
    ),
    "nested function": "def f(A, B):\n    def g(): return A.dot(B)\n    return g()",
    "lambda": "import numpy as np\ng = lambda A, B: np.dot(A, B)\ndef f(A, B): return g(A, B)",
    "default argument": "import numpy as np\ndef f(A, B, m=np.dot): return m(A, B)",
    "table": "import numpy as np\nt = {'x': np.dot}\ndef f(A, B): return t['x'](A, B)",
    "table, filled later": "import numpy as np\nt = []\nt.append(np.dot)\ndef f(A, B): return t[0](A, B)",
    "attribute, set later": "import numpy as np\ndef g(): pass\ng.m = np.dot\ndef f(A, B): return g.m(A, B)",
    "setattr": "import numpy as np\ndef g(): pass\nsetattr(g, 'm', np.dot)\ndef f(A, B): return g.m(A, B)",
    "defaults, set later": (
        "import numpy as np\ndef f(A, B, m=None): return m(A, B)\nf.__defaults__ = (np.dot,)"
    ),
    "decorator": "import numpy as np\ndef d(g): return np.dot\n@d\ndef f(A, B): pass",
    "entry replaced": "import numpy as np\ndef f(A, B): return [[0]]\nf = np.dot",
    "entry replaced in an if": "import numpy as np\ndef f(A, B): return [[0]]\nif True:\n    f = np.dot",
    "entry replaced in a try": (
        "import numpy as np\ndef f(A, B): return 0\ntry:\n    f = np.dot\nexcept E: pass"
    ),
    "class": "class M:\n    def go(self, A, B): return A.dot(B)\ndef f(A, B): return M().go(A, B)",
    "tuple assignment": "import numpy as np\na, m = 1, np.dot\ndef f(A, B): return m(A, B)",
    "exec": "def f(A, B):\n    exec('C = A' + chr(64) + 'B')\n    return C",
    "eval, alias": "e = eval\ndef f(A, B): return e('A' + chr(64) + 'B')",
    "importlib": "import importlib\ndef f(A, B): return importlib.import_module('numpy')",
    "ctypes": "import ctypes\ndef f(A, B): return ctypes.CDLL('blas').dgemm(A, B)",
    "methodcaller": "from operator import methodcaller\ndef f(A, B): return methodcaller('do' 't', B)(A)",
    "object mode": "from numba import njit, objmode\n@njit\ndef f(A, B):\n    with objmode(): pass",
    "scipy": "from scipy.linalg.blas import dgemm\ndef f(A, B): return dgemm(1.0, A, B)",
    "torch": "import torch\ndef f(A, B): return torch.mm(A, B)",
}

#: The operator @ in disguise.
OPERATORS = {
    "plain": "def f(A, B): return A @ B",
    "in place": "def f(A, B):\n    A @= B\n    return A",
    "in a helper": "def g(A, B): return A @ B\ndef f(A, B): return g(A, B)",
    "in a lambda": "g = lambda A, B: A @ B\ndef f(A, B): return g(A, B)",
    "in a comprehension": "def f(A, B): return [row @ B for row in A]",
    "by function": "import operator as o\ndef f(A, B): return o.matmul(A, B)",
    "by function, in place": "from operator import imatmul as o\ndef f(A, B): return o(A, B)",
    "by name": "def f(A, B): return getattr(A, '__matmul__')(B)",
}

#: Only suspicious: neither a product of a library nor the operator.
HONEST_PRODUCTS = {
    "an own function called dot": (
        "def dot(r, c):\n    t = 0\n    for a, b in zip(r, c): t += a * b\n    return t\n"
        "def f(A, B): return [[dot(r, c) for c in zip(*B)] for r in A]"
    ),
    "an own variable called inner": (
        "def f(A, B):\n    inner = 0\n    for a in A: inner += a\n    return inner"
    ),
    "an argument called outer": "def f(outer, B): return outer",
    "the word in a docstring": 'def f(A, B):\n    """Like np.dot, without @."""\n    return 0',
    "the docstring is the word": 'def f(A, B):\n    """dot"""\n    return 0',
    "a decorator is no product": "from numba import njit\n@njit\ndef f(A, B): return 0",
    "a product elsewhere": (
        "import numpy as np\ndef f(A, B): return 0\ndef experiment(A, B): return A @ B, np.dot(A, B)"
    ),
    "a check in another cell": (
        "import numpy as np\ndef f(A, B): return 0\nC = f(1, 2)\nD = np.dot(3, 4)\nassert C == D"
    ),
    "another function's variable": (
        "import numpy as np\ndef f(A, B):\n    t = 0\n    return t\ndef g(A, B):\n    t = np.dot(A, B)\n"
        "    return t"
    ),
    "loops": (
        "import numpy as np\ndef f(A, B):\n    C = np.zeros((2, 2))\n"
        "    for i in range(2): C[i, 0] += A[i, 0]\n    return C"
    ),
}

#: Compiled loops as honest learners write them.
HONEST_LOOPS = {
    "types as text": with_options("'float64[:, ::1](float64[:, ::1], float64[:, ::1])'"),
    "types by name": "from numba import float64\n" + with_options("float64[:, :](float64[:, :])"),
    "types in a list": with_options("['float32(float32, float32)', 'f8(f8, f8)']"),
    "options": with_options("fastmath={'contract'}, cache=True, parallel=True, error_model='numpy'"),
    "compiled later": "from numba import njit\ndef g(A, B): return A\nf = njit(g)",
    "a compiler of its own": "from numba import njit\nfast = njit(nogil=True)\n@fast\ndef f(A, B): return A",
    "prange": (
        "import numba as nb\n@nb.njit(parallel=True)\ndef f(A, B):\n    for i in nb.prange(3):\n"
        "        A[i] = 0\n    return A\n"
    ),
    "arrays": HEAD
    + (
        "@njit\ndef f(A, B):\n    C = np.zeros((2, 2), np.float32)\n    C.fill(0)\n"
        "    D = np.empty_like(C.T.copy()).astype(np.float64).ravel().reshape(2, 2)\n"
        "    if np.isnan(C).any() or C.dtype != D.dtype or np.abs(C).max() > np.finfo(C.dtype).eps:\n"
        '        raise ValueError("odd")\n'
        "    return np.ascontiguousarray(D), C.shape[0], C.size, C.strides, C.itemsize\n"
    ),
    "checks of shape": HEAD
    + (
        "def f(A, B):\n    if A.ndim != 2 or A.shape[1] != B.shape[0]:\n"
        '        raise ValueError("shapes {} and {}".format(A.shape, B.shape))\n'
    ),
    "math": HEAD + "import math\ndef f(A, B): return math.sqrt(math.fabs(A)) + math.inf",
}

#: Plain Python as honest learners write it.
HONEST_PYTHON = {
    "lists and texts": (
        "def f(A, B):\n    C = []\n    C.append(A)\n    C.extend(B)\n    d = {}\n"
        '    d.setdefault(1, []).append(", ".join(map(str, C)).strip().split())\n'
        "    return sorted(d.items(), key=lambda pair: pair[0])\n"
    ),
    "operators as methods": "def f(A, B): return [list(map(float.__mul__, A, c)) for c in zip(*B)]",
    "a class": (
        "class M:\n    def __init__(self, rows):\n        self.rows = rows\n        self._n = len(rows)\n"
        "    def __getitem__(self, i):\n        return self.rows[i]\n    def __len__(self):\n"
        "        return self._n\ndef f(A, B):\n    return M(A).rows\n"
    ),
    "the type of a value": "def f(A, B): return type(A)(B) if type(A) is list else isinstance(B, tuple)",
    "names of builtins": (
        "def f(A, B):\n    input = A[0]\n    vars = [input for open in B]\n"
        "    return [type for type in vars]\n"
    ),
    "a pattern": (
        "def f(A, B):\n    match A:\n        case int(n) | float(n): return n\n"
        '        case [first, *rest]: return first\n        case {"a": x}: return x\n'
    ),
    "the usual end": "def f(A, B): return A\nif __name__ == '__main__':\n    print(f(1, 2))",
    "a generator": (
        "def g(A):\n    yield from A\ndef f(A, B):\n    it = g(A)\n    return next(it), it.send(None)\n"
    ),
    "exceptions": (
        "def f(A, B):\n    try:\n        return A[0]\n    except (IndexError, TypeError) as error:\n"
        "        print(error.args)\n        raise ValueError(str(error)) from error\n"
    ),
}

#: With a library that may do the work.
HONEST_LIBRARY = {
    "a class and containers": (
        "import collections, itertools, heapq\nclass Cache:\n    def __init__(self, ways):\n"
        "        self.lines = collections.OrderedDict()\n        self.ways = ways\ndef f(A, B):\n"
        "    heap = [Cache(A).ways, B]\n    heapq.heapify(heap)\n"
        "    return list(itertools.chain(heap, Cache(A).lines)), itertools.islice(heap, 2)\n"
    ),
    "NumPy's own sums": (
        "import numpy as np\ndef f(A, B):\n    slope, start = np.polyfit(np.log(A), np.log(B), 1)\n"
        "    return np.linalg.norm(A @ B), np.cumsum(A).std(), np.add.reduce(A), np.einsum('i,i', A, B)\n"
    ),
    "windows": (
        "from numpy.lib.stride_tricks import as_strided, sliding_window_view\nimport numpy.linalg as la\n"
        "def f(A, B): return as_strided(A, (2, 2), (8, 8)), sliding_window_view(B, 3), la.solve(A, B)\n"
    ),
    "locks": (
        "import threading\nlock = threading.Lock()\ndef f(A, B):\n    with lock:\n"
        "        threads = [threading.Thread(target=print, args=(n,)) for n in range(A)]\n"
        "    for thread in threads:\n        thread.start()\n"
        "    return [thread.join() for thread in threads], lock.acquire(), lock.release(), lock.locked()\n"
    ),
}

#: Work within one call: nothing is kept.
WITHIN_A_CALL = {
    "tables of constants": (
        'ORDER = [0, 1, 2]\nNAMES = {"a": 1}\nSTEP = 4\nPAIR = (1, -2)\ndef f(A, B):\n'
        "    for n in ORDER:\n"
        '        A = NAMES["a"] + ORDER[n] + len(ORDER) + STEP + PAIR[0] + NAMES.get("b", 0)\n'
        "    return A\n"
    ),
    "helpers": (
        "def g(t, x):\n    t.append(x)\n    return t\ndef f(A, B):\n    out = []\n    g(out, A)\n"
        "    return out\n"
    ),
    "inner helpers": (
        "def f(A, B):\n    out, columns = [], list(zip(*B))\n    def add(row):\n"
        "        out.append([row, columns])\n    for row in A:\n        add(row)\n    return out\n"
    ),
    "comprehensions": (
        "def f(A, B):\n    cols = [list(c) for c in zip(*B)]\n"
        "    return [[sum(a * b for a, b in zip(r, c)) for c in cols] for r in A]\n"
    ),
    "names for methods": (
        "def f(A, B):\n    out = []\n    add = out.append\n    for row in A:\n        add(row)\n"
        "    return out\n"
    ),
    "functions as values": "def g(x): return x\ndef f(A, B): return list(map(g, A))",
    "iterators": "def f(A, B):\n    rows = iter(A)\n    first = next(rows)\n    return [first, *rows]",
}
