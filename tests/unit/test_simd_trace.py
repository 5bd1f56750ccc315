"""The trace of `simd`, access by access, against the rung itself: its text, run on arrays that take notes."""

import ast
import inspect

from hypothesis import given, settings
from hypothesis import strategies as st


def imports():
    global simd, traces
    from course_lib.circles import simd
    from course_lib.simulators import traces


ITEM = 8


class Numbers:
    """A flat array of zeros at an address, or a slice of one; notes each number that is read or written."""

    itemsize = ITEM

    def __init__(self, start, length, seen):
        self.start, self.length, self.seen = start, length, seen

    def note(self, at, write):
        assert 0 <= at < self.length, "outside the array"
        self.seen.append((self.start + at * ITEM, write))

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        if isinstance(at, slice):
            first, last, _ = at.indices(self.length)
            return Numbers(self.start + first * ITEM, max(last - first, 0), self.seen)
        self.note(at, False)
        return 0.0

    def __setitem__(self, at, value):
        if not isinstance(at, slice):
            return self.note(at, True)
        part = self[at]
        if isinstance(value, Numbers):
            assert len(value) == len(part)
        for n in range(len(part)):
            if isinstance(value, Numbers):
                value.note(n, False)
            part.note(n, True)


def row_of(NR):
    """The vector functions the rung uses, on rows of NR numbers."""

    def load(array, at, row_bytes):
        for n in range(NR):
            array.note(at + n, False)
        return "row"

    def store(array, at, row):
        for n in range(NR):
            array.note(at + n, True)

    def nothing(*_):
        return "row"

    return {
        "load": load,
        "store": store,
        "broadcast": lambda array, at, row: array.note(at, False),
        "lanes": lambda array, row_bytes: NR,
        **dict.fromkeys(("add", "fma", "zero", "prefetch", "prefetch_row"), nothing),
    }


def rung(**sizes):
    """Return the rung's functions as plain Python, with other sizes than this machine's."""
    tree = ast.parse(inspect.getsource(simd))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        function.decorator_list, function.returns = [], None
        for argument in function.args.args:
            argument.annotation = None
    names = {**vars(simd), **sizes}
    exec(compile(ast.Module(functions, []), "simd.py", "exec"), names)
    return names


def run_by_the_rung(shape, where, MR, NR, KC, block_bytes):
    M, K, N = shape
    seen = []
    A, B, C = (
        Numbers(where[name].start, rows * columns, seen)
        for name, rows, columns in (("A", M, K), ("B", K, N), ("C", M, N))
    )
    room = where["packed B"].start + where["packed B"].bytes - where["spare"].start
    memory = Numbers(where["spare"].start, room // ITEM, seen)
    names = rung(**row_of(NR), MR=MR, KC=KC, ROW_BYTES=NR * ITEM, BLOCK_BYTES=block_bytes)
    names["multiply"](A, B, C, M, K, N, memory)
    return seen


def tiles_of(NR, KC, panels):
    """MR is the rung's own: its six rows are written out."""
    return {"MR": simd.MR, "NR": NR, "KC": KC, "block_bytes": int(panels * NR * KC * ITEM)}


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 14), st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([0.25, 1, 2, 3]),  # less than a panel: some blocks are empty
)
def test_the_trace_is_what_the_rung_does(shape, NR, KC, panels):
    tiles = tiles_of(NR, KC, panels)
    trace = traces.simd(*shape, **tiles)
    wanted = run_by_the_rung(shape, trace.matrices, **tiles)
    assert list(zip(trace.addresses.tolist(), trace.writes.tolist(), strict=True)) == wanted
    assert len(trace) == len(wanted) and trace.flops == 2 * shape[0] * shape[1] * shape[2]
    spans = trace.arrays.values()  # the buffers are as long as they need to be
    assert all(sum(start <= at < start + size for start, size in spans) == 1 for at, _ in wanted)
