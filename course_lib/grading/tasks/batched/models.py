"""Tasks of chapter 07 on models: softmax over padding, profiles, what is slow, what fits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.batched.layouts import USUAL_IMPORTS

# --- 07.softmax: attention weights of an utterance that is padded in its batch ------------------------------

FILL = -1e4


def weights(scores: np.ndarray, length: int) -> np.ndarray:
    """Return softmax along each row of scores (T, T), of which the first `length` queries and keys are valid.

    As NeMo 1.23 has it (`RelPositionMultiHeadAttention`): what is masked becomes -1e4 before the softmax
    and 0 after it.
    """
    valid = np.arange(len(scores)) < length
    mask = valid[:, None] & valid[None, :]
    return np.where(mask, _softmax(np.where(mask, scores, FILL)), 0.0)


def _attention(rng: np.random.Generator) -> Iterator[Case]:
    for T, length, said in (
        (4, 4, "nothing is padded"),
        (5, 3, "two frames are padding"),
        (6, 1, "one frame is valid"),
        (3, 0, "all is padding: all weights are 0"),
        (1, 1, "a single frame"),
        (1, 0, "a single frame, which is padding"),
    ):
        yield Case((_scores(rng, T, 2.0), length), f"T = {T}, length {length}: {said}")
    for scale in (1.0, 5.0):
        T = int(rng.integers(8, 30))
        length = int(rng.integers(2, T))
        yield Case((_scores(rng, T, scale), length), f"T = {T}, length {length}")
    for height in list(HEIGHTS)[1:]:  # several columns of each height
        yield _padded(rng, 9, "some", height)
    rows = every_pair(
        rng,
        T=(2, between(3, 7), between(8, 20)),
        valid=tuple(VALID),
        height=tuple(HEIGHTS),
        padding=tuple(PADDING),
        layout=("", "a transposed view"),
        unless=lambda row: (
            (row["valid"] == "none" and row["height"]) or (row["valid"] == "all" and row["padding"])
        ),
    )
    for row in sorted(rows, key=lambda row: sum(bool(row[name]) for name in ("height", "padding", "layout"))):
        yield _padded(rng, **row)


#: How many frames are valid; their scores, made from noise of -1 to 1; what stands in the padding.
VALID = {
    "some": lambda T: (T + 1) // 2,
    "all": lambda T: T,
    "all but one": lambda T: T - 1,
    "one": lambda T: 1,
    "none": lambda T: 0,
}
HEIGHTS = {
    "": lambda noise: 2 * noise,
    "rows near 900 and -900: exp(900) is inf, exp(-900) is 0": lambda noise: noise + _rows(noise, 900, -900),
    # among them one that is the filling itself: a mask is no comparison with -1e4
    "scores near -1e4: there the filling takes its share of the softmax": (
        lambda noise: np.where(np.eye(len(noise)), 0, noise) + FILL
    ),
    "equal scores": lambda noise: 0 * noise,
    "scores up to 400 apart": lambda noise: 400 * noise,
    "rows near 12000 and 13000: too much for exp of any type of number": (
        lambda noise: noise + _rows(noise, 12e3, 13e3)
    ),
    "one score of each row is 13000, far above all others": (
        lambda noise: np.where(np.eye(len(noise)), 13e3, 400 * noise)
    ),
    "13000 once in each row, -13000 elsewhere": lambda noise: noise + 26e3 * np.eye(len(noise)) - 13e3,
    "rows near 13000, near -13000 and near 0": lambda noise: noise + _rows(noise, 13e3, -13e3, 0),
    "columns near 13000, near -13000 and near 0": lambda noise: noise + _rows(noise, 13e3, -13e3, 0).T,
}
PADDING = {"": (), "0": (0.0,), "3000": (3e3,), "-13000": (-13e3,), "NaN and inf": (np.nan, np.inf, -np.inf)}


def _rows(noise: np.ndarray, *heights: float) -> np.ndarray:
    return np.resize(heights, (len(noise), 1))


def _padded(
    rng: np.random.Generator, T: int, valid: str, height: str, padding: str = "", layout: str = ""
) -> Case:
    length, scores = VALID[valid](T), HEIGHTS[height](_scores(rng, T, 1.0))
    if padding:
        is_valid = np.arange(T) < length
        scores = np.where(is_valid & is_valid[:, None], scores, rng.choice(PADDING[padding], (T, T)))
    if layout:
        scores = np.ascontiguousarray(scores.T).T
    said = ", ".join(
        filter(None, (height, padding and f"{padding} in the padding, which must not count", layout))
    )
    return Case((scores, length), f"T = {T}, length {length}{said and ': '}{said}")


def _scores(rng: np.random.Generator, T: int, scale: float) -> np.ndarray:
    return scale * rng.uniform(-1.0, 1.0, (T, T))


def _softmax(scores: np.ndarray, axis: int | None = 1) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def _amid(scores: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return 0 everywhere but for the part in the upper left."""
    found = np.zeros(scores.shape)
    found[: part.shape[0], : part.shape[1]] = part
    return found


