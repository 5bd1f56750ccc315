"""Task 06.reduction: every block adds up its piece of a vector, as a tree in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import (
    Atomics,
    BusiestWarp,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Mutant, Task
from course_lib.grading.tasks.gpu.shared import ALIGNED, PER_SECTOR, kernel, numbers, pieces, unwritten

THREADS = 256
MOST_REQUESTS = 64  # of a block to shared memory, with its shuffles


def block_sums(x: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the sum of each piece of 256 numbers of x (n,), float32; the last piece may be shorter."""
    return _by_pieces(x, lambda piece: piece)


def _by_pieces(x: np.ndarray, part) -> np.ndarray:
    """Return the sums of what `part` takes of each piece."""
    wide = x.astype(np.float64)
    found = [part(wide[first : first + THREADS]).sum() for first in range(0, len(x), THREADS)]
    return np.array(found, np.float32)


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for n in (256, 1, 31, 257, 768, int(rng.integers(300, 500)), int(rng.integers(1100, 1500))):
        x = numbers(rng, n)
        blocks = pieces(n, THREADS)
        yield Case(
            (x, unwritten(blocks)), f"x has length {n}, the grid {blocks} block{'s' * (blocks > 1)} of 256"
        )


_FILL = "part[t] = x[k] if k < len(x) else float32(0)"
_TREE = """\
half = 128
while half > 0:
    cuda.syncthreads()
    if t < half:
        part[t] += part[t + half]
    half //= 2"""
_STORE = """\
if t == 0:
    sums[cuda.blockIdx.x] = part[0]"""


def _answer(fill: str = _FILL, tree: str = _TREE, store: str = _STORE) -> str:
    body = "\n".join((fill, tree, store)).replace("\n", "\n            ")
    return kernel(f"""
        @cuda.jit
        def block_sums(x, sums):
            part = cuda.shared.array(256, float32)
            t = cuda.threadIdx.x
            k = cuda.grid(1)
            {body}
    """)


#: The tree adds with 4, 2, 1 and five times again 1 warp: 12 times two loads and a store. With the 8 stores
#: of the filling and the last load these are 45 requests; 64 leave room for other trees. The one that asks
#: for t % (2 * s) == 0 needs 150, as nearly every warp has some thread that adds; a thread alone needs 264.
#: With shuffles: 5 for each of 8 warps, 8 stores, a load and 3 or 5 shuffles more, at most 54. And x is read
#: once, 32 numbers at a time: a thread that adds alone from global memory touches each sector eight times.
LIMITS = (
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        lambda x, sums: pieces(len(x), PER_SECTOR) + 2 * len(sums),
        "every sector of x once, 32 neighbours at a time, and two for each block's sum; the adding happens "
        "in shared memory, or between the lanes of a warp",
    ),
    WavefrontsPerRequest(1),
    Atomics(lambda x, sums: len(sums), "one for a block at most, the tree does the rest"),
    SharedRequests(
        lambda x, sums: MOST_REQUESTS * len(sums),
        "64 for each block, if the threads that add are neighbours, so that whole warps have nothing to do",
    ),
    BusiestWarp(lambda x, sums: 36, "28 do, three at each of the tree's eight levels and four besides"),
)

