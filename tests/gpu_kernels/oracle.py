"""A slow, plain model of a GPU that says what is wrong with a kernel: the judge of the cases in this folder.

Each CUDA thread is a greenlet that runs the kernel's Python function; arrays are watched element by element.
It is kept simple rather than quick (some 50 000 accesses/s), and shares no code with the tracer that the
cases are for. It does not see branches: divergence it knows only as the lanes missing from an access.
"""

from __future__ import annotations

import inspect
from itertools import product

import numpy as np
from greenlet import getcurrent, greenlet

from gpu_kernels.case import plain
from gpu_kernels.oracle_cuda import StandIn, rebound
from gpu_kernels.oracle_memory import (
    WARP,
    Hazard,
    Memory,
    Request,
    Watched,
    kernel_frame,
    race_partners,
    site_of,
)

#: lockstep: statement by statement together; the others let each thread run on (by number, or by chance).
SCHEDULES = ("lockstep", "ascending", "descending", "random")


class Thread:
    """One CUDA thread. `state`: ready, barrier or warp (waiting), left; `line`: where it is in the kernel."""

    def __init__(self, number: int, index: tuple[int, int, int], home: Block, threads: int):
        self.number, self.index, self.home, self.block = number, index, home, home.index
        self.warp, self.lane = divmod(number, WARP)
        self.clock = np.zeros(threads, np.int64)
        self.clock[number] = 1
        self.state, self.waits_for, self.site, self.line, self.value = "ready", None, None, 0, None
        self.visits: dict = {}


