"""The few calls of NVIDIA's driver that a launch takes, through ctypes: load, encode a tensor map, launch.

    driver = Driver.here()                              # CannotLaunch where there is none
    kernel = driver.load(cubin, "v6_tuned", 231_424)    # with so many bytes of dynamic shared memory
    driver.launch(kernel, plan, stream)

Two reasons not to take `cuda.bindings` here, which compiles for us. A tensor map must lie at a multiple of
64 bytes (128 by its type in cuda.h 13.0), and that package lets Python allocate it, at multiples of 16
(cuda-python, pull request 1692). And the structs of a launch are two, both part of the driver's binary
interface: CUlaunchConfig, 56 bytes, and CUlaunchAttribute, 72 (cuda.h 13.0).

Where there is no GPU, a small library with the same names stands in for the driver in the tests, and looks at
what it is given.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache, lru_cache

from course_lib.fp8.plans import Plan, Pointer
from course_lib.fp8.tensor_maps import PROMOTION_256, SWIZZLES, TensorMap

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
MAP_BYTES, MAP_ALIGNMENT = 128, 128
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class CannotLaunch(RuntimeError):
    """The driver is missing or refuses what it was asked; the message says what."""


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute with its union as 16 numbers; of a cluster the first three are its sides."""

    _fields_ = (("id", ctypes.c_uint32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attributes_count", ctypes.c_uint32),
    )


class Driver:
    """The driver's library; `path` names another one. Raises CannotLaunch where it cannot be loaded."""

    def __init__(self, path: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as problem:
            raise CannotLaunch(f"NVIDIA's driver cannot be loaded ({problem}): install it.") from None
        self.encoded = lru_cache(maxsize=1024)(self._encode)

    @staticmethod
    @cache
    def here() -> Driver:
        """Return this machine's driver."""
        return Driver()

    def version(self) -> tuple[int, int]:
        """Return the CUDA that the driver was made for, as (12, 4)."""
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    def make_current(self, device: int) -> None:
        """Give this thread the context that torch uses on a device, if it has none yet."""
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        if context:
            return
        number = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(number), ctypes.c_int(device))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self._call("cuCtxSetCurrent", context)

    def load(self, cubin: bytes, kernel: str, shared_bytes: int) -> int:
        """Return the handle of a kernel in machine code, allowed to use so much dynamic shared memory."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
        self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        self._call("cuFuncSetAttribute", function, ctypes.c_int(DYNAMIC_SHARED), ctypes.c_int(shared_bytes))
        return function.value or 0

    def launch(self, function: int, plan: Plan, stream: int) -> None:
        """Put a kernel into a stream's queue; `stream` is the driver's handle."""
        parameters = self._parameters(plan)
        pointers = (ctypes.c_void_p * len(parameters))(*map(ctypes.addressof, parameters))
        config = _Config(
            grid=(*plan.grid, 1), block=(plan.threads, 1, 1), shared_bytes=plan.shared_bytes, stream=stream
        )
        if plan.cluster > 1:
            config.attributes = ctypes.pointer(_Attribute(CLUSTER_DIMENSION, 0, (plan.cluster, 1, 1)))
            config.attributes_count = 1
        self._call("cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), pointers, None)

    def _parameters(self, plan: Plan) -> Sequence[ctypes._SimpleCData | ctypes.Array]:
        found = []
        for argument in plan.arguments:
            if isinstance(argument, TensorMap):
                found.append(self.encoded(argument))
            elif isinstance(argument, Pointer):
                found.append(ctypes.c_uint64(argument.address))
            else:
                found.append(ctypes.c_int32(argument))
        return found

    def _encode(self, map: TensorMap) -> ctypes.Array:
        """Return a tensor map as TMA reads it: 128 bytes at a multiple of 128."""
        room = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
        encoded = (ctypes.c_ubyte * MAP_BYTES).from_buffer(room, -ctypes.addressof(room) % MAP_ALIGNMENT)
        rank = len(map.dims)
        self._call(
            "cuTensorMapEncodeTiled",
            encoded,
            ctypes.c_int(map.dtype),
            ctypes.c_uint32(rank),
            ctypes.c_void_p(map.address),
            (ctypes.c_uint64 * rank)(*map.dims),
            (ctypes.c_uint64 * (rank - 1))(*map.strides),
            (ctypes.c_uint32 * rank)(*map.box),
            (ctypes.c_uint32 * rank)(*[1] * rank),  # every element, none left out
            ctypes.c_int(0),  # not interleaved
            ctypes.c_int(SWIZZLES[map.swizzle]),
            ctypes.c_int(PROMOTION_256),
            ctypes.c_int(0),  # zeros outside
            what=f"the tensor map of {map.name}, {map.dims} in boxes of {map.box}",
        )
        return encoded

    def _call(self, name: str, *arguments: object, what: str = "") -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise CannotLaunch(f"NVIDIA's driver refuses {what or name}: {self._meaning(status)}.")

    def _meaning(self, status: int) -> str:
        name, meaning = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(ctypes.c_int(status), ctypes.byref(name))
        self._library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(meaning))
        words = [text.value.decode() for text in (name, meaning) if text.value]
        return ", ".join(words) or f"error {status}"