def _sums_of_columns(scores: np.ndarray, length: int) -> np.ndarray:
    valid = scores[:length, :length]
    raised = np.exp(valid - valid.max(axis=1, keepdims=True))
    return _amid(scores, raised / raised.sum(axis=0))


def _both_only(scores: np.ndarray, length: int) -> np.ndarray:
    valid = np.arange(len(scores)) < length
    seen = valid[:, None] | valid[None, :]
    return np.where(seen, _softmax(np.where(seen, scores, FILL)), 0.0)


SOFTMAX = Task(
    id="07.softmax",
    title="Nobody listens to padding",
    minutes=20,
    cases=_attention,
    reference=weights,
    comparison=close(rtol=1e-9, atol=1e-300),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "The padding got its share before you set it to 0: mask the scores before the softmax, too.": (
            lambda scores, length: _amid(scores, _softmax(scores)[:length, :length])
        ),
        "One frame too many: valid are the frames 0 to length - 1.": (
            lambda scores, length: weights(scores, length + 1)
        ),
        "The largest is taken of each row, the sum of each column: both belong to the row.": _sums_of_columns,
        "Queries that are padding get weights: the mask is valid query AND valid key.": (
            lambda scores, length: _amid(scores, _softmax(scores[:, :length]))
        ),
        "A pair is masked where its query or its key is padding; yours only where both are.": _both_only,
        "Rows that are padding throughout must be 0 in the end; a softmax of equal numbers is 1 / T.": (
            lambda got, scores, length: length < len(scores) and np.allclose(got[length:].sum(axis=1), 1)
        ),
        "That is the softmax along the columns: every query (row) has weights that add up to 1.": (
            lambda scores, length: _amid(scores, _softmax(scores[:length, :length], axis=0))
        ),
        "That is one softmax over the whole matrix: every query (row) has its own.": (
            lambda scores, length: _amid(scores, _softmax(scores[:length, :length], axis=None))
        ),
        "Each row is right but for a factor: divide its powers by the sum of this row.": (
            lambda got, scores, length: (
                length > 1
                and not np.allclose(got[:length].sum(1), 1)
                and np.allclose(
                    got[:length, :length] / got[:length, :length].sum(1, keepdims=True),
                    weights(scores, length)[:length, :length],
                )
            )
        ),
        "The padding holds NaN and inf here, and 0 times either is NaN: choose with np.where (or an index) "
        "instead of multiplying by the mask.": lambda got, scores, length: (
            not np.isfinite(scores).all() and np.isnan(got).any()
        ),
        "exp of a large score is inf, from 710 on in float64, of one far below 0 it is 0, and inf / inf and "
        "0 / 0 are NaN: subtract the largest score of the row first, each row's own.": (
            lambda got, scores, length: (
                np.isnan(got[:length]).any() and (np.abs(scores[:length, :length]).max() > 700)
            )
        ),
        "NaN where the padding is far above the valid scores: does it count for the largest of the row?": (
            lambda got, scores, length: np.isnan(got[:length]).any() and np.isfinite(scores).all()
        ),
        "A row of nothing but padding became NaN (0 / 0): it must be 0.": (
            lambda got, scores, length: np.isnan(got[length:]).any() and not np.isnan(got[:length]).any()
        ),
        "Valid pairs have the weight 0, and it should not be 0: what becomes 0 says the mask alone. (A valid "
        "score may be just -1e4, and a weight may be tiny.)": lambda got, scores, length: (
            (got[:length, :length] == 0) & (weights(scores, length)[:length, :length] > 0)
        ).any(),
        "Masked scores are -1e4, not less: where valid scores are as low, the masked ones take their "
        "share.": lambda got, scores, length: (
            (scores[:length, :length] < -9000).all(axis=1).any() and np.allclose(got[:length].sum(1), 1)
        ),
        "This is right to six digits or so, and float64 has sixteen: is a number of float32 on the way, or "
        "is something small added to a sum?": lambda got, *args: np.allclose(got, weights(*args), 1e-5, 0),
    },
    hints=(
        "Which frames may a valid query listen to? And what must stand in the row of a query that is "
        "padding?",
        "mask[i, j] is valid query and valid key. Where it is False, the scores become -1e4, then softmax "
        "along each row (subtract the row's maximum first), then the weights there become 0.",
        "filled = np.where(mask, scores, -1e4); raised = np.exp(filled - filled.max(axis=1, keepdims=True)); "
        "np.where(mask, raised / raised.sum(axis=1, keepdims=True), 0.0)",
    ),
)


