"""What lanes do to each other: barriers, and the accesses of memory that no barrier orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.simulators.gpu import counting, numbers, races
from course_lib.simulators.gpu.arrays import DeviceArray, Storage
from course_lib.simulators.gpu.lanes import WARP, Lanes, coordinates
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value
from course_lib.simulators.gpu.places import Place, Site
from course_lib.simulators.gpu.recorder import Recorder, Step
from course_lib.simulators.gpu.tally import Hazard

LONGEST_LOG = 512  # accesses to shared memory kept until the next barrier


class Watched(Lanes):
    """Lanes whose accesses are compared. A time is (barriers passed << 32) | syncwarps passed.

    `now` holds the lanes' times, `met` when they last met which lane of their warp.
    """

    def __init__(self, *launch: Any, recorder: Recorder | None = None) -> None:
        super().__init__(*launch)
        self.recorder = recorder
        self.recorded = recorder.lanes_of(self.block_number, self.block_lanes) if recorder else None
        self.now = np.zeros(self.lanes, np.int64)
        self.met = races.nobody()
        self.storages: list[Storage] = []  # in shared memory
        self._found = np.zeros(races.FOUND, np.int64)

    def check_written(self, site: Site, array: DeviceArray, place: Place, shift: int) -> None:
        for base, more in self._units(array, place, shift):
            lane, times = counting.first_unwritten(array.storage.written, place.mask.lanes, base, more)
            if times:
                self.report(
                    "uninitialised",
                    site.line,
                    lane,
                    f"{array.name} is read where no thread has written since the block began",
                    array=array.name,
                    times=times,
                )
                return

    def mark_written(self, array: DeviceArray, place: Place, shift: int) -> None:
        for base, more in self._units(array, place, shift):
            array.storage.unwritten -= counting.mark(array.storage.written, place.mask.lanes, base, more)

    @staticmethod
    def _units(array: DeviceArray, place: Place, shift: int) -> list[tuple[np.ndarray, int]]:
        """Return where the shadows of an access are: one for each unit that an element spans."""
        ratio = array.unit_ratio
        shift += array.offset
        if ratio == 1:
            return [(place.base, shift)]
        return [(place.base * ratio, shift * ratio + unit) for unit in range(ratio)]

    def watch_access(
        self, site: Site, kind: int, array: DeviceArray, place: Place, shift: int, bits: np.ndarray
    ) -> None:
        """Compare an access with earlier ones; in shared memory not before something is written."""
        storage = array.storage
        for base, more in self._units(array, place, shift):
            entry = (site, kind, array.name, place.mask.lanes, base, more, bits, self.now)
            if storage.space == "global":
                self._compare(storage, entry)
                continue
            storage.log.append(entry)
            storage.has_stores |= kind != races.LOAD
            if len(storage.log) > LONGEST_LOG:
                self._settle(storage)

    def _settle(self, storage: Storage) -> None:
        for entry in storage.log:
            self._compare(storage, entry)
        storage.log.clear()

    def _compare(self, storage: Storage, entry: tuple) -> None:
        site, kind, name, lanes, base, shift, bits, now = entry
        found = self._found
        if bits.dtype.itemsize > 8:
            bits = _folded(bits)
        races.check(
            storage.shadow,
            kind,
            lanes,
            base,
            shift,
            bits,
            self.global_thread,
            now,
            self.met,
            self.block_lanes,
            site.number,
            found,
        )
        if found[0]:
            self._report_race(site, kind, name, *found[:4].tolist())
        if found[4]:
            self._report_race(site, kind, name, *found[4:].tolist(), same_value=True)

    def _report_race(
        self,
        site: Site,
        kind: int,
        name: str,
        times: int,
        lane: int,
        other: int,
        number: int,
        same_value=False,
    ) -> None:
        other_site = self.tally.sites[number]
        block, thread = self.block_of(lane), self.thread_of(lane)
        other_block = coordinates(other // self.block_lanes, self.grid)
        other_thread = coordinates(other % self.block_lanes, self.block)
        does = ("reads", "writes", "updates")[kind]
        did = {"load": "reads", "store": "writes", "atomic": "updates"}[other_site.kind]
        if block != other_block:
            whose, order = f"of block {other_block}", "nothing orders two blocks of a grid"
        elif lane % self.block_lanes // WARP == other % self.block_lanes // WARP:
            whose, order = "of the same warp", "no syncwarp is between them"
        else:
            whose, order = "of another warp", "no barrier is between them"
        if other_block == block and other_site.number > site.number:  # the later one stands above
            what = f"thread {other_thread} {did} {name} in line {other_site.line}, thread {thread} {whose} "
            what += f"{does} the same element here afterwards"
            if set(site.loops) & set(other_site.loops):
                what += ", in a later turn of the loop"
                order += f" on the way from line {other_site.line} back to line {site.line}"
            what += f", and {order}"
        else:
            what = (
                f"thread {thread} {does} {name} here, thread {other_thread} {whose} {did} the same element "
            )
            what += f"in line {other_site.line}, and {order}"
        if same_value:
            what += "; both write the same value"
        hazard = Hazard(
            "race",
            site.line,
            block,
            (thread, other_thread),
            what,
            array=name,
            times=times,
            other_line=other_site.line,
            other_block=other_block,
        )
        if same_value:
            self.tally.remark(hazard)
        else:
            self.tally.hazard(hazard)

    # -- barriers ------------------------------------------------------------------------------------------

    def syncthreads(self, m: Mask) -> None:
        """Let every thread of a block wait for all others of it that are still running."""
        self.tally.barriers(self.line, m)
        if self.recorded is not None and m.lanes[self.recorded].any():
            self.recorder.keep(Step(self.line, "barrier"))
        if m.count != self.alive.count:
            self._check_barrier(m)
            for storage in self.storages:
                self._settle(storage)
            blocks = np.repeat(m.lanes.reshape(self.slots, -1).any(axis=1), self.block_lanes)
            self.now = np.where(blocks, self.now + (1 << 32), self.now)
            return
        for storage in self.storages:
            if storage.has_stores:
                self._settle(storage)
            storage.log.clear()
            storage.has_stores = False
        self.now = self.now + (1 << 32)

    def _check_barrier(self, m: Mask) -> None:
        missing = (self.alive.lanes & ~m.lanes).reshape(self.slots, -1)
        arrived = m.lanes.reshape(self.slots, -1)
        divided = np.flatnonzero(missing.any(axis=1) & arrived.any(axis=1))
        if len(divided):
            slot = int(divided[0])
            here = slot * self.block_lanes + int(np.argmax(arrived[slot]))
            absent = slot * self.block_lanes + int(np.argmax(missing[slot]))
            self.tally.hazard(
                Hazard(
                    "divergent-barrier",
                    self.line,
                    self.block_of(here),
                    (self.thread_of(here), self.thread_of(absent)),
                    f"thread {self.thread_of(here)} waits at syncthreads() and thread "
                    f"{self.thread_of(absent)} of its block does not come",
                    times=len(divided),
                )
            )

    def syncwarp(self, m: Mask, mask: Value = 0xFFFFFFFF) -> None:
        """Order the accesses of those lanes of a warp that come here with the same mask."""
        for storage in self.storages:
            self._settle(storage)
        if len(self.met) < self.lanes:
            self.met = np.zeros((self.lanes, WARP), np.int32)
        self.now = self.now.copy()
        races.meet(m.lanes, numbers.vector(mask, self.lanes), self.now, self.met)

    def finish(self) -> None:
        """Compare what is left in the logs."""
        for storage in self.storages:
            if storage.has_stores:
                self._settle(storage)


def _folded(values: np.ndarray) -> np.ndarray:
    """Return 8 bytes for each value of 16 that tell values apart (all but surely)."""
    halves = np.ascontiguousarray(values).view(np.uint64).reshape(-1, 2)
    return halves[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ halves[:, 1]
