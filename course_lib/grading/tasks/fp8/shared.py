"""What several tasks of chapter 10 use: what an answer may import, and the tensor core that is handed out."""

from __future__ import annotations

from course_lib.grading.language import Language
from course_lib.grading.task import source

#: What the assignment's setup cell imports, and what Python has for counting. No PyTorch, no library with a
#: type of eight bits, nor this course.
MODULES = ("numpy", "math", "itertools", "collections")
USUAL_IMPORTS = Language(MODULES)

#: Handed out: the model of `simulators.tensor_core` in few lines (a test compares the two bit by bit).
TENSOR_CORE = source("""
    import numpy as np


    def exponents(x):  # of numbers of e4m3; a zero's is below all others
        return np.where(x == 0, -999, np.maximum(np.frexp(x)[1] - 1, -6))


    def tensor_core(a, b, c, core):  # (M, K), (N, K), (M, N) -> c + a b^T, (M, N) float32
        terms, sum_bits, result_bits = core
        a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
        for k in range(0, a.shape[1], terms):
            p, q = a[:, None, k : k + terms], b[None, :, k : k + terms]
            top = (exponents(p) + exponents(q)).max(axis=2)
            top = np.maximum(top, np.where(c == 0, -999, np.frexp(c)[1] - 1))
            unit = np.ldexp(1.0, top - sum_bits)  # what is smaller is cut off
            total = np.trunc(p * q / unit[:, :, None]).sum(axis=2) + np.trunc(c / unit)
            significand, exponent = np.frexp(total * unit)
            kept = np.trunc(np.ldexp(significand, result_bits + 1))
            c = np.ldexp(kept, exponent - result_bits - 1)
        return c.astype(np.float32)
""")
