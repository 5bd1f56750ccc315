"""What a GPU kernel's inner loop is compiled to: machine code, what each instruction does, and what it costs.

Needs no GPU. With the packages of `.[cubin]` any kernel is compiled here; without them the course's own rungs
are shown as they were compiled elsewhere (`measure.code_listing`), for anything else there is one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from course_lib.measure import code_listing, machine
from course_lib.measure.code_listing import MATRICES, Listing
from course_lib.views import kernel_code_page as page
from course_lib.views.live import Live, widgets
from course_lib.views.paper import Html, card, escape

Capability = tuple[int, int]
OFFERED = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0))  # to choose from, where any can be compiled


def gpu_code(
    kernel: Any, *args: Any, cc: Capability = (9, 0), block: int | tuple[int, ...] | None = None
) -> KernelCode | Html:
    """Return a view of the inner loop of a `@cuda.jit` kernel: SASS with each instruction's kind and source.

    args: examples of its arguments (NumPy arrays, numbers) or Numba types; the course's own rungs need none.
    cc: the compute capability meant, (8, 0) for an A100, (9, 0) for an H100 or H200. block: threads in a
    block, or its shape, for the occupancy (the rungs and kernels with launch_bounds know theirs).
    Raises TypeError for something that is no kernel, ValueError without arguments where they are needed, and
    CannotCompile with the reason.
    """
    if not callable(getattr(kernel, "py_func", None)):
        raise TypeError(f"kernel is {kernel!r}, but a function with @cuda.jit is needed.")
    shipped = [one for one in code_listing.shipped() if one.fingerprint == code_listing.fingerprint(kernel)]
    is_the_same = not args or _in_words(args) == MATRICES
    wanted = tuple(cc)
    if sentence := machine.missing("cubin"):
        found = {one.cc: one for one in shipped if is_the_same}
        if wanted in found:
            return KernelCode(
                kernel, found.__getitem__, list(found), wanted, _threads(kernel, block, shipped)
            )
        return _sentence(kernel, sentence, list(found), wanted)
    if not args and not shipped:
        raise ValueError(
            f"{kernel.__name__} is compiled for the types of its arguments: give examples, "
            f"gpu_code({kernel.__name__}, A, B, C)."
        )
    threads = _threads(kernel, block, shipped)
    kept: dict[Capability, Listing] = {}

    def compiled(chosen: Capability) -> Listing:
        if chosen not in kept:
            kept[chosen] = _compiled(kernel, args, chosen, threads)
        return kept[chosen]

    offered = sorted({*OFFERED, wanted})
    compiled(wanted)  # what cannot be compiled is said now
    return KernelCode(kernel, compiled, offered, wanted, threads)


class KernelCode(Live):
    """The listing with its choices: `.cc`, `.language` ("SASS" or "PTX"), `.only` a kind, `.whole` runs."""

    def __init__(
        self,
        kernel: Any,
        listing: Callable[[Capability], Listing],
        offered: list[Capability],
        cc: Capability,
        threads: int | None,
    ) -> None:
        self._kernel, self._listing, self._threads = kernel, listing, threads
        kit = widgets()
        self.language = _choice(["SASS", "PTX"], ["The machine code", "What the machine code is made from"])
        capabilities = [(f"{major}.{minor}", (major, minor)) for major, minor in offered]
        names = [f"Compute capability {name}" for name, _ in capabilities]
        self.cc = _choice(capabilities, names, value=cc)
        self.only = _choice(self._kinds(), [])
        self.whole = kit.Checkbox(
            value=False, description="every instruction", indent=False, layout={"width": "150px"}
        )
        self.picture = kit.HTML(self.frame())
        self.cc.observe(lambda _: self._other(), names="value")
        self.language.observe(lambda _: self._other(), names="value")
        for control in (self.only, self.whole):
            control.observe(lambda _: self._draw(), names="value")
        row = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "0 14px"}
        controls = [
            kit.HBox([self.language, self.cc, self.whole], layout=row),
            kit.HBox([self.only], layout=row),
        ]
        self.widget = kit.VBox([*controls, self.picture])

    @property
    def listing(self) -> Listing:
        """What is shown now."""
        return self._with_threads(self._listing(self.cc.value))

    def frame(self) -> str:
        """Return the picture of the present choice as HTML."""
        only = self.only.value
        body = page.drawn(self._kernel, self.listing, self.language.value, only, self.whole.value).body
        return f'<div style="width:0;min-width:100%">{body}</div>'  # as wide as the cell, not as the code

    def static(self) -> Html:
        """Return SASS with its totals, and PTX behind a heading that opens."""
        return page.still(self._kernel, self.listing)

    def _kinds(self) -> list[tuple[str, str]]:
        listing = self._listing(self.cc.value)
        lines = listing.loop if self.language.value == "SASS" else listing.ptx
        kinds = dict.fromkeys(line.kind for line in lines)
        return [("all kinds", ""), *((kind, kind) for kind in kinds)]

    def _other(self) -> None:
        """Another code: its kinds are others, too."""
        before, kinds = self.only.value, self._kinds()
        self.only.options = kinds  # takes the first, all
        if before in [value for _, value in kinds]:
            self.only.value = before
        self._draw()

    def _draw(self) -> None:
        self.picture.value = self.frame()

    def _with_threads(self, listing: Listing) -> Listing:
        return listing if self._threads is None else replace(listing, threads=self._threads)


def _choice(options: list[Any], tips: list[str], **more: Any) -> Any:
    """Return buttons of which one is pressed. (Lab takes the keys that a list to unfold would need.)"""
    return widgets().ToggleButtons(options=options, tooltips=tips, style={"button_width": "auto"}, **more)


# -- where a listing comes from ----------------------------------------------------------------------------


def _compiled(kernel: Any, args: tuple, cc: Capability, threads: int | None) -> Listing:
    from numba import float32, types

    from course_lib.measure.device_code import compile_kernel

    words = _in_words(args) if args else MATRICES
    code = compile_kernel(kernel, *(args or (types.Array(float32, 2, "C"),) * 3), cc=cc)
    return code_listing.of(code, kernel, words, threads)


def _in_words(args: tuple) -> tuple[str, ...]:
    import numba
    from numba.core.types import Type

    return tuple(str(one if isinstance(one, Type) else numba.typeof(one)) for one in args)


def _threads(kernel: Any, block: int | tuple[int, ...] | None, shipped: list[Listing]) -> int | None:
    """Return the threads of a block, as far as anybody says: the caller, the rung, or launch_bounds."""
    if block is not None:
        return block if isinstance(block, int) else math.prod(block)
    if shipped:
        return shipped[0].threads
    bounds = getattr(kernel, "targetoptions", {}).get("launch_bounds")
    return bounds[0] if isinstance(bounds, tuple | list) else bounds


def _sentence(kernel: Any, missing: str, others: list[Capability], cc: Capability) -> Html:
    """Return what is missing, and for which architectures there would be a listing."""
    said = missing
    if others:
        there = " and ".join(f"{major}.{minor}" for major, minor in others)
        said = (
            f"The course brings {kernel.__name__} for compute capability {there}, not for "
            f"{cc[0]}.{cc[1]}. {missing}"
        )
    return Html(card(f'<div style="max-width:76ch">{escape(said)}</div>', said), said)