# --- 07.profile: where to begin, from a profile and two numbers of the machine ------------------------------

Timed = tuple[str, int, float, float, float, float]  # name, calls, self_us, total_us, flops, bytes


def begin_with(rows: list[Timed], gflops: float, gbytes: float) -> tuple[str, float, float]:
    """Return the op whose self time is furthest above its roofline, its share of all self time, and the
    speed-up of the whole, by Amdahl's law, if this op came down to its roofline.

    Times in microseconds; `gflops` in GFLOP/s, `gbytes` in GB/s: 1000 FLOP or bytes a microsecond for each.
    """
    time = sum(row[2] for row in rows)
    gain, name, own = max((_gain(row, gflops, gbytes), row[0], row[2]) for row in rows)
    return name, own / time, time / (time - gain)


def _gain(row: Timed, gflops: float, gbytes: float) -> float:
    _, _, self_us, _, flops, moved = row
    return self_us - max(flops / gflops, moved / gbytes) / 1000


_NAMES = ("addmm", "bmm", "mkldnn_convolution", "copy_", "silu", "native_layer_norm", "add", "_softmax", "mm")
_NAMES += ("gelu", "cat", "mul", "div", "sub", "sum", "mean", "linear")
_NAMES = tuple(f"aten::{name}" for name in _NAMES)  # as PyTorch gives them


def _profiles(rng: np.random.Generator) -> Iterator[Case]:
    for first in (True, True, False, False):
        yield _timed_profile(rng, first)
    yield Case(([("addmm", 10, 900.0, 900.0, 2e7, 4e5)], 50.0, 10.0), "one op only")
    rows = every_pair(
        rng,
        calls=(1, 40),
        place=("first", "amid", "last"),
        bound=("compute", "memory", "memory alone", "nothing"),
        above=(1.02, 1.3, 4.0, 50.0),  # little above it there may be most to gain, too
        us=(1.5, 1e3, 5e7),
        ridge=(0.5, 5.0, 100.0),  # which of its two times is the longer one depends on the machine
        longer=((0, 1.0), (1, 1.1), (1, 20.0), (2, 4.0), (12, 1.1), (5, 20.0)),  # so many, so long
        second=(0.0, 0.5, 0.97),
        caller=("", "another", "itself"),
        decoys=("", "above", "called", "above called"),
        unless=lambda row: row["bound"] == "nothing" and (row["above"] != 4.0 or not row["longer"][0]),
    )
    for row in sorted(rows, key=lambda row: row["longer"][0] + len(row["decoys"].split())):
        yield _among_others(rng, row)


def _among_others(rng: np.random.Generator, row: dict) -> Case:
    """Return a profile in which every other op has less to gain, and some have more of what misleads."""
    gbytes = float(rng.integers(8, 25))
    peaks, us = (row["ridge"] * gbytes, gbytes), row["us"]
    longer, times = row["longer"]
    gain = us * (1.0 if row["bound"] == "nothing" else 1 - 1 / row["above"])
    others = [(10, us * times * (1 + n / 50), rng.uniform(0.1, 0.9)) for n in range(longer)]
    others += [(10, 0.99 * us, row["second"])] if row["second"] else []
    others += [(10, gain / 2, 0.5 - 0.1 / row["above"])] if "above" in row["decoys"] else []
    others += [(900, 0.4 * gain, 0.2)] if "called" in row["decoys"] else []
    names = [str(name) for name in rng.permutation(_NAMES)]
    rows = [
        _timed(rng, names.pop(), calls, own, own - part * gain, rng.choice(("compute", "memory")), *peaks)
        for calls, own, part in others
    ]
    took = us + sum(one[2] for one in rows)
    if row["caller"] == "another":
        rows.append(("forward", 1, gain / 10, took + gain / 10, 0.0, 0.0))
    best = _timed(rng, names.pop(), row["calls"], us, us - gain, row["bound"], *peaks)
    best = (*best[:3], took, *best[4:]) if row["caller"] == "itself" else best
    rows = [rows[n] for n in rng.permutation(len(rows))]
    _put(rows, best, row["place"])
    said = f"bound by {row['bound']}, {row['place']} in the list; {longer} take longer, at their rooflines"
    return Case((rows, *peaks), f"the op to begin with is {said}")


def _timed(
    rng: np.random.Generator, name: str, calls: int, us: float, least: float, bound: str, *peaks: float
) -> Timed:
    """Return a row of the profile; what does not bound the op would take 5 to 95 % of its `least` time."""
    other = float(rng.uniform(0.05, 0.95))
    flops = round(1000 * least * peaks[0] * (1.0 if bound == "compute" else other))
    moved = round(1000 * least * peaks[1] * (other if bound == "compute" else 1.0))
    flops = 0 if bound == "memory alone" else flops
    return name, int(calls * rng.integers(1, 4)), us, us, float(flops), float(moved)


