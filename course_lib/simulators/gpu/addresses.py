"""Where the elements are that lanes name, and what it costs to reach them."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.simulators.gpu import counting, numbers
from course_lib.simulators.gpu.arrays import DeviceArray
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Shift, Value
from course_lib.simulators.gpu.places import ONE, Place, Site
from course_lib.simulators.gpu.recorder import Recorder, Step
from course_lib.simulators.gpu.watch import Watched

_NO_VECTORS = (None, None, None)


class Addressed(Watched):
    """Lanes whose accesses are counted. What is known of a place is used again while its indices are the same
    vectors, or differ from them by what all lanes share."""

    def __init__(self, *launch: Any, recorder: Recorder | None = None) -> None:
        super().__init__(*launch, recorder=recorder)
        self.scratch = counting.scratch()
        self.requests = np.zeros(self.lanes // counting.WARP, np.int64)  # of each warp, with its shuffles
        self._low, self._high = np.empty(3, np.int64), np.empty(3, np.int64)

    def find(self, site: Site, m: Mask, array: DeviceArray, index: tuple) -> tuple[Mask, Place, int]:
        """Return where the lanes' elements are: a place for the vectors, a shift for what all lanes share.

        Lanes whose index is out of bounds are reported and left out of the mask.
        """
        if len(index) > len(array.shape):
            self.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} indices are given")
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
            or not all(map(_same, place.vectors or _NO_VECTORS, vectors))
        ):
            place = self._remember(site, m, array, vectors)
        for vector, more, low, high, size in zip(
            vectors, by, place.low, place.high, array.shape, strict=False
        ):
            if vector is not None and (low + more < 0 or high + more >= size):
                return self._find_faulty(site, m, array, index)
        return m, place, shift

    def _remember(self, site: Site, m: Mask, array: DeviceArray, vectors: list) -> Place:
        place = Place(array, m, tuple(vectors) if any(v is not None for v in vectors) else ())
        padded = [ONE if v is None else self.integers(v) for v in vectors] + [ONE] * (3 - len(vectors))
        place.base = np.empty(self.lanes, np.int64)
        counting.place(
            m.lanes,
            *padded,
            array.all_strides,
            self.block_lanes,
            array.block_size,
            place.base,
            self._low,
            self._high,
        )
        place.low, place.high = self._low.tolist(), self._high.tolist()
        site.place = place
        return place

    def integers(self, vector: np.ndarray) -> np.ndarray:
        if vector.dtype.kind not in "iu":
            self.refuse(f"an index is {vector.dtype}, but it must be an integer: convert it with int()")
        return vector if vector.dtype == np.int64 else vector.astype(np.int64)

    def whole(self, index: Value) -> int:
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            self.refuse(
                f"an index is {type(index).__name__}, but it must be an integer: convert it with int()"
            )
        return int(index)

    def _find_faulty(self, site: Site, m: Mask, array: DeviceArray, index: tuple) -> tuple[Mask, Place, int]:
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
            self._remark_on_wrap(site, array, index, below)
        if outside.any():
            lane = int(np.argmax(outside))
            at = self._named(index, lane)
            shape = " x ".join(map(str, array.shape))
            self.report(
                "out-of-bounds",
                site.line,
                lane,
                f"{array.name}[{at}] is outside of {array.name} ({shape})",
                array=array.name,
                times=int(outside.sum()),
            )
            m = Mask.of(m.lanes & ~outside)
        vectors = [np.where(outside, 0, i) for i in wrapped]
        return m, self._remember(site, m, array, vectors), 0

    def _remark_on_wrap(self, site: Site, array: DeviceArray, index: tuple, below: np.ndarray) -> None:
        lane = int(np.argmax(below))
        self.remark(
            "negative-index",
            site.line,
            lane,
            f"{array.name}[{self._named(index, lane)}] has a negative index, which counts from the end: "
            "it wraps",
            array=array.name,
            times=int(below.sum()),
        )

    def _named(self, index: tuple, lane: int) -> str:
        """Return a lane's index as it would be written."""
        return ", ".join(str(int(numbers.vector(i, self.lanes)[lane])) for i in index)

    def count_access(self, site: Site, kind: str, place: Place, shift: int) -> None:
        """Count requests and sectors (global) or wavefronts (shared) of one access."""
        array, m = place.array, place.mask
        step = counting.SECTOR_BYTES if array.space == "global" else counting.BANK_BYTES
        phase = (array.offset + shift) * array.item_bytes % step
        cost = place.costs.get(phase)
        if cost is None:
            function = counting.sectors if array.space == "global" else counting.wavefronts
            cost = function(m.lanes, place.base, array.offset + shift, array.item_bytes, self.scratch)
            place.costs[phase] = cost
        row = site.rows.get(array.key)
        if row is None:
            row = site.rows[array.key] = self.tally.row(array, site.line, kind)
        self.requests += m.by_warp
        row.requests += cost[0]
        row.cost += cost[1]
        row.accesses += m.count
        row.bytes += m.count * array.item_bytes
        if self.recorded is not None:
            self._record(site, kind, place, shift)

    def finish(self) -> None:
        """Compare what is left in the logs; see how the requests were spread over the warps."""
        super().finish()
        self.tally.busiest_warp = max(self.tally.busiest_warp, int(self.requests.max()))

    def _record(self, site: Site, kind: str, place: Place, shift: int) -> None:
        """Keep what the recorded warp does here."""
        where, array = self.recorded, place.array
        lanes = place.mask.lanes[where]
        if not lanes.any():
            return
        start = array.offset + shift - where.start // self.block_lanes * array.block_size
        places = (place.base[where] + start).tolist()
        count = counting.sectors if array.space == "global" else counting.wavefronts
        base = np.ascontiguousarray(place.base[where])
        _, cost = count(lanes, base, array.offset + shift, array.item_bytes, self.scratch)
        self.recorder.keep(
            Step(
                site.line,
                kind,
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


def _same(one: Any, other: Any) -> bool:
    return one is other
