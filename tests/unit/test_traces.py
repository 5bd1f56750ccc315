"""The traces, access by access, against loops written down in Python; and where the matrices lie."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.looped import looped

from course_lib.simulators import traces
from course_lib.simulators.cache import Level, simulate
from course_lib.simulators.placement import place

#: Which loop moves a matrix down its rows and which along its columns.
AXES = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}


def at(matrix, row, column):
    return matrix.start + row * matrix.row_stride + column * matrix.itemsize


def cuts(size, block):
    return [range(low, min(low + block, size)) for low in range(0, size, block)]


def by_hand(sizes, blocks, order, where, in_registers):
    """Return [(address, is a write)] of the six loops, written down as slowly and plainly as possible."""
    found = []
    parts = {loop: cuts(size, block) for loop, size, block in zip("ikj", sizes, blocks, strict=True)}
    for chosen in itertools.product(*(parts[loop] for loop in "ijk")):
        ranges = dict(zip("ijk", chosen, strict=True))
        for x, y in itertools.product(ranges[order[0]], ranges[order[1]]):
            places = []
            for z in ranges[order[2]]:
                index = dict(zip(order, (x, y, z), strict=True))
                places.append(
                    {n: at(where[n], index[down], index[along]) for n, (down, along) in AXES.items()}
                )
            found += one_run(places, order[2] if in_registers else "")
    return found


def one_run(places, inner):
    first = places[0]
    if inner == "k":
        pairs = [(p[name], False) for p in places for name in "AB"]
        return [(first["C"], False), *pairs, (first["C"], True)]
    if inner:
        kept, moved = ("A", "B") if inner == "j" else ("B", "A")
        rest = [x for p in places for x in ((p[moved], False), (p["C"], False), (p["C"], True))]
        return [(first[kept], False), *rest]
    return [x for p in places for x in ((p["A"], False), (p["B"], False), (p["C"], False), (p["C"], True))]


def pairs_of(trace):
    return list(zip(trace.addresses.tolist(), trace.writes.tolist(), strict=True))


sizes = st.tuples(*[st.integers(1, 7)] * 3)
orders = st.sampled_from(traces.ORDERS)


@settings(max_examples=150, deadline=None)
@given(sizes, sizes, orders, st.booleans(), st.integers(0, 3), st.sampled_from([4, 8]), st.booleans())
def test_blocked_makes_the_accesses_of_six_plain_loops(shape, blocks, inner, kept, pad, itemsize, in_pieces):
    where = place(*shape, itemsize, pad=pad)
    trace = traces.blocked(*shape, blocks, itemsize, order=inner, matrices=where, in_registers=kept)
    wanted = by_hand(shape, blocks, inner, where, kept)
    with pytest.MonkeyPatch.context() as patch:
        if in_pieces:  # none is longer, none of it is lost or repeated
            patch.setattr(traces, "CHUNK", 100)
            assert max(len(addresses) for addresses, _ in trace.chunks()) <= 100
        assert pairs_of(trace) == wanted
    assert len(trace) == len(wanted) and trace.flops == 2 * np.prod(shape)


@looped("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_an_empty_product_touches_nothing(shape):
    for trace in (traces.blocked(*shape, 2), traces.packed(*shape, MC=2, KC=2, NC=2, MR=2, NR=2)):
        assert len(trace) == 0 and simulate(trace, [Level(1024, 2)]).misses == (0,)


def packed_by_hand(shape, MC, KC, NC, MR, NR, where):
    """Return the accesses of the five loops around the micro-kernel, panel by panel."""
    M, K, N = shape
    found = []

    def pack(name, element, width, rows, depth):
        buffer = where[f"packed {name}"].start
        for panel in cuts(len(rows), width):
            for k in depth:
                for n in range(panel.start, panel.start + width):
                    if n < len(rows):
                        found.append((element(rows[n], k), False))
                    found.append((buffer, True))
                    buffer += 8

    for columns in cuts(N, NC):
        for depth in cuts(K, KC):
            pack("B", lambda j, k: at(where["B"], k, j), NR, columns, depth)
            for rows in cuts(M, MC):
                pack("A", lambda i, k: at(where["A"], i, k), MR, rows, depth)
                for p, tile_columns in enumerate(cuts(len(columns), NR)):
                    for q, tile_rows in enumerate(cuts(len(rows), MR)):
                        for k in range(len(depth)):
                            b = where["packed B"].start + 8 * (p * len(depth) + k) * NR
                            a = where["packed A"].start + 8 * (q * len(depth) + k) * MR
                            found.extend((b + 8 * n, False) for n in range(NR))
                            found.extend((a + 8 * n, False) for n in range(MR))
                        for i, j in itertools.product(tile_rows, tile_columns):
                            c = at(where["C"], rows[i], columns[j])
                            found.extend([(c, False), (c, True)])
    return found


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 9)] * 3), st.tuples(*[st.integers(1, 5)] * 5), st.integers(0, 2))
def test_packed_makes_the_accesses_of_the_five_loops(shape, tiles, pad):
    tiles = dict(zip(("MC", "KC", "NC", "MR", "NR"), tiles, strict=True))
    trace = traces.packed(*shape, **tiles, matrices=place(*shape, pad=pad))
    wanted = packed_by_hand(shape, **tiles, where=trace.matrices)
    assert pairs_of(trace) == wanted and len(trace) == len(wanted)
    spans = trace.arrays.values()  # the buffers are as long as they need to be
    assert all(sum(start <= at < start + size for start, size in spans) == 1 for at, _ in wanted)


# -- where the matrices lie --------------------------------------------------------------------------------


def test_a_power_of_two_as_row_length_makes_conflicts():
    """A column of B with 512 rows of float64 falls into one set; with 513, or padded, into all of them."""
    levels = [Level(48 << 10, 12)]

    def misses_per_step(n, **placing):
        trace = traces.loops("ijk", 4, n, n, matrices=place(4, n, n, **placing))
        return simulate(trace, levels).by_array["B"][0] / (trace.flops / 2)

    assert misses_per_step(512) == 1  # every load of B, although each line is wanted eight times
    assert misses_per_step(513) < 1.01 / 8
    assert misses_per_step(512, pad=1) < 1.01 / 8


# -- what is refused ---------------------------------------------------------------------------------------


@looped(
    "call, sentence",
    [
        (lambda: traces.loops("iij", 2, 2, 2), "order is 'iij'"),
        (lambda: traces.blocked(2, 2, 2, (1, 2)), "three for M, K and N"),
        (lambda: traces.loops("ikj", 2, 2, -1), "N is -1"),
        (lambda: traces.loops("ikj", 2, 2, 3, matrices=place(2, 2, 2)), "B is placed as 2 x 2"),
        (lambda: traces.loops("ikj", 2, 2, 2, matrices={"A": place(2, 2, 2)["A"]}), "B is missing"),
        (lambda: traces.packed(2, 2, 2, MC=1, KC=1, NC=1, MR=0, NR=1), "MR is 0"),
        (lambda: traces.loops("ikj", 2000, 2000, 2000).addresses, "read them with chunks"),
    ],
)
def test_what_makes_no_trace_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
