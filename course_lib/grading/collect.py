"""The text of an answer: what its function needs of a notebook's cells, and nothing else. Nothing is run.

`check()` and the grading of a class find an answer in this one way, so they judge the same text. From the
statements at the top of the cells it takes imports, constants and definitions, beginning with the function
that the task names: those whose names a taken piece reads. What else stands there (calls, loops, plots,
checks) is left out. A name that is needed and bound in another way is a problem, told in one sentence.

Of several bindings the last one counts for functions and imports. A constant is taken as it stands at the end
of the cell with the answer: there Numba freezes it, and a later task may want another TILE.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from course_lib.grading.cells import DEFINED, LARGEST_CELL, Book, Bound, Place, import_of, read_cells, root
from course_lib.grading.program import defaults, is_stub
from course_lib.grading.sources import NoSource

MOST_PIECES = 300
HINTS_LATER = "from __future__ import annotations"  # none is evaluated: what only they name is not needed
#: Modules whose star import is known.
STAR_MODULES = ("math", "numpy", "numba")
Found = tuple[Place, Bound]
PLACE = itemgetter(0)  # of what was found


@dataclass(frozen=True)
class Answer:
    """The needed statements as `text`; `lines` gives for each line its number in its own cell, 0 for none.

    Text and problem are empty if no cell defines the function. With a problem (one sentence) there is no
    text; `cell` is then the learner's cell that defines the function, if there is one. `constants` are names.
    """

    text: str = ""
    lines: tuple[int, ...] = ()
    problem: str = ""
    cell: str = ""
    constants: tuple[str, ...] = ()


def collect(cells: Sequence[str], entry: str) -> Answer:
    """Return the text of the function `entry` in these code cells; never raises for what is in them."""
    try:
        return _Search(read_cells(tuple(cells)), entry).answer()
    except NoSource as problem:
        said = str(problem)
    except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError, SystemError) as error:
        said = f"The code cells cannot be read ({type(error).__name__}): look at them by hand."
    defining = [text for text in cells if any(entry in one.groups() for one in DEFINED.finditer(text))]
    return Answer(problem=said, cell=defining[-1][:LARGEST_CELL] if defining else "")


class _Search:
    """Gathers what one entry needs; every name is bound by one piece."""

    def __init__(self, book: Book, entry: str) -> None:
        self._book = book
        self._entry = entry
        self._end: Place = (0, 0)  # of the cell with the answer
        self._chosen: dict[str, Bound] = {}

    def answer(self) -> Answer:
        """Return the answer, or raise NoSource."""
        found = self._entry_itself()
        if found is None or _is_open(found[1]):
            self._raise_if_broken(self._entry)
        if found is None:
            return Answer()
        self._end = (found[0][0] + 1, 0)
        text, lines = _written(self._gathered(found))
        constants = sorted(name for name, one in self._chosen.items() if one.how == "value")
        return Answer(text, lines, constants=tuple(constants))

    # --- the function that the task names ---

    def _entry_itself(self) -> Found | None:
        """Return the last definition that is begun, else the last one; a mere value is an experiment's."""
        options = self._book.bound.get(self._entry, [])
        defined = [
            one for one in options if one[1].how == "def" and not isinstance(one[1].node, ast.ClassDef)
        ]
        begun = [one for one in defined if not _is_open(one[1])]
        last = (begun or defined or [None])[-1]
        for place, one in options:
            if last is None or place > last[0]:
                self._raise_if_made_otherwise(one, bool(defined))
        return last

    def _raise_if_made_otherwise(self, one: Bound, is_defined: bool) -> None:
        """Say what is wrong with a function that is written without `def`; nothing of a mere value."""
        node, how = one.node, ""
        if one.how == "import":
            how = "is imported by"
        elif one.how == "nested" or isinstance(node, ast.ClassDef):
            how = "stands in"
        elif one.how == "value" and isinstance(node, ast.Call):
            given = any(isinstance(arg, ast.Name) and self._is_function(arg.id) for arg in node.args)
            how = "is made by" if given or not is_defined else ""
        elif one.how == "value" and self._is_function(root(node)):
            how = "is only another name in"
        if how:
            write = (
                f"write it with `def {one.name}(...)` at the left margin of a cell, its decorators above it."
            )
            raise NoSource(f"`{one.name}` {how} `{one.head}`: {write}")

    def _is_function(self, name: str) -> bool:
        return name in self._book.functions or (name not in self._book.bound and hasattr(builtins, name))

    # --- what it needs ---

    def _gathered(self, entry: Found) -> list[Bound]:
        """Return the entry behind all that it needs, each piece behind what it needs itself."""
        order: list[Bound] = []
        self._chosen[self._entry] = entry[1]
        stack = [(entry[1], self._needs(entry))]
        while stack:
            piece, needs = stack[-1]
            need = next(needs, None)
            if need is None:
                order.append(piece)
                stack.pop()
            elif found := self._new(*need):
                stack.append((found[1], self._needs(found)))
            if len(self._chosen) > MOST_PIECES:
                raise NoSource(
                    f"The answer needs more than {MOST_PIECES} statements: that is too much to read."
                )
        return order

    def _needs(self, found: Found) -> Iterator[tuple[str, Place]]:
        """Yield the names that a piece reads, and as of when it reads each."""
        place, piece = found
        if piece.how == "value":
            yield from ((name, place) for name in sorted(_read_in([piece.node])))
        elif piece.how == "def":
            yield from ((name, place) for name in sorted(_read_in(_around(piece.node))))
            yield from ((name, self._end) for name in sorted(_read_inside(piece.text)))

    def _new(self, name: str, moment: Place) -> Found | None:
        """Return what binds a name, if that is a piece which is not taken yet."""
        known = self._chosen.get(name)
        if known is not None and known.how != "value":
            return None
        found = self._found(name, moment)
        if known is not None and found and found[1] is not known:
            ways = f"`{known.head}` and `{found[1].head}`"
            raise NoSource(f"The answer needs `{name}` in two ways, {ways}: give each a name of its own.")
        if known is not None or found is None:
            return None
        self._chosen[name] = found[1]
        return found

    def _found(self, name: str, moment: Place) -> Found | None:
        """Return what binds a name as of a moment; None for Python's own and for what no cell binds."""
        options = self._book.bound.get(name, [])
        is_own = name in self._book.functions or not hasattr(builtins, name)  # sum = 0 takes nobody's sum()
        if not options or not is_own:
            return self._found_by_star(name)
        place, one = options[-1]
        before = options[max(bisect_left(options, moment, key=PLACE) - 1, 0)]
        if one.how == "def" and before[1].how == "import":
            return before  # product of itertools, and that of a later task
        if one.how == "def":
            defined = [each for each in options if each[1].how == "def"]
            begun = [
                each for each in defined if "NotImplementedError" not in each[1].text or not _is_open(each[1])
            ]
            return (begun or options)[-1]
        if one.how != "import":
            place, one = before
        if one.how not in ("def", "import"):
            self._raise_unless_constant(place, one)
        return place, one

    def _found_by_star(self, name: str) -> Found | None:
        for module in reversed(self._book.stars):
            if module in STAR_MODULES and name in _names_of(module):
                node = ast.ImportFrom(module, [ast.alias(name)], 0)
                return (0, 0), Bound(name, "import", node, ast.unparse(node), 0, node)
        if not hasattr(builtins, name):
            self._raise_if_broken(name)
            unknown = [module for module in self._book.stars if module not in STAR_MODULES]
            if unknown:
                raise NoSource(
                    f"`{name}` may come from `from {unknown[-1]} import *`: import it by its own name, as in "
                    f"`from {unknown[-1]} import {name}`."
                )
        return None

    # --- problems ---

    def _raise_unless_constant(self, place: Place, one: Bound) -> None:
        instead = f"write it as one constant, `{one.name} = …`, or work it out inside `{self._entry}`."
        if one.how != "value":
            raise NoSource(f"`{one.name}` is bound by `{one.head}`, which grading does not run: {instead}")
        if isinstance(one.node, ast.Name) and self._is_function(one.node.id):
            raise NoSource(f"`{one.name}` is only another name in `{one.head}`: use `{one.node.id}` itself.")
        options, changes = self._book.bound[one.name], self._book.changed.get(one.name, [])
        behind = bisect_right(options, place, key=PLACE)
        end = options[behind][0] if behind < len(options) else (sys.maxsize, 0)
        first = bisect_right(changes, place, key=PLACE)
        if first < len(changes) and changes[first][0] < end:
            raise NoSource(
                f"`{one.name}` is changed by `{changes[first][1]}`, which grading does not run: {instead}"
            )

    def _raise_if_broken(self, name: str) -> None:
        if name in self._book.broken:
            raise NoSource(self._book.broken[name])


