"""The latency curve: the chase visits every line, plateaus and climbs are found, bad requests are refused."""

import mmap
from dataclasses import replace

import numpy as np
import pytest

from course_lib import views
from course_lib.measure.hardware import CacheLevel
from course_lib.measure.sizes import in_bytes


def imports():
    global latency
    from course_lib.measure import latency


KIB, MIB = 2**10, 2**20
CACHES = (CacheLevel(1, 32 * KIB, 64, 8, 1), CacheLevel(2, MIB, 64, 16, 1))


def made_up(steps, caches=CACHES, largest=64 * MIB, noise=0.0):
    """Return a curve whose latency is that of the first (size, ns) a working set fits into."""
    sizes = [int(4 * KIB * 2 ** (n / 2)) for n in range(2 * 14 + 1)]
    sizes = [size for size in sizes if size <= largest]
    rng = np.random.default_rng(0)
    ns = [next(ns for limit, ns in steps if size <= limit) * (1 + noise * rng.random()) for size in sizes]
    return latency.LatencyCurve(tuple(sizes), tuple(ns), caches, "system")


THREE = ((32 * KIB, 1.0), (MIB, 4.0), (2**40, 100.0))


def test_a_cycle_goes_through_every_place_once():
    for places in [1, 2, 3, 64, 1000]:
        following = latency.cycle(places, np.random.default_rng(1))
        place, seen = 0, []
        for _ in range(places):
            seen.append(place)
            place = int(following[place])
        assert place == 0 and sorted(seen) == list(range(places)), places


def test_plateaus_are_found_and_named_after_the_caches():
    for noise in [0.0, 0.15]:
        found = made_up(THREE, noise=noise).plateaus()
        assert [one.name for one in found] == ["L1", "L2", "memory"], noise
        assert [one.nanoseconds for one in found] == pytest.approx([1, 4, 100], rel=0.16), noise
        assert [one.size_bytes for one in found] == [32 * KIB, MIB, None], noise
    first, second, last = made_up(THREE).plateaus()
    assert 32 * KIB < first.edge_bytes < 32 * KIB * 2**0.5
    assert MIB < second.edge_bytes < MIB * 2**0.5 and last.edge_bytes is None


def test_a_cache_of_which_one_has_only_a_part_is_said():
    caches = (*CACHES, CacheLevel(3, 512 * MIB, 64, 16, 2))
    steps = ((32 * KIB, 1.0), (MIB, 4.0), (12 * MIB, 30.0), (2**40, 150.0))
    curve = made_up(steps, caches)
    assert [one.name for one in curve.plateaus()] == ["L1", "L2", "L3", "L3, step 2"]
    beyond = made_up(steps, (*CACHES, CacheLevel(3, 32 * MIB, 64, 16, 2)))
    assert beyond.plateaus()[-1].name == "memory" and "and this is memory" in beyond.where_it_ends
    said = str(beyond.table())
    assert said.count("only a part") == 1 and "TLB" not in said and said.count("32,768") == 1
    said = str(curve.table())
    assert "leaves L3 at about 13 MiB, long before the 512 MiB that the system tells of L3" in said
    assert "TLB" in said and "you have only a part of that cache" in said and "what follows is memory" in said
    assert "long before" not in str(made_up(THREE).table())
    huge, flat = replace(curve, pages="huge"), made_up((*steps[:2], (2**40, 30.0)), caches)
    for said in (str(huge.table()), str(curve.table(huge))):
        assert "TLB" not in said and "only a part of that cache" in said
    assert "it stays: the TLB" in str(curve.table(flat))


def test_a_curve_that_ends_inside_the_last_cache_says_so():
    caches = (*CACHES, CacheLevel(3, 480 * MIB, 64, 16, 2))
    curve = made_up(((32 * KIB, 1.0), (MIB, 4.0), (2**40, 100.0)), caches)
    assert curve.plateaus()[-1].name == "L3" and not curve.reaches_memory
    said = "memory is not reached: the largest working set (64 MiB) fits into L3 (480 MiB)."
    assert said in curve.where_it_ends and said in str(curve.table())
    picture = views.latency(curve)
    assert said in picture.alt
    begins = in_bytes(curve.plateaus()[-1].first_bytes)
    assert f"({begins} to 64 MiB, inside L3) a read takes 100x as long as in L1" in picture.alt
    assert made_up(THREE).reaches_memory and made_up(THREE).where_it_ends == ""


def test_without_known_caches_no_plateau_is_called_memory():
    curve = made_up(THREE, caches=())
    assert [one.name for one in curve.plateaus()] == ["plateau", "plateau, step 2", "plateau, step 3"]
    assert "does not tell its caches" in curve.where_it_ends and not curve.reaches_memory
    assert "against plateau" in str(curve.table())
    assert "a read takes 100x as long as on the first: 100 ns against 1.0 ns" in views.latency(curve).alt


def test_a_curve_is_measured_where_it_was_asked_for(monkeypatch):
    sizes = [8 * KIB, 16 * KIB, 32 * KIB]
    curve = latency.measure(sizes=sizes)
    assert curve.sizes == tuple(sizes) and curve.at(17 * KIB) == curve.nanoseconds[1]
    assert all(0.1 < ns < 1000 for ns in curve.nanoseconds)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    with pytest.raises(RuntimeError, match="does not let a program ask for huge pages"):
        latency.measure("huge", [8 * KIB])


@pytest.mark.timing
def test_memory_takes_longer_than_the_first_cache():
    curve = latency.measure(sizes=[8 * KIB, 64 * MIB])
    assert curve.nanoseconds[1] > 3 * curve.nanoseconds[0]
