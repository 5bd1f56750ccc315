"""Tasks of chapter 00: what layers cost, what is worth making faster, and two layers by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import Values, close, exact, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.python_loops import (
    OWN_LOOPS,
    SPOILED,
    UNITS,
    Rows,
    meeting_pair,
    product,
    rows,
    simple_first,
    spoiled,
)

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
            made = (T if slip in ("reads", "stays") else left) * out // (groups if slip == "outs" else 1)
            flop += made * (2 * seen - (slip == "additions"))
            T = T if slip == "stays" else left
            d = d if slip == "width" else out
    return flop, T, d


def _networks(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([("linear", 3)], 5, 2), "5 frames of 2 numbers, a linear layer")
    yield Case(([], 5, 2), "no layer at all")
    yield Case(([("conv", 2, 5, 1)], 5, 2), "a kernel as long as the sound")
    yield Case(([("attention", 1)], 9, 7), "attention of one head, frames of 7 numbers")
    yield Case(([("norm", 4), ("conv", 8, 3, 4)], 9, 4), "every channel on its own, twice")
    named = [("conv_mask", 8, 3, 4), ("linear_decay", 3), ("mask_attention", 1)]
    yield Case((named, 9, 4), "names that begin or end as others do")
    again = [("attention", 4), ("conv", 1, 3, 2), ("linear", 4), ("attention", 4)]
    yield Case((again, 9, 4), "the same attention twice, by another number of frames; a width of 1")
    kinds, before = (*_layers(rng, 8, 1, ""),), ("", "linear", "conv", "attention", "layer_norm")
    kernels = (1, between(2, 12), 300)  # 300: as long as the sound
    made = every_pair(rng, before=before, kind=kinds, kernel=kernels, out=("", "as many out as in"))
    chains = [(*rng.permutation([*kinds, "linear", "attention"]).tolist(), 3, "") for _ in range(4)]
    for *names, kernel, out in (*map(dict.values, sorted(made, key=simple_first)), *chains):
        T, width = int(rng.integers(90, 300)), 8 * int(rng.integers(2, 65))
        layers, left, d = [], T, width
        for name in filter(None, names):
            layers.append(_layers(rng, d, min(kernel, left), out)[name])
            _, left, d = cost(layers[-1:], left, d)
        yield Case((layers, T, width), f"in turn: {', '.join(filter(None, (*names, out)))}")


def _layers(rng: np.random.Generator, d: int, kernel: int, same: str) -> dict[str, tuple]:
    out, parts = d if same else 8 * int(rng.integers(2, 65)), int(rng.choice([2, 4, 8]))
    parts = math.gcd(d, parts)
    return {
        "linear": ("linear", out),
        "conv": ("conv", out, kernel, 1),
        "groups": ("conv", out, kernel, math.gcd(out, parts)),
        "a channel of its own": ("conv", d, kernel, d),
        "several of its own": ("conv", 3 * d, kernel, d),
        "one of a group": ("conv", d // parts, kernel, d // parts),
        "one head": ("attention", 1),
        "attention": ("attention", parts),
        "silu": ("silu",),
        "add": ("add", parts),
        "mask": ("attention_mask", 1),  # a name in which another one stands
        "layer_norm": ("layer_norm", d, 1e-5, 1),  # as long as a conv
    }


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
        "A sum of n products counts 2 n here: you count an addition less.": "additions",
        "`out` channels come out of all groups together: each of them costs a sum.": "outs",
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


def after(profile: Profile, faster: dict[str, float], slip: str = "") -> tuple[float, str]:
    """Return how many times as fast all is with some operations so many times as fast, and the longest then.

    A row is (name, calls, self time of all calls, total time with what it calls), in us.
    """
    if slip:
        faster = {name: by for name, by in faster.items() if (by < math.inf if slip == "inf" else by >= 1)}
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
    near = [("aten::addmm", 4, 600.0, 600.0), ("aten::silu", 2, 302.0, 302.0)]
    for profile in (near, near[::-1]):
        yield Case((profile, {"aten::silu": 0.5}), "600 us, and 302 us that become 604")
    made = every_pair(
        rng,
        count=(1, 2, 7),
        longest=(1.0, 1.2, 10.0, 0.5, math.inf),
        second=(1.0, 1.1, 10.0, 0.5, math.inf),
        others=(1.0, 3.0, 0.5),
        absent=("", "two do not occur", "nothing becomes faster"),
        unit=(1.0, 2.0**-20, 2.0**30),  # of a profile: no time is too short to count
        # else no time is left
        unless=lambda row: (
            row["count"] < 7 and min([row["longest"], row["second"]][: row["count"]]) == math.inf
        ),
    )
    for count, longest, second, others, absent, unit in map(dict.values, sorted(made, key=simple_first)):
        if absent == "nothing becomes faster":
            longest = second = others = 1.0
        names = [f"aten::{name}" for name in rng.permutation(NAMES)]
        own = np.sort(rng.uniform(40, 400, 6)).round(1)[::-1].tolist()
        own[:2] = 1.8 * own[1], 1.2 * own[1]
        own[4] = own[5]  # both count
        profile = [(name, int(rng.integers(2, 90)), t, t) for name, t in zip(names, own, strict=False)]
        profile[1] = (*profile[1][:3], own[1] + own[5])  # calls the sixth, and has much to do itself
        little = 0.0 if absent else 12.5
        profile.append(("aten::linear", 9, little, little + sum(own[:3])))  # has little to do itself
        factors = dict(zip([*names[:6], "aten::linear"], (longest, second, *[others] * 5), strict=True))
        faster = {name: factor for name, factor in factors.items() if factor != 1}
        faster |= {names[6]: 8.0, names[0][6:]: 8.0} if "occur" in absent else {}  # a part is no name
        said = f"rows: {count}; the longest {longest:g} times as fast, the next {second:g}, others {others:g}"
        profile = [(name, calls, own * unit, total * unit) for name, calls, own, total in profile]
        order = [place for place in rng.permutation(7) if place < count]
        yield Case(([profile[place] for place in order], faster), f"{said}{absent and '; '}{absent}")


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
        "The speed-up is right. The longest is meant by its own time: the total holds what others do.": (
            lambda got, profile, faster: (
                same(got[0], after(profile, faster)[0])
                and got[1] != after(profile, {})[1]
                and any(got[1] == _weighed(lambda row: row[3])(profile, by)[1] for by in (faster, {}))
            )
        ),
        "In total times an operation is counted again in all that call it: self times add up to the whole.": (
            _weighed(lambda row: row[3])
        ),
        "The self time is that of all calls together: do not multiply it by them.": (
            _weighed(lambda row: row[1] * row[2])
        ),
        "That is the part of the time that is left; the speed-up is its inverse.": (
            lambda profile, faster: (1 / after(profile, faster)[0], after(profile, faster)[1])
        ),
        "`inf` takes an operation's time away: here it takes as long as before.": {"slip": "inf"},
        "A factor below 1 counts, too: here such an operation takes as long as before.": {"slip": "below 1"},
        "The speed-up is right. Which one takes longest when the faster ones are faster?": (
            lambda profile, faster: (after(profile, faster)[0], after(profile, {})[1])
        ),
        "That is `faster` alone: the rest takes as long as before, and counts, too.": (
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


FORMS = ("a number", "a list of N", "one row of N", "M rows of one", "M rows of N")
SHAPES = ("", "as many rows as columns", "one row", "one column", "one number")
#: What holds for an input, in which nothing else is special that could hide it.
HOLDS = {
    "": {},
    "beta is 0: NaN of `input` stays out": {"beta": 0.0, "input": math.nan},
    "beta is 0: inf of `input` stays out": {"beta": 0.0, "input": math.inf},
    "beta is 0: -inf of `input` stays out": {"beta": 0.0, "input": -math.inf},
    "beta is not 0, however small: NaN comes in": {"beta": 1e-30, "input": math.nan},
    "beta is not 0, however small: inf comes in": {"beta": 1e-30, "input": math.inf},
    "whole numbers are numbers, too": {"beta": 2, "alpha": -1, "input": 3},
    "0 * inf in the product is NaN": {"meeting": "0 meets inf"},
    "inf * 0 in the product is NaN": {"meeting": "inf meets 0"},
    "0 * -inf in the product is NaN": {"meeting": "0 meets -inf"},
    "-inf * 0 in the product is NaN": {"meeting": "-inf meets 0"},
    "0 * NaN in the product is NaN": {"meeting": "0 meets nan"},
    "NaN * 0 in the product is NaN": {"meeting": "nan meets 0"},
    "alpha is 0, but 0 * inf is NaN": {"alpha": 0.0, "meeting": "0 meets inf"},
    "alpha is 0, but NaN in B stays NaN": {"alpha": 0.0, "meeting": "1.5 meets nan"},
    "alpha and beta are 0, but inf * 0 is NaN": {"beta": 0.0, "alpha": 0.0, "meeting": "inf meets 0"},
}


def _calls(rng: np.random.Generator) -> Iterator[Case]:
    for shape, form in itertools.product(SHAPES, FORMS):  # square: a row could be taken for a column
        yield _call(rng, form, shape, int(rng.integers(2, 6)), "", (None, None), "")
    yield Case((0.5, [[1.5, 3.0]], [[2.0], [1.0]], 1.0, 1.0), "a sum of two equal products")
    factors = ((None, None), (1.0, 1.0), (-1.0, None), (1.0, 0.0), (0.0, 2.5), (None, -1.0))
    K, holds = (1, between(2, 9)), tuple(HOLDS)
    special = {"holds": holds, "factors": factors, "unit": tuple(UNITS)}
    special["unless"] = lambda row: row["unit"] and "whole" in row["holds"]
    made = every_pair(rng, form=FORMS, shape=SHAPES, K=K, **special)
    for row in sorted(made, key=simple_first):
        yield _call(rng, **row)


def _call(
    rng: np.random.Generator, form: str, shape: str, K: int, holds: str, factors: tuple, unit: str
) -> Case:
    M, N = rng.permutation(np.arange(2, 6))[:2].tolist()
    M, N = dict(zip(SHAPES, ((M, N), (M, M), (1, N), (M, 1), (1, 1)), strict=True))[shape]
    A, B = meeting_pair(rng, M, K, N, HOLDS[holds].get("meeting", ""), "", unit)
    beta, alpha = (
        HOLDS[holds].get(name, drawn if factor is None else factor)
        for name, factor, drawn in zip(("beta", "alpha"), factors, rows(rng, 1, 2, 2)[0], strict=True)
    )
    height, width = {"one row of N": (1, N), "M rows of one": (M, 1), "M rows of N": (M, N)}.get(form, (1, N))
    input = rows(rng, height, width, 2 if holds else 17)
    put = HOLDS[holds].get("input")
    if put == 3:
        input = rng.integers(1, 9, (height, width)).tolist()
    elif put:
        input[rng.integers(height)][0] = put  # the first: of a number all that there is
    if unit:  # as small or large as the products
        input = [[x * UNITS[unit] ** 2 for x in row] for row in input]
    given = {"a number": input[0][0], "a list of N": input[0]}.get(form, input)
    said = "; ".join(filter(None, (f"input is {form}; A {M} x {K}, B {K} x {N}", holds, unit)))
    return Case((given, A, B, beta, alpha), said)


def _rounding(want: np.ndarray, args: tuple) -> np.ndarray:
    """Return the allowed error: 1e-10 of what the numbers would add up to if all were positive."""
    sizes = (np.abs(np.where(np.isfinite(one), one, 0.0)).tolist() for one in args)
    return 1e-10 * np.array(addmm(*sizes))


ADDMM = Task(
    id="00.addmm",
    title="One call, five shapes",
    difficulty=2,
    minutes=20,
    cases=_calls,
    reference=addmm,
    comparison=Values(_rounding),
    rules=OWN_LOOPS,
    lookalikes={
        "A list of N numbers is a row: it goes to every row, and number j of it into column j.": {
            "slip": "column"
        },
        "M rows of one number: the number of row i goes to every column of row i.": "row",
        "With beta = 0 `input` is not looked at: 0 * NaN and 0 * inf would be NaN.": "NaN",
        "With alpha = 0 you leave the product out, but 0 * inf is NaN: only beta has an exception.": (
            lambda got, input, A, B, beta, alpha: (
                alpha == 0 and np.isfinite(got).all() and not all(np.isfinite(X).all() for X in (A, B))
            )
        ),
        "Where is `beta`? It belongs to `input`.": "beta",
        "Where is `alpha`? It belongs to the product.": "alpha",
        "beta and alpha have changed places: beta belongs to `input`, alpha to the product.": {
            "slip": "both"
        },
        "alpha belongs to the product alone: here it multiplies `input`, too.": "sum",
        "Here `input` is not in the result.": {"input": 0.0},
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
    made = every_pair(
        rng,
        C_out=(1, 2, between(3, 6)),
        C=(1, between(2, 6), "as many as out"),
        width=(1, 2, between(3, 6)),
        T_out=(1, 2, between(3, 9), 37),
        dtype=("float64", "float32", "float16", "int64"),
        special=("", "nan", "inf", "-inf", "1e-13"),
        tap=("first", "last"),
        unless=lambda row: row["dtype"] == "int64" and row["special"],
    )
    layouts = ("", ", in Fortran order", ", a view: every 2nd number of every 3rd channel")
    plain = (1, 1, 3, 3, "float64", "", "")
    made = (plain, *map(dict.values, sorted(made, key=simple_first)))
    for (C_out, C, width, T_out, dtype, special, tap), layout in zip(made, itertools.cycle(layouts)):
        shape = (C_out, C_out if isinstance(C, str) else C, width)
        # int64 may be more than a float holds
        size = rng.integers(2**53, 2**62, shape) if dtype == "int64" else rng.uniform(0.5, 2.0, shape)
        weight = (size * rng.choice([-1, 1], shape)).astype(dtype)
        if special:
            weight[rng.integers(shape[0]), rng.integers(shape[1]), -1 if tap == "last" else 0] = special
        if "view" in layout:
            weight = np.repeat(np.repeat(weight, 3, 1), 2, 2)[:, ::3, ::2]
        weight = np.asfortranarray(weight) if "Fortran" in layout else weight
        said = f"weight {shape}, T = {width + T_out - 1}, {dtype}{special and f', {special} in a {tap} tap'}"
        yield Case((weight, width + T_out - 1), said + layout, guard=True)


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
        SPOILED: lambda got, weight, T: spoiled(got, as_matrix(weight, T), weight),
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