class Block:
    """The threads of one block, their shared memory, and the points where they meet."""

    def __init__(self, machine: Machine, index: tuple[int, int, int], function, args):
        self.machine, self.index = machine, index
        self.shared: dict = {}
        indices = [index[::-1] for index in product(*map(range, machine.blockdim[::-1]))]
        self.threads = [Thread(n, index, self, len(indices)) for n, index in enumerate(indices)]
        for thread in self.threads:
            thread.greenlet = greenlet(lambda: function(*args))

    def step(self) -> bool:
        """Let some threads go on, complete what they wait for; return whether any are left."""
        for thread in self._next():
            self.machine.current = thread
            thread.greenlet.switch()
            if thread.greenlet.dead:
                thread.state = "left"
        states = {thread.state for thread in self.threads} - {"left"}
        if not self._release_warps() and states and "ready" not in states:
            self._release_barrier()
        return bool(states)

    def _next(self) -> list[Thread]:
        ready = [thread for thread in self.threads if thread.state == "ready"]
        match self.machine.schedule:
            case "lockstep":  # those that are behind catch up: lanes that parted at a branch meet after it
                hindmost = min((thread.line for thread in ready), default=0)
                return [thread for thread in ready if thread.line == hindmost]
            case "random":
                chosen = self.machine.rng.permutation(len(ready))[: 1 + len(ready) // 8]
                return [ready[i] for i in chosen]
            case "ascending":
                return ready[:1]
            case _:
                return ready[-1:]

    def _join(self, group: list[Thread]) -> None:
        joined = np.max([thread.clock for thread in group], axis=0)
        for thread in group:
            thread.clock = joined.copy()
            thread.clock[thread.number] += 1

    def _release_barrier(self) -> None:
        group = [thread for thread in self.threads if thread.state == "barrier"]
        if not group:
            stuck = sorted({thread.site for thread in self.threads if thread.state == "warp"})
            raise AssertionError(f"lanes wait for lanes that never come, at {stuck}")
        if len(group) < len(self.threads) or len({thread.site for thread in group}) > 1:
            self.machine.hazards |= {Hazard("divergent-barrier", thread.site[1]) for thread in group}
        self._join(group)
        votes = [bool(thread.value) for thread in group]
        results = {"count": sum(votes), "and": int(all(votes)), "or": int(any(votes))}
        for thread in group:
            thread.value, thread.state = results.get(thread.waits_for), "ready"

    def _release_warps(self) -> bool:
        """Complete every warp operation whose lanes have all arrived; return whether there was one."""
        released = False
        for first in self.threads:
            if first.state != "warp":
                continue
            operation, mask = first.waits_for
            named = [
                t for t in self.threads if t.warp == first.warp and mask >> t.lane & 1 and t.state != "left"
            ]
            if all(t.state == "warp" and t.waits_for == first.waits_for for t in named):
                if operation == "syncwarp":
                    self._join(named)
                values = {t.lane: t.value for t in named}
                for thread in named:
                    thread.value, thread.state = warp_result(operation, thread.lane, values), "ready"
                released = True
        return released


class Machine:
    """Runs a kernel; after `launch`, `hazards` and `requests` hold what was seen.

    Blocks take turns, except in the schedule "random", where they all run at once.
    """

    def __init__(self, schedule: str = "lockstep", seed: int = 0):
        self.schedule, self.rng = schedule, np.random.default_rng(seed)
        self.hazards: set[Hazard] = set()
        self.requests: dict[tuple, Request] = {}
        self.current: Thread | None = None

    def launch(self, kernel, griddim, blockdim, args: tuple, shared_bytes: int = 0) -> None:
        """Run the kernel over the whole grid; NumPy arguments are written in place."""
        self.griddim, self.blockdim = dimensions(griddim), dimensions(blockdim)
        self.shared_bytes = shared_bytes
        function = rebound(plain(kernel), StandIn(self), {})
        self.code = function.__code__
        watched = self._watch_arguments(inspect.signature(function).parameters, args)
        indices = [index[::-1] for index in product(*map(range, self.griddim[::-1]))]
        blocks = [Block(self, index, function, watched) for index in indices]
        if self.schedule == "random":
            while blocks:
                at = self.rng.integers(len(blocks))
                if not blocks[at].step():
                    del blocks[at]
        for block in reversed(blocks) if self.schedule == "descending" else blocks:
            while block.step():
                pass

    def _watch_arguments(self, names, args) -> list:
        memories: dict[int, Memory] = {}
        watched = []
        for name, arg in zip(names, args, strict=True):
            if not isinstance(arg, np.ndarray):
                watched.append(arg)
                continue
            owner = arg
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            start = owner.__array_interface__["data"][0]
            watched.append(Watched(self, arg, memories.setdefault(start, Memory(name, "global", start))))
        return watched

    def turn(self) -> None:
        """Before an access: let the other threads come first, unless each is to run as far as it can."""
        if self.schedule not in ("lockstep", "random"):
            return
        thread = self.current
        if self.schedule == "lockstep":  # the only one that asks who is behind
            frame = kernel_frame()
            while frame.f_code is not self.code:
                frame = frame.f_back
            thread.line = frame.f_lineno
        getcurrent().parent.switch()
        self.current = thread

    def report(self, kind: str, partner: int = 0) -> None:
        self.hazards.add(Hazard(kind, kernel_frame().f_lineno, partner))

    def access(self, memory: Memory, offset: int, itemsize: int, kind: str) -> None:
        """Judge one access of the current thread, and enter it into its warp's request."""
        frame, thread = kernel_frame(), self.current
        if memory.written is not None:
            if kind != "store" and not memory.written[offset : offset + itemsize].all():
                self.report("uninitialised")
            memory.written[offset : offset + itemsize] |= kind != "load"
        if memory.space != "local":
            for partner in race_partners(memory, offset, kind, thread, frame.f_lineno):
                self.report("race", partner)
        site = site_of(frame)
        visit = thread.visits[site] = thread.visits.get(site, 0) + 1
        key = (thread.block, thread.warp, site, kind, visit)
        request = self.requests.get(key)
        if request is None:
            request = self.requests[key] = Request(memory, kind, frame.f_lineno, itemsize=itemsize)
        request.offsets.append(offset)

    def wait(self, state: str, waits_for, value):
        """Put the current thread to sleep until its barrier or warp operation is complete."""
        thread, frame = self.current, kernel_frame()
        thread.state, thread.waits_for, thread.value = state, waits_for, value
        thread.site = (id(frame.f_code), frame.f_lineno)
        getcurrent().parent.switch()
        return thread.value


def warp_result(operation: str, lane: int, values: dict):
    """Return what one lane gets from a shuffle, vote or match, given {lane: (its value, its parameter)}."""
    if operation == "syncwarp":
        return None
    value, parameter = values[lane]
    if operation.startswith("shfl"):
        source = {"": parameter, "_up": lane - parameter, "_down": lane + parameter, "_xor": lane ^ parameter}
        source = source[operation.removeprefix("shfl").removesuffix("_sync")]
        return values[source if 0 <= source < WARP else lane][0]
    votes = [bool(vote) for vote, _ in values.values()]
    if operation in ("all_sync", "any_sync"):
        return all(votes) if operation == "all_sync" else any(votes)
    chosen = bool if operation == "ballot_sync" else (lambda other: other == value)
    return sum(1 << other for other, (vote, _) in values.items() if chosen(vote))


def dimensions(given) -> tuple[int, int, int]:
    """Return a grid's or block's size as (x, y, z)."""
    given = given if isinstance(given, tuple) else (given,)
    return (*given, 1, 1)[:3]
