"""The questions and fill-ins of chapter 05."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from types import FunctionType
from typing import Any

from course_lib.grading.questions.question import Fill, Question, with_arrays

QUESTIONS: tuple[Question, ...] = (
    Question(
        "05.lost",
        "Two threads each do `total[0] += 1` a thousand times, total[0] begins at 0, nothing is locked: what "
        "is the smallest value it can end with?",
        2,
        "Thread 0 reads 0 and pauses. Thread 1 does 999 turns. Thread 0 writes 1. Thread 1 reads this 1 for "
        "its last turn and pauses. Thread 0 does its other 999 turns. Thread 1 writes 2. Not 1: the last "
        "write of all comes after at least one other turn of its thread, or adds to what the other one "
        "wrote.",
        {
            2000: "That is what arrives when nothing goes wrong, the largest value.",
            1000: "That needs each increment of one thread to be lost just once. One write can undo many.",
            1: "Close. Before its last turn each thread has seen a 1 or more in its own earlier turns.",
            0: "Every write puts down something that was read plus 1.",
            1001: "A write may lie back by many turns, not only by one: it undoes all that came between.",
        },
        tolerance=1e-9,
    ),
    Question(
        "05.padding",
        "Eight threads count in eight different int64 that lie side by side: nothing is wrong, but it is "
        "slow. What helps?",
        "padding",
        "False sharing: different words, one line of 64 bytes. 64 bytes from counter to counter give each "
        "its own line (some processors fetch lines in pairs; there 128 are safer).",
        {
            "a mutex": "There is no race: each thread has its own counter. A lock only adds waiting.",
            "a semaphore": "Nobody has to be counted or kept out: each thread has its own counter.",
            "more threads": "More cores would want the same line, and each takes it from the others.",
        },
        options=("a mutex", "a semaphore", "padding", "more threads"),
    ),
    Question(
        "05.zombie",
        "A child process has ended and its parent has not asked for its exit code. What is it now?",
        "a zombie",
        "Its memory is gone; its number and exit code stay in the system's table until the parent waits "
        "for it.",
        {
            "an orphan": "An orphan lives, and its parent is the one that has ended.",
            "a daemon": "A daemon is a process that is meant to live on in the background.",
            "a deadlock": "A deadlock needs somebody who waits, and somebody who is waited for, in a circle.",
        },
        options=("an orphan", "a zombie", "a daemon", "a deadlock"),
    ),
)


def _order_of_locks(transfer_ordered: Callable, giver: int, taker: int) -> str:
    """Return in words whether two opposite transfers take their locks in one order: any will do."""
    orders = []
    for accounts in ((giver, taker), (taker, giver)):
        locks = defaultdict(nullcontext)  # it begins with what was asked for first
        FunctionType(transfer_ordered.__code__, {"locks": locks, "balance": [10] * 4})(*accounts, 5)
        orders.append([*locks])
    there, back = orders
    if there == back and {*there} == {giver, taker}:
        return "one order for both ways"
    return f"the locks {there} one way and {back} the other"


def _as_python(matmul_private: Callable, *case: Any) -> Any:
    """Return the result without the compiler: there a wrong index is an error, and no damage."""
    return with_arrays(getattr(matmul_private, "py_func", matmul_private), *case)


FILLS: tuple[Fill, ...] = (
    Fill(
        "05.bands",
        """def bands(rows, count):  # as pairs (start, stop), their sizes differ by one at most
    return pairwise(«rows * t // count» for t in range(count + 1))""",
        cases=((12, 3), (10, 4), (2, 3)),
        run=lambda bands, rows, count: [list(band) for band in bands(rows, count)],
        hint="Band t begins at t of count parts of all rows. Multiply before you divide, and round down.",
        why="Rounded at each border, not at each size: what is left over is spread over the bands.",
        wrong={
            "rows // count * t": "All bands have one size, and the rows that are left over belong to nobody.",
            "rows / count * t": "A border is a whole number: round down, with `//`.",
            "t * count": "That is where it would begin with `count` rows for each.",
            "rows * t // (count + 1)": "There are count bands, and count + 1 borders.",
        },
    ),
    Fill(
        "05.private",
        """@njit(parallel=True)
def matmul_private(A, B, count):
    partial = np.zeros((count, A.shape[0], B.shape[1]))
    for t in prange(count):
        for k in range(len(B) * t // count, len(B) * (t + 1) // count):
            for i in range(A.shape[0]):
                for j in range(B.shape[1]):
                    partial[«t, i, j»] += A[i, k] * B[k, j]
    return partial""",
        cases=(([[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2], [3, 4], [5, 6], [7, 8]], 2),),
        run=_as_python,
        hint="`partial` has three indices. Which of the loop's names belongs to one thread alone?",
        why="No two threads write the same element any more, so nothing needs a lock.",
        wrong={
            "0, i, j": "All threads write the first C: the race as before. Which one belongs to thread t?",
            "k % count, i, j": "Each thread's k runs through all planes: two threads may meet in one.",
            "i, j": "That is a whole row of thread i: `partial` has three indices.",
            "t": "That adds each product to every element of C.",
        },
    ),
    Fill(
        "05.order",
        """def transfer_ordered(giver, taker, amount):
    first, second = «sorted((giver, taker))»
    with locks[first]:
        with locks[second]:
            balance[giver] -= amount
            balance[taker] += amount""",
        cases=((0, 1), (1, 0), (3, 2)),
        run=_order_of_locks,
        hint="Both transfers need the same two locks. On what order can they agree without asking?",
        why="With one order for all, whoever holds the last lock waits for nobody, so no circle can close.",
        wrong={
            "giver, taker": "So it was before: two transfers in opposite directions wait for each other.",
            "taker, giver": "The other way round, and the same circle: look at two opposite transfers.",
            "giver, giver": "Both accounts change, so both locks are needed.",
        },
    ),
)