TASK = Task(
    id="06.reduction",
    title="A tree of sums",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="the pattern behind every sum, maximum and norm on a GPU",
    entry="block_sums",
    cases=_vectors,
    reference=block_sums,
    comparison=close(rtol=1e-5, atol=1e-3),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda x, sums: (len(sums),), block=lambda x, sums: (THREADS,), result=1, limits=LIMITS
    ),
    lookalikes=(
        Lookalike(
            "Do you add to `sums`? NaN stands there before the launch, and NaN plus anything is NaN: store "
            "the "
            "sum of the block, once.",
            fits=lambda got, x, sums: bool(np.isnan(got).all()),
        ),
        Lookalike(
            "Those are the sums of the first 128 numbers of each block: the tree must begin with half = 128.",
            lambda x, sums: _by_pieces(x, lambda piece: piece[:128]) if len(x) > 128 else None,
        ),
        Lookalike(
            "Those are the sums of every second number: the tree ends a level too early.",
            lambda x, sums: _by_pieces(x, lambda piece: piece[::2]) if len(x) > 1 else None,
        ),
        Lookalike(
            "That is the first number of each block: is anything added to it?",
            lambda x, sums: x[::THREADS] if len(x) > 1 else None,
        ),
        Lookalike("Each block continues the sum of the one before it.", lambda x, sums: np.cumsum(x)[-1:]),
    ),
    hints=(
        "256 numbers lie in shared memory. If 128 threads add one number each, how many are left, where "
        "should they lie, and which threads can go home?",
        "Thread t adds number t + half to number t, for half = 128, 64, … 1, with a barrier before every "
        "level which all 256 threads reach. The threads that add are then neighbours: no bank conflicts, and "
        "whole warps are idle. Where x has ended, 0 stands in shared memory.",
        "while half > 0: cuda.syncthreads(); if t < half: part[t] += part[t + half]; then half //= 2. In the "
        "end thread 0 stores part[0].",
    ),
    mutants=(
        Mutant("no barrier", _answer(tree=_TREE.replace("    cuda.syncthreads()\n", "")), ("Data race",)),
        Mutant(
            "a barrier only before the tree",
            _answer(tree="cuda.syncthreads()\n" + _TREE.replace("    cuda.syncthreads()\n", "")),
            ("Data race", "part[t] += part[t + half]"),
        ),
        Mutant(
            "the last warp without barriers",
            _answer(
                tree=_TREE.replace("    cuda.syncthreads()", "    if half > 16:\n        cuda.syncthreads()")
            ),
            ("Data race", "of the same warp"),
        ),
        Mutant(
            "a barrier for those who add",
            _answer(
                tree=_TREE.replace("    cuda.syncthreads()\n", "").replace(
                    "part[t] +=", "cuda.syncthreads()\n        part[t] +="
                )
            ),
            ("A barrier that not every thread reaches",),
        ),
        Mutant("no guard", _answer(fill="part[t] = x[k]"), ("Outside of the array",)),
        Mutant(
            "nothing behind the end",
            _answer(fill="if k < len(x):\n    part[t] = x[k]"),
            ("Read before anything was written",),
        ),
        Mutant("begins with 64", _answer(tree=_TREE.replace("128", "64")), ("first 128 numbers",)),
        Mutant("ends too early", _answer(tree=_TREE.replace("> 0", "> 1")), ("a level too early",)),
        Mutant(
            "neighbours in pairs",
            _answer(
                tree="""\
s = 1
while s < 256:
    cuda.syncthreads()
    if t % (2 * s) == 0:
        part[t] += part[t + s]
    s *= 2"""
            ),
            ("if the threads that add are neighbours",),
        ),
        Mutant(
            "strided places",
            _answer(
                tree="""\
s = 1
while s < 256:
    cuda.syncthreads()
    if 2 * s * t < 256:
        part[2 * s * t] += part[2 * s * t + s]
    s *= 2"""
            ),
            ("wavefronts",),
        ),
        Mutant(
            "a band for each lane",
            _answer(
                fill="k = cuda.blockIdx.x * 256 + t % 32 * 8 + t // 32\n" + _FILL,
            ),
            ("sectors for each request",),
        ),
        Mutant(
            "one thread adds",
            _answer(
                tree="cuda.syncthreads()",
                store="""\
if t == 0:
    total = float32(0)
    for n in range(256):
        total += part[n]
    sums[cuda.blockIdx.x] = total""",
            ),
            ("if the threads that add are neighbours",),
        ),
        Mutant(
            "one thread adds from global memory",
            _answer(
                fill="first = cuda.blockIdx.x * 256",
                tree="total = float32(0)",
                store="""\
if t == 0:
    for n in range(first, min(first + 256, len(x))):
        total += x[n]
    sums[cuda.blockIdx.x] = total""",
            ),
            ("every sector of x once",),
        ),
        Mutant(
            "all threads add everything",
            _answer(
                fill="first = cuda.blockIdx.x * 256",
                tree="total = float32(0)\nfor n in range(first, min(first + 256, len(x))):\n"
                "    total += x[n]",
                store="sums[cuda.blockIdx.x] = total",
            ),
            ("every sector of x once",),
        ),
        Mutant(
            "lane after lane",
            _answer(
                fill="mine, total = float32(0), float32(0)\nif k < len(x):\n    mine = x[k]",
                tree="for n in range(32):\n    total += cuda.shfl_sync(0xFFFFFFFF, mine, n)\n"
                "if t % 32 == 0:\n    part[t // 32] = total\ncuda.syncthreads()",
                store="""\
if t == 0:
    for n in range(1, 8):
        total += part[n]
    sums[cuda.blockIdx.x] = total""",
            ),
            ("if the threads that add are neighbours", "and shuffles"),
        ),
        Mutant(
            "atomics in shared memory",
            _answer(
                fill="if t == 0:\n    part[0] = float32(0)",
                tree="cuda.syncthreads()\nif k < len(x):\n    cuda.atomic.add(part, 0, x[k])\n"
                "cuda.syncthreads()",
            ),
            ("one for a block at most",),
        ),
        Mutant(
            "atomics in global memory",
            _answer(fill="if k < len(x):", tree="    cuda.atomic.add(sums, cuda.blockIdx.x, x[k])", store=""),
            ("NaN plus anything is NaN",),
        ),
        Mutant("every thread stores", _answer(store="sums[cuda.blockIdx.x] = part[0]"), ("Data race",)),
        Mutant(
            "one warp has all pieces",
            kernel("""
                @cuda.jit
                def block_sums(x, sums):
                    lane = cuda.grid(1)
                    if lane >= 32:
                        return
                    for b in range(len(sums)):
                        mine = float32(0)
                        for k in range(256 * b + lane, min(256 * b + 256, len(x)), 32):
                            mine += x[k]
                        for n in range(5):
                            mine += cuda.shfl_xor_sync(0xFFFFFFFF, mine, 1 << n)
                        if lane == 0:
                            sums[b] = mine
            """),
            ("28 do",),
        ),
        Mutant(
            "thread 0 adds 32 sums",
            kernel("""
                @cuda.jit
                def block_sums(x, sums):
                    part = cuda.shared.array(32, float32)
                    t = cuda.threadIdx.x
                    if t < 32:
                        mine = float32(0)
                        first = cuda.blockIdx.x * 256
                        for k in range(first + t, min(first + 256, len(x)), 32):
                            mine += x[k]
                        part[t] = mine
                    cuda.syncthreads()
                    if t == 0:
                        total = float32(0)
                        for n in range(32):
                            total += part[n]
                        sums[cuda.blockIdx.x] = total
            """),
            ("28 do",),
        ),
        Mutant(
            "32 lanes add to one sum",
            kernel("""
                @cuda.jit
                def block_sums(x, sums):
                    part = cuda.shared.array(1, float32)
                    t = cuda.threadIdx.x
                    if t == 0:
                        part[0] = 0
                    cuda.syncthreads()
                    if t < 32:
                        mine = float32(0)
                        first = cuda.blockIdx.x * 256
                        for k in range(first + t, min(first + 256, len(x)), 32):
                            mine += x[k]
                        cuda.atomic.add(part, 0, mine)
                    cuda.syncthreads()
                    if t == 0:
                        sums[cuda.blockIdx.x] = part[0]
            """),
            ("32 atomic operations",),
        ),
    ),
)
