"""The README tells the truth about the registry, the commands and the files it names."""

import re
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

from course_lib import ladder
from course_lib.commands import readme

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_rungs_is_the_registry():
    assert readme.replaced(TEXT, "rungs", readme.rung_table()) == TEXT, "run 'make format'"
    assert all(f"`{entry.id}`" in TEXT for entry in ladder.LADDER)


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#\s]+)", TEXT)
    local = [target for target in targets if "://" not in target]
    assert "docs/ladder.png" in local
    assert not [target for target in local if not (ROOT / target).exists()]


def test_the_picture_says_where_it_comes_from():
    assert re.search(r"\*Measured \d{4}-\d\d-\d\d on .*; NumPy's BLAS is .* kernels", TEXT)
    alt = re.search(r"!\[([^\]]+)\]\(docs/ladder.png\)", TEXT)[1]
    drawn = [entry for entry in ladder.LADDER if "float64" in entry.dtypes and not entry.parallel]
    assert all(entry.id in alt for entry in drawn)  # it is for float64 on one thread of a CPU


def test_the_picture_waits_for_a_sound_result_of_every_rung(capsys):
    assert readme.run(Namespace(picture=True)) == 1 and "simd at 1000" in capsys.readouterr().out
    sizes = {entry.id: entry.size for entry in ladder.LADDER}
    full = [SimpleNamespace(rung=id, shape=(n,) * 3, rough=False) for id, n in sizes.items()]
    assert readme.not_measured(full) == "" and readme.step_table().startswith("| change | at | time |")
    full[list(sizes).index("simd")].rough = True
    assert readme.not_measured(full).startswith("No sound result of simd at 1000: run")


def test_every_make_target_it_names_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z]+)\b", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
