import itertools

import numpy as np

from course_lib.grading.inputs import between, every_pair


def test_every_two_choices_meet_but_those_that_must_not():
    choices = {
        "M": (0, 1, 2),
        "dtype": ("float32", "float64"),
        "special": ("", "NaN", "inf", "0"),
        "beta": (0, 1),
    }

    def impossible(row):
        return row["M"] == 0 and row["special"] != ""

    for seed in range(20):
        rows = list(every_pair(np.random.default_rng(seed), unless=impossible, **choices))
        assert not any(map(impossible, rows)) and len(rows) <= 16  # of 48
        for a, b in itertools.combinations(choices, 2):
            wanted = set(itertools.product(choices[a], choices[b]))
            if (a, b) == ("M", "special"):
                wanted -= {(0, special) for special in choices["special"][1:]}
            assert {(row[a], row[b]) for row in rows} == wanted
    assert [*every_pair(np.random.default_rng(1), M=(3,))] == [{"M": 3}]
    drawn = {
        row["M"] for seed in range(30) for row in every_pair(np.random.default_rng(seed), M=[between(2, 5)])
    }
    assert drawn == {2, 3, 4}


def test_a_product_is_asked_for_with_every_two_of_size_form_and_special_number():
    from course_lib.grading.tasks.compiled_loops import all_inputs

    met = set()
    for case in all_inputs(np.random.default_rng(5)):
        A, B = case.args
        forms = {str(A.dtype), "contiguous" if A.flags.c_contiguous else "a view"}
        both = {
            f"K = {A.shape[1]}" if A.shape[1] < 3 else "more",
            *(f"{n} left over" for n in [A.shape[0] % 4]),
        }
        found = {"NaN" for X in (A, B) if np.isnan(X).any()} | {"inf" for X in (A, B) if np.isinf(X).any()}
        met |= set(itertools.combinations(sorted(forms | both | found), 2))
    for pair in itertools.product(
        ("NaN", "inf"), ("float32", "a view", "K = 1", "K = 2", "3 left over", "more")
    ):
        assert tuple(sorted(pair)) in met, pair
