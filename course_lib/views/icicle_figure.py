"""One forward pass as an icicle: the network on top, its parts below it, each as wide as its time.

The picture is scanned first and then zoomed. It brings its data and a short script (`icicle.js`) along and
needs no kernel, so an exported page can be zoomed, too; where no script runs stands the still twin.
"""

from __future__ import annotations

import json
import re
import statistics
from importlib import resources
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.speech.forward_tree import NUMBERED, ForwardTree, Span
from course_lib.speech.operator_work import HANDING_ON
from course_lib.theme import DEEP_PINK, GREY, INK, LINE, PAPER, QUIET, VIOLET_TINT
from course_lib.views.figures import centred, headline, stacked
from course_lib.views.operator_lines import kind, short, time_in_words
from course_lib.views.paper import card, escape, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Ground, hatch and words of what is drawn: hatches tell the kinds apart without colour.
LOOKS = {
    "part": ("#f4f2f6", "", ""),
    "product": ("#ff94c6", "", "matrix products"),
    "convolution": ("#d3a6ff", "////", "convolutions"),
    "other": ("#ffffff", "", "other operators"),
    "handing": ("#e2dde8", "....", "handing on: checks, views, choosing who computes"),
}
KEYS = (
    "Click a part to zoom in, a bar above it to zoom out. Keyboard: Tab into the picture, arrow keys move, "
    "Enter zooms in, Escape zooms out, Home shows everything."
)
LETTER = 0.062  # inches of a letter in the still picture
WIDTH = 9.0


def icicle(tree: ForwardTree) -> Icicle:
    """Return a zoomable picture of a forward pass, from what `speech.forward_tree.forward_tree` measured.

    Raises TypeError for anything that is no ForwardTree.
    """
    if not isinstance(tree, ForwardTree):
        raise TypeError(
            f"tree is a {type(tree).__name__}, but a ForwardTree is needed: forward_tree(encoder, features)."
        )
    return Icicle(tree)


class Icicle:
    """The picture: a notebook or page shows it to be zoomed, `static()` gives the still twin."""

    def __init__(self, tree: ForwardTree) -> None:
        self.tree = tree
        self.title = finding(tree)

    def static(self) -> theme.Picture:
        """Return the whole forward and one typical part of it, enlarged."""
        tree = self.tree
        part = _typical(tree.root)
        spans = [tree.root] if part is None else [tree.root, part]
        with theme.figure(WIDTH, 1.3 + sum(0.75 + 0.3 * _levels(span) for span in spans)) as fig:
            every = stacked(fig, [_levels(span) + 1 for span in spans], sharex=False)
            for axes, span in zip(every, spans, strict=True):
                _draw(axes, span, 0.0, 0, span.us)
                axes.set(xlim=(0, span.us / 1e3), ylim=(_levels(span), 0), yticks=[])
                name = "the whole forward" if span is tree.root else f"{span.name}, enlarged"
                axes.set_title(name, fontsize=10.5)
                axes.grid(visible=False)
                axes.spines["left"].set_visible(False)
            every[-1].set_xlabel(f"ms ({tree.what})")
            _still_legend(fig)
            headline(fig, self.title, 84)
            shares = " ".join(map(_shares, spans))
            alt = f"Icicle of one forward ({tree.what}), by parts and operators. {self.title}. {shares}"
            return theme.Picture.of(fig, alt)

    def _repr_html_(self) -> str:
        trees = [("layer by layer", self.tree.root)]
        together = self.tree.merged().root
        if together != self.tree.root:
            trees.append(("all layers added up", together))
        data = [{"name": name, "tree": _packed(root)} for name, root in trees]
        written = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")

        code = resources.files("course_lib.views").joinpath("icicle.js").read_text(encoding="utf-8")
        explained = (
            f"{self.tree.what}, under torch.profiler. Hatched in grey is the time of a part outside of what "
            "is below it: Python, and the profiler's own labels, a few microseconds a call."
        )
        live = (
            f'<div data-part="live" hidden>{_legend()}'
            '<div class="bar"><span data-part="crumbs" role="navigation" aria-label="shown"></span>'
            '<span data-part="modes" role="group" aria-label="layers"></span></div>'
            f'<div data-part="stage" role="tree" aria-label="{escape(self.title)}. {escape(KEYS)}"></div>'
            f'<div data-part="readout"></div>{note(KEYS)}{note(explained)}</div>'
        )
        still = f'<div data-part="still">{self.static()._repr_html_()}</div>'
        script = f"<script>({code.strip()})(document.currentScript.parentElement, {written})</script>"
        style = f"<style>{STYLE}</style>"
        shown = card(style + live + still, self.title, title=self.title, width="100%")
        return shown.removesuffix("</div>").replace("<div ", '<div class="nc-icicle" ', 1) + script + "</div>"

    def __repr__(self) -> str:
        return self.static().alt


