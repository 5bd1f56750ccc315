"""The checker of interleavings: against a brute-force enumeration, on the classics, and on hostile texts."""

import threading
import time
from contextlib import suppress
from functools import cache
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.looped import looped

from course_lib.simulators.interleavings import (
    Lock,
    NotUnderstood,
    RLock,
    Semaphore,
    explore,
    run_schedule,
)

total = [0]
lock = threading.Lock()
first, second = threading.Lock(), threading.Lock()
counter = 0
TWICE = 2


def add():
    total[0] += 1


def add_twice():
    for _ in range(max(TWICE for _ in (1, 2))):
        total[0] += 1


def add_safely(times):
    for _ in range(times):
        with lock:
            total[0] += 1


def forwards():
    with first, second:
        total[0] += 1


def backwards():
    with second, first:
        total[0] += 1


def count():
    global counter
    counter += 1


# -- an independent enumeration ----------------------------------------------------------------------------


def source_of(threads):
    """Write threads of operations: ("read", cell), ("write", cell, constant), ("take" or "give", lock)."""
    lines = []
    for number, operations in enumerate(threads):
        lines.append(f"def thread{number}():\n    x = 0")
        for kind, where, *constant in operations:
            lines.append(
                {
                    "read": f"    x = s[{where}]",
                    "write": f"    s[{where}] = 2 * x + {constant[0] if constant else 0}",
                    "take": f"    locks[{where}].acquire()",
                    "give": f"    locks[{where}].release()",
                }[kind]
            )
    return "\n".join(lines)


def enumerate_all(threads):
    """Return (final cells reached, number of schedules, whether some schedule is stuck), step by step."""

    @cache
    def walk(places, xs, cells, holders):
        if all(place == len(ops) for place, ops in zip(places, threads, strict=True)):
            return frozenset({cells}), 1, False
        finals, schedules, stuck, moved = frozenset(), 0, False, False
        for t, operations in enumerate(threads):
            if places[t] == len(operations):
                continue
            kind, where, *constant = operations[places[t]]
            if kind == "take" and holders[where] is not None:
                continue
            moved = True
            new_xs, new_cells, new_holders = list(xs), list(cells), list(holders)
            if kind == "read":
                new_xs[t] = cells[where]
            elif kind == "write":
                new_cells[where] = 2 * xs[t] + constant[0]
            else:
                new_holders[where] = t if kind == "take" else None
            new_places = (*places[:t], places[t] + 1, *places[t + 1 :])
            found = walk(new_places, tuple(new_xs), tuple(new_cells), tuple(new_holders))
            finals, schedules, stuck = finals | found[0], schedules + found[1], stuck or found[2]
        return (finals, schedules, stuck) if moved else (frozenset(), 1, True)

    return walk((0,) * len(threads), (0,) * len(threads), (0, 0), (None, None))


@st.composite
def thread_operations(draw):
    """Draw reads and writes of two cells, inside locks that are taken and given back in order."""
    operations, held = [], []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["read", "write", "take", "give"]))
        if kind == "read":
            operations.append(("read", draw(st.integers(0, 1))))
        elif kind == "write":
            operations.append(("write", draw(st.integers(0, 1)), draw(st.integers(1, 3))))
        elif kind == "take" and len(held) < 2:
            free = [number for number in (0, 1) if number not in held]
            held.append(draw(st.sampled_from(free)))
            operations.append(("take", held[-1]))
        elif kind == "give" and held:
            operations.append(("give", held.pop()))
    return (*operations, *(("give", number) for number in reversed(held)))


@given(st.lists(thread_operations(), min_size=2, max_size=3))
@settings(max_examples=150, deadline=None)
def test_finds_exactly_what_enumeration_finds(threads):
    finals, schedules, stuck = enumerate_all(tuple(threads))
    # one cell more keeps every read a step: a cell that nobody writes is no shared state
    text = source_of(threads) + "\ndef keep(s):\n    s[0] = 0\n    s[1] = 0"
    names = [f"thread{number}" for number in range(len(threads))]
    shared = {"s": [0, 0], "locks": [Lock(), Lock()]}
    verdict = explore(names, shared, lambda final: True, source=text)
    assert {tuple(outcome["s"]) for outcome in verdict.outcomes} == set(finals)
    assert verdict.schedules == schedules
    assert (verdict.finding("deadlock") is not None) == stuck
    assert verdict.complete


# -- the classics ------------------------------------------------------------------------------------------

