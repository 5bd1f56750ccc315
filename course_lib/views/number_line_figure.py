"""All positive numbers of e4m3 and e5m2: where they lie, and how far apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from course_lib import theme
from course_lib.fp8.formats import E4M3, E5M2, Format
from course_lib.theme import GREY, SERIES, Picture
from course_lib.views.figures import beside, headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = {E4M3: 1.0, E5M2: 0.0}
TICKS = (-16, -9, -6, 0, 8, 15)  # exponents of 2 that the picture names
NEAR_ZERO = 2.0**-4


def format_lines() -> Picture:
    """Draw every positive number of e4m3 and e5m2 on a logarithmic line, and those near 0 on a linear one."""
    said = (
        f"e4m3 has {2**E4M3.fraction_bits} numbers for each power of two, e5m2 only "
        f"{2**E5M2.fraction_bits}, but over a wider range"
    )
    with theme.figure(8.0, 4.6) as fig:
        logs, linear = fig.subplots(2, 1)
        for axes in (logs, linear):
            for form, row in ROWS.items():
                _draw(axes, form, row)
            axes.set_yticks(list(ROWS.values()), [form.name for form in ROWS])
            axes.set_ylim(-0.65, 1.75)
            axes.grid(visible=False)
            axes.spines["left"].set_visible(False)
        logs.set_xscale("log", base=2)
        logs.set_xlim(2.0**-18, 2.0**17.5)
        logs.set_xticks([2.0**n for n in TICKS])
        logs.minorticks_off()
        logs.set_xlabel("value, logarithmic: the same number of lines for each factor of two")
        for form, row in ROWS.items():
            logs.annotate(f"{form.smallest:.3g}", (form.smallest, row + 0.33), ha="left", fontsize=9)
            logs.annotate(f"{form.largest:g}", (form.largest, row + 0.33), ha="right", fontsize=9)
        linear.set_xlim(-0.0012, NEAR_ZERO * 1.02)
        linear.set_xlabel("value near 0, linear: subnormal numbers go on to 0 in equal steps")
        for form, row in ROWS.items():
            linear.vlines(
                form.smallest_normal, row - 0.3, row + 0.6, color=GREY, linewidth=1.5, linestyle=":"
            )
            beside(
                linear,
                f"{form.name}: normal from {form.smallest_normal:.3g}",
                (form.smallest_normal, row + 0.33),
                (4, 0),
                fontsize=9,
            )
        handles, labels = logs.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
        headline(fig, said, 66)
        return Picture.of(fig, f"{said}. {' '.join(in_words(form) for form in ROWS)}")


def positive(form: Format) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the subnormal and the normal numbers above 0, in order."""
    values = form.values[1 : form.largest_code + 1]
    return values[values < form.smallest_normal], values[values >= form.smallest_normal]


def in_words(form: Format) -> str:
    """Return a format's range and steps as a sentence."""
    subnormal, normal = positive(form)
    return (
        f"{form.name}: {len(subnormal)} subnormal numbers from {form.smallest:.4g} to {subnormal[-1]:.4g} in "
        f"equal steps, {len(normal)} normal ones from {form.smallest_normal:.4g} to {form.largest:g}; "
        f"rounding a normal one errs by at most 1/{2 ** (form.fraction_bits + 1)} of it."
    )


def _draw(axes: Axes, form: Format, row: float) -> None:
    subnormal, normal = positive(form)
    colour, marker, _ = SERIES[list(ROWS).index(form)]
    axes.plot(
        normal, np.full(len(normal), row), "|", color=colour, markersize=17, label=f"{form.name}, normal"
    )
    look = {"markerfacecolor": "none", "color": colour, "markersize": 5.5}
    axes.plot(subnormal, np.full(len(subnormal), row), marker, label=f"{form.name}, subnormal", **look)