def _is_open(one: Bound) -> bool:
    return is_stub(one.text, one.name)


# --- names that a piece reads -------------------------------------------------------------------------------


def _around(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that are worked out when a definition is met."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(one.value for one in node.keywords)]
    return [*node.decorator_list, *defaults(node)]


def _read_in(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names that expressions read; what their comprehensions and lambdas bind is their own."""
    parts = [one for node in nodes for one in ast.walk(node)]
    own = {one.arg for one in parts if isinstance(one, ast.arg)}
    own |= {one.id for one in parts if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    return {one.id for one in parts if isinstance(one, ast.Name)} - own


def _read_inside(text: str) -> set[str]:
    """Return the global names that the body of a definition reads; annotations are left aside."""
    found: set[str] = set()
    todo = symtable.symtable(f"{HINTS_LATER}\n{text}", "<answer>", "exec").get_children()
    while todo:
        table = todo.pop()
        names = (one for one in table.get_symbols() if one.is_global())
        found |= {one.get_name() for one in names if one.is_referenced() or one.is_declared_global()}
        todo += table.get_children()
    return found


def _names_of(module: str) -> set[str]:
    brought = __import__(module)
    return {*getattr(brought, "__all__", [name for name in vars(brought) if name[0] != "_"])}


# --- the text -----------------------------------------------------------------------------------------------


def _written(pieces: list[Bound]) -> tuple[str, tuple[int, ...]]:
    """Return the pieces as one text, imports first, and for each of its lines the number in its cell."""
    imports: dict[int, list[Bound]] = {}  # what is taken of each statement
    for one in pieces:
        if one.how == "import":
            imports.setdefault(id(one.statement), []).append(one)
    texts = []
    for some in imports.values():
        names = [name for one in some for name in one.node.names]
        texts.append((ast.unparse(import_of(some[0].node, names)), [some[0].line]))
    for one in (one for one in pieces if one.how != "import"):
        own = isinstance(one.node, ast.expr) or one.node is one.statement
        texts.append((one.text, [one.line + n * own for n in range(one.text.count("\n") + 1)]))
    if any(map(_has_hints, pieces)):
        texts.insert(0, (HINTS_LATER, [0]))
    lines = [number for _, own in texts for number in (0, *own)]
    return "\n\n".join(text for text, _ in texts) + "\n", tuple(lines[1:])


def _has_hints(piece: Bound) -> bool:
    if piece.how != "def":
        return isinstance(piece.statement, ast.AnnAssign)
    nodes = ast.walk(piece.node)
    return any(getattr(one, "annotation", None) or getattr(one, "returns", None) for one in nodes)