LOST = """
def work(more):
    with lock:
        x = s[0]
    with lock:
        s[0] = x + more
"""
GUARDED = "def work(mine):\n    with locks[mine]:\n        s[0] += 1"
IN_LOCK_TWICE = "def work():\n    with lock:\n        with lock:\n            s[0] += 1"
BACKING_OFF = """
def work(mine, other):
    done = False
    while not done:
        with locks[mine]:
            if locks[other].acquire(timeout=0.1):
                s[0] += 1
                locks[other].release()
                done = True
"""
AWAITING = """
def work(me):
    s[me] = 1
    while s[1 - me]:
        pass
    s[me] = 0
"""
HANDING_OVER = """
def produce():
    box[0] = 7
    full.release()

def consume():
    full.acquire()
    s[0] = box[0]
"""
BOX = {"box": [0], "s": [0], "full": Semaphore(0)}
LEAVES_EARLY = """
def work():
    for i in range(3):
        with lock:
            if i == 1:
                return
"""
STOLEN = "def a():\n    lock.acquire()\n    lock.release()\ndef b():\n    lock.release()"
ASSERTS = "def work(me):\n    s[0] = s[0] + 1\n    assert s[0] < 2, 'late'"
FLAG = "def writer():\n    s[0] = 1\ndef reader():\n    x = s[0]"
WAITS_ALONE = "def work():\n    while s[0] == 0:\n        pass"
SPINS_ALONE = "def work():\n    x = s[0]\n    other[0] = x\n    while True:\n        x += 0"

ONE, TWO = {"s": [0], "lock": Lock()}, {"s": [0, 0], "locks": [Lock(), Lock()]}

#: text, threads, shared, what is right -> kind of the finding ("" for none), words of its sentence
VERDICTS = [
    (FLAG, ["writer", "reader"], ONE, None, "race", "Data race on s[0]"),  # the result is right
    (GUARDED, [("work", 0), ("work", 1)], TWO, None, "wrong result", "s ends as [1, 0], but one"),
    (GUARDED, [("work", 0), ("work", 0)], TWO, None, "", "all 2 schedules"),
    (LOST, [("work", 1)] * 2, ONE, {"s": [2]}, "wrong result", "s ends as [1] instead of [2]"),
    (LOST, [("work", 1)] * 6, ONE, None, "wrong result", "one thread after the other gives [6]"),
    (LOST, [("work", 1)] * 2, ONE, lambda end: bool(end["s"][0] == 2) or "one is missing", "wrong result",
     "In some schedule one is missing."),
    (LOST, [("work", 1)] * 2, ONE, lambda end: np.bool_(end["s"][0] > 0), "", ""),
    (LEAVES_EARLY, ["work", "work"], ONE, None, "", ""),
    (WAITS_ALONE, ["work"], ONE, None, "error", "reads only what no thread writes (s[0])"),
    (SPINS_ALONE, ["work"], {"s": [0], "other": [0]}, None, "error", "without touching anything shared"),
    (IN_LOCK_TWICE, ["work"], ONE, None, "deadlock", "waits for lock, which it holds itself"),
    (IN_LOCK_TWICE, ["work", "work"], {"s": [0], "lock": RLock()}, None, "", ""),
    (BACKING_OFF, [("work", 0, 1), ("work", 1, 0)], TWO, {"s": [2, 0]}, "", ""),
    (AWAITING, [("work", 0), ("work", 1)], TWO, None, "deadlock", "livelock"),
    (HANDING_OVER, ["consume", "produce"], BOX, {"s": [7]}, "", ""),
    (HANDING_OVER, ["consume"], BOX, None, "deadlock", "semaphore full, of which none is free"),
    ("def work():\n    lock.release()", ["work"], ONE, None, "lock error", "releases lock in line 2, which"),
    ("def work():\n    lock.acquire()", ["work"], ONE, None, "lock error", "ends and still holds lock"),
    (STOLEN, ["a", "b"], ONE, None, "lock error", ""),
    (ASSERTS, [("work", 0), ("work", 1)], ONE, None, "error", "`assert s[0] < 2` does not hold (line 3)"),
    ("def work():\n    s[0] = 2 ** 64 * 2", ["work"], ONE, None, "error", "a number beyond 2**64"),
    ("def work():\n    s[0] = 1 / 0", ["work"], ONE, None, "error", "ZeroDivisionError: division by zero"),
    ("def work():\n    s[3] = 1", ["work"], ONE, None, "error", "s[3], which is not there (a shared list"),
    ("def work():\n    x = s == s", ["work"], ONE, None, "error", "compares a shared list or dict"),
]  # fmt: skip


