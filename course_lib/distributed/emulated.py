"""A network that is no simulation: ranks behind cables of a given speed, made by Linux for an administrator.

    run_emulated(play, ranks=4, link=25e6)          as `launch.run`, every cable carries 25 MB a second

Each rank gets a network namespace of its own, with one cable (veth) to a switch (bridge); a token bucket
(tbf) at both ends of the cable lets so many bytes a second through, so a rank can send and receive at once.
Racks have a switch each, and a cable between the two. Nothing of it has a name: it goes with the process that
made it.

The kernel adds no delay: what a message costs beside its bytes is what this machine's own software takes. The
bucket lets 128 kB pass at once after each pause: only messages well above that, from 1 MB on, feel the
cable's speed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from course_lib.arguments import number, whole
from course_lib.distributed.launch import run

MOST_RANKS = 64
PROGRAMS = ("ip", "tc", "unshare", "nsenter", "cat")
CABLE = "eth0"  # what a rank's end of its cable is called
#: A bucket below 128 kB cannot hold two of the 64-kB segments that TCP hands over, and slows down the cable.
BUCKET = "burst 128kb latency 400ms"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of <sched.h>


def why_not() -> str | None:
    """Return the sentence that says why no network can be emulated here, None if one can."""
    if sys.platform != "linux":
        return "An emulated network needs Linux: elsewhere simulators/network.py is what there is."
    if os.geteuid() != 0:
        return "An emulated network needs an administrator's rights: run it with sudo, or simulate it."
    if lacking := [program for program in PROGRAMS if shutil.which(program) is None]:
        return f"An emulated network needs {', '.join(lacking)}: install iproute2 and util-linux."
    try:
        with _cables(2, 1e9, 1, 1e9):
            return None
    except OSError as problem:
        return str(problem)


def run_emulated(
    function: Callable[..., Any],
    ranks: int = 4,
    *,
    link: float = 25e6,
    racks: int = 1,
    uplink: float | None = None,
    time_limit_s: float = 60.0,
    **arguments: Any,
) -> list[Any]:
    """Call ``function(**arguments)`` in every rank as `launch.run` does, on cables of `link` bytes a second.

    With two `racks` the first half of the ranks is in one and the others in the second; the cable between
    their switches carries `uplink` bytes a second (None: half of what the cables of one rack do together).

    Raises ValueError for numbers that make no sense, OSError with the sentence where the system makes no such
    network, and otherwise as `launch.run`.
    """
    whole("ranks", ranks, most=MOST_RANKS)
    number("link", link, above=0)
    if whole("racks", racks, most=2) == 2 and ranks % 2:
        raise ValueError(f"{ranks} ranks do not make 2 racks of equally many: take an even number.")
    uplink = number("uplink", ranks / racks * link / 2 if uplink is None else uplink, above=0)
    if sentence := why_not():
        raise OSError(sentence)
    with _cables(ranks, link, racks, uplink) as homes:
        return run(
            _at_home, ranks, time_limit_s=time_limit_s, homes=homes, play=lambda: function(**arguments)
        )


def _at_home(homes: list[int], play: Callable[[], Any]) -> Any:
    """What a rank does: move to its namespace, join the others there, and play.

    The ranks find each other through a store that they reach before they move.
    """
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if rank == 0 else None
    port = [store.port if store else 0]
    dist.broadcast_object_list(port)
    store = store or dist.TCPStore("127.0.0.1", port[0], is_master=False)
    dist.barrier()
    dist.destroy_process_group()
    with open(f"/proc/{homes[rank]}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "The rank could not move to its network namespace.")
    os.environ["GLOO_SOCKET_IFNAME"] = CABLE
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    dist.barrier()
    return play()


@contextmanager
def _cables(ranks: int, link: float, racks: int, uplink: float) -> Iterator[list[int]]:
    """Make namespaces, cables and switches; give the processes whose namespace is each rank's home."""
    with ExitStack() as stack:
        *homes, switch = [stack.enter_context(_namespace()) for _ in range(ranks + 1)]
        rows = [f"link add sw{rack} type bridge\nlink set sw{rack} up" for rack in range(racks)]
        speeds = {f"p{rank}": link for rank in range(ranks)}
        for rank, home in enumerate(homes):
            rows.append(f"link add p{rank} type veth peer name {CABLE} netns {home}")
            rows.append(f"link set p{rank} master sw{rank * racks // ranks} up")
        if racks == 2:
            rows += [
                "link add up0 type veth peer name up1",
                *(f"link set up{i} master sw{i} up" for i in (0, 1)),
            ]
            speeds |= {"up0": uplink, "up1": uplink}
        _in(switch, "ip", rows)
        _in(switch, "tc", [_bucket(cable, speed) for cable, speed in speeds.items()])
        for rank, home in enumerate(homes):
            _in(home, "ip", [f"addr add 10.88.0.{rank + 1}/24 dev {CABLE}", "link set lo up"])
            _in(home, "ip", [f"link set {CABLE} up"])
            _in(home, "tc", [_bucket(CABLE, link)])
        yield homes


def _bucket(cable: str, speed: float) -> str:
    return f"qdisc add dev {cable} root tbf rate {round(8 * speed)}bit {BUCKET}"


@contextmanager
def _namespace() -> Iterator[int]:
    """Give the id of a process in a new network namespace, which ends with the process that asked for it."""
    keeper = subprocess.Popen(
        ["unshare", "--net", "cat"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while os.readlink(f"/proc/{keeper.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if keeper.poll() is not None:
                raise OSError(f"This system makes no network namespace: {keeper.stderr.read().strip()}.")
            time.sleep(0.001)
        yield keeper.pid
    finally:
        keeper.stdin.close()  # what `cat` waits for
        keeper.wait()
        keeper.stderr.close()


def _in(home: int, program: str, rows: list[str]) -> None:
    """Let `ip` or `tc` carry out rows in the namespace of a process."""
    command = ["nsenter", f"--net=/proc/{home}/ns/net", program, "-batch", "-"]
    done = subprocess.run(command, input="\n".join(rows) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"This system makes no such network: {program} says {done.stderr.strip()}.")
