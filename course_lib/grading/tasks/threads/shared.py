"""What several tasks of chapter 05 use: the given locks, and what they mean to the checker of schedules."""

from __future__ import annotations

from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import source

#: Handed out in the assignment. A mutex or a semaphore cannot be an argument of a judged function, so it has
#: a name; who asks for it first makes it.
LOCKS = source("""
    import threading


    def lock_of(name, made={}):  # noqa: B006 - the one mutex of that name, kept in `made`
        return made.setdefault(name, threading.Lock())


    def slots_of(name, made={}):  # noqa: B006 - the one semaphore of that name: 2 slots
        return made.setdefault(name, threading.Semaphore(2))


    def use(buffer, uses):  # stands for the work with that buffer
        uses[buffer] += 1
""")

#: The same for the checker: shared dicts hold them.
CHECKED_LOCKS = source("""
    def lock_of(name):
        return locks[name]


    def slots_of(name):
        return slots[name]


    def use(buffer, uses):
        uses[buffer] += 1
""")

THREADING_ONLY = OnlyImports(("threading",))