def finding(tree: ForwardTree) -> str:
    """Return in a sentence where the time of the forward goes, by parts."""
    root = tree.merged().root
    parts = [child for child in root.children if child.kind == "part"]
    if not parts or not root.us:
        return f"A forward takes {time_in_words(root.us)}"
    top = max(parts, key=lambda part: part.us)
    layers = sum(_is_layer(child) for child in tree.root.children)
    name = f"the {layers} layers" if layers > 1 and top.name.endswith(".*") else top.name
    said = f"{_percent(top.us / root.us)} of {time_in_words(root.us)} goes to {name}"
    inner = sorted((child for child in top.children if child.kind == "part"), key=lambda child: -child.us)
    if not inner or not top.us:
        return said
    shares = ", ".join(f"{child.name} {_percent(child.us / top.us)}" for child in inner[:3])
    return f"{said}; of these {shares}"


def _is_layer(span: Span) -> bool:
    return span.kind == "part" and NUMBERED.fullmatch(span.name) is not None


def look(span: Span) -> str:
    """Return which of LOOKS a span is drawn in."""
    if span.kind == "part":
        return "part"
    return "handing" if span.name == HANDING_ON else kind(span.name)


def _packed(span: Span) -> list[Any]:
    children = [_packed(child) for child in span.children]
    return [short(span.name), look(span), span.calls, round(span.own_us, 2), children]


def _legend() -> str:
    marks = "".join(
        f'<span><span class="look-{name} key" aria-hidden="true"></span> {words}</span>'
        for name, (_, _, words) in LOOKS.items()
        if words
    )
    return f'<div class="legend">{marks}</div>'


