"""A filter for system calls: an answer calculates, and needs no processes, keys or hidden memory.

Namespaces do not separate everything. The filter refuses what would reach around them: new processes (threads
are allowed), key rings, shared memory and files that no limit sees, more namespaces, mounts, tracing, and the
newest interfaces of Linux. It is a program for its packet filter as seccomp(2) describes it;
bubblewrap installs it last of all.
"""

from __future__ import annotations

import platform
import struct

EPERM, ENOSYS = 1, 38
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|…, BPF_RET
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
CLONE_THREAD = 0x00010000
X32 = 0x40000000  # the numbers of x86's third interface, which repeats all calls

#: machine -> (its mark, number of clone, numbers of the calls that are refused)
MACHINES = {
    "x86_64": (
        0xC000003E,
        56,
        {
            **{"fork": 57, "vfork": 58, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311},
            **{"add_key": 248, "request_key": 249, "keyctl": 250, "kcmp": 312, "pidfd_getfd": 438},
            **{
                "shmget": 29,
                "shmat": 30,
                "semget": 64,
                "msgget": 68,
                "memfd_create": 319,
                "memfd_secret": 447,
            },
            **{"unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161},
            **{"open_tree": 428, "move_mount": 429, "fsopen": 430, "mount_setattr": 442},
            **{"name_to_handle_at": 303, "open_by_handle_at": 304, "bpf": 321, "perf_event_open": 298},
            **{"userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427},
        },
    ),
    "aarch64": (
        0xC00000B7,
        220,
        {
            **{"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271},
            **{"add_key": 217, "request_key": 218, "keyctl": 219, "kcmp": 272, "pidfd_getfd": 438},
            **{"shmget": 194, "shmat": 196, "semget": 190, "msgget": 186, "memfd_create": 279},
            **{"memfd_secret": 447, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39},
            **{"pivot_root": 41, "chroot": 51, "open_tree": 428, "move_mount": 429, "fsopen": 430},
            **{"mount_setattr": 442, "name_to_handle_at": 264, "open_by_handle_at": 265, "bpf": 280},
            **{"perf_event_open": 241, "userfaultfd": 282},
            **{"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427},
        },
    ),
}
CLONE3 = 435  # on every machine


def program(machine: str = "") -> bytes | None:
    """Return the filter for a machine (default: this one), None if its calls are not known here."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    mark, clone, refused = known
    steps = [_step(LOAD, ARCHITECTURE), *_unless_equal(mark, KILL), _step(LOAD, NUMBER)]
    steps += [_step(AT_LEAST, X32, 0, 1), _step(RETURN, ERRNO | EPERM)]
    for number in sorted(refused.values()):
        steps += _if_equal(number, ERRNO | EPERM)
    steps += _if_equal(CLONE3, ERRNO | ENOSYS)  # its flags are out of sight; the C library then takes clone
    steps += [_step(EQUAL, clone, 0, 3), _step(LOAD, FIRST_ARGUMENT)]
    steps += [_step(HAS_BITS, CLONE_THREAD, 1, 0), _step(RETURN, ERRNO | EPERM)]
    return b"".join([*steps, _step(RETURN, ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _if_equal(value: int, result: int) -> list[bytes]:
    return [_step(EQUAL, value, 0, 1), _step(RETURN, result)]


def _unless_equal(value: int, result: int) -> list[bytes]:
    return [_step(EQUAL, value, 1, 0), _step(RETURN, result)]
