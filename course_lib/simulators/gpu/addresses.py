"""Where the elements are that lanes name, what reaching them costs, and which accesses no barrier orders."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from course_lib.simulators.gpu import counting, numbers, races
from course_lib.simulators.gpu.arrays import ONE, DeviceArray, LanePlaces, Site, Storage, Triple
from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.lanes import Lanes, coordinates, first_of
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Shift, Value
from course_lib.simulators.gpu.tally import Recorder, WarpStep

KINDS = ("load", "store", "atomic")  # by the numbers that `races` has for them
LONGEST_LOG = 512  # accesses to shared memory kept until the next barrier


class Addressed(Lanes):
    """Lanes whose accesses are counted and compared. What is known of a place is used again while its indices
    are the same vectors, or differ from them by what all lanes share.

    A time is (barriers passed << 32) | syncwarps passed. `now` holds the lanes' times, `met` when they last
    met which lane of their warp.
    """

    def __init__(self, *launch: Any, recorder: Recorder | None) -> None:
        super().__init__(*launch)
        self.recorder = recorder
        self.recorded = recorder.lanes_of(self.block_number, self.block_lanes) if recorder else None
        self.now = np.zeros(self.lanes, np.int64)
        self.met = races.nobody()
        self.storages: list[Storage] = []  # in shared memory
        self._found = np.zeros(races.FOUND, np.int64)
        self.scratch = counting.scratch()
        self.requests = np.zeros(self.lanes // WARP, np.int64)  # of each warp, with its shuffles
        self._low, self._high = np.empty(3, np.int64), np.empty(3, np.int64)

    def check_written(self, site: Site, array: DeviceArray, place: LanePlaces, shift: int) -> None:
        for base, more in self._units(array, place, shift):
            found = counting.first_unwritten(array.storage.written, place.mask.lanes, base, more)
            if found[1]:
                what = f"{array.name} is read where no thread has written since the block began"
                return self.report("uninitialised", site.line, found, what, array.name)
        return None

    def mark_written(self, array: DeviceArray, place: LanePlaces, shift: int) -> None:
        for base, more in self._units(array, place, shift):
            array.storage.unwritten -= counting.mark(array.storage.written, place.mask.lanes, base, more)

    @staticmethod
    def _units(array: DeviceArray, place: LanePlaces, shift: int) -> list[tuple[np.ndarray, int]]:
        """Return where the shadows of an access are: one for each unit that an element spans."""
        ratio = array.unit_ratio
        shift += array.offset
        if ratio == 1:
            return [(place.base, shift)]
        return [(place.base * ratio, shift * ratio + unit) for unit in range(ratio)]

    def watch_access(
        self, site: Site, array: DeviceArray, place: LanePlaces, shift: int, bits: np.ndarray
    ) -> None:
        """Compare an access with earlier ones; in shared memory not before something is written."""
        storage = array.storage
        for base, more in self._units(array, place, shift):
            entry = (site, array.name, place.mask.lanes, base, more, bits, self.now)
            if storage.space == "global":
                self._compare(storage, entry)
                continue
            storage.log.append(entry)
            storage.has_stores |= site.kind != "load"
            if len(storage.log) > LONGEST_LOG:
                self._settle(storage)

    def _settle(self, storage: Storage) -> None:
        for entry in storage.log:
            self._compare(storage, entry)
        storage.log.clear()

    def _compare(self, storage: Storage, entry: tuple) -> None:
        site, name, lanes, base, shift, bits, now = entry
        found = self._found
        if bits.dtype.itemsize > 8:
            bits = _folded(bits)
        races.check(
            storage.shadow,
            KINDS.index(site.kind),
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
            self._report_race(site, name, *found[:4].tolist())
        if found[4]:
            self._report_race(site, name, *found[4:].tolist(), same_value=True)

    def _report_race(
        self,
        site: Site,
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
        does, did = (("reads", "writes", "updates")[KINDS.index(one.kind)] for one in (site, other_site))
        if block != other_block:
            whose, order = f"of block {other_block}", "nothing orders two blocks of a grid"
        elif lane % self.block_lanes // WARP == other % self.block_lanes // WARP:
            whose, order = "of the same warp", "neither a barrier nor a syncwarp is between them"
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
        more = {"others": (other_thread,), "other_line": other_site.line, "other_block": other_block}
        self.report("race", site.line, (lane, times), what, name, remark=same_value, **more)

    # -- barriers ------------------------------------------------------------------------------------------

    def syncthreads(self, m: Mask) -> None:
        """Let every thread of a block wait for all others of it that are still running."""
        self.tally.barrier_lines[self.line] += m.warps
        if self.recorded is not None and m.lanes[self.recorded].any():
            self.recorder.keep(WarpStep(self.line, "barrier"))
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
            waited_for = self.thread_of(absent)
            what = (
                f"thread {self.thread_of(here)} waits at syncthreads() and thread {waited_for} of its block "
                "does not come"
            )
            found = here, len(divided)
            self.report("divergent-barrier", self.line, found, what, others=(waited_for,))

    def syncwarp(self, m: Mask, mask: Value) -> None:
        """Order the accesses of those lanes of a warp that come here with the same mask."""
        for storage in self.storages:
            self._settle(storage)
        if len(self.met) < self.lanes:
            self.met = np.zeros((self.lanes, WARP), np.int32)
        self.now = self.now.copy()
        races.meet(m.lanes, numbers.vector(mask, self.lanes), self.now, self.met)

    def finish(self) -> None:
        """Compare what is left in the logs; see how the requests were spread over the warps."""
        for storage in self.storages:
            if storage.has_stores:
                self._settle(storage)
        self.tally.busiest_warp = max(self.tally.busiest_warp, int(self.requests.max()))

    # -- where the elements are, and what they cost --------------------------------------------------------

    def find(self, site: Site, m: Mask, array: DeviceArray, index: tuple) -> tuple[Mask, LanePlaces, int]:
        """Return where the lanes' elements are: a place for the vectors, a shift for what all lanes share.

        Lanes whose index is out of bounds are reported and left out of the mask.
        """
        self.check_count(array, index)
        vectors, shift, by = [], 0, []
        for i, size, stride in zip(index, array.shape, array.strides, strict=True):
            if type(i) is Shift:
                vectors.append(i.base)
                by.append(i.by)
                shift += i.by * stride
            elif type(i) is np.ndarray:
                vectors.append(i)
                by.append(0)
            else:
                i = self.whole(i)
                if not 0 <= i < size:
                    return self._find_faulty(site, m, array, index)
                vectors.append(None)
                by.append(i)
                shift += i * stride
        place = site.place
        if (
            place is None
            or place.array is not array
            or place.mask is not m
            or not all(map(operator.is_, place.vectors or _NO_VECTORS, vectors))
        ):
            place = self._remember(site, m, array, vectors)
        for vector, more, low, high, size in zip(
            vectors, by, place.low, place.high, array.shape, strict=False
        ):
            if vector is not None and (low + more < 0 or high + more >= size):
                return self._find_faulty(site, m, array, index)
        return m, place, shift

    def check_count(self, array: Any, index: tuple) -> None:
        """Refuse too many or too few indices."""
        if len(index) != len(array.shape):
            self.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} indices are given")

    def _remember(self, site: Site, m: Mask, array: DeviceArray, vectors: list) -> LanePlaces:
        padded = [ONE if v is None else self.integers(v) for v in vectors] + [ONE] * (3 - len(vectors))
        base, low, high = np.empty(self.lanes, np.int64), self._low, self._high
        where = array.all_strides, self.block_lanes, array.block_size
        counting.place(m.lanes, *padded, *where, base, low, high)
        known = tuple(vectors) if any(v is not None for v in vectors) else ()
        site.place = LanePlaces(array, m, known, base, low.tolist(), high.tolist())
        return site.place

    def integers(self, vector: np.ndarray) -> np.ndarray:
        if vector.dtype.kind not in "iu":
            self.refuse(f"an index is {vector.dtype}, but it must be an integer: convert it with int()")
        return vector if vector.dtype == np.int64 else vector.astype(np.int64)

    def whole(self, index: Value) -> int:
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            if type(index) is Triple:
                raise TypeError("a Triple is no index")
            self.refuse(
                f"an index is {type(index).__name__}, but it must be an integer: convert it with int()"
            )
        return int(index)

    def _find_faulty(
        self, site: Site, m: Mask, array: DeviceArray, index: tuple
    ) -> tuple[Mask, LanePlaces, int]:
        """Wrap negative indices as Numba does; report the lanes that are still outside and leave them out.

        An unsigned index that has wrapped below zero is no negative one to Numba.
        """
        wrapped, outside = [], np.zeros(self.lanes, np.bool_)
        below = outside.copy()
        for i, size in zip(index, array.shape, strict=True):
            is_signed = numbers.kind(i) != "u"
            i = self.integers(numbers.vector(i, self.lanes))
            if is_signed:
                below |= i < 0
                i = np.where(i < 0, i + size, i)
            outside |= (i < 0) | (i >= size)
            wrapped.append(i)
        outside &= m.lanes
        below &= m.lanes & ~outside
        if below.any():
            at, found = self._named(array, index, below)
            what = f"{at} has a negative index, which counts from the end: it wraps"
            self.report("negative-index", site.line, found, what, array.name, remark=True)
        if outside.any():
            at, found = self._named(array, index, outside)
            what = f"{at} is outside of {array.name} ({' x '.join(map(str, array.shape))})"
            self.report("out-of-bounds", site.line, found, what, array.name)
            m = Mask.of(m.lanes & ~outside)
        vectors = [np.where(outside, 0, i) for i in wrapped]
        return m, self._remember(site, m, array, vectors), 0

    def _named(self, array: DeviceArray, index: tuple, where: np.ndarray) -> tuple[str, tuple[int, int]]:
        """Return the element that the first of some lanes names, as it is written, and `first_of` them."""
        found = first_of(where)
        at = ", ".join(str(int(numbers.vector(i, self.lanes)[found[0]])) for i in index)
        return f"{array.name}[{at}]", found

    def count_access(self, site: Site, place: LanePlaces, shift: int) -> None:
        """Count requests and sectors (global) or wavefronts (shared) of one access."""
        array, m = place.array, place.mask
        step = counting.SECTOR_BYTES if array.space == "global" else counting.BANK_BYTES
        phase = (array.offset + shift) * array.item_bytes % step
        cost = place.costs.get(phase)
        if cost is None:
            cost = place.costs[phase] = self._cost(array, m.lanes, place.base, shift)
        row = site.rows.get(array.key)
        if row is None:
            row = site.rows[array.key] = self.tally.row(array, site.line, site.kind)
        self.requests += m.by_warp
        row.requests += cost[0]
        row.cost += cost[1]
        if array.space == "shared" and cost[1] > cost[0] and not row.meet:
            words = (place.base + array.offset + shift) * array.item_bytes // counting.BANK_BYTES
            bank, lanes = counting.meeting(m.lanes, words)
            row.meet = f"lanes {', '.join(map(str, lanes))} of bank {bank}"
        row.accesses += m.count
        row.bytes += m.count * array.item_bytes
        if self.recorded is not None:
            self._record(site, place, shift)

    def _cost(self, array: DeviceArray, lanes: np.ndarray, base: np.ndarray, shift: int) -> tuple[int, int]:
        """Return (requests, sectors) or (requests, wavefronts)."""
        count = counting.sectors if array.space == "global" else counting.wavefronts
        return count(lanes, base, array.offset + shift, array.item_bytes, self.scratch)

    def _record(self, site: Site, place: LanePlaces, shift: int) -> None:
        """Keep what the recorded warp does here."""
        where, array = self.recorded, place.array
        lanes = place.mask.lanes[where]
        if not lanes.any():
            return
        start = array.offset + shift - where.start // self.block_lanes * array.block_size
        places = (place.base[where] + start).tolist()
        _, cost = self._cost(array, lanes, place.base[where], shift)
        self.recorder.keep(
            WarpStep(
                site.line,
                site.kind,
                array.name,
                array.space,
                array.item_bytes,
                array.shape,
                array.strides,
                array.offset,
                tuple(at if active else None for at, active in zip(places, lanes, strict=True)),
                cost,
            )
        )


_NO_VECTORS = (None, None, None)


def _folded(values: np.ndarray) -> np.ndarray:
    """Return 8 bytes for each value of 16 that tell values apart (all but surely)."""
    halves = np.ascontiguousarray(values).view(np.uint64).reshape(-1, 2)
    return halves[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ halves[:, 1]