def _timed_profile(rng: np.random.Generator, first: bool) -> Case:
    """Return a profile in which the op to begin with is neither the first nor near a second one.

    Ops at their roofline lie 2 to 10 % above it. Wrong ways to choose lead elsewhere, as the words say.
    """
    gflops, gbytes = float(rng.integers(40, 120)), float(rng.integers(8, 25))
    names = [str(name) for name in rng.permutation(_NAMES)]
    top = 10000.0 * float(rng.uniform(1, 5))
    near, dear = float(rng.uniform(1.02, 1.1)), float(rng.uniform(2.5, 4.0))
    # (name, calls, self, how far above its roofline, bound by compute or by memory)
    kinds = [
        (names[0], 40, top, dear if first else near, "compute"),
        (names[1], 300, 0.8 * top, near if first else dear, "compute"),
        (names[2], 900, 0.3 * top, 2.0, "memory"),
        (names[3], 120, 0.2 * top, 9.0, "compute"),
        (names[4], 60, 0.7 * top, near, "memory"),
    ]
    rows = []
    for name, calls, self_us, above, bound in kinds:
        self_us = round(self_us * float(rng.uniform(0.97, 1.03)), 1)
        rows.append(_timed(rng, name, calls, self_us, self_us / above, bound, gflops, gbytes))
    everything = round(sum(row[2] for row in rows), 1)
    own = round(0.02 * top * float(rng.uniform(0.5, 1.5)), 1)
    rows.append(("forward", 1, own, round(everything + own, 1), 0.0, 0.0))
    rows = [rows[n] for n in rng.permutation(len(rows))]
    said = "has the most to gain" if first else "is at its roofline already"
    return Case((rows, gflops, gbytes), f"the op with most time {said}")


def _ratio(row: Timed, gflops: float, gbytes: float) -> float:
    """Return how many times as long as its roofline allows an op takes; 0 if it has nothing to do."""
    least = max(row[4] / gflops, row[5] / gbytes) / 1000
    return row[2] / least if least else 0.0


def _chosen(key: Callable[..., float]) -> Callable[..., bool]:
    """Return what tells whether the op was chosen by `key(row, gflops, gbytes)`, and that is another one."""

    def fits(got: tuple, rows: list[Timed], *peaks: float) -> bool:
        chosen = max(rows, key=lambda row: key(row, *peaks))[0]
        return got[0] == chosen != begin_with(rows, *peaks)[0]

    return fits


PROFILE = Task(
    id="07.profile",
    title="Where to begin",
    points=2,
    cases=_profiles,
    reference=begin_with,
    comparison=close(rtol=1e-9, parts=("the op", "its share", "the speed-up")),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "Most of that one's total time belongs to the ops it calls, and of its own there is less to gain. "
        "What counts is all that can be gained of the self time: no total, no ratio, not a single "
        "call.": _chosen(lambda row, *peaks: row[3] * (row[3] > 2 * row[2])),
        "That one takes the most time, but its roofline leaves little to gain: ask for self time minus "
        "the least possible time.": _chosen(lambda row, *peaks: row[2]),
        "That one is furthest above its roofline as a ratio. What counts is the time to be gained: a "
        "difference.": _chosen(_ratio),
        "That one has the most calls; many calls may take little time.": _chosen(lambda row, *peaks: row[1]),
        "Another op has more to gain. Did you look at all of them, and at both times of the roofline, that "
        "of the arithmetic and that of the memory?": lambda got, *args: got[0] != begin_with(*args)[0],
        "The share is that of the total time, which counts the ops inside others twice: divide by the sum of "
        "the self times.": (
            lambda got, rows, *peaks: (
                same(got[1], begin_with(rows, *peaks)[1] * sum(r[2] for r in rows) / sum(r[3] for r in rows))
                and not same(got[1], begin_with(rows, *peaks)[1])
            )
        ),
        "The share is that of what there is to gain; it should be that of the op's self time.": (
            lambda got, rows, *peaks: same(got[1], 1 - 1 / begin_with(rows, *peaks)[2])
        ),
        "The share is in per cent: 20 % is 0.2.": (
            lambda got, *args: same(got[1], 100 * begin_with(*args)[1])
        ),
        "At its roofline an op takes the longer of the two times, arithmetic or memory.": (
            lambda got, *args: any(same(got[2], _speed_up(*args, of)) for of in (sum, min))
        ),
        "That is the speed-up if the op took no time at all; it cannot be below its roofline, in "
        "microseconds: flops / (gflops * 1000).": (
            lambda got, *args: same(got[2], 1 / (1 - begin_with(*args)[1]))
        ),
        "That is the time that is left; the speed-up is its inverse.": (
            lambda got, *args: same(got[2], 1 / begin_with(*args)[2])
        ),
        "That is how many times as fast the op alone becomes. All the others take as long as before.": (
            lambda got, rows, *peaks: same(
                got[2], max((_gain(r, *peaks), _ratio(r, *peaks)) for r in rows)[1]
            )
        ),
        "The op and its share are right. Look at the units of its time at the roofline, in microseconds, and "
        "at Amdahl's law.": lambda got, *args: (  # a small difference may come from rounding
            same(got[1], begin_with(*args)[1]) and abs(got[2] / begin_with(*args)[2] - 1) > 0.01
        ),
    },
    hints=(
        "An op with 10 million FLOP and 1 million bytes, on a machine with 100 GFLOP/s and 10 GB/s: how long "
        "does it take at least?",
        "The longer one of flops / (gflops * 1000) and bytes / (gbytes * 1000) microseconds. What can be "
        "gained is self time minus that; take the op with the largest gain. The whole then takes the sum of "
        "all self times minus the gain.",
        "gain = self_us - max(flops / (gflops * 1000), bytes / (gbytes * 1000)); return name, self_us / "
        "time, time / (time - gain)",
    ),
)


