"""Which kernel and tile: the model's order, and a search that keeps what it found."""

import pytest

from course_lib.fp8 import choice, jit, search
from course_lib.fp8.choice import DENSE, GROUPED, SWAPPED, candidates, candidates_of_groups
from course_lib.fp8.choose import H100, H200, estimate, memory_cycles
from course_lib.fp8.plans import Problem, plan_for
from course_lib.fp8.tiles import TILES


def test_few_rows_change_sides_and_many_do_not():
    assert {candidates(M, 7168, 2048)[0].kernel for M in (1, 7, 20)} == {SWAPPED}
    assert {candidates(M, 4096, 7168)[0].kernel for M in (512, 4096)} == {DENSE}
    assert SWAPPED not in {one.kernel for one in candidates(129, 4096, 7168)}


def test_a_handful_of_tokens_gets_the_narrowest_tile_that_holds_them():
    """20 tokens in 32 columns, not 64: what is computed for nothing costs time."""
    assert [candidates(M, 7168, 2048)[0].tile.BN for M in (1, 16, 20)] == [16, 16, 32]


@pytest.mark.parametrize("shape", [(64, 2112, 7168), (100, 264, 208), (4096, 4096, 7168)], ids=str)
def test_the_first_is_the_models_fastest(shape):
    M, N, K = shape

    def cycles(one):
        sides = (N, M) if one.kernel == SWAPPED else (M, N)
        return max(estimate(one.tile, *sides, K).own_cycles, memory_cycles(M, N, K))

    found = candidates(*shape)
    assert cycles(found[0]) == min(map(cycles, found))
    assert [cycles(one) for one in found] == sorted(map(cycles, found))


def test_every_candidate_has_a_plan():
    problem = Problem(*(n << 20 for n in range(1, 6)), rows=100, N=264, K=208, padded_rows=100)
    for one in candidates(100, 264, 208):
        assert plan_for(one.kernel, problem, one.tile).kernel == one.kernel
    assert len(candidates(100, 264, 208)) == len(TILES) + len(choice.SWAPPED_TILES)


def test_groups_whose_rows_share_an_index_have_tiles_of_128_rows_at_most():
    assert {one.tile.BM for one in candidates_of_groups(4, 8192, 4096, 7168, False)} == {64, 128}
    assert 256 in {one.tile.BM for one in candidates_of_groups(4, 8192, 4096, 7168, True)}
    assert {one.kernel for one in candidates_of_groups(2, 3, 8, 16, True)} == {GROUPED}


def test_every_group_counts_as_whole_tiles_of_its_own():
    """Thirty-two groups of 100 rows are not one of 3200, nor one of 100."""
    chosen = candidates_of_groups(32, 100, 4096, 7168, True)[0].tile
    cycles = {
        tile: estimate(tile, 32 * -(-100 // tile.BM) * tile.BM, 4096, 7168).own_cycles for tile in TILES
    }
    assert cycles[chosen] == min(cycles.values())
    first = candidates_of_groups(4, 512, 4096, 7168, True)[0].tile
    assert first != candidates_of_groups(1, 512, 4096, 7168, True)[0].tile


def test_up_to_128_rows_may_change_sides():
    kernels = {M: {one.kernel for one in candidates(M, 4096, 7168)} for M in (112, 128, 129)}
    assert SWAPPED in kernels[112] and SWAPPED in kernels[128] and SWAPPED not in kernels[129]


def test_small_groups_get_low_tiles():
    assert candidates_of_groups(32, 20, 4096, 7168, True)[0].tile.BM == 64


# -- search ----------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(search, "_known", {})
    monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 13.0")
    search._text.cache_clear()
    yield
    search._text.cache_clear()


def slowest_first(functions):
    """A clock for which the model is upside down: its last candidate is the fastest."""
    for function in functions.values():
        function()
    return {one: 1.0 / (place + 1) for place, one in enumerate(functions)}


def test_a_search_keeps_the_fastest_and_best_gives_it_back(fresh, monkeypatch):
    expected, started, checked = candidates(4096, 4096, 7168, H200)[:5], [], []
    assert search.best(4096, 4096, 7168, H200) == expected[0]
    found = search.search(4096, 4096, 7168, H200, started.append, slowest_first, checked.append, tried=5)
    assert tuple(started) == 2 * expected and tuple(checked) == expected
    assert list(found) == [*reversed(expected)]
    assert search.best(4096, 4096, 7168, H200) == expected[-1]
    monkeypatch.setattr(search, "_known", {})  # another process
    assert search.best(4096, 4096, 7168, H200) == expected[-1]
    assert search.best(3000, 4096, 7168, H200) == expected[-1]  # of the same class
    for other in ((2048, 4096, 7168, H200), (4096, 4096, 7296, H200), (4096, 4096, 7168, H100)):
        assert search.best(*other) == candidates(*other)[0]


def test_what_is_wrong_is_never_kept(fresh):
    expected = candidates(4096, 4096, 7168, H200)

    def check(one):
        if one == expected[3]:
            raise ArithmeticError("wrong")

    with pytest.raises(ArithmeticError):
        search.search(4096, 4096, 7168, H200, lambda one: None, slowest_first, check, tried=5)
    assert search._store().read() == {} and search.best(4096, 4096, 7168, H200) == expected[0]


@pytest.mark.parametrize("change", ["compiler", "text"])
def test_what_was_found_belongs_to_compiler_and_text(fresh, monkeypatch, tmp_path, change):
    search.search(4096, 4096, 7168, H200, lambda one: None, slowest_first, lambda one: None, tried=5)
    monkeypatch.setattr(search, "_known", {})
    search._text.cache_clear()
    if change == "compiler":
        monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 13.1")
    else:
        (tmp_path / "kernels").mkdir()
        (tmp_path / "kernels" / "v6_tuned.cu").write_text("other")
        monkeypatch.setattr(jit, "KERNELS", tmp_path / "kernels")
    assert search.best(4096, 4096, 7168, H200) == candidates(4096, 4096, 7168, H200)[0]


@pytest.mark.parametrize(
    "saved", [None, 7, {}, {"kernel": DENSE, "tile": {"BM": 100, "BN": 16}}, {"kernel": "v0", "tile": 3}]
)
def test_what_was_kept_and_makes_no_sense_is_left_aside(fresh, saved):
    key = search._key(4096, 4096, 7168, H200)
    search._store().update(lambda values: values.update({key: saved}))
    assert search.best(4096, 4096, 7168, H200) == candidates(4096, 4096, 7168, H200)[0]


def test_classes_of_rows():
    classes = {1: 16, 16: 16, 17: 32, 128: 128, 129: 192, 512: 512, 513: 1024, 1025: 2048, 4096: 4096}
    assert {M: search.class_of(M) for M in classes} == classes