@looped("text, threads, shared, expect, kind, words", VERDICTS)
def test_the_verdict_on_a_program(text, threads, shared, expect, kind, words):
    verdict = explore(threads, shared, expect, source=text)
    assert verdict.ok == (not kind) and (verdict.ok or verdict.kind == kind)
    assert words in verdict.sentence and (verdict.ok or verdict.witness is not None)


def test_the_shortest_way_to_a_lost_update_and_to_a_deadlock_is_shown():
    verdict = explore([add, add])
    assert "total ends as [1], but one thread after the other gives [2]" in verdict.sentence
    steps = [(step.thread, step.does) for step in verdict.witness.steps]
    every = ("reads total[0]: 0", "writes total[0] = 1")
    assert sorted(steps) == sorted((thread, what) for thread in (0, 1) for what in every)
    assert verdict.finding("race").sentence.startswith("Data race on total[0]: thread 0 ")
    assert explore([count, count]).kind == "wrong result" and counter == 0  # nothing was run
    text = "def work():\n    for _ in range(6):\n        s[0] += 1"
    schedule = explore(["work", "work"], {"s": [0]}, source=text).witness.schedule
    assert sum(a != b for a, b in pairwise(schedule)) == 2  # switches between the threads
    verdict = explore([forwards, backwards])
    assert verdict.sentence == (
        "Deadlock: thread 0 holds first and waits for second, which thread 1 holds; thread 1 holds second"
        " and waits for first, which thread 0 holds."
    )
    done = [(step.does, step.waits) for step in verdict.witness.steps]
    assert done == [
        ("acquires first", False),
        ("acquires second", False),
        ("waits for second", True),
        ("waits for first", True),
    ]


def test_a_schedule_is_run_as_asked():
    replay = run_schedule([add, add], schedule=[0, 1, 1, 0])
    assert replay.schedule == (0, 1, 1, 0) and replay.ended
    assert (replay.before, replay.shared) == ({"total": [0]}, {"total": [1]})
    assert [step.code for step in replay.steps] == ["total[0] += 1"] * 4


# -- the language ------------------------------------------------------------------------------------------


@looped(
    "body",
    [
        "x, y = 7 // 2 + 2 ** 5 % 3 - -1, 2\nx, y = y, x\ns[0], s[1] = x, y",
        "for i, v in enumerate(s):\n    s[2] = v + 5\nfor i in reversed(s):\n    s[1], s[0] = 7, s[0] + i",
        "s[0] = s.index(helper(0, 0)) + (sorted([2, 1]) + [3])[0] + sum((True, 1))",
        "s[0] = (1, 2) == (1, 2) and 2 in {1, 2} and [] is not None",
        "i = 0\nwhile True:\n    i += 1\n    if i == 2:\n        continue\n    if i > 4: break\n    s[0] = i",
        "for i in range(5):\n    if i == 3:\n        break\nelse:\n    s[0] = 9\ns[1] = i",
        "x = y = [1]; y += [2]\nfor i in x:\n    if len(y) < 5: y.append(i)\ns[0], s[1] = len(x), y[-1]",
        "x = y = [1]\nx += (x := [5, 5])\ns[0], s[1], s[2] = len(x), len(y), x[0]",
        "s[-1] = 4 if 1 < 2 < 3 else 5\ns[0] = (1 < 3 < 2) + (0 or 5)\ns[1] = 0 and 5",
        "d['a'] += 5\nd['b'] = d['a'] * 2",
        "s[0] = sum(s) + len(s) + max(s) + min(3, 4)",
        "s[1] = 4\ns[0] = next(v for v in s if v) + next((v for v in s if v > 9), helper(b=4, a=1))",
        "for key in d:\n    d[key] = len(key)",
        "s[0] = helper(4)\ns[1] = helper(helper(2, 3), 1)",
        "low, high = sorted((9, 4))\nt = (low, (2, min((), default=7)))\na, (b, c) = t\ns[0] = t[1][0] + c",
        "i = 5\nx = [i * v for i in [i, 2] for v in range(i) if v]\ns[0], s[1] = i, sum(x[::-2])",
        "x: int = 3\nx <<= 2\ns[0] = x | 1\ns[1] = ~x\ns[2] = not x",
        "s[0] = 2 in (1, 2)\ns[1] = 'a' in d\ns[2] = None is None",
        "print('hello', s[0])\nprint(f'{s[0]} is it')",
        "try:\n    s[0] = 1\nfinally:\n    s[1] = 2",
        "s[0] = divmod(17, 5)[1]\ns[1] = abs(-3)\ns[2] = int(2.7)",
        "s[1] = 7\nx = s[:2]\ns[1] = sum(s[::-1]) + len(s[5:])\ns[0] = x[1] + (7 in s) + (0 not in x)",
        "s[0] = any(1 // v for v in (1, 0)) + all(s) + sorted(set([2, 1]), reverse=True)[0]",
    ],
)
def test_computes_as_python_does(body):
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    text = f"def helper(a, b=2, c=-1):\n    return a * b + c + 1\n\ndef work():\n{indented}"
    replay = run_schedule(["work"], {"s": [0, 0, 0], "d": {"a": 1, "b": 2}}, source=text)
    assert replay.ended, replay.sentence
    space = {"s": [0, 0, 0], "d": {"a": 1, "b": 2}}
    exec(text, space)  # the test's own text: what Python makes of it
    space["work"]()
    assert replay.shared == {name: space[name] for name in replay.shared}


