"""The same product in six lines of torch's DTensor, and what they send beside ours.

    run(beside, ranks=4, shape=(512, 512, 512))[0]      {"summa": 524448, "dtensor": 524560, ...}

A DTensor is a shard that knows of the whole: its placements say which dimension is cut along which dimension
of the mesh of ranks, and an operation adds the collectives that it needs. What it sends nobody sees in the
lines; the kernel counts it.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Callable

import numpy as np

from course_lib.distributed.matmul import Shape, grid, grid_layout, summa
from course_lib.distributed.wire import Array, Wire

#: Where `tcpi_bytes_sent` lies in Linux' struct tcp_info (include/uapi/linux/tcp.h), since version 4.19;
#: behind it `tcpi_bytes_retrans`, how many of them were sent again.
_BYTES_SENT = 200


def in_six_lines(A: Array, B: Array, rows: int, columns: int) -> Array:
    """Return this rank's block of C from its blocks of A and B on a grid: SUMMA with a single panel.

    A is gathered along the rows of the grid, B along its columns. Bytes: SUMMA's; memory: a band of rows of
    A and one of columns of B, where SUMMA has two panels. Blocks must all be of one size.
    """
    import torch
    from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh

    mesh, blocks = init_device_mesh("cpu", (rows, columns)), [Shard(0), Shard(1)]
    a = DTensor.from_local(torch.from_numpy(A), mesh, blocks)
    b = DTensor.from_local(torch.from_numpy(B), mesh, blocks)
    row_of_A = a.redistribute(mesh, [Shard(0), Replicate()])
    column_of_B = b.redistribute(mesh, [Replicate(), Shard(1)])
    return (row_of_A @ column_of_B).to_local().numpy()


def beside(shape: Shape) -> dict[str, int]:
    """Return the bytes that this rank sends, for `launch.run`: by our summa, and by DTensor's.

    Matrices are of float32; each product is checked. Raises ValueError for a shape that does not divide by
    the ranks, where blocks are not of one size, and OSError where the kernel does not count (not Linux).
    """
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    if any(length % ranks for length in shape):
        raise ValueError(
            f"shape is {shape}, but DTensor cuts other blocks than we do where {ranks} ranks do not divide "
            f"it: take multiples of {ranks}."
        )
    M, K, N = shape
    rng = np.random.default_rng(0)
    A = rng.integers(-9, 10, (M, K)).astype(np.float32)
    B = rng.integers(-9, 10, (K, N)).astype(np.float32)
    wire, at = Wire.of_group(), grid_layout(shape, ranks)
    mine = np.ascontiguousarray(A[at.A[rank]]), np.ascontiguousarray(B[at.B[rank]])
    ours, sent = counted(lambda a, b: summa(wire, a, b, shape), *mine)
    theirs, sent_too = counted(lambda a, b: in_six_lines(a, b, *grid(ranks)), *mine)
    for name, C in (("summa", ours), ("dtensor", theirs)):
        if not np.array_equal(C, (A @ B)[at.C[rank]]):
            raise ArithmeticError(f"'{name}' is wrong on rank {rank} of {ranks}.")
    return {"summa": sent, "dtensor": sent_too}


def counted(function: Callable[..., Array], *arguments: Array) -> tuple[Array, int]:
    """Return the function's value and the bytes that this process gave to the network for it.

    All ranks of the group call it: none begins before all have come, and none ends before all have.
    """
    import torch.distributed as dist

    dist.barrier()
    before = bytes_given_to_the_network()
    value = function(*arguments)
    dist.barrier()  # who returns may have bytes in its sockets' queues still; whoever got them was here, too
    return value, bytes_given_to_the_network() - before


def bytes_given_to_the_network() -> int:
    """Return the bytes that went out through the TCP sockets which this process has open, as Linux counts.

    It is without what TCP sent again, as on a busy machine it does, and without the packets' own heads.
    Raises OSError where sockets are not counted.
    """
    if sys.platform != "linux":
        raise OSError(
            "Only Linux counts a socket's bytes: elsewhere Wire.bytes_sent counts our own messages."
        )
    return sum(_sent_by(int(name)) for name in os.listdir("/proc/self/fd"))


def _sent_by(descriptor: int) -> int:
    """Return the bytes that a file descriptor has sent by TCP; 0 if it is something else, or was closed."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return 0
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
                return 0
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:  # closed in between; gloo's own threads open and close some
        return 0
    sent, again = struct.unpack_from("=QQ", info, _BYTES_SENT) if len(info) >= _BYTES_SENT + 16 else (0, 0)
    return sent - again
