"""Cutting out of a notebook exactly the statements that one function needs.

The slice is closed: it runs in an empty namespace, and nothing but the statements in it can influence what it
does. So what the structural rules read is all that runs.

Which statements are needed. A *use* is a name at a moment. The entry is used at the end; what a function reads
is used at the end as well, for functions are called then; what a statement reads while it runs is used where it
stands; and if that is a function, which may be called at once, so is all that this function reads. A use needs
the statements that bind or change the name before its moment, back to the last one that binds it anew whatever
it was. They keep their order. A definition that is still a handed-out stub counts only if there is no other.

A call made for its effect, such as `fill(table)`, changes what the function is seen to change. Calls of functions
that the entry itself uses are taken for tries, not for preparation, unless they change an argument.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from course_lib.grading.classroom.statements import (
    CHANGING,
    FUNCTIONS,
    Change,
    Effects,
    Names,
    Summary,
    effects_of,
    eager_nodes,
    names_of,
    summary_of,
)
from course_lib.grading.classroom.submission import MOST_WORK, Cell, plain
from course_lib.grading.program import is_stub

LARGEST = 1_000_000  # characters of code in a notebook
DEEPEST = 150  # syntax nodes in each other; readers of the slice walk it recursively
MOST_STEPS = 2_000_000  # of following names: a few thousand are usual
CHECKS = frozenset({"check", "hint", "total", "baseline"})
FUTURES = frozenset({"annotations", "division", "print_function", "generator_stop"})
#: Modules whose star import is known without importing anything new.
STAR_MODULES = frozenset({"math", "cmath", "itertools", "functools", "operator", "random", "time", "numpy"})
#: Magics that may define names.
DEFINING_MAGICS = re.compile(
    r"get_ipython\(\)\.run_(?:line|cell)_magic\(['\"](run|pylab|store|load|cython)['\"]"
)


@dataclass(frozen=True)
class Slice:
    """The needed statements as `text`; `lines` gives for each line its number in its own cell, 0 for none.

    Text and problem are empty if the entry is defined nowhere. With a problem, one sentence, there is no text;
    `cell` is then the learner's cell that it is about, as far as there is one.
    """

    text: str
    lines: tuple[int, ...]
    problem: str = ""
    cell: str = ""


def answer_slice(cells: Sequence[Cell], entry: str, stub: str = "") -> Slice:
    """Return the statements of the code cells that the function `entry` needs; never raises for their content.

    `stub` is the text of the handed-out definition: one that equals it counts as not begun.
    """
    try:
        notebook = _notebook(tuple(cells))
        return _Cut(notebook, entry, stub).slice()
    except _Trouble as trouble:
        return Slice("", (), str(trouble), _cell_with(cells, entry))
    except (RecursionError, MemoryError, ValueError, OverflowError, SystemError) as error:
        said = f"The code cells cannot be read ({type(error).__name__}): look at them by hand."
        return Slice("", (), said, _cell_with(cells, entry))


class _Trouble(Exception):
    """No slice can be had; the message is one sentence for learner and teacher."""


def _cell_with(cells: Sequence[Cell], entry: str) -> str:
    """Return the last code cell whose text defines the entry, shortened if it is huge; "" if there is none."""
    found = [cell.text for cell in cells if _counts(cell) and _defines(cell.text, entry)]
    return found[-1][:LARGEST] if found else ""


def _defines(text: str, entry: str) -> bool:
    name = re.escape(entry)
    return bool(re.search(rf"^[ \t]*(?:async +)?(?:def|class) +{name}\b|^{name} *=(?!=)", text, re.M))


def _counts(cell: Cell) -> bool:
    return cell.kind == "code" and not cell.is_grade


# --- a notebook as statements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    node: ast.stmt
    text: str
    line: int  # the number of its first line in its cell
    names: Names
    effects: Effects


@dataclass
class _Notebook:
    """All top-level statements of a notebook that can be read, and what its names are."""

    statements: list[_Statement] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)  # (text of the cell, what is wrong)
    kinds: dict[str, set[str]] = field(default_factory=dict)  # function, class, import, value
    summaries: dict[str, list[Summary]] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    magics: set[str] = field(default_factory=set)  # those that may define names

    def is_value(self, name: str) -> bool:
        """Whether the name stands for data, not for a function, class or module."""
        kinds = self.kinds.get(name)
        return not kinds or "value" in kinds


@functools.lru_cache(maxsize=1)  # the tasks of one submission follow each other
def _notebook(cells: tuple[Cell, ...]) -> _Notebook:
    notebook, work = _Notebook(), MOST_WORK
    if sum(len(cell.text) for cell in cells if _counts(cell)) > LARGEST:
        raise _Trouble(
            f"The notebook has more than {LARGEST:,} characters of code: that is too much to be read."
        )
    for cell in cells:
        if not _counts(cell) or not cell.text.strip():
            continue
        text, work = plain(cell.text, work)
        notebook.magics.update(DEFINING_MAGICS.findall(text))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(_statements(text))
        except SyntaxError as error:
            kind, line = type(error).__name__, error.lineno or 1
            notebook.broken.append((cell.text, f"{kind} in line {line} of its cell: {error.msg}."))
        except (_Trouble, RecursionError, MemoryError, ValueError, OverflowError, SystemError) as error:
            said = str(error) if isinstance(error, _Trouble) else f"Its cell cannot be read: {error}."
            notebook.broken.append((cell.text, said))
        else:
            if not _only_checks(found):
                notebook.statements += found
    _describe(notebook)
    return notebook


def _statements(text: str) -> Iterator[_Statement]:
    tree = ast.parse(text)
    if _deeper_than(tree, DEEPEST):
        raise _Trouble("Its cell is nested too deeply to be read: write it in several steps.")
    lines = text.split("\n")
    for node in tree.body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        yield _Statement(
            node, _text_of(node, first, lines), first, names_of(node), effects_of(eager_nodes(node))
        )


def _deeper_than(tree: ast.AST, depth: int) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _text_of(node: ast.stmt, first: int, lines: list[str]) -> str:
    """Return the statement as it was written, with the comment at its end; without its neighbours after `;`."""
    last = node.end_lineno or first
    kept = lines[first - 1 : last]
    rest = _part(kept[-1], node.end_col_offset, None)
    if rest.strip() and not rest.lstrip().startswith("#"):
        kept[-1] = _part(kept[-1], 0, node.end_col_offset)
    if node.lineno == first and node.col_offset:  # behind a `;`
        kept[0] = _part(kept[0], node.col_offset, None)
    return "\n".join(kept).rstrip()


def _part(line: str, start: int | None, end: int | None) -> str:
    """Return a part of a line, given in bytes of UTF-8 as the parser counts."""
    return line.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")


def _only_checks(statements: list[_Statement]) -> bool:
    """Whether a cell does nothing but ask for checks, hints and points."""
    asked = False
    for one in statements:
        node = one.node
        value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in CHECKS:
            asked = True
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course_lib."):
            continue
        elif not isinstance(node, ast.Expr) or any(isinstance(part, ast.Call) for part in ast.walk(node)):
            return False
    return asked


def _describe(notebook: _Notebook) -> None:
    """Note what kind of thing each name is, what functions do, and which names share a thing."""
    for one in notebook.statements:
        bound = set(one.names.binds)
        for node in eager_nodes(one.node):
            name, kind = "", ""
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name, kind = node.name, "function"
            elif isinstance(node, ast.ClassDef):
                name, kind = node.name, "class"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, kind = node.targets[0].id, "function" if isinstance(node.value, ast.Lambda) else ""
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    imported = alias.asname or alias.name.split(".")[0]
                    notebook.kinds.setdefault(imported, set()).add("import")
                    bound.discard(imported)
            if kind and name in one.names.binds:
                notebook.kinds.setdefault(name, set()).add(kind)
                bound.discard(name)
                if kind == "function":
                    function = node if isinstance(node, FUNCTIONS) else node.value
                    notebook.summaries.setdefault(name, []).append(summary_of(function, one.names))
        for name in bound:
            notebook.kinds.setdefault(name, set()).add("value")
        for name, origins in one.effects.aliases.items():
            if name in one.names.binds:
                notebook.aliases.setdefault(name, set()).update(origins)


# --- which statements are needed ----------------------------------------------------------------------------


class _Cut:
    """The search for what one entry needs."""

    def __init__(self, notebook: _Notebook, entry: str, stub: str) -> None:
        self._notebook = notebook
        self._statements = notebook.statements
        self._entry = entry
        self._steps = 0
        self._end = len(notebook.statements)
        self._stub = _dump(stub)
        self._own = self._functions_of_entry()
        self._changing = _Calls(notebook, self._own, self._step)
        self._makers, self._stars = self._all_makers()
        self._anew: dict[str, list[int]] = {}
        self._kept: set[int] = set()
        self._read: set[str] = set()

    def slice(self) -> Slice:
        """Return the slice, or raise _Trouble."""
        if not self._is_defined():
            self._raise_if_broken(self._entry)
            return Slice("", ())
        if self._only_stubs(self._entry):
            self._raise_if_broken(self._entry)
        self._follow()
        self._raise_if_magic()
        text, lines = self._written()
        _raise_unless_it_compiles(text)
        return Slice(text, lines)

    def _step(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise _Trouble("The statements of the notebook depend on each other in too many ways to be read.")

    def _functions_of_entry(self) -> set[str]:
        """Return the functions that run when the entry is called."""
        reads: dict[str, set[str]] = {}
        for one in self._statements:
            for name in one.names.binds:
                reads.setdefault(name, set()).update(one.names.lazy)
                self._step(len(one.names.lazy))
        found, todo = {self._entry}, [self._entry]
        while todo:
            for name in reads.get(todo.pop(), ()):
                self._step()
                if name not in found and name in self._notebook.summaries:
                    found.add(name)
                    todo.append(name)
        return found

    # makers: the statements that bind or change a name

    def _all_makers(self) -> tuple[dict[str, list[int]], list[int]]:
        makers: dict[str, list[int]] = {}
        stars = []
        for place, one in enumerate(self._statements):
            for name in one.names.binds | self._changed(one):
                makers.setdefault(name, []).append(place)
            star = _star(one.node)
            for name in star or ():
                makers.setdefault(name, []).append(place)
            if star is not None and not star:
                stars.append(place)
        return {name: self._without_stubs(name, places) for name, places in makers.items()}, stars

    def _changed(self, one: _Statement) -> set[str]:
        """Return the names whose things the statement changes when it runs."""
        found: set[str] = set()
        for change in one.effects.changes:
            if self._really(change):
                found |= self._origins(change.name, one)
        for call in one.effects.calls:
            names = self._changing.by_call(call.function)
            self._step(len(names))
            found |= names
            if self._changing.arguments(call.function):
                given = {origin for name in call.args for origin in self._origins(name, one)}
                found |= {name for name in given if self._notebook.is_value(name)}
        return found

    def _really(self, change: Change) -> bool:
        """Whether this is a change: `np.sort(x)` and `f.inspect()` are none, `table.fill()` is one."""
        if change.by == "store":
            return True
        if change.by in CHANGING:
            return self._notebook.kinds.get(change.name) != {"import"}
        return self._notebook.is_value(change.name)

    def _origins(self, name: str, one: _Statement) -> set[str]:
        """Return the names that share the thing of `name`."""
        found, todo = {name}, [name]
        while todo:
            here = todo.pop()
            for other in {*one.effects.aliases.get(here, ()), *self._notebook.aliases.get(here, ())}:
                self._step()
                if other not in found and self._notebook.is_value(other):
                    found.add(other)
                    todo.append(other)
        return found

    def _without_stubs(self, name: str, places: list[int]) -> list[int]:
        """Leave stubs out if there is a real definition."""
        stubs = {place for place in places if self._is_stub(name, place)} if len(places) > 1 else set()
        real = any(place not in stubs and name in self._statements[place].names.full for place in places)
        return [place for place in places if place not in stubs] if real else places

    def _is_stub(self, name: str, place: int) -> bool:
        one = self._statements[place]
        if not isinstance(one.node, ast.FunctionDef) or one.node.name != name:
            return False
        if name == self._entry:
            return is_stub(one.text, name) or (bool(self._stub) and _dump(one.text) == self._stub)
        return "NotImplementedError" in one.text and is_stub(one.text, name)

    def _only_stubs(self, name: str) -> bool:
        places = [place for place in self._makers[name] if name in self._statements[place].names.full]
        return all(self._is_stub(name, place) for place in places)

    def _is_defined(self) -> bool:
        """Whether a statement binds the entry by name: a star import does not count."""
        return any(self._entry in self._statements[n].names.binds for n in self._makers.get(self._entry, ()))

    # following uses

    def _follow(self) -> None:
        """Keep all statements that the entry at the end needs."""
        todo = [(self._entry, self._end)]
        seen = set(todo)
        covered: dict[tuple[str, int], int] = {}
        while todo:
            name, moment = todo.pop()
            self._read.add(name)
            uses = []
            first, places = self._needed(name, moment)
            start = covered.get((name, first), first)
            for place in places[max(start, first) :]:
                uses += self._keep(place)
            covered[(name, first)] = max(start, len(places))
            if moment < self._end:  # what is a function here may be called at once
                for place in places[first:]:
                    self._step()
                    uses += [(lazy, moment) for lazy in self._statements[place].names.lazy]
            for use in uses:
                self._step()
                if use not in seen:
                    seen.add(use)
                    todo.append(use)
            if not todo:
                todo = self._star_uses(seen)

    def _needed(self, name: str, moment: int) -> tuple[int, list[int]]:
        """Return the makers of a name before the moment, and the index of the first that matters."""
        makers = self._makers.get(name, [])
        if name not in self._anew:
            full = (n for n, place in enumerate(makers) if name in self._statements[place].names.full)
            self._anew[name] = list(full)
        stop = bisect_left(makers, moment)
        anew = self._anew[name]
        last = bisect_left(anew, stop) - 1
        self._step(stop - (anew[last] if last >= 0 else 0))
        return (anew[last] if last >= 0 else 0), makers[:stop]

    def _keep(self, place: int) -> list[tuple[str, int]]:
        """Keep a statement; return what it uses."""
        if place in self._kept:
            return []
        self._kept.add(place)
        names = self._statements[place].names
        return [*((name, place) for name in names.eager), *((name, self._end) for name in names.lazy)]

    def _star_uses(self, seen: set[tuple[str, int]]) -> list[tuple[str, int]]:
        """Keep the star imports of unknown modules if a name has no other origin."""
        uses = []
        if self._unresolved():
            for place in self._stars:
                uses += self._keep(place)
        return [use for use in uses if use not in seen]

    def _unresolved(self) -> list[str]:
        known = {"__name__", "__file__", "get_ipython", "__annotations__"}
        return sorted(
            name
            for name in self._read
            if name not in self._makers and name not in known and not hasattr(builtins, name)
        )

    # results

    def _raise_if_broken(self, entry: str) -> None:
        for text, said in reversed(self._notebook.broken):
            if _defines(text, entry):
                raise _Trouble(said)

    def _raise_if_magic(self) -> None:
        for place in sorted(self._kept):
            one = self._statements[place]
            if "get_ipython" in one.names.eager | one.names.lazy:
                names = ", ".join(sorted(one.names.binds)[:3]) or "the statement"
                raise _Trouble(
                    f"{names} in line {one.line} of its cell needs a magic (%) or a shell command (!): "
                    "grading runs plain Python only."
                )
        missing = self._unresolved()
        if missing and self._notebook.magics and not self._stars:
            raise _Trouble(
                f"{missing[0]} is defined by no plain Python, perhaps by "
                f"%{min(self._notebook.magics)}: write its definition in a cell."
            )

    def _written(self) -> tuple[str, tuple[int, ...]]:
        futures = [n for n, one in enumerate(self._statements) if _future(one.node)]
        order = [*futures, *sorted(self._kept - set(futures))]
        texts, lines = [], []
        for place in order:
            one = self._statements[place]
            if isinstance(one.node, ast.ImportFrom) and one.node.module == "__future__":
                if place not in futures or one.text in texts:
                    continue
            own = range(one.line, one.line + one.text.count("\n") + 1)
            lines += [*([0] if texts else []), *own]
            texts.append(one.text)
        return "\n\n".join(texts) + "\n", tuple(lines)


class _Calls:
    """What calls of the notebook's functions change; functions of the entry are left out."""

    def __init__(self, notebook: _Notebook, left_out: set[str], step) -> None:
        self._summaries = notebook.summaries
        self._left_out = left_out
        self._step = step
        self._changed: dict[str, set[str]] = {}
        self._change_arguments = self._all_changing_arguments()

    def by_call(self, function: str) -> set[str]:
        """Return the global names that calling the function changes."""
        if function not in self._summaries or function in self._left_out:
            return set()
        if function not in self._changed:
            found, seen, todo = set(), {function}, [function]
            while todo:
                for one in self._summaries[todo.pop()]:
                    self._step(1 + len(one.changes) + len(one.calls))
                    found |= one.changes
                    more = (one.calls & self._summaries.keys()) - seen - self._left_out
                    seen |= more
                    todo += more
            self._changed[function] = found
        return self._changed[function]

    def arguments(self, function: str) -> bool:
        """Whether calling the function changes one of its arguments."""
        return function in self._change_arguments

    def _all_changing_arguments(self) -> set[str]:
        givers: dict[str, set[str]] = {}
        for name, summaries in self._summaries.items():
            for one in summaries:
                for other in one.passes_on:
                    givers.setdefault(other, set()).add(name)
        todo = [name for name, some in self._summaries.items() if any(one.changes_arguments for one in some)]
        found = set(todo)
        while todo:
            for name in givers.get(todo.pop(), ()):
                if name not in found:
                    found.add(name)
                    todo.append(name)
        return found


def _dump(text: str) -> str:
    """Return the structure of a text, without comments and layout; "" for what is empty or cannot be read."""
    try:
        return ast.dump(ast.parse(text)) if text.strip() else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _star(node: ast.stmt) -> set[str] | None:
    """Return the names of a star import, empty if they are unknown; None for every other statement."""
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return None
    if node.level or node.module not in STAR_MODULES:
        return set()
    module = __import__(node.module)
    return set(getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"]))


def _future(node: ast.stmt) -> bool:
    """Whether this is a `from __future__` import that all Python versions here know."""
    known = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return known and all(one.name in FUTURES for one in node.names)


def _raise_unless_it_compiles(text: str) -> None:
    """The statements compiled one by one; together they may still be too much, or contradict each other."""
    if len(text) > LARGEST:
        raise _Trouble(f"The answer has more than {LARGEST:,} characters: that is too much to be read.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<answer>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _Trouble(f"The statements that the answer needs are no valid Python: {error.msg}.") from None
