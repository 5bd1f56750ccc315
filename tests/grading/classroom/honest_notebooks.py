"""Notebooks as honest learners write them, for the tests of slices.

Each begins with `=== what it shows | argument to call f with | what must not be in the slice`; `---` stands
between two cells.
"""

import ast

TEXT = r"""
=== helpers in other cells | 1 | 
def h(x):
    return x + N
---
N = 3
---
def f(x):
    return h(x)

=== imports in the first cell | 4 | json
import math, os
import json
---
def f(x):
    return math.sqrt(x)

=== from imports | 4 | 
from math import sqrt as root
---
def f(x):
    return root(x)

=== a table filled in a loop | 3 | 
T = []
for i in range(5):
    T.append(i * i)
---
def f(x):
    return T[x]

=== a table filled by a call | 3 | 
T = {}
def fill(t):
    for i in range(9):
        t[i] = -i
---
fill(T)
---
def f(x):
    return T[x]

=== filled through a helper | 4 | 
def put(t, k):
    t[k] = k
def fill(t):
    put(t, 4)
T = {}
fill(T)
---
def f(x):
    return T[x]

=== filled without an argument | 3 | 
T = []
def fill():
    for i in range(9):
        T.append(i)
---
fill()
---
def f(x):
    return T[x]

=== a global set by a call | 3 | 
def setup():
    global N
    N = 5
---
setup()
---
def f(x):
    return x + N

=== rows changed in a loop | 1 | 
T = [[0], [1]]
---
for row in T:
    row.append(7)
---
def f(x):
    return T[x]

=== another name for the table | 1 | 
T = [1]
t = T
---
t.append(5)
---
def f(x):
    return T[x]

=== shuffled | 1 | 
import random
T = [1, 2, 3]
---
random.seed(3)
---
random.shuffle(T)
---
def f(x):
    return T

=== setattr | 1 | 
class C: pass
c = C()
---
setattr(c, 'n', 4)
---
def f(x):
    return c.n

=== an augmented constant | 1 | 
N = 3
---
N += 4
---
def f(x):
    return N

=== an element deleted | 1 | 
T = [1, 2]
---
del T[0]
---
def f(x):
    return T

=== unpacked | 1 | 
(a, b), *c = (1, 2), 3, 4
---
def f(x):
    return a, b, c

=== a walrus | 1 | 
if (N := 7) > 3:
    pass
---
def f(x):
    return N

=== a memo | 15 | print
memo = {}
---
def f(n):
    if n not in memo:
        memo[n] = n if n < 2 else f(n - 1) + f(n - 2)
    return memo[n]
---
print(f(20))

=== lru_cache | 15 | f(20)
from functools import lru_cache
---
@lru_cache(maxsize=None)
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
---
f(20)

=== mutual recursion | 7 | 
def even(n):
    return True if n == 0 else odd(n - 1)
---
def odd(n):
    return False if n == 0 else even(n - 1)
---
def f(x):
    return even(x)

=== a wrapping decorator | 1 | 
import functools
STEP = 1
---
def more(g):
    @functools.wraps(g)
    def inner(*a):
        return g(*a) + STEP
    return inner
---
@more
def f(x):
    return x
---
STEP = 10

=== a decorator with arguments | 2 | 
def times(n):
    def deco(g):
        return lambda x: n * g(x)
    return deco
---
K = 3
---
@times(K)
def f(x):
    return x

=== a registry | 2 | 
T = {}
def register(g):
    T[g.__name__] = g
    return g
---
@register
def double(x):
    return 2 * x
---
def f(x):
    return T['double'](x)

=== singledispatch | 2 | 
from functools import singledispatch
---
@singledispatch
def g(x):
    return 'other'
---
@g.register
def _(x: int):
    return 'int'
---
def f(x):
    return g(x)

=== a class | 2 | 
class Base:
    n = 3
    m = n + 1
---
class Adder(Base):
    def add(self, x):
        return x + self.m
---
def f(x):
    return Adder().add(x)

=== a dataclass | 2 | 
from dataclasses import dataclass
---
@dataclass
class P:
    x: int
    y: int = 2
---
def f(x: int) -> int:
    return P(x).y

=== type annotations | 2 | 
from __future__ import annotations
---
def f(x: Matrix) -> Matrix:
    return x

=== types of their own | 2 | 
from typing import Any
Matrix = list[Any]
---
def f(x: Matrix) -> Matrix:
    return x

=== a redefinition | 2 | @
def f(x):
    return x @ x
---
def f(x):
    return x

=== a redefinition that uses the old one | 2 | 
def f(x):
    return x
---
old = f
---
def f(x):
    return old(x) + 1

=== wrapped afterwards | 2 | f(3)
import functools
---
def f(x):
    return x
---
f = functools.lru_cache(f)
---
f(3)

=== a helper redefined | 2 | @
def h(x):
    return x @ x
---
def f(x):
    return h(x)
---
def h(x):
    return -x

=== an old helper used while cells ran | 2 | 
def h(x):
    return x
---
T = [h(3)]
---
def h(x):
    return -x
---
def f(x):
    return T, h(x)

=== an old constant used while cells ran | 2 | 9
n = 4
---
T = list(range(n))
---
n = 9
print(n @ n)
---
def f(x):
    return T

=== experiments afterwards | [1] | @
def f(A):
    n = len(A)
    C = [0] * n
    return C
---
A = [1]
C = A @ A
for n in (1, 2):
    print(f(A), A @ A)
---
assert f([1]) == [0]

=== experiments with the constant's user | 5 | print
N = 2
---
def f(x):
    return x * N
---
print(f(N))
plot = [f(N) for N in range(3)]
---
import time
start = time.time()
f(3)
print(time.time() - start)

=== checks | 5 | course_lib
from course_lib.grading import check, hint
---
def f(x):
    return x
---
check('01.dot', f)
---
hint('01.dot')

=== library calls for their own sake | -5 | assert
import numpy as np
---
def f(x):
    return np.abs(x)
---
np.testing.assert_allclose(f(2) @ 1, 2)
np.sort([f(1)])
np.add(1, 2)

=== showing a table | 1 | show
T = [1, 2]
---
def f(x):
    return T[x]
---
def show(t):
    print(t)
---
show(T)
print(T)
len(T)
---
T.index(1)

=== warming a compiled function up | 1 | cache_info
from functools import lru_cache as njit
---
def g(x):
    return -x
---
f = njit(g)
---
f(2)
f.cache_info()

=== a test function with globals | 1 | test
count = 0
---
def f(x):
    global count
    count += 1
    return x
---
def test():
    for i in range(3):
        f(i @ i)
---
test()

=== a name of main | 1 | main
def f(x):
    return x
---
if __name__ == "__main__":
    print(f(3))

=== a table made in main | 1 | 
if __name__ == "__main__":
    T = [1, 2]
---
def f(x):
    return T[x]

=== try and import | 1 | 
try:
    import nothing_like_it as m
except ImportError:
    m = None
---
def f(x):
    return m is None

=== a star import | 1.5 | 
from math import *
---
def f(x):
    return floor(x)

=== a star import that shadows | 3 | 
from math import *
---
def f(x):
    return pow(x, 2)

=== a star import that is not used | 3 | math
from math import *
---
def f(x):
    return x

=== a star import from elsewhere | 3 | 
from string import *
---
def f(x):
    return digits

=== a timed cell | 3 | time
%%time
def f(x):
    return x

=== magics around | 3 | ipython
%matplotlib inline
%load_ext autoreload
!pip list
def f(x):
    return x
%timeit f(3)
f?

=== a timed line | 3 | ipython
%time N = 3
---
def f(x):
    return N

=== a lambda | 3 | 
K = 2
---
f = lambda x: K * x

=== an import as the answer | 4 | 
from math import sqrt as f

=== semicolons | 4 | a =
a = 1; b = 'é;'; c = 3  # three
---
def f(x): return b, c;

=== comments and strings | 4 | 
@staticmethod  # why not
# still
def f(x):
    '''%time
    x = 1'''

    # end
    return f.__doc__

=== a conditional definition | 4 | False
def f(x):
    return 1
---
if False:
    def f(x):
        return 2

=== an attribute of the function | 4 | 
def f(x):
    f.calls += 1
    return f.calls
---
f.calls = 10

=== a default made elsewhere | 4 | 9
N = 8
---
def f(x, n=N):
    return n
---
N = 9

=== loop variables are their own | 4 | @
for i in range(3):
    print(i @ i)
---
T = []
for i in range(3):
    T.append(i)
---
def f(x):
    return T

=== a duplicate of the stub behind | 4 | NotImplementedError
def f(x):
    return x + 1
---
def f(x):
    # Write it.
    raise NotImplementedError()

=== the stub and the answer wrapped | 4 | NotImplementedError
def f(x):
    # Write it.
    raise NotImplementedError()
---
import functools
---
def f(x):
    return x
---
def f(x):
    # Write it.
    raise NotImplementedError()
---
f = functools.lru_cache(f)

=== a broken cell elsewhere | 4 | g
def g(:
    pass
---
def f(x):
    return x

=== a cell that fails half way | 4 | 1 / 0
N = 3
1 / 0
N = 4
---
M = 5
def f(x):
    return M

=== numpy | 4 | 
import numpy as np
T = np.zeros(3)
---
T[1] = 4
T *= 2
np.fill_diagonal(T.reshape(1, 3), 3)
---
def f(x):
    return T.tolist()

=== a generator | 4 | 
it = iter(range(9))
---
next(it)
---
def f(x):
    return next(it)

=== an indented cell | 4 | 
    def f(x):
        return x

=== match | 4 | 
match [1, 2]:
    case [a, b]:
        pass
---
def f(x):
    return a + b
"""


def honest_notebooks() -> dict[str, tuple[tuple[str, ...], object, str]]:
    """Return for each name the cells, the argument, and what must not be in the slice."""
    found = {}
    for part in TEXT.split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        name, argument, left_out = (word.strip() for word in head.split("|"))
        cells = text.strip("\n").split("\n---\n")
        found[name] = (tuple(cells), ast.literal_eval(argument), left_out)
    return found
