"""The loop of the warp scheduler simulation, compiled; tests compare it with a plain one.

Self-contained on purpose: the machine code that is kept for it depends on this file only.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

#: Numbers of the states, in the order of `warp_result.STATES`.
FINISHED, SELECTED, NOT_SELECTED, WAIT, SHORT_SCOREBOARD, LONG_SCOREBOARD = range(6)
GREEDY_THEN_OLDEST, LOOSE_ROUND_ROBIN = range(2)  # places in `warp_result.POLICIES`


@compiled
def run(stream, registers, interval, policy, passes, timeline, issue, sent):
    """Run all warps for as many cycles as `timeline` has columns; return the number of cycles run.

    stream: arrays with one entry per instruction – the state in which a reader of its result waits; its
    latency; whether it sends a request to memory; the registers that it reads (instructions, most that one
    reads), -1 for none; the register that it writes, or -1. interval: cycles between two requests.
    passes: how often a warp runs the stream, 0 for ever; with a number the run ends with the last issue.
    Written: timeline (warps, cycles), the states; issue (cycles, 2), the warp and the instruction issued, -1
    for none; sent (cycles, 2), for a request: the cycle in which the memory takes it, and that in which its
    result is there; -1 for no request.
    """
    kind, latency, is_request, operands, target = stream
    warps, cycles = timeline.shape
    at = np.zeros(warps, np.int64)  # the next instruction of each warp
    done = np.zeros(warps, np.int64)  # its passes
    ready = np.zeros((warps, registers + 1), np.int64)  # the cycle from which a register can be read
    producer = np.full((warps, registers + 1), WAIT, np.uint8)
    memory_free = 0
    last = -1  # who issued last
    running = warps
    for cycle in range(cycles):
        for warp in range(warps):
            if passes and done[warp] == passes:
                timeline[warp, cycle] = FINISHED
            else:
                timeline[warp, cycle] = waits_for(
                    cycle, operands[at[warp]], target[at[warp]], ready[warp], producer[warp]
                )
        chosen = choose(timeline[:, cycle], last, policy)
        issue[cycle, 0] = chosen
        issue[cycle, 1] = sent[cycle, 0] = sent[cycle, 1] = -1
        if chosen < 0:
            continue
        timeline[chosen, cycle] = SELECTED
        last = chosen
        now = at[chosen]
        issue[cycle, 1] = now
        taken = cycle
        if is_request[now]:
            taken = max(cycle, memory_free)
            memory_free = taken + interval
            sent[cycle, 0], sent[cycle, 1] = taken, taken + latency[now]
        if target[now] >= 0:
            ready[chosen, target[now]] = taken + latency[now]
            producer[chosen, target[now]] = kind[now]
        at[chosen] += 1
        if at[chosen] == len(kind):
            at[chosen] = 0
            done[chosen] += 1
            if passes and done[chosen] == passes:
                running -= 1
                if running == 0:
                    return cycle + 1
    return cycles


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
def choose(states, last, policy):
    """Return the warp to issue from, among those that could (all are NOT_SELECTED still), or -1."""
    warps = len(states)
    if policy == GREEDY_THEN_OLDEST and last >= 0 and states[last] == NOT_SELECTED:
        return last
    first = last + 1 if policy == LOOSE_ROUND_ROBIN else 0  # all began together: the oldest has number 0
    for step in range(warps):
        warp = (first + step) % warps
        if states[warp] == NOT_SELECTED:
            return warp
    return -1
