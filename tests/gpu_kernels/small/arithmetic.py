"""Lanes compute with Numba's types: the same text compiled by Numba gives the same numbers."""

import math

import numpy as np
from numba import float32, float64, int32, njit, uint8, uint32

from course_lib.simulators.gpu import trace
from gpu_kernels.small import kernel

#: What is computed of two numbers; the names say in a failure which it was.
TEXTS = {
    "added": "a + b",
    "subtracted": "a - b",
    "multiplied": "a * b",
    "divided": "a / b",
    "floored": "a // (b + 100)",
    "remainder": "a % (b + 100)",
    "with_a_literal": "a * 0.1 + b",
    "with_a_whole_literal": "a * 3 + b",
    "with_a_cast": "float32(a) * float32(0.1) + float32(b)",
    "negated": "-a + +b",
    "compared": "(a < b) + 2 * (a == b) + 4 * (a >= b)",
    "chosen": "a if a > b else b",
    "smaller": "min(a, b) + max(a, 3)",
    "rooted": "math.sqrt(abs(a)) + math.exp(-abs(b) / 50)",
    "powered": "a**2 + abs(b) ** 0.5",
    "to_the_left": "(int32(a) << 3) + (int32(b) >> 1)",
    "unsigned_to_the_right": "(uint32(abs(a)) - uint32(500)) >> 3",
    "squared": "a**2 / 3 + b",
    "truth_values": "~(a < b) + 2 * ~((a > 9) & (b > 9) | (a > b)) + 4 * ((a < b) ^ (b < 30))",
    "negative_powers": "(abs(int(a)) + 1) ** (int(b) % 9 - 4) + (int(b) % 2 * 2 - 1) ** (1 - int(b) % 5)",
    "divided_with_rest": "divmod(a, b + 100)[0] + 7 * divmod(int32(a), 16)[1]",
    "in_bits": "(int32(a) & int32(b)) | (int32(a) ^ 5) | ~int32(b)",
    "cut_off": "int32(a) + uint8(int32(a) + 300) + int(b)",
    "unsigned": "uint32(abs(a)) * uint32(abs(b)) // uint32(3)",
    "mixed_signs": "uint32(abs(a)) - int32(abs(b)) * 2",
    "cubed_beyond": "(uint32(abs(a) + 2500000) ** 3 > 0.5) + (uint32(abs(b)) ** 2 - 7 < 0)",
    "rounded": "math.floor(a / 7) + math.ceil(b / 7)",
    "widened": "float64(a) / 3 + b",
}
TYPES = {"math": math, **{one.name: one for one in (float32, float64, int32, uint8, uint32)}}
PAIRS = (
    (np.float32, np.float32),
    (np.int32, np.int32),
    (np.float32, np.int32),
    (np.float64, np.float64),
    (np.int64, np.int64),
    (np.uint8, np.uint8),
    (np.int64, np.float32),
    (np.float32, np.int16),
    (np.uint8, np.float32),
)


def compare(pairs):
    """Compare what the tracer and what Numba's compiled code make of the same texts."""
    for name, text in TEXTS.items():
        compute = kernel("a, b", f"return {text}", device=True, **TYPES)
        made = kernel("a, b, out", "if i < out.size:\n    out[i] = compute(a[i], b[i])", compute=compute)
        compiled = njit(error_model="numpy")(compute.py_func)
        random = np.random.default_rng(1)
        for one, two in pairs:
            a, b = random.uniform(0, 99, (2, 70))
            if np.dtype(one).kind == "f":
                a -= 50
            a, b = a.astype(one), b.astype(two)
            expected = [float(compiled(x, y)) for x, y in zip(a, b, strict=True)]
            got = np.zeros(70)
            trace(made, 3, 32, a, b, got)
            rounding = 2e-7 if np.float32 in (one, two) else 1e-15
            rounding = rounding if name in ("rooted", "powered") else 0
            said = f"{name}: {one.__name__}, {two.__name__}"
            np.testing.assert_allclose(got, expected, rtol=rounding, err_msg=said)


def test_the_same_text_compiled_by_numba_gives_the_same_numbers():
    compare(PAIRS[:3])  # the others belong to `make proof`
