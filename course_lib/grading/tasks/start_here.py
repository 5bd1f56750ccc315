"""Tasks of chapter 00: what layers cost, what is worth making faster, and two layers by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close, exact
from course_lib.grading.language import Language
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.python_loops import OWN_LOOPS, Rows, pair, product, rows, sizes

# --- 00.layers: shapes and operations of a network, layer by layer ------------------------------------------


def cost(layers: list[tuple], T: int, d: int, slip: str = "") -> tuple[int, int, int]:
    """Return (FLOP, frames, width) of T frames of width d that go through `layers` in turn."""
    flop = 0
    for kind, *given in layers:
        if kind == "attention":
            flop += (2 if slip == "one" else 4) * T * T * d * (given[0] if slip == "heads" else 1)
        elif kind in ("linear", "conv"):
            out, kernel, groups = (*given, 1, 1)[:3]
            left = T - kernel + (slip != "places" or kind == "linear")
            seen = kernel * (d if slip == "groups" else d // groups)
            flop += 2 * (T if slip in ("reads", "stays") else left) * out * seen
            T = T if slip == "stays" else left
            d = d if slip == "width" else out
    return flop, T, d


def _networks(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([("linear", 3)], 5, 2), "5 frames of 2 numbers, a linear layer")
    yield Case(([("conv", 2, 5, 1)], 5, 2), "a kernel as long as the sound")
    yield Case(([("norm", 4), ("conv", 8, 3, 4)], 9, 4), "every channel on its own, twice")
    yield Case(([("conv", 8, 1, 2), ("linear", 3)], 9, 4), "kernel 1, in two groups")
    yield Case(([("conv", 4, 3, 4)], 9, 12), "each group makes one channel of three")
    alone = ["linear", "conv", "groups", "own channel", "attention", "silu", "add", "layer_norm"]
    chains = [rng.permutation([*alone, "linear", "attention"]) for _ in range(4)]
    for kinds in (*([kind] for kind in alone), *chains):
        T, width = int(rng.integers(90, 300)), 8 * int(rng.integers(2, 65))
        layers, d = [], width
        for kind in kinds:
            layers.append(_layer(rng, str(kind), d))
            d = layers[-1][1] if layers[-1][0] in ("linear", "conv") else d
        yield Case((layers, T, width), f"in turn: {', '.join(kinds)}")


def _layer(rng: np.random.Generator, kind: str, d: int) -> tuple:
    out, kernel, parts = 8 * int(rng.integers(2, 65)), int(rng.integers(2, 12)), int(rng.choice([2, 4, 8]))
    return {
        "linear": ("linear", out),
        "conv": ("conv", out, kernel, 1),
        "groups": ("conv", out, kernel, parts),
        "own channel": ("conv", d, kernel, d),
        "attention": ("attention", parts),
        "add": ("add", parts),
        "layer_norm": ("layer_norm", d, 1e-5, 1),  # as long as a conv
    }.get(kind, (kind,))


LAYERS = Task(
    id="00.layers",
    title="What does a network cost?",
    difficulty=2,
    cases=_networks,
    reference=cost,
    comparison=exact(("FLOP", "frames", "width")),
    rules=(Language(("math",)),),
    lookalikes={
        "Attention multiplies twice: frames by frames for the scores, and scores by values.": "one",
        "That counts multiplications alone: each has an addition, so FLOP are twice as many.": (
            lambda *net: (cost(*net)[0] // 2, *cost(*net)[1:])
        ),
        "With groups an output channel sees the d / groups channels of its own group alone.": {
            "slip": "groups"
        },
        "Without padding a kernel has T - kernel + 1 places: the first and the last one both count.": {
            "slip": "places"
        },
        "A convolution without padding leaves fewer frames: T - kernel + 1.": "stays",
        "The convolution computes T - kernel + 1 frames, not the T that it reads.": "reads",
        "The heads share the width: each has d / heads of it, so together they cost the same as one.": {
            "slip": "heads"
        },
        "A layer hands on `out` numbers a frame: that is the width of the next.": "width",
    },
    hints=(
        "How many numbers does each layer give out, and how many products are summed for one of them?",
        "Keep T and d as they are behind the layers so far. linear: T * out sums of d; conv: T - kernel + 1 "
        "frames of out sums of kernel * d / groups; attention: two products of T * T * d. Each is two FLOP.",
        "For kind, *sizes in layers: if conv: out, kernel, groups = sizes; T = T - kernel + 1; flop += 2 * T "
        "* out * (d // groups) * kernel; d = out.",
    ),
)


# --- 00.amdahl: what it is worth to make some operations faster, from a profile -----------------------------

Profile = list[tuple[str, int, float, float]]
NAMES = ("addmm", "bmm", "convolution", "silu", "copy_", "layer_norm", "add")


def after(profile: Profile, faster: dict[str, float]) -> tuple[float, str]:
    """Return how many times as fast all is with some operations so many times as fast, and the longest then.

    A row is (name, calls, self time of all calls, total time with what it calls), in us.
    """
    left = {name: self_us / faster.get(name, 1.0) for name, _, self_us, _ in profile}
    return sum(row[2] for row in profile) / sum(left.values()), max(left, key=left.__getitem__)


def _profiles(rng: np.random.Generator) -> Iterator[Case]:
    small = [
        ("aten::addmm", 4, 600.0, 600.0),
        ("aten::silu", 2, 300.0, 300.0),
        ("aten::add", 9, 100.0, 100.0),
    ]
    yield Case((small, {"aten::addmm": 3.0}), "600 us of 1000 three times as fast")
    yield Case((small, {"aten::add": 2.0}), "100 us of 1000 twice as fast; addmm is no add")
    for what, factors in (
        ("nothing is faster", {}),
        ("the longest a little faster", {0: 1.2}),
        ("the longest ten times as fast", {0: 10.0}),
        ("the longest takes no time at all", {0: math.inf}),
        ("two operations", {0: 4.0, 1: 2.5}),
        ("the second longest is that of all, though faster", {0: 10.0, 1: 1.1}),
        ("three operations", {0: 20.0, 1: 20.0, 2: 20.0}),
        ("one that is slower now", {1: 0.5, 2: 3.0}),
        ("one that does not occur", {6: 8.0, 1: 3.0}),
    ):
        names = [f"aten::{name}" for name in rng.permutation(NAMES)]
        own = np.sort(rng.uniform(40, 400, 6)).round(1)[::-1].tolist()
        own[:2] = 1.8 * own[1], 1.2 * own[1]
        profile = [(name, int(rng.integers(2, 90)), t, t) for name, t in zip(names, own, strict=False)]
        profile[1] = (*profile[1][:3], own[1] + own[5])  # calls the sixth, and has much to do itself
        profile.append(("aten::linear", 9, 12.5, 12.5 + sum(own[:3])))  # has little to do itself
        shuffled = [profile[place] for place in rng.permutation(7)]
        yield Case((shuffled, {names[place]: factor for place, factor in factors.items()}), what)


def _weighed(weigh: Callable[[tuple], float]) -> Callable:
    return lambda profile, faster: after([(*row[:2], weigh(row), 0.0) for row in profile], faster)


AMDAHL = Task(
    id="00.amdahl",
    title="What is it worth?",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_profiles,
    reference=after,
    comparison=close(rtol=1e-9, parts=("speed-up", "the longest then")),
    rules=(Language(("math",)),),
    lookalikes={
        "In total times an operation is counted again in all that call it: self times add up to the whole.": (
            _weighed(lambda row: row[3])
        ),
        "The self time is that of all calls together: do not multiply it by them.": (
            _weighed(lambda row: row[1] * row[2])
        ),
        "That is the part of the time that is left; the speed-up is its inverse.": (
            lambda profile, faster: (1 / after(profile, faster)[0], after(profile, faster)[1])
        ),
        "The speed-up is right. Which one takes longest when the faster ones are faster?": (
            lambda profile, faster: (after(profile, faster)[0], after(profile, {})[1])
        ),
        "The factors hold for their own operations alone; the rest takes as long as before.": (
            lambda got, profile, faster: (
                bool(faster)
                and any(
                    math.isclose(got[0], one) for one in (math.prod(faster.values()), max(faster.values()))
                )
            )
        ),
        "So many times faster means a time divided by the factor, not multiplied by it.": (
            lambda profile, faster: after(profile, {name: 1 / factor for name, factor in faster.items()})
        ),
    },
    hints=(
        "How long does all of it take before? And how long does each operation take afterwards?",
        "Self times add up to the whole. Divide those in `faster` by their factors, leave the others, add up "
        "again; the old sum over the new one is the speed-up.",
        "left = {name: own / faster.get(name, 1) for name, calls, own, total in profile}; the longest is "
        "max(left, key=left.get).",
    ),
)


# --- 00.addmm: a product and an offset of any shape that broadcasts -----------------------------------------

Broadcast = float | list[float] | Rows


def addmm(input: Broadcast, A: Rows, B: Rows, beta: float, alpha: float, slip: str = "") -> Rows:
    """Return beta * input + alpha * (A B), M lists of N; `input` broadcasts, and beta = 0 leaves it out."""
    C, added = np.array(product(A, B)), np.array(input)
    if slip == "column":
        added = added[:, None]  # of a list of N alone
    elif slip == "row":
        added = added[:, 0]
    beta, alpha = {"beta": (1, alpha), "alpha": (beta, 1), "both": (alpha, beta)}.get(slip, (beta, alpha))
    with np.errstate(invalid="ignore"):  # 0 * inf is meant
        if slip == "sum":
            return (alpha * (C + beta * added)).tolist()
        return (alpha * C + beta * added if beta or slip == "NaN" else alpha * C).tolist()


def _calls(rng: np.random.Generator) -> Iterator[Case]:
    forms = ("a number", "a list of N", "one row of N", "M rows of one", "M rows of N")
    for form in forms:
        yield _call(rng, form, *sizes(rng, 2, 6))
    for M, K, _ in ((2, 3, 2), sizes(rng, 3, 7)):  # square: a row could be taken for a column
        yield from (_call(rng, form, M, K, M) for form in forms[1:])
    for beta, alpha in ((0.0, 2.5), (1.0, 0.0), (1.0, 1.0), (-1.0, 1.0)):
        yield _call(rng, str(rng.choice(forms[1:])), *sizes(rng, 2, 6), beta, alpha)
    for form, M, N in ((forms[1], 1, 1), (forms[2], 4, 1), (forms[3], 1, 4), (forms[3], 4, 1)):
        yield _call(rng, form, M, 1, N)
    A, B = pair(rng, 3, 4, 2, decimals=2)
    bad = [math.nan, math.inf]
    column = [[one] for one in (2.5, *bad)]
    for beta, said in (
        (0.0, "beta is 0: NaN and inf of `input` stay out"),
        (1e-30, "beta is not 0, however small: NaN and inf come in"),
    ):
        for given in (bad, math.nan, [bad], column, [bad, [2.5, 1.5], bad[::-1]]):
            yield Case((given, A, B, beta, 2.0), said)
    for whole in (3, [3, -2], [[3], [-2], [1]]):
        yield Case((whole, A, B, 2, -1), "whole numbers are numbers, too")
    A, B = pair(rng, 3, 4, 2, decimals=2)
    A[1][2], B[2] = 0.0, [math.inf] * 2
    A[2][0], B[0] = math.inf, [0.0] * 2
    row, column = [1.5, 2.5], [[1.5], [2.5], [-0.5]]
    for given in (1.5, row, [row], column, [row, [2.5, -0.5], [0.5, 1.5]]):
        yield Case((given, A, B, 2.0, -1.5), "0 * inf in the product is NaN, and so is inf * 0")
        for beta in (2.0, 0.0):
            yield Case((given, A, B, beta, 0.0), "alpha is 0, but 0 * inf is NaN")
    for form in forms:
        yield _call(rng, form, *sizes(rng, 5, 12), decimals=17)


def _call(
    rng: np.random.Generator, form: str, M: int, K: int, N: int, *factors: float, decimals: int = 2
) -> Case:
    beta, alpha = factors or rows(rng, 1, 2, decimals)[0]
    height, width = {"one row of N": (1, N), "M rows of one": (M, 1), "M rows of N": (M, N)}.get(form, (1, N))
    input = rows(rng, height, width, decimals)
    given = {"a number": input[0][0], "a list of N": input[0]}.get(form, input)
    A, B = pair(rng, M, K, N, decimals)
    return Case((given, A, B, beta, alpha), f"input is {form}; A {M} x {K}, B {K} x {N}")


ADDMM = Task(
    id="00.addmm",
    title="One call, five shapes",
    difficulty=2,
    minutes=20,
    cases=_calls,
    reference=addmm,
    comparison=close(rtol=1e-10, atol=1e-10),
    rules=OWN_LOOPS,
    lookalikes={
        "A list of N numbers is a row: it goes to every row, and number j of it into column j.": {
            "slip": "column"
        },
        "M rows of one number: the number of row i goes to every column of row i.": "row",
        "With beta = 0 `input` is not looked at: 0 * NaN would be NaN.": "NaN",
        "With alpha = 0 you leave the product out, but 0 * inf is NaN: only beta has an exception.": (
            lambda got, input, A, B, beta, alpha: (
                alpha == 0 and not np.isfinite(B).all() and np.isfinite(got).all()
            )
        ),
        "Where is `beta`? It belongs to `input`.": "beta",
        "Where is `alpha`? It belongs to the product.": "alpha",
        "beta and alpha have changed places: beta belongs to `input`, alpha to the product.": {
            "slip": "both"
        },
        "alpha belongs to the product alone: here it multiplies `input`, too.": "sum",
        "`input` is not in the result.": {"input": 0.0},
    },
    hints=(
        "Which number of `input` belongs to C[i][j] if it is a number, a list, one row, a column, a matrix?",
        "First make M lists of N of it, whatever it was: a number stands everywhere, a list of N is the one "
        "row of it, a single row serves every i, a row of one number every j. Then it is one loop.",
        "if not isinstance(input, list): input = [input]; the same again for input[0]; "
        "then the number is input[i if len(input) > 1 else 0][j if len(input[0]) > 1 else 0].",
    ),
)


# --- 00.conv: a convolution as one matrix -------------------------------------------------------------------


def as_matrix(weight: np.ndarray, T: int, axes: tuple[int, ...] = (0, 1, 2, 3), moves: int = 1) -> np.ndarray:
    """Return (C_out * T_out, C * T), T_out = T - width + 1, for weight (C_out, C, width).

    Its product with x.reshape(-1), x (C, T), is Conv1d of x without padding, as one row of numbers. Slips:
    its axes (channel out, time out, channel, time) in another order, windows that do not move.
    """
    C_out, C, width = weight.shape
    T_out = T - width + 1
    matrix = np.zeros((C_out, T_out, C, T), weight.dtype)
    for t in range(T_out):
        matrix[:, t, :, t * moves : t * moves + width] = weight
    return matrix.transpose(axes).reshape(C_out * T_out, C * T)


def _weights(rng: np.random.Generator) -> Iterator[Case]:
    C_out, C, width = sizes(rng, 2, 6)
    for shape, T, what in (
        ((1, 1, 3), 5, "one channel, kernel 3"),
        ((2, 1, 2), 4, "two channels out"),
        ((1, 3, 2), 4, "three channels in"),
        ((C_out, C, width), width + int(rng.integers(2, 9)), "several channels"),
        ((C, C, width), width + int(rng.integers(2, 9)), "as many channels out as in"),
        ((C_out, C, 1), 6, "kernel 1: every frame on its own"),
        ((C, C_out, width), width, "a kernel as long as the sound"),
        ((3, 2, 4), 40, "a longer sound"),
    ):
        weight = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
        dtype = str(rng.choice(["float32", "float64"]))
        yield Case((weight.astype(dtype), T), f"{what}: weight {shape}, T = {T}, {dtype}", guard=True)
    weight[1, 0, 2], weight[0, 1, 1] = math.nan, math.inf
    weight[2, 0, 0], weight[2, 1, 3] = -math.inf, math.nan  # in first and last taps, too
    for dtype in ("float64", "float32"):  # whatever has been drawn, both come
        yield Case((weight.astype(dtype), 9), f"NaN and inf in a weight stand in their own bands, {dtype}")


CONV = Task(
    id="00.conv",
    title="A convolution is a matrix",
    cases=_weights,
    reference=as_matrix,
    rules=(Language(("numpy", "math")),),
    lookalikes={
        "The taps are turned round: tap 0 meets the earliest number of the window.": (
            lambda weight, T: as_matrix(weight[:, :, ::-1], T)
        ),
        "The columns go by time, but x.reshape(-1) has one channel behind the other: column c * T + t.": {
            "axes": (0, 1, 3, 2)
        },
        "The rows go by time, but the result has one channel behind the other: row c_out * T_out + t.": {
            "axes": (1, 0, 2, 3)
        },
        "Every row looks at the beginning of the sound: at time t the window begins at t.": {"moves": 0},
        "The channels have changed places: weight[c_out, c] belongs to the rows of c_out.": (
            lambda weight, T: as_matrix(weight.transpose(1, 0, 2), T)
        ),
    },
    hints=(
        "Which numbers of x does the element (c_out, t) of the result see, and where do they stand in "
        "x.reshape(-1)?",
        "Those of channel c at t … t + width - 1, so columns c * T + t and the next. Row c_out * T_out + t "
        "has there the numbers of weight[c_out, c]; all others are 0.",
        "matrix[o * T_out + t, c * T + t : c * T + t + width] = weight[o, c]  for every o, c and t.",
    ),
)


#: In the order of the chapter.
TASKS = (LAYERS, AMDAHL, ADDMM, CONV)