@looped(
    "line",
    [
        *(
            f"s[0] = {value}"
            for value in (
                *("f'{s[0]}' == ''", "[1] == (1,)", "[1] in ((1,), 2)", "max([1], (0,))", "len([*{2, 1}])"),
                *("list({2, 1})[0]", "bool(reversed([]))", "bool(enumerate([]))", "1000 is s[0] + 1000"),
                *(
                    "print('', end=helper(1))",
                    "print(f'{1:{helper(1)}}')",
                    "[[1]].index((1,))",
                    "any(([], s))",
                ),
            )
        ),
        *("for x in (y for y in s): pass", "x = [1]; x.append(x)", "next(y for y in s if y)", "next([1])"),
        *(
            "'ab'.index('b')",
            "reversed(s).index(0)",
            "x = [0]\n    next((0 for y in reversed(x)), helper(0))",
        ),
        *("x = 1e999 - 1e999", "for x in {2, 1}: pass", "s[helper(0)]: int"),
        *(
            "print(f'{s[0]:s}')",
            "print(f'{None:5}')",
            "print(f'{1:9999}')",
            "print(f'{55296:c}')",
            "sleep(0)",  # imported by nobody
            "abs(1)",
            "enumerate = s\n    for x in enumerate(s): pass",
            "import time; time.sleep(-1)",
            "import time; time.sleep('')",
            "import time; time.sleep()",
            "print('\\ud800')",
            "print('', sep=5)",
            "print('', end=0)",
            "return helper(lock.locked() or free.locked())",
            "again.locked()",
            "bounded.acquire(); bounded.release(); bounded.release()",
        ),
        *(
            f"while 1:\n        try: helper(0)\n        finally: {leave}"
            for leave in ("return", "break", "continue")
        ),
    ],
)
def test_what_python_might_take_for_something_else_is_refused(line):
    makers = {"lock": "Lock", "free": "Semaphore", "again": "RLock", "bounded": "BoundedSemaphore"}
    locks = "".join(f"{name} = {maker}()\n" for name, maker in makers.items())
    text = f"abs = 5\n{locks}\ndef helper(a):\n    return a\n\ndef work():\n    {line}"
    with suppress(NotUnderstood):
        assert not run_schedule(["work"], {"s": [0]}, source=text).ended


@looped(
    "work, other",
    [
        ("s[0] = 1\n    if s[0] is True:\n        s[1] = 2", "s[0] = True"),
        ("x = [1]; y = x if s[0] else [1]\n    s[1] = 0; x += [2]; s[1] = len(y) - 1", "s[0] = 1"),
    ],
)
def test_equal_values_that_python_can_tell_apart_are_other_states(work, other):
    text = f"def work():\n    {work}\n\ndef other():\n    {other}"
    verdict = explore(["work", "other"], {"s": [0, 0]}, lambda final: final["s"][1] == 0, source=text)
    assert verdict.finding("wrong result") is not None


def test_final_values_of_other_types_are_other_values():
    text = "def work():\n    s[0] = True\n\ndef other():\n    s[0] = 1"
    for names in (["work", "other"], ["other", "work"]):
        verdict = explore(names, {"s": [0]}, lambda final: final["s"][0] is True, source=text)
        assert verdict.finding("wrong result") is not None
        assert sorted(str(final["s"]) for final in verdict.outcomes) == ["[1]", "[True]"]


@looped(
    "line",
    [
        "print(f'{s[0]:3d} of {s[0]!r:>8}', 'x', sep='', end=None, flush=True)",
        "import time; time.sleep(s[0] + 0.01)",
        "for i in s:\n        try: pass\n        finally:\n            for j in s: break",
    ],
)
def test_what_python_takes_and_a_loop_within_finally_are_read(line):
    assert run_schedule(["work"], {"s": [0]}, source=f"def work():\n    {line}").ended