def _speed_up(rows: list[Timed], gflops: float, gbytes: float, of: Callable[..., float]) -> float:
    op = begin_with(rows, gflops, gbytes)[0]
    (row,) = [row for row in rows if row[0] == op]
    time, least = sum(row[2] for row in rows), of((row[4] / gflops, row[5] / gbytes)) / 1000
    return time / (time - (row[2] - least))


# --- 07.slow: two profiles, and in the second one op has become slow ----------------------------------------

Called = tuple[str, int, float, float]  # name, calls, self_us, total_us


def suspect(before: list[Called], after: list[Called]) -> str:
    """Return the op, of those in both profiles, whose self time for a call grew by the largest factor."""
    usual = {name: self_us / calls for name, calls, self_us, _ in before}
    known = [row for row in after if row[0] in usual]
    return max(known, key=lambda row: row[2] / row[1] / usual[row[0]])[0]


#: name, calls in a forward, microseconds of its own for one call, and the ops that it calls
_OPS = (
    ("addmm", 145, 1100.0, ()),
    ("mm", 18, 300.0, ()),
    ("bmm", 54, 150.0, ()),
    ("mkldnn::_convolution_pointwise", 56, 900.0, ()),
    ("native_layer_norm", 90, 60.0, ()),
    ("silu", 54, 80.0, ()),
    ("copy_", 338, 12.0, ()),
    ("add", 131, 25.0, ()),
    ("linear", 163, 4.0, ("addmm", "mm")),
    ("matmul", 54, 6.0, ("bmm", "copy_")),
)


def _pairs(rng: np.random.Generator) -> Iterator[Case]:
    for runs, said in ((1, "as many runs"), (3, "three times as many runs"), (0.25, "a quarter of the runs")):
        for slow in rng.permutation(["mm", "bmm", "silu", "copy_", "native_layer_norm"])[:3]:
            both = _called_profile(rng, 4.0, ""), _called_profile(rng, 4.0 * runs, str(slow))
            yield Case(both, f"the second profile is of {said}")
    rows = every_pair(
        rng,
        slow=tuple(op[0] for op in _OPS),
        factor=(1.25, 3.0),
        runs=(3, 12, 36),
        often=(1 / 3, 1, 3, 0),  # how often the slow op is called in each run (0: once in all), and another
        other=(1 / 3, 1, 3),
        speed=(1 / 16, 1.0, 2.0),  # of a machine on which it takes longer or less
        unit=(1 / 4000, 1.0, 1e5),
        rival=(False, True),
        strangers=("new", "gone", "new and gone"),
        # before, between and behind the others in the order of names, one of them with a _ more than another
        name=("abs", "mkldnn::_convolution_pointwise_", "warm_up"),
        was=("first", "amid", "last"),
        now=("first", "amid", "last"),
        stands=("first", "amid", "last"),
        left=(3, len(_OPS)),
    )
    # the name that is nearly another one comes last: who pairs rows by their places is told of that before
    for row in sorted(
        rows, key=lambda row: ("::" not in row["name"], row["name"], row["left"]), reverse=True
    ):
        yield _compared(rng, row)


