"""The loop that counts in memory, as machine code that really loads and stores at every turn.

A plain `memory[place] += 1` in a compiled loop proves nothing: LLVM keeps the sum in a register and stores
it once. So each increment is written out in LLVM's own language: a *relaxed atomic* load, an addition and a
relaxed atomic store (C11 `memory_order_relaxed`), which LLVM neither removes nor moves out of the loop and
which become ordinary instructions on x86 and ARM. They are no atomic increment: another thread can come
between. `atomic` is one: a read-modify-write that nobody can interrupt (`lock xadd` or `lock inc` on x86,
`ldadd` or a retry loop on ARM). `mutex` is the plain one under the system's lock (POSIX: Windows has none).

Importing this module imports Numba.
"""

from __future__ import annotations

import ctypes
import os

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD_BYTES = 8
MUTEX = 16  # the word of the memory at which the mutex begins: 128 bytes behind the counter it guards
_INCREMENTS = "void(int64[::1], int64, int64)"


def _place(context, builder, signature, arguments):
    """Return the address of memory[place] (no bounds are checked: the callers choose the place)."""
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]])


@intrinsic
def _plain_increment(typing_context, memory, place):
    def codegen(context, builder, signature, arguments):
        address = _place(context, builder, signature, arguments)
        value = builder.load_atomic(address, "monotonic", _WORD_BYTES)
        more = builder.add(value, ir.Constant(value.type, 1))
        builder.store_atomic(more, address, "monotonic", _WORD_BYTES)
        return context.get_dummy_value()

    return types.void(memory, place), codegen


@intrinsic
def _atomic_increment(typing_context, memory, place):
    def codegen(context, builder, signature, arguments):
        address = _place(context, builder, signature, arguments)
        builder.atomic_rmw("add", address, ir.Constant(ir.IntType(64), 1), "monotonic")
        return context.get_dummy_value()

    return types.void(memory, place), codegen


@njit(_INCREMENTS, nogil=True)
def plain(memory, place, times):
    """Add 1 to memory[place] `times` times: load, add, store."""
    for _ in range(times):
        _plain_increment(memory, place)


@njit(_INCREMENTS, nogil=True)
def atomic(memory, place, times):
    """Add 1 to memory[place] `times` times, each time as one step that no other thread can come between."""
    for _ in range(times):
        _atomic_increment(memory, place)


def mutex(memory, place, times):
    """Add 1 to memory[place] `times` times, each time as the one thread that holds the mutex."""
    at = memory.ctypes.data + MUTEX * _WORD_BYTES
    for _ in range(times):
        take(at)  # who comes second waits here
        memory[place] += 1
        give(at)


LOOPS = {"plain": plain, "atomic": atomic}
if os.name == "posix":
    _system = ctypes.CDLL(None)
    take, give = _system.pthread_mutex_lock, _system.pthread_mutex_unlock
    take.argtypes = give.argtypes = [ctypes.c_ssize_t]
    LOOPS["mutex"] = mutex = njit(_INCREMENTS, nogil=True)(mutex)


def make_mutex(memory):
    """Make the mutex of this memory, open. What it takes is given back with the memory."""
    _system.pthread_mutex_init(ctypes.c_void_p(memory.ctypes.data + MUTEX * _WORD_BYTES), None)
