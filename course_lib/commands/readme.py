"""`python -m course_lib readme`: bring up to date what README and architecture.md take from the code.

The table of rungs comes from the registry. With --picture, the ladder's figure and the table of its steps are
made anew from the results measured on this machine (measure them first, with `make bench`), and the caption
says which machine that is; refused as long as a rung has no result there, or only one of a busy time.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from course_lib import ladder
from course_lib.commands import house

PROJECT = Path(__file__).resolve().parents[2]
README = PROJECT / "README.md"
ARCHITECTURE = PROJECT / "docs" / "architecture.md"
PICTURE = Path("docs/ladder.png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to ``parser``."""
    parser.add_argument("--picture", action="store_true", help="also draw docs/ladder.png from your results")


def run(args: argparse.Namespace) -> int:
    """Rewrite the marked parts of the README; return the exit code."""
    parts = {"rungs": rung_table()}
    if args.picture:
        if lacking := not_measured(shown()):
            print(f"readme: {lacking}")
            return 1
        parts |= {"picture": draw_picture(), "steps": step_table()}
    fill(README, parts)
    fill(ARCHITECTURE, {"rooms": house.picture()})
    return 0


def fill(page: Path, parts: dict[str, str]) -> None:
    """Write each part between its markers in the page, and say so."""
    text = page.read_text(encoding="utf-8")
    for name, content in parts.items():
        text = replaced(text, name, content, page.name)
    page.write_text(text, encoding="utf-8")
    print(f"{page.name} is up to date.")


def rung_table() -> str:
    """Return the registry as a Markdown table, in ladder order."""
    rows = [f"| `{r.id}` | {r.circle or '–'} | {r.title} | {r.bottleneck} |" for r in ladder.LADDER]
    return "\n".join(["| rung | circle | what it is | what limits it |", "|---|---|---|---|", *rows])


def shown() -> list[ladder.Result]:
    """Return the results that the picture shows: this machine's, in float64 on one thread."""
    return [r for r in ladder.results() if r.dtype == "float64" and r.threads == 1]


def not_measured(results: list[ladder.Result]) -> str:
    """Return the sentence that names the rungs without a sound result at their size, "" for none."""
    at = {(one.rung, one.shape): one for one in results if not one.rough}
    wanted = [r for r in ladder.LADDER if "float64" in r.dtypes and not r.parallel and not r.missing()]
    missing = [f"{rung.id} at {rung.size}" for rung in wanted if (rung.id, (rung.size,) * 3) not in at]
    return f"No sound result of {', '.join(missing)}: run `make bench` on quiet cores." if missing else ""


def step_table() -> str:
    """Return the steps between the rungs of the picture as a Markdown table."""
    from course_lib import views

    table = views.ladder_table(shown(), dtype="float64")
    lines = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)], *table.rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *table.notes])


def draw_picture() -> str:
    """Draw the ladder of this machine into docs/ and return the Markdown that shows it, with its origin."""
    from course_lib import views
    from course_lib.measure import machine

    results = shown()
    picture = views.ladder_plot(results, dtype="float64")
    target = PROJECT / PICTURE
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(picture.png)
    here = machine.describe()
    when = max(result.when for result in results)[:10]
    origin = (
        f"Measured {when} on {here.cpu}, {here.cores} cores, {here.simd}; NumPy's BLAS is {here.blas} "
        f"with its {here.blas_architecture} kernels. Yours will differ: that is the point."
    )
    return f"![{picture.alt}]({PICTURE.as_posix()})\n\n*{origin}*"


def replaced(text: str, name: str, content: str, page: str = "README.md") -> str:
    """Return ``text`` with what stands between the markers of ``name`` replaced by ``content``."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{page} has no '<!-- {name} -->' … '<!-- /{name} -->' to fill: put them back.")
    return pattern.sub(lambda match: match[1] + content + "\n" + match[2], text)
