"""The look of all pages, and the shell they stand in: one file, no request, nothing that runs."""

from __future__ import annotations

from course_lib.grading.classroom.pages.text import escape, name
from course_lib.theme import GREY, INK, PAPER, PINK, VIOLET

COURSE = "Nine Circles of Matmul"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_COLOURS = f"""
:root {{
  color-scheme: light dark;
  --pink: {PINK}; --violet: {VIOLET}; --grey: {GREY}; --on-pink: {INK};
  --ink: {INK}; --soft: #625b6b; --paper: {PAPER}; --shade: #f6f3f9; --line: #ddd6e4;
  --keyword: #7a00cf; --string: #b8005c; --number: #00665f; --comment: #6b6375; --pink-ink: #c20061;
}}
@media screen and (prefers-color-scheme: dark) {{
  :root {{
    --ink: #ece7f1; --soft: #b3a9bf; --paper: #16121b; --shade: #211b29; --line: #40374c;
    --keyword: #c792ff; --string: #ff7ab8; --number: #5fd4c8; --comment: #a297b0; --pink-ink: #ff6eb4;
  }}
}}
"""

_LAYOUT = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; border-top: 6px solid var(--violet); }
body::before { content: ""; display: block; height: 3px; background: var(--pink); }
main { max-width: 62rem; margin: 0 auto; padding: 1.2rem 1.2rem 3rem; }
h1, h2, h3 { line-height: 1.25; margin: 2.2rem 0 .6rem; text-wrap: balance; }
h1 { font-size: 1.7rem; margin-top: .2rem; }
h2 { font-size: 1.25rem; }
h3 { font-size: 1.05rem; margin-top: 1.4rem; text-wrap: pretty; }
p, ul, ol, dl { margin: .5rem 0; }
a { color: var(--keyword); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 3px solid var(--pink); outline-offset: 2px; }
.course { color: var(--soft); margin: 0; font-size: .95rem; }
.soft { color: var(--soft); font-size: .92rem; }
.sign { color: var(--violet); font-weight: 700; }
.wrong > .sign, .sign.wrong { color: var(--pink-ink); }
.sign.not { color: var(--soft); }
.right > .sign, .partly > .sign, .sign.right, .sign.partly { color: var(--keyword); }
.total { font-size: 1.35rem; margin: .6rem 0; }
.total strong { border-bottom: 3px solid var(--pink); }
.warning { border: 3px solid var(--pink); border-radius: 6px; padding: .6rem .9rem; margin: 1rem 0; }
.note { border-left: 4px solid var(--violet); background: var(--shade); padding: .5rem .9rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; }
"""

_TABLES = """
.scroll { overflow-x: auto; max-width: 100%; overflow-wrap: normal; }
table.list { border-collapse: collapse; font-size: .94rem; font-variant-numeric: tabular-nums; }
table.list th, table.list td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
table.list thead th { border-bottom: 2px solid var(--violet); vertical-align: bottom; }
table.list tbody th { font-weight: 600; }
table.list .n { text-align: right; } table.list td.n { white-space: nowrap; }
table.list .id { white-space: nowrap; }
table.list td.words { min-width: 11rem; overflow-wrap: anywhere; }
table.list th.task { min-width: 9rem; overflow-wrap: anywhere; }
table.list .student bdi { display: inline-block; max-width: 14rem; overflow-wrap: break-word; }
.key { display: inline-block; white-space: nowrap; margin-right: 1.2em; }
"""

_REPORTS = """
section.task { border-top: 1px solid var(--line); margin-top: 1.6rem; padding-top: .2rem; }
section.task > h2 { display: grid; grid-template-columns: auto 1fr auto; gap: 0 .6rem; margin: .8rem 0; }
section.task .score { white-space: nowrap; }
.nine-circles-report { overflow-x: auto; max-width: 100% !important; overflow-wrap: anywhere; }
.report > .nine-circles-report > div:first-child { display: none; } /* the heading above says it already */
.nine-circles-report td, .nine-circles-report th { overflow-wrap: anywhere; min-width: 3.5em; }
.nine-circles-report > div > div { min-width: 0; max-width: 100%; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--soft); }
pre.code { background: var(--shade); border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0;
  padding: .6rem .8rem .6rem 0; font: .86rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
pre.code > span { display: block; padding-left: 4em; }
pre.code > span::before { content: attr(data-line); float: left; margin-left: -4em;
  width: 3em; text-align: right; color: var(--comment); user-select: none; }
pre.code [class^="k"], pre.code .ow { color: var(--keyword); font-weight: 600; }
pre.code [class^="s"] { color: var(--string); } pre.code [class^="m"] { color: var(--number); }
pre.code [class^="c"] { color: var(--comment); font-style: italic; } pre.code .nf { font-weight: 600; }
"""

_CHARTS = """
figure.chart { margin: 1rem 0; max-width: 36rem; }
figure.chart > figcaption { font-weight: 600; margin-bottom: .4rem; }
figure.chart svg { display: block; width: 100%; height: auto; overflow: visible; }
.chart text { fill: var(--ink); font-size: 13px; } .chart .small { font-size: 12px; fill: var(--soft); }
.chart .axis { stroke: var(--grey); stroke-width: 1; } .chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .bar, .chart .right { fill: var(--violet); } .chart .wrong { fill: var(--pink); }
.chart .median { stroke: var(--pink); stroke-width: 2; stroke-dasharray: 5 3; }
.chart .partly { fill: url(#hatch); stroke: var(--violet); } .chart .hatch { stroke: var(--violet); }
.chart .not { fill: none; stroke: var(--grey); }
.chart text.on-right { fill: #fff; font-weight: 600; }
.chart text.on-wrong { fill: var(--on-pink); font-weight: 600; }
.chart text.halo { font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
"""

_PHONE_AND_PAPER = """
@media (max-width: 34rem) {
  main { padding: .9rem .8rem 2rem; } h1 { font-size: 1.4rem; }
  table.list { font-size: .88rem; } table.list th, table.list td { padding-right: .55rem; }
  table.list .student bdi { max-width: 8rem; }
  section.task .score { grid-column: 2; }
  pre.code > span { padding-left: 2.8em; } pre.code > span::before { margin-left: -2.8em; width: 2.2em; }
}
@media print {
  @page { margin: 16mm 14mm; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h1, h2, h3 { break-after: avoid; } tr, figure, .warning { break-inside: avoid; }
  .scroll, .nine-circles-report { overflow: visible; overflow-wrap: anywhere; }
  table.list { font-size: 8.5pt; } table.list .id, table.list td.n { white-space: normal; }
  table.list th, table.list td { padding-right: .5em; }
  table.list .student bdi { max-width: 11em; } .links { display: none; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  details > summary { list-style: none; } a { color: inherit; text-decoration: none; }
}
"""

STYLE = _COLOURS + _LAYOUT + _TABLES + _REPORTS + _CHARTS + _PHONE_AND_PAPER


def page(title: str, body: str, course: str = COURSE) -> str:
    """Return a whole HTML file: `title` is text, `body` is HTML that starts below the name of the course."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="robots" content="noindex">\n'
        f"<title>{escape(name(title))}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<p class="course">{escape(name(course))}</p>\n{body}\n</main>\n</body>\n</html>\n'
    )


def scroll(label: str, table: str) -> str:
    """Return a wide table in a box of its own that scrolls, by keyboard too, so that the page does not."""
    return f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">{table}</div>'


def facts(pairs: list[tuple[str, str]]) -> str:
    """Return (name, HTML) pairs as a list of facts."""
    return (
        '<dl class="facts">' + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs) + "</dl>"
    )