_HATCHED = "repeating-linear-gradient({angle}deg,{ink} 0 1px,transparent 1px {step}px)"
STYLE = f"""
.nc-icicle .bar,.nc-icicle .legend{{display:flex;flex-wrap:wrap;gap:4px 16px;justify-content:space-between;
  align-items:center;margin:0 0 8px}}
.nc-icicle .legend{{justify-content:flex-start;font-size:12.5px;color:{QUIET}}}
.nc-icicle .key{{display:inline-block;position:static;width:14px;height:12px;vertical-align:-1px;padding:0}}
.nc-icicle button{{font:inherit;font-size:13px;color:{INK};background:{PAPER};border:1px solid {LINE};
  border-radius:4px;padding:2px 8px;margin:0 2px 0 0;cursor:pointer}}
.nc-icicle button[aria-pressed=true],.nc-icicle button[aria-current]{{background:{VIOLET_TINT};
  border-color:{INK};font-weight:600}}
.nc-icicle [data-part=stage]{{position:relative;width:100%;overflow:hidden;background:{PAPER}}}
.nc-icicle [role=treeitem],.nc-icicle .own{{position:absolute;box-sizing:border-box;overflow:hidden;
  white-space:nowrap;text-overflow:ellipsis;font-size:12.5px;line-height:27px;text-align:center;color:{INK}}}
.nc-icicle [role=treeitem]{{cursor:pointer}}
.nc-icicle [class^=look-]{{border:solid {GREY};border-width:1px}}
.nc-icicle .look-part{{background:{LOOKS["part"][0]}}}
.nc-icicle .look-part.thin{{background:#cfc8d6}}
.nc-icicle .look-product{{background:{LOOKS["product"][0]}}}
.nc-icicle .look-convolution{{background:{_HATCHED.format(angle=135, ink="#ffffff88", step=6)}
  {LOOKS["convolution"][0]}}}
.nc-icicle .look-other{{background:{LOOKS["other"][0]}}}
.nc-icicle .look-other.thin{{background:#a49cae}}
.nc-icicle .look-handing{{background:radial-gradient(#b5adc0 1px,transparent 1.3px) 0 0/6px 6px
  {LOOKS["handing"][0]}}}
.nc-icicle .thin{{border-width:0}}
.nc-icicle .around{{background:{VIOLET_TINT}}}
.nc-icicle .own{{background:{_HATCHED.format(angle=45, ink=LINE, step=5)};color:{QUIET}}}
.nc-icicle [role=treeitem]:hover{{filter:brightness(.94)}}
.nc-icicle [role=treeitem]:focus,.nc-icicle button:focus-visible{{outline:3px solid {DEEP_PINK};
  outline-offset:-3px;z-index:2;min-width:9px}}
.nc-icicle [data-part=readout]{{min-height:2.9em;margin:6px 0 0;font-weight:600}}
"""


# -- the still twin ----------------------------------------------------------------------------------------


def _typical(root: Span) -> Span | None:
    """Return the layer whose time is in the middle; without layers the longest part."""
    layers = [child for child in root.children if _is_layer(child)]
    if layers:
        middle = statistics.median_low(sorted(layer.us for layer in layers))
        return next(layer for layer in layers if layer.us == middle)
    parts = [child for child in root.children if child.children]
    return max(parts, key=lambda part: part.us, default=None)


def _levels(span: Span) -> int:
    return 1 + max((_levels(child) for child in span.children), default=0)


def _draw(axes: Axes, span: Span, start: float, depth: int, whole: float) -> None:
    ground, hatch, _ = LOOKS[look(span)]
    inches = span.us / whole * (WIDTH - 0.4)
    edge = {"edgecolor": GREY if inches > 0.02 else "none", "hatch": hatch if inches > 0.1 else ""}
    place = [(start / 1e3, span.us / 1e3)], (depth, 0.94)
    axes.broken_barh(*place, facecolors=ground, linewidth=0.5, **edge)
    label = _label(span, inches)
    if label:
        middle = (start + span.us / 2) / 1e3
        box = {"facecolor": ground, "pad": 0.5} if hatch else None
        centred(axes, middle, depth + 0.5, label, box, fontsize=8)
    for child in span.children:
        _draw(axes, child, start, depth + 1, whole)
        start += child.us


def _label(span: Span, inches: float) -> str:
    """Return as much of the name as there is room for: all of it, a short end (layers.11, linear_q), none."""
    name = short(span.name)
    end = re.split(r"[._]", name)[-1]
    tries = [name, *([end] if len(end) <= 3 else [])]
    return next((tried for tried in tries if len(tried) * LETTER + 0.04 <= inches), "")


def _still_legend(fig: Any) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=ground, hatch=hatch, edgecolor=GREY, label=words)
        for ground, hatch, words in LOOKS.values()
        if words
    ]
    fig.legend(handles=patches, loc="outside lower center", ncols=4, fontsize=8.5)


def _shares(span: Span) -> str:
    children = [child for child in span.children if child.us >= 0.002 * span.us][:30]
    said = ", ".join(f"{short(child.name)} {_percent(child.us / span.us)}" for child in children)
    took = time_in_words(span.us)
    return f"In {span.name} ({took}): {said}." if said else f"{span.name}: {took}."


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
