"""Machine code kept on disk is used again, but not where it was made for other caches or from other files."""

import os
import subprocess
import sys

import pytest


def imports():
    global hardware, jit
    from course_lib.measure import hardware, jit


PROGRAM = """
import sys
from dataclasses import replace
from course_lib.measure import hardware
caches = hardware.caches()
if sys.argv[1] == "other machine":
    hardware.caches = lambda: tuple(replace(cache, size_bytes=cache.size_bytes // 4) for cache in caches)
import numpy as np
from course_lib.circles import simd
A = np.ones((7, 9), np.float32)
assert np.array_equal(simd.matmul(A, A.T), A @ A.T)
print(sum(simd.multiply.stats.cache_hits.values()), sum(simd.multiply.stats.cache_misses.values()))
"""


def hits_and_misses(folder, machine):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", PROGRAM, machine]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


@pytest.mark.slow
def test_kept_code_is_used_on_the_same_machine_only(tmp_path):
    """Block sizes from the caches are in the code: with others it would write beyond the working memory."""
    assert hits_and_misses(tmp_path, "this machine") == (0, 1)
    assert hits_and_misses(tmp_path, "this machine") == (1, 0)
    assert hits_and_misses(tmp_path, "other machine") == (0, 1)


def test_what_code_is_made_from_changes_with_the_caches_and_with_any_of_the_files(monkeypatch, tmp_path):
    made_from = jit.made_from.__wrapped__
    before = made_from()
    assert before == made_from()
    with monkeypatch.context() as other:
        other.setattr(hardware, "caches", lambda: ())
        assert made_from() != before
    for room in ("circles", "measure", "simulators"):
        (tmp_path / room).mkdir()
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "measure" / "jit.py"))
    hashes = {made_from()}
    for text in ("a = 1", "a = 2"):
        (tmp_path / "circles" / "vectors.py").write_text(text)
        hashes.add(made_from())
    assert len(hashes) == 3