def _compared(rng: np.random.Generator, row: dict) -> Case:
    """Return two profiles with noise of 5 %: of other runs, another machine, in any order, with strangers."""
    slow, often = row["slow"], {row["slow"]: row["often"]}
    rival, other, *names = (str(name) for name in rng.permutation([op[0] for op in _OPS if op[0] != slow]))
    often[other] = row["other"]
    growth = {name: float(rng.uniform(0.94, 1.06)) for name in (other, *names)}
    growth |= {slow: row["factor"], rival: row["factor"] / 1.0003 if row["rival"] else 1.0}
    known = (slow, rival, other, *names)[: row["left"]]
    profiles = []
    for when, runs, stranger in (("was", 12, "gone"), ("now", row["runs"], "new")):
        rows, later = {}, when == "now"
        for name, calls, each, children in _OPS:
            if name in known:
                share = often.get(name, 1)
                calls = round(calls * runs * (share if later else 1)) if share else 1
                own = calls * each * row["unit"] * (row["speed"] * growth[name] if later else 1.0)
                total = own + sum(rows[child][3] for child in children if child in rows)
                rows[name] = name, calls, own, total
        others = [rows[name] for name in rng.permutation([name for name in rows if name != slow])]
        if stranger in row["strangers"]:
            took = 1e5 * row["unit"] * runs
            _put(others, (row["name"], 9 * runs, took, took), row["stands"])
        _put(others, rows[slow], row[when])
        profiles.append(others)
    said = f"{row['runs'] / 12:g} times the runs; one op is {row['strangers']}"
    return Case(tuple(profiles), f"{slow} is slower, {row['was']} before and {row['now']} after; {said}")


