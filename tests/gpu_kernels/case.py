"""What a test case for the tracer is: a kernel, how it is launched, and what must hold afterwards."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

#: The seed that all tests use unless they vary it.
SEED = 6

#: What numba's own simulator has not got; "aliasing" because it copies every argument by itself.
SIMULATOR_LACKS = frozenset({"syncwarp", "shuffle", "vote", "match", "aliasing"})

SHUFFLE = frozenset({"shuffle"})
SYNCWARP = frozenset({"syncwarp"})
VOTE = frozenset({"vote"})
MATCH = frozenset({"match"})

#: The ways in which a kernel can be at fault.
KINDS = ("race", "uninitialised", "out-of-bounds", "divergent-barrier")


def plain(kernel) -> Callable:
    """Return the Python function behind a `@cuda.jit` kernel, in numba's simulator too."""
    for attribute in ("py_func", "fn"):
        if hasattr(kernel, attribute):
            return getattr(kernel, attribute)
    return kernel


def marked_lines(kernel, marker: str) -> tuple[int, ...]:
    """Return the line numbers, in its file, of the kernel's lines that end in the comment `# <marker>`."""
    source, first = inspect.getsourcelines(plain(kernel))
    return tuple(first + i for i, line in enumerate(source) if line.rstrip().endswith(f"# {marker}"))


@dataclass(frozen=True)
class Case:
    """A kernel with its launch, its arguments and its result.

    make_args(seed) gives the arguments anew; `reference`, given such arguments, returns
    {position: array wanted there after the launch}, or the array alone that is wanted in the last place.
    Every other array must be as it was.
    """

    name: str
    kernel: object
    griddim: int | tuple[int, ...]
    blockdim: int | tuple[int, ...]
    make_args: Callable[[int], tuple]
    reference: Callable[..., dict[int, np.ndarray]]
    shared_bytes: int = 0
    #: Relative and absolute tolerance of floating-point numbers: what float32 sums of some dozen agree to.
    tolerance: float = 1e-5
    #: Applied to result and reference before they are compared (np.sort where the order is nobody's promise).
    canonical: Callable[[np.ndarray], np.ndarray] = np.asarray
    #: What a tracer needs beyond loads, stores, block barriers and atomics.
    needs: frozenset[str] = frozenset()

    @property
    def in_simulator(self) -> bool:
        """Whether numba's own simulator can run it."""
        return not self.needs & SIMULATOR_LACKS

    @property
    def block_threads(self) -> int:
        """How many threads a block has."""
        return int(np.prod(self.blockdim))

    def check(self, args: tuple, seed: int = SEED) -> None:
        """Assert that `args`, made by make_args(seed) and then launched, hold the wanted result."""
        fresh = self.make_args(seed)
        wanted = self.reference(*self.make_args(seed))
        wanted = wanted if isinstance(wanted, dict) else {len(args) - 1: wanted}
        for position, (got, before) in enumerate(zip(args, fresh, strict=True)):
            if not isinstance(before, np.ndarray):
                continue
            tolerance = self.tolerance if before.dtype.kind in "fc" else 0
            np.testing.assert_allclose(
                self.canonical(got) if position in wanted else got,
                self.canonical(wanted[position]) if position in wanted else before,
                rtol=tolerance,
                atol=tolerance,
                err_msg=f"{self.name}, argument {position}",
            )


@dataclass(frozen=True, kw_only=True)
class Fault(Case):
    """A case whose kernel is at fault, and the fault that must be found."""

    #: One of KINDS.
    kind: str
    #: Functions that hold the marker comments: the kernel, or the device function it calls.
    marked: object = None
    #: Other kinds that follow from the fault and may be reported too, anywhere in the kernel.
    may_also: frozenset[str] = frozenset()
    #: Whether the result shows it even when a block's threads go statement by statement together.
    wrong_in_lockstep: bool = False

    @property
    def line(self) -> int:
        """The line, in the kernel's file, of the access or barrier at fault: the one marked `# HAZARD`."""
        (line,) = marked_lines(self.marked or self.kernel, "HAZARD")
        return line

    @property
    def lines(self) -> frozenset[int]:
        """`line` and the lines of what it collides with (marked `# PARTNER`): any of them may be named."""
        return frozenset({self.line, *marked_lines(self.marked or self.kernel, "PARTNER")})


def case(name: str, kernel, griddim, blockdim) -> Callable[..., Case]:
    """Return what makes a case of this launch from (make_args, reference, ...)."""
    return partial(Case, name, kernel, griddim, blockdim)


def fault(kind: str, name: str, kernel, griddim, blockdim) -> Callable[..., Fault]:
    """Return what makes a fault of this launch from (make_args, reference, ...)."""
    return partial(Fault, name, kernel, griddim, blockdim, kind=kind)
