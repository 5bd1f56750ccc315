"""The code cells of a notebook as statements, and what each of them binds. Nothing is run.

A cell is read as the notebook reads it: magics, shell commands and calls for help are passed over. What is no
Python is put aside with Python's own sentence. Whatever a cell holds, reading it takes time in proportion to
its length.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from course_lib.grading.program import bindings, bound_by, names_of, size
from course_lib.grading.sources import NoSource
from course_lib.grading.vocabulary import words

LARGEST_CELL = 100_000  # characters
MOST_NODES, MOST_IN_CELL = 150_000, 40_000  # of syntax: some 400 KB of code, and 100
MOST_TARGETS = 30  # of one assignment
DEEPEST = 150  # syntax nodes in each other; readers of the text walk it recursively
#: Methods that change the thing they belong to.
CHANGING = words(
    "append extend insert add update setdefault pop popitem clear remove discard reverse sort fill"
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: A line that defines a name, in a text that may be no Python.
DEFINED = re.compile(r"^[\ufeff\0 \t]*(?:async +)?(?:def|class)[\0 ]+(\w+)|^\0*(\w+) *=(?!=)", re.MULTILINE)
END_OF_LINE = re.compile(rb"[ \t\f]*(?:#|$)")
Place = tuple[int, int]  # of a statement: its cell, its number in the cell


@dataclass(frozen=True)
class Bound:
    """A name that a statement at the top of a cell binds.

    `how` is "def" (of a class, too), "import", "value" for what is assigned, "nested" for a definition within
    another statement, "other" for loops and all else. `node` is the definition, the import of this name
    alone, or the value; `text` may stand for itself.
    """

    name: str
    how: str
    node: ast.AST
    text: str
    line: int  # of the statement in its cell
    statement: ast.stmt

    @property
    def head(self) -> str:
        """The first line, for sentences."""
        return self.text.partition("\n")[0][:80]


@dataclass
class Book:
    """What all cells bind and change, by name and in order."""

    bound: dict[str, list[tuple[Place, Bound]]] = field(default_factory=dict)
    changed: dict[str, list[tuple[Place, str]]] = field(default_factory=dict)  # by which line: T.append(1)
    functions: set[str] = field(default_factory=set)  # names that a definition or an import binds
    stars: list[str] = field(default_factory=list)  # modules from which everything is imported
    broken: dict[str, str] = field(
        default_factory=dict
    )  # name -> what is wrong with the cell that defines it


@lru_cache(maxsize=1)  # the tasks of one notebook follow each other
def read_cells(cells: tuple[str, ...]) -> Book:
    """Return what the cells bind; NoSource if they are too much."""
    book, sizes = Book(), {}
    for number, text in enumerate(cells):
        try:
            statements, lines, sizes[text] = _statements(text)
            if sum(sizes.values()) > MOST_NODES:
                raise NoSource("The cells hold more code than can be read: take experiments out, begin anew.")
        except NoSource as problem:
            room = MOST_NODES - len(book.broken)
            book.broken |= {one[1] or one[2]: str(problem) for one in islice(DEFINED.finditer(text), room)}
            continue
        for place, node in enumerate(statements):
            _add(book, (number, place), node, lines)
    return book


def _add(book: Book, place: Place, node: ast.stmt, lines: list[bytes]) -> None:
    for one in _bindings(node, lines):
        if one.name in book.functions and one.text.startswith("from course_lib."):
            continue  # the last cell takes total() from the course, whatever a helper is called
        book.bound.setdefault(one.name, []).append((place, one))
        if one.how in ("def", "import"):
            book.functions.add(one.name)
    for name, line in _changes(node):
        said = lines[line - 1][:80].decode("utf-8", "replace").strip()
        book.changed.setdefault(name, []).append((place, said))
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        book.stars.append(node.module or ".")


@lru_cache(maxsize=256)  # a history has the same cells again and again
def _statements(text: str) -> tuple[list[ast.stmt], list[bytes], float]:
    """Return a cell's statements, its lines as plain Python, and its size; NoSource if it is none."""
    if len(text) > LARGEST_CELL:
        raise NoSource(f"Its cell has more than {LARGEST_CELL:,} characters: that is too much to read.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the ends of lines that the parser counts
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _tree(text)
            if tree is None:
                text = python(text)
                tree = ast.parse(text)
            nodes = size(tree, DEEPEST) if _is_written_soon(tree) else math.inf
            if nodes <= MOST_IN_CELL:
                compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        where = f"{type(error).__name__} in line {error.lineno or 1} of its cell"
        raise NoSource(f"{where}: {error.msg}.") from None
    except (RecursionError, MemoryError, ValueError, OverflowError, SystemError) as error:
        raise NoSource(f"Its cell cannot be read ({type(error).__name__}: {error}).") from None
    if nodes > MOST_IN_CELL:
        raise NoSource("Its cell holds more code than can be read, or is nested too deeply: take several.")
    return tree.body, text.encode("utf-8", "surrogatepass").split(b"\n"), nodes


def _is_written_soon(tree: ast.Module) -> bool:
    """Whether the compiler has little to write: what is behind `finally` it writes for each way out."""
    ways = 2 + sum(isinstance(one, ast.Return | ast.Break | ast.Continue) for one in ast.walk(tree))
    todo, nodes = [(tree, 1)], 0
    while todo and nodes <= MOST_NODES:
        node, times = todo.pop()
        nodes += times
        todo += [(one, times) for one in ast.iter_child_nodes(node)]
        todo += [(one, times * ways) for one in getattr(node, "finalbody", ())]
    return nodes <= MOST_NODES


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# --- what a statement binds and changes ---------------------------------------------------------------------


def _bindings(node: ast.stmt, lines: list[bytes]) -> Iterator[Bound]:
    """Yield what a statement at the top of a cell binds."""
    line, text = _first_line(node, lines), _text(node, lines)
    if isinstance(node, DEFINITIONS):
        yield Bound(node.name, "def", node, text, line, node)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        pairs = list(bindings(node))
        for name, value in pairs:
            one = value if len(pairs) <= MOST_TARGETS else None
            alone = f"{name} = {_text(one, lines)}" if one and len(pairs) > 1 else text
            yield _assigned(name, one, alone, line, node)
    else:
        imports = []  # what is imported counts more than what stands beside it: except ImportError: m = None
        for one in _run_at_once(node):
            if isinstance(one, ast.Import | ast.ImportFrom):
                imports += _imports(one)
            elif isinstance(one, DEFINITIONS):
                yield Bound(one.name, "nested", one, text, line, node)
            else:
                yield from (Bound(name, "other", one, text, line, node) for name in _stored(one))
        yield from imports


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Bound]:
    for part, (name, _) in zip(node.names, names_of(node), strict=True):
        if name != "*":
            alone = import_of(node, [part])
            yield Bound(name, "import", alone, ast.unparse(alone), node.lineno, node)