def _put(rows: list, one: tuple, place: str) -> None:
    rows.insert({"first": 0, "amid": len(rows) // 2, "last": len(rows)}[place], one)


def _called_profile(rng: np.random.Generator, runs: float, slow: str) -> list[Called]:
    """Return a profile with noise of 5 %, in any order, in which one op is slow."""
    rows = {}
    for name, calls, each, children in _OPS:
        own = calls * runs * each * float(rng.uniform(0.97, 1.03)) * (1.6 if name == slow else 1.0)
        total = own + sum(rows[child][3] for child in children)
        rows[name] = (name, int(calls * runs), round(own, 1), round(total, 1))
    listed = list(rows.values())
    return [listed[n] for n in rng.permutation(len(listed))]


def _most(key: Callable[..., float]) -> Callable[..., bool]:
    """Return what tells whether an op was chosen by `key(row before, row after)`, and that is another one."""

    def fits(got: str, before: list[Called], after: list[Called]) -> bool:
        known = {row[0]: row for row in before}
        chosen = max((row for row in after if row[0] in known), key=lambda row: key(known[row[0]], row))[0]
        return got == chosen != suspect(before, after)

    return fits


SLOW = Task(
    id="07.slow",
    title="One op has become slow",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_pairs,
    reference=suspect,
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "That is the name of no op. Was none found? Rows belong together by name, and on a faster machine "
        "every ratio may be below 1.": (
            lambda got, before, after: got not in {row[0] for row in before + after}
        ),
        "That op was not there before, so it cannot have become slower.": (
            lambda got, before, after: got not in {row[0] for row in before}
        ),
        "That op's self time has grown by the largest factor, but what one call of it took has not: divide "
        "by the calls.": _most(lambda was, now: now[2] / was[2]),
        "Of that op the total time of a call has grown most, but a total holds the time of the ops that it "
        "calls. Compare the self times.": lambda got, before, after: (
            any(name == got and total > 1.01 * own for name, _, own, total in after)
            and _most(lambda was, now: now[3] / now[1] / (was[3] / was[1]))(got, before, after)
        ),
        "That op has grown least: the largest factor is asked for.": _most(
            lambda was, now: was[2] / was[1] / (now[2] / now[1])
        ),
        "One call of that op has hardly grown. Are the rows paired by name? And of a large op a few per "
        "cent of noise are many microseconds, so take the ratio of what one call took, not a difference.": (
            lambda got, before, after: _growth(got, before, after) < 1.1 * _growth(None, before, after)
        ),
    },
    hints=(
        "Three things mislead `broken`: how are the rows paired? Whose time is in total_us? What if the "
        "second profile is of twice as many runs?",
        "Pair the rows by name. Self time is the op's own. Self time / calls does not depend on the number "
        "of runs, and a ratio not on how long an op takes anyway.",
        "usual = {name: self_us / calls for …before}; then the name with the largest "
        "self_us / calls / usual[name] of those in both.",
    ),
)


def _growth(name: str | None, before: list[Called], after: list[Called]) -> float:
    """Return the factor by which a call of the op has grown, or the smallest one of all ops."""
    was, now = ({row[0]: row[2] / row[1] for row in rows} for rows in (before, after))
    return min(now[op] / was[op] for op in was if op in now and name in (op, None))


# --- 07.batch: the largest batch that still answers in time -------------------------------------------------

Measured = list[tuple[int, float]]  # batch, seconds


def largest_batch(measured: Measured, rate: float, target: float) -> tuple[int, float]:
    """Return the largest batch whose slowest answer comes within `target` seconds, and its utterances/s.

    Utterances come evenly, `rate` a second; a batch starts when it is full. Its first one has waited for all
    others, (batch - 1) / rate, and then takes the batch's seconds. A batch must be done before the next one
    is full, or the queue grows without end. (0, 0.0) if no batch will do.
    """
    good = [(n, n / s) for n, s in measured if _good(n, s, rate, target)]
    return max(good, default=(0, 0.0))


def _good(n: int, s: float, rate: float, target: float) -> bool:
    return (n - 1) / rate + s <= target and n / s >= rate


def _servers(rng: np.random.Generator) -> Iterator[Case]:
    sizes = (1, 2, 4, 8, 16, 32)
    even = [(batch, 0.0625 + 0.015625 * batch) for batch in sizes]  # powers of two: sums are exact
    yield Case((even, 16.0, 0.5), "16 utterances a second, half a second to answer")
    yield Case((even, 16.0, 0.65), "16 utterances a second, 0.65 s to answer")
    yield Case((even, 16.0, 0.3125), "a batch that needs exactly the target")
    yield Case((even, 16.0, 0.0625), "no batch is fast enough")
    yield Case((even, 64.0, 60.0), "time enough, and no batch keeps up with 64 a second")
    yield Case(([(1, 0.125), (2, 0.1875)], 8.0, 0.125), "a batch of one that keeps up exactly")
    yield Case(([(1, 0.115)], 8.0, 0.1), "a batch of one that keeps up and comes a little late")
    alike = [(2, 0.25), (4, 0.25), (3, 0.25)]
    yield Case((alike, 8.0, 1.0), "batches that take the same time")
    sizes = (1, 4, 8, 12, 14, 16, 17)
    once = [(batch, 1.55 if batch == 16 else round(0.05 + 0.01 * batch, 2)) for batch in sizes]
    for rows in (once, once[::-1]):
        yield Case((rows, 10.0, 2.5), "batch 16 keeps up and comes late, as it was measured at a bad moment")
    yield Case(([], 4.0, 1.0), "nothing was measured")
    rows = every_pair(
        rng,
        rate=(0.25, 8.0, 64.0, 2.0**17, lambda rng: int(rng.integers(3, 90)) + 0.1),
        least=(1, 2, between(3, 8)),
        gaps=(1, 2, 7, 100),
        place=("only", "smallest", "amid", "largest"),
        more=(1, 2, 4),
        patience=("short", "of both limits", "long"),
        meets=("far", "exactly"),
        bad=(("", ""), *itertools.product(list(BAD)[1:], ("late", "slow", "far"))),
        above=("", "a little", "late", "slow", "far"),
        order=("small to large", "large to small", "any order"),
        unless=lambda row: (
            (row["above"] == "") != (row["place"] in ("only", "largest"))
            or (row["bad"][0] not in ("", "all") and row["place"] in ("only", "smallest"))
            or (row["bad"][0] == "all" and row["meets"] == "exactly")
            or (  # a smaller batch that comes late and keeps up is more than half as large as the best one
                row["bad"][1] == "late"
                and (row["gaps"] > 1 or row["least"] < 3 or row["patience"] != "short")
            )
            or (row["meets"] == "exactly" and row["rate"] % 0.25)  # sums of powers of two are exact
        ),
    )
    for row in sorted(rows, key=lambda row: (bool(row["bad"][0]), row["more"])):
        yield _at_limits(rng, row)


#: Places of the batches that will not do, among those up to the largest one that will (or would).
BAD = {
    "": lambda at: [],
    "smallest": lambda at: [0],
    "next smaller": lambda at: [at - 1],
    "next two": lambda at: [at - 2, at - 1],
    "all smaller": lambda at: range(at),
    "all": lambda at: range(at + 1),
}


def _at_limits(rng: np.random.Generator, row: dict) -> Case:
    """Return a server of which one batch will do and no larger one; of the smaller ones some may be bad."""
    rate, (bad, by) = row["rate"], row["bad"]
    smaller = row["more"] if row["place"] in ("amid", "largest") else 0
    larger = row["more"] if row["place"] in ("amid", "smallest") else 0
    steps = rng.integers(1, row["gaps"] + 1, smaller + larger)
    batches = [row["least"] + int(n) for n in (0, *np.cumsum(steps))]
    best = batches[smaller]
    times = {"short": 1.25 * best - 1, "of both limits": 2 * best - 1, "long": 4 * batches[-1]}
    target, measured = times[row["patience"]] / rate, []
    for at, n in enumerate(batches):
        slow, late = n / rate, target - (n - 1) / rate  # from here on
        if at > smaller or at in BAD[bad](smaller):
            how = row["above"] if at > smaller else by
            limits = {"a little": min(slow, late), "late": late, "slow": slow}
            seconds = max(limits.get(how, 4 * slow), 1 / 16 / rate) + 2.0**-14 * min(1, 64 / rate)
        else:
            exactly = at == smaller and row["meets"] == "exactly"
            seconds = min(slow, late) * (1 if exactly else int(rng.integers(3, 8)) / 8)
        measured.append((n, seconds))
    turned = {"small to large": measured, "large to small": measured[::-1]}
    listed = turned.get(row["order"]) or [measured[n] for n in rng.permutation(len(measured))]
    said = f"from {row['order']}" if row["order"] in turned else "in any order"
    said = f"measured {said}; time to answer is {row['patience']}"
    said += f"; {bad} will not do, by {by}" if bad else ""
    return Case((listed, rate, target), said)


def _batch(
    measured: Measured, rate: float, target: float, good: Callable[..., bool], by: Callable[..., float]
) -> int:
    """Return, of the batches that are good(batch, seconds, rate, target), that of the largest `by`."""
    return max(((by(n, s), n) for n, s in measured if good(n, s, rate, target)), default=(0, 0))[1]


def _before_the_first_bad(measured: Measured, rate: float, target: float) -> int:
    good = itertools.takewhile(lambda row: _good(*row, rate, target), measured)
    return max((n for n, _ in good), default=0)


def _largest(n: int, s: float) -> float:
    return n


def _lazy(n: int, s: float, rate: float, target: float) -> bool:
    return s <= target and n / s >= rate


def _is(good: Callable[..., bool], by: Callable[..., float] = _largest) -> Callable[..., bool]:
    """Return what tells whether the answer has the batch that such a choice gives, a wrong one."""
    return lambda got, *args: got[0] == _batch(*args, good, by) != largest_batch(*args)[0]


_met_exactly = _is(lambda n, s, rate, target: (n - 1) / rate + s < target and n / s > rate)

BATCH = Task(
    id="07.batch",
    title="As large as patience allows",
    points=2,
    cases=_servers,
    reference=largest_batch,
    comparison=close(rtol=1e-9, parts=("the batch", "the throughput")),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "That batch has the highest throughput; the largest one that will do is asked for.": _is(
            _good, lambda n, s: n / s
        ),
        "That batch is computed in time, but its first utterance has waited for all others before.": _is(
            _lazy
        ),
        "That batch comes too late: its first utterance waits for all the others, and then until the batch "
        "is computed.": lambda got, measured, rate, target: any(
            n == got[0] and (n - 1) / rate + s > target for n, s in measured
        ),
        "That batch answers in time once, but it takes longer than the next one takes to fill: the queue "
        "grows without end.": (
            lambda got, measured, rate, target: any(
                n == got[0] and (n - 1) / rate + s <= target and n / s < rate for n, s in measured
            )
        ),
        "A limit that is met exactly is met: at most the target, at least the rate (a batch fills in "
        "batch / rate).": lambda got, measured, rate, target: (
            target < 1 and _met_exactly(got, measured, rate, target)  # of long times others may be at fault
        ),
        "You found none that will do. Less than one utterance may arrive in a second, and a batch may take "
        "longer than that.": lambda got, measured, rate, target: (
            got[0] == 0 < largest_batch(measured, rate, target)[0] and rate < 1
        ),
        "A larger batch will do, one that was measured later: the rows come in any order, so look at all of "
        "them before you stop.": (
            lambda got, *args: 0 < got[0] == _before_the_first_bad(*args) < largest_batch(*args)[0]
        ),
        "A larger batch will do. Does the first utterance wait for too many? The others are one less "
        "than the batch. Or was a measurement not looked at?": _is(
            lambda n, s, rate, target: n / rate + s <= target and n / s >= rate
        ),
        "That batch will do, but so does a larger one: the largest is asked for, and measurements come in "
        "any order.": lambda got, measured, *limits: any(
            n == got[0] < largest_batch(measured, *limits)[0] and _good(n, s, *limits) for n, s in measured
        ),
        "The batch is right. The throughput is batch / seconds of computing: what the server could do, "
        "whatever arrives.": lambda got, *args: got[0] == largest_batch(*args)[0] > 0,
    },
    hints=(
        "Eight utterances arrive evenly, 16 a second. The batch starts with the eighth. How long has the "
        "first one waited, and when does it get its answer?",
        "(batch - 1) / rate, plus the seconds of the batch: at most the target. And the server must do "
        "at least as many "
        "as arrive: batch / seconds >= rate. Look at every measurement; they come in any order.",
        "if (batch - 1) / rate + seconds <= target and batch / seconds >= rate and batch > best[0]: "
        "best = batch, batch / seconds",
    ),
)
