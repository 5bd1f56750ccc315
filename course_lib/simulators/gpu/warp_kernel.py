"""The loop of the warp scheduler simulation, compiled; tests compare it with a plain one.

Self-contained on purpose: the machine code that is kept for it depends on this file only.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

#: Numbers of the states, in the order of `warp_scheduler.STATES`.
SELECTED, NOT_SELECTED, WAIT, SHORT_SCOREBOARD, LONG_SCOREBOARD, MIO_THROTTLE, LG_THROTTLE = range(7)


@compiled
def run(stream, registers, timeline):
    """Run all warps over and over for as many cycles as `timeline` (warps, cycles) has: it gets the states.

    stream: arrays with one entry per instruction – the state in which a reader of its result waits; its
    latency; the registers that it reads (instructions, most that one reads), -1 for none; the register that
    it writes, or -1; the path to memory that it needs, 0 for none; for how many cycles it holds that path.
    """
    kind, latency, operands, target, path, interval = stream
    warps, cycles = timeline.shape
    at = np.zeros(warps, np.int64)  # the next instruction of each warp
    ready = np.zeros((warps, registers + 1), np.int64)  # the cycle from which a register can be read
    producer = np.full((warps, registers + 1), WAIT, np.uint8)
    free = np.zeros(3, np.int64)  # the cycle from which a path takes the next request; path 0 is always free
    last = 0  # who issued last
    for cycle in range(cycles):
        for warp in range(warps):
            now = at[warp]
            state = waits_for(cycle, operands[now], target[now], ready[warp], producer[warp])
            if state == NOT_SELECTED and free[path[now]] > cycle:
                state = MIO_THROTTLE if path[now] == 1 else LG_THROTTLE
            timeline[warp, cycle] = state
        chosen = choose(timeline[:, cycle], last)
        if chosen < 0:
            continue
        timeline[chosen, cycle] = SELECTED
        last = chosen
        now = at[chosen]
        if target[now] >= 0:
            ready[chosen, target[now]] = cycle + latency[now]
            producer[chosen, target[now]] = kind[now]
        if path[now] > 0:
            free[path[now]] = cycle + interval[now]
        at[chosen] = (now + 1) % len(kind)


@compiled
def waits_for(cycle, operands, target, ready, producer):
    """Return NOT_SELECTED if a warp's next instruction can be issued, else what it waits for.

    It waits for what it reads, and for an earlier result on its way to the register that it writes. Of
    several, what comes last is named; of those that come together, the slowest kind.
    """
    state, until = NOT_SELECTED, cycle
    for i in range(len(operands) + 1):
        register = operands[i] if i < len(operands) else target
        if register < 0:
            continue
        here, kind = ready[register], producer[register]
        if here > until or (here == until and here > cycle and kind > state):
            state, until = kind, here
    return state


@compiled
def choose(states, last):
    """Return the warp to issue from, the last one or the oldest that could (NOT_SELECTED still), or -1."""
    if states[last] == NOT_SELECTED:
        return last
    for warp in range(len(states)):  # all began together: the oldest has number 0
        if states[warp] == NOT_SELECTED:
            return warp
    return -1
