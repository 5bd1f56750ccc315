"""The batched CUDA rung in the tracer: right for any shape, no hazard, the counts of its tiles."""

import numpy as np


def imports():
    global cuda_batched, cuda_launch, SIDE, batched, trace
    from course_lib.circles import cuda_batched, cuda_launch
    from course_lib.circles.cuda_batched import SIDE, batched
    from course_lib.simulators.gpu import trace


GUARD = 64  # numbers before and after C that nobody may write


def traced(batch, M, K, N, seed=0):
    """Return the trace, C with its surroundings, and the operands, which must be as they were."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((batch, M, K)).astype(np.float32)
    B = random.standard_normal((batch, K, N)).astype(np.float32)
    memory = np.full(GUARD + batch * M * N + GUARD, np.nan, np.float32)
    C = memory[GUARD:-GUARD].reshape(batch, M, N)
    before = A.copy(), B.copy()
    grid = (-(-N // SIDE), -(-M // SIDE), batch)
    seen = trace(batched, grid, (SIDE, SIDE), A, B, C, progress=False)
    assert np.array_equal(A, before[0]) and np.array_equal(B, before[1])
    return seen, memory, C, A, B


def test_right_for_any_shape_and_without_a_hazard():
    for shape in [(1, 1, 1, 1), (3, 5, 7, 3), (2, 16, 32, 16), (4, 17, 19, 33), (2, 25, 8, 25)]:
        seen, memory, C, A, B = traced(*shape)
        bound = 2 * A.shape[2] * 2.0**-24 * (np.abs(A).astype(float) @ np.abs(B).astype(float))
        assert (np.abs(C - A.astype(float) @ B.astype(float)) <= bound).all(), shape
        assert np.isnan(memory[:GUARD]).all() and np.isnan(memory[-GUARD:]).all(), shape
        assert seen.hazards == [], shape


def test_counts_of_whole_tiles():
    """Every element of a tile is fetched once a block; a block is SIDE x SIDE of C, for each k a pair."""
    batch, M, K, N = 3, 2 * SIDE, 2 * SIDE, SIDE
    seen, *_ = traced(batch, M, K, N)
    loads = sum(row.accesses for row in seen.global_accesses if row.kind == "load")
    stores = sum(row.accesses for row in seen.global_accesses if row.kind == "store")
    reads = sum(row.accesses for row in seen.shared_accesses if row.kind == "load")
    assert loads == batch * (M * N // SIDE**2) * (K // SIDE) * 2 * SIDE**2
    assert stores == batch * M * N
    assert seen.flops == 2 * batch * M * K * N
    assert reads == seen.flops
    # A warp is two rows of a tile: 2 x 64 bytes lie side by side, and no two lanes want one bank.
    assert {row.sectors_per_request for row in seen.global_accesses} == {4}
    assert {row.wavefronts_per_request for row in seen.shared_accesses} == {1}


def test_one_launch_for_all_and_more_only_where_a_grid_ends(monkeypatch):
    """The launches as they would be started: what each multiplies, put together, is the whole product."""
    launches = []

    def compute(kernel, grid, block, a, b, c):
        launches.append(grid)
        assert grid == (-(-c.shape[2] // SIDE), -(-c.shape[1] // SIDE), c.shape[0])
        c[...] = a @ b

    monkeypatch.setattr(cuda_launch, "_launch", compute)
    random = np.random.default_rng(0)
    A, B = random.standard_normal((5, 70, 3)), random.standard_normal((5, 3, 20))
    for most, count in ((65_535, 1), (2, 9)):  # 5 matrices by twos, 70 rows by 2 * 16
        monkeypatch.setattr(cuda_launch, "MOST_BLOCKS_DOWN", most)
        launches.clear()
        C = np.full((5, 70, 20), np.nan)
        cuda_batched.start(A, B, C)
        assert np.allclose(C, A @ B) and len(launches) == count
        assert all(size <= most for grid in launches for size in grid[1:])