@looped(
    "body, words",
    [
        ("import os", "import os"),
        ("__import__('os').system('true')", r"\.system"),
        ("().__class__", r"\.__class__"),
        ("try:\n        pass\n    except ValueError:\n        pass", "except"),
        ("nonsense", "the name nonsense"),
    ],
)
def test_what_is_not_in_the_language_is_refused_with_its_line(body, words):
    text = f"def work():\n    {body}"
    with pytest.raises(NotUnderstood, match=words) as caught:
        explore(["work"], {"s": [0], "lock": Lock()}, source=text)
    assert str(caught.value).startswith("Line ") and "\n" not in str(caught.value)


HOSTILE = {
    "endless": "def work():\n    while True:\n        pass",
    "growing": "def work():\n    x = 1\n    while True:\n        x = x * 2\n        s[0] = 0",
    "power": "def work():\n    s[0] = 9 ** 9 ** 9",
    "shift": "def work():\n    s[0] = 1 << 10 ** 9",
    "text": "def work():\n    x = 'a'\n    for _ in range(9999):\n        x = x + x\n    s[0] = 1",
    "tuples": "def work():\n    x = (1,)\n    for _ in range(9999):\n        x = (x, x, x)\n    s[0] = 1",
    "range": "def work():\n    for i in range(10 ** 18):\n        s[0] = i",
    "recursion": "def work():\n    work()",
    "deep calls": "def f(n):\n    return " + "-" * 35 + "f(n)\n\ndef work():\n    s[0] = f(1)",
    "brackets": "def work():\n    x = " + "(" * 5000 + "1" + ")" * 5000,
    "minuses": "def work():\n    x = " + "-" * 20000 + "1",
    "sums": "def work():\n    x = " + "+".join(["1"] * 15000),
    "blocks": "def work():\n" + "".join(" " * (n + 1) + "if 1:\n" for n in range(90)) + " " * 95 + "pass",
    "long": "def work():\n    x = 1\n" * 5000,
    "null": "def work():\n    x = 1\x00",
    "states": "def work():\n    i = 0\n    while s[0] < 5:\n        i = i + 1\n        s[1] = i",
}


@looped("name", HOSTILE)
def test_hostile_texts_end_soon_and_in_a_sentence(name):
    start = time.process_time()
    try:
        verdict = explore(
            ["work", "work"], {"s": [0, 0]}, source=HOSTILE[name], max_states=20_000, time_limit_s=2
        )
        said = verdict.sentence
        assert not verdict.ok
    except NotUnderstood as problem:
        said = str(problem)
    assert time.process_time() - start < 6
    assert said.endswith(".") and len(said) < 400


class TestLimits:
    def test_too_many_states_are_a_sentence(self):
        verdict = explore([add_twice] * 3, expect=lambda final: True, max_states=50)
        assert verdict.finding("wrong result") is None and not verdict.complete
        only = explore([(add_safely, 3)] * 3, max_states=50)
        assert (
            only.kind == "not finished" and "more than 50 states" in only.sentence and only.schedules is None
        )

    def test_twenty_steps_each_take_less_than_a_second(self):
        start = time.process_time()
        verdict = explore([(add_safely, 5)] * 3)
        assert verdict.ok and verdict.schedules == 756_756
        text = "def work():\n" + "    s[0] += 1\n" * 10
        two = explore(["work", "work"], {"s": [0]}, {"s": [20]}, source=text)
        assert two.complete and two.kind == "wrong result" and two.schedules == comb(40, 20)
        assert min(outcome["s"][0] for outcome in two.outcomes) == 2  # the textbook's surprise
        assert time.process_time() - start < 2

    @looped(
        "arguments, sentence",
        [
            ({"threads": []}, "1 to 6"),
            ({"threads": [print]}, "must be a Python function"),
            ({"threads": [add], "expect": {"x": 1}}, "expect names 'x'"),
            ({"threads": [add, add], "expect": lambda final: 0}, r"must return True \(right\)"),
            ({"threads": [add], "shared": {"total": [object()]}}, r"total\[0\] is a object"),
            ({"threads": [add_safely]}, "for which there is no argument"),
            ({"threads": ["other"], "source": "def work():\n    pass"}, "defines no function other"),
        ],
    )
    def test_what_makes_no_sense_is_refused_in_one_sentence(self, arguments, sentence):
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            explore(**arguments)
        assert "\n" not in str(caught.value)