def import_of(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.Import | ast.ImportFrom:
    """Return an import as this one, of other names."""
    return (
        ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, names, node.level)
    )


def _assigned(name: str, value: ast.expr | None, text: str, line: int, node: ast.stmt) -> Bound:
    if isinstance(
        value, ast.Lambda
    ):  # a function with a name: written with `def`, it is read like all others
        text = f"def {name}({ast.unparse(value.args)}):\n    return {ast.unparse(value.body)}"
        return Bound(name, "def", ast.parse(text).body[0], text, line, node)
    return Bound(name, "value" if value else "other", value or node, text, line, node)


def _run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with a statement: not what is inside functions, classes and comprehensions."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, (*DEFINITIONS, *COMPREHENSIONS, ast.Lambda)):
            todo += reversed([*ast.iter_child_nodes(one)])


def _stored(node: ast.AST) -> set[str]:
    """Return the names that this node binds where it stands; a walrus in a comprehension binds outside."""
    inside = ast.walk(node) if isinstance(node, COMPREHENSIONS) else ()
    return bound_by(node) | {one.target.id for one in inside if isinstance(one, ast.NamedExpr)}


def _changes(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """Yield the name and the line wherever a statement changes a part of a thing: T[0] = 1, T.append(1)."""
    for node in () if isinstance(statement, DEFINITIONS) else _run_at_once(statement):
        is_part = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if (is_part or (isinstance(node, ast.Attribute) and node.attr in CHANGING)) and root(node):
            yield root(node), node.lineno


def root(node: ast.AST) -> str:
    """Return the name that attributes and indices hang on; "" if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- texts --------------------------------------------------------------------------------------------------


def _first_line(node: ast.AST, lines: list[bytes]) -> int:
    decorators = getattr(node, "decorator_list", [])
    first = decorators[0].lineno if decorators else node.lineno
    while decorators and not lines[first - 1].lstrip().startswith(b"@"):
        first -= 1  # what is decorated with may stand below its @, in brackets
    return first


def _text(node: ast.AST, lines: list[bytes]) -> str:
    """Return a node as written; a statement with the comment behind it, without its neighbours at a `;`.

    Lines are bytes, as the parser counts them.
    """
    first, last = _first_line(node, lines), node.end_lineno
    is_last = isinstance(node, ast.stmt) and END_OF_LINE.match(lines[last - 1], node.end_col_offset)
    start, end = node.col_offset if node.lineno == first else 0, None if is_last else node.end_col_offset
    if first == last:
        return lines[first - 1][start:end].decode("utf-8", "surrogatepass").rstrip()
    kept = b"\n".join([lines[first - 1][start:], *lines[first : last - 1], lines[last - 1][:end]])
    text = kept.decode("utf-8", "surrogatepass").rstrip()
    return f"({text})" if isinstance(node, ast.expr) else text


# --- magics -------------------------------------------------------------------------------------------------

CELL_MAGIC = re.compile(r"%%(\w+)(?:[ \t].*)?")
RUNS_ITS_CELL = ("time", "capture", "prun")  # as ordinary code; %%timeit defines nothing
RUNS_ITS_LINE = re.compile(r"([ \t]*)%time[ \t]+(?!-)(\S.*)")
MAGIC = re.compile(
    r"[ \t]*(?:%%?[A-Za-z_]|[!?])|[\w, \t]+=[ \t]*(?:!|%[A-Za-z_])|[ \t]*%{0,2}[\w.*]+\?\??[ \t]*$"
)
PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")


def python(cell: str) -> str:
    """Return a cell's text as plain Python with the same line numbers; what is no Python comes back as it is.

    Lines with magics, shell commands and calls for help become `pass`; of %time the rest of the line stays.
    Prompts and a common indentation are taken away, as the notebook does.
    """
    if _tree(cell) is not None:
        return cell
    lines = _dedented(_without_cell_magics(cell.split("\n")))
    quote, goes_on = "", False
    for number, line in enumerate(lines):
        if quote or not (goes_on or MAGIC.match(line)):
            quote = _open_quote(line, quote)
            continue
        runs = RUNS_ITS_LINE.fullmatch(line)
        instead = f"{_indent(line)}pass" if not goes_on else ""
        lines[number] = f"{runs[1]}{runs[2]}" if runs else instead
        goes_on = line.endswith("\\") and not runs
    return "\n".join(lines)


def _without_cell_magics(lines: list[str]) -> list[str]:
    """Blank the %% lines whose cell is ordinary code, and all of another cell."""
    for number, line in enumerate(lines):
        magic = CELL_MAGIC.fullmatch(line.rstrip())
        if line.strip() and not magic:
            break
        if magic and magic[1] not in RUNS_ITS_CELL:
            return [""] * len(lines)
        lines[number] = ""
    return lines


def _dedented(lines: list[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    if PROMPT.match(first):
        return [PROMPT.sub("", line, count=1) for line in lines]
    return [line.removeprefix(_indent(first)) for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _open_quote(line: str, quote: str) -> str:
    """Return which triple quotes are open behind a line, if these were open before it."""
    for found in re.findall(r"'''|\"\"\"|#", line):
        if found == "#" and not quote:
            break
        if found != "#":
            quote = "" if found == quote else quote or found
    return quote
