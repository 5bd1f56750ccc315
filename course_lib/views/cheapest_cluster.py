"""What a product or a training costs on clusters for hire: the cheapest in time, at one's own prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from course_lib.arguments import number
from course_lib.measure.table import digits
from course_lib.theme import INK, PAPER, Picture
from course_lib.views.cost_explorer import KEYS
from course_lib.views.figures import beside, hollow, panel, series
from course_lib.views.live import Explorer, widgets
from course_lib.views.paper import Html, card, escape, note, plural, table

if TYPE_CHECKING:
    from course_lib.distributed.plan import ClusterPlan, Shape

EVER = 1e15  # seconds: all plans that fit into memory are drawn, those that are late, too
LISTED = 3  # cheapest plans of the table
ASSUMED = (
    "Assumed: every rank reaches its offer's speed, computing and sending do not overlap, the matrices are "
    "there already, time is paid by the second, and nothing fails."
)


def cheapest(
    job: Shape | Callable[[Sequence], Sequence], offers: Sequence, deadline_s: float, assumed: str = ASSUMED
) -> Cheapest:
    """Return fields for a deadline and each offer's price of an hour, and what a job then costs.

    The job is a product's shape, of `Offer`s, or a function from offers (dataclasses with a name and a price)
    to all plans for it, the cheapest first, as `training.planner.plans` returns them.
    Raises ValueError for a deadline or a price that is not above 0, and where no plan fits into memory.
    """
    return Cheapest(job, offers, deadline_s, assumed)


class Cheapest(Explorer):
    """The fields `.deadline` and `.prices`, one for each offer; `frame` draws plans for what they say."""

    def __init__(
        self, job: Shape | Callable[[Sequence], Sequence], offers: Sequence, deadline_s: float, assumed: str
    ) -> None:
        super().__init__()
        self.job, self.offers, self._given, self.assumed = job, tuple(offers), deadline_s, assumed
        self.frame(self.offers, deadline_s)  # says what cannot be
        look = {"style": {"description_width": "15em"}, "layout": {"width": "27em"}}
        field = widgets().FloatText
        self.deadline = field(deadline_s, description="deadline, s", **look)
        self.prices = [
            field(one.price, description=f"{one.name}: price of an hour", **look) for one in offers
        ]
        fields = [self.deadline, *self.prices]
        for control in fields:
            control.observe(lambda _: self._show(), names="value")
        self._show()
        self.widget = widgets().VBox([*fields, self.status, self.picture])

    def _show(self) -> None:
        pairs = zip(self.offers, self.prices, strict=True)
        try:
            frame = self.frame([replace(one, price=price.value) for one, price in pairs], self.deadline.value)
        except ValueError as problem:
            self._say(f"{problem} The picture still shows the numbers before.")
        else:
            self._draw(frame._repr_html_())
            self._say(KEYS)

    def frame(self, offers: Sequence, deadline_s: float) -> Html:
        """Return the plans' picture, the cheapest in time as a table, and what is assumed."""
        from course_lib.distributed.plan import plans

        number("deadline_s", deadline_s, above=0)
        for one in offers:
            number(f"the price of {one.name}", one.price, above=0)
        found = self.job(offers) if callable(self.job) else plans(self.job, offers, EVER)
        if not found:
            raise ValueError("No offer has the memory for this on any number of ranks: offer more.")
        picture = figure(found, deadline_s)
        rows = [
            [escape(_name(one)), *map(digits, (one.compute_s, one.network_s, one.memory / 1e9, one.cost))]
            for one in found
            if one.seconds <= deadline_s
        ][:LISTED]
        head = ["cheapest in time", "computing, s", "network, s", "GB a rank", "cost"]
        listed = table(head, rows, marked=(0,)) if rows else ""
        told = f"{picture.alt} {self.assumed}"
        return Html(card(picture._repr_html_() + listed + note(self.assumed), told), told)

    def static(self) -> Html:
        """Return the same for what was given."""
        return self.frame(self.offers, self._given)


def figure(found: Sequence[ClusterPlan], deadline_s: float) -> Picture:
    """Draw cost against time, a mark for the best algorithm on each number of ranks, joined by offer.

    `found` is sorted by cost.
    """
    in_time = next((one for one in found if one.seconds <= deadline_s), None)
    if in_time:
        took = f"{digits(in_time.seconds)} s for {digits(in_time.cost)}"
        said = f"Cheapest within {digits(deadline_s)} s: {_name(in_time)}, {took}"
    else:
        fast = min(found, key=lambda one: one.seconds)
        late = f"the fastest, {_name(fast)}, takes {digits(fast.seconds)} s"
        said = f"Nothing ends within {digits(deadline_s)} s: {late}"
    with panel(8.0, 4.2, said, 74) as (fig, axes):
        words = []
        for place, offer in enumerate(sorted({one.offer for one in found})):
            best = {one.ranks: one for one in reversed(found) if one.offer == offer}  # the cheapest stays
            line = [best[ranks] for ranks in sorted(best)]
            axes.plot([one.seconds for one in line], [one.cost for one in line], **series(place), label=offer)
            for one in line:
                ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}  # over the deadline's line
                look = {"fontsize": 9, "ha": "center", "bbox": ground}
                beside(axes, one.ranks, (one.seconds, one.cost), (0, -20 if place % 2 else 12), **look)
            each = (
                f"{plural(one.ranks, 'rank')} {digits(one.seconds)} s for {digits(one.cost)}" for one in line
            )
            words.append(f"{offer}: {', '.join(each)}")
        axes.axvline(deadline_s, color=INK, linestyle=(0, (4, 2)), linewidth=1.3, label="deadline")
        if in_time:
            axes.plot([in_time.seconds], [in_time.cost], "o", **hollow(INK, 17, 1.8))
        axes.set(xscale="log", yscale="log", xlabel="time (s)", ylabel="cost")
        axes.margins(y=0.18)
        axes.minorticks_off()
        axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5), numticks=12)
        for end in (axes.xaxis, axes.yaxis):
            end.set_major_formatter(lambda value, _: f"{value:g}")
        axes.legend(loc="best")
        return Picture.of(
            fig, f"Cost against time, a mark for each number of ranks. {said}. {'; '.join(words)}."
        )


def _name(plan: ClusterPlan) -> str:
    return f"{plan.ranks} x {plan.offer}" + f", {plan.algorithm}" * (plan.ranks > 1)
