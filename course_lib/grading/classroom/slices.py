"""Cutting out of a notebook exactly the statements that one function needs.

The slice is closed: it runs in an empty namespace, and nothing but the statements in it can influence what it
does. So nothing runs but what structural rules can read.

Which statements are needed. A *use* is a name at a moment. The entry is used at the end; what a function
reads is used at the end as well, for functions are called then; what a statement reads while it runs is used
where it stands; and if that is a function, which may be called at once, so is all that this function reads.
A use needs the statements that bind or change the name before its moment, back to the last one that binds it
anew, whatever it was. They keep their order. A definition that is still a handed-out stub counts only if
there is no other.

A function that Numba compiles keeps the constants of its first call. So what it reads, and what is a number
at the end of the answer's cell, is used at that moment: TILE = 16 in a later task is none of its business.

A call made for its effect, such as `fill(table)`, changes what the function is seen to change. Calls of
functions that the entry itself uses are taken for tries, unless they change an argument. What was imported
is changed by stores such as `np.dot = …` only, never by calls such as `np.random.seed(0)`.

Annotations are not evaluated, so what only they name is not needed; the few statements that do evaluate them
bring it all back.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from course_lib.grading.classroom.notebook_code import (
    LARGEST,
    Notebook,
    Statement,
    Trouble,
    counts,
    read_code,
)
from course_lib.grading.classroom.statements import CHANGING, Change
from course_lib.grading.classroom.submission import Cell
from course_lib.grading.program import is_stub
from course_lib.grading.vocabulary import NUMBER_TYPES

MOST_STEPS = 2_000_000  # of following names: a few thousand are usual
FUTURES = frozenset({"annotations", "division", "print_function", "generator_stop"})
HINTS_LATER = "from __future__ import annotations"
#: What looks into annotations: with one of these in the slice, they are evaluated.
LOOKS_AT_HINTS = re.compile(
    r"\b(ClassVar|InitVar|KW_ONLY|jitclass|register|get_type_hints|get_annotations|__annotations__)\b"
)
#: Modules whose star import is known. (Numba takes a second to import, if a notebook has such a line.)
STAR_MODULES = frozenset(
    {"math", "cmath", "itertools", "functools", "operator", "random", "time", "numpy", "numba"}
)


@dataclass(frozen=True)
class Slice:
    """The needed statements as `text`; `lines` gives for each line its number in its own cell, 0 for none.

    Text and problem are empty if the entry is defined nowhere. With a problem (one sentence) there is no
    text; `cell` is then the text of the learner's cell that defines the entry, if there is one.
    """

    text: str
    lines: tuple[int, ...]
    problem: str = ""
    cell: str = ""


def answer_slice(cells: Sequence[Cell], entry: str, stub: str = "") -> Slice:
    """Return the statements of the code cells that `entry` needs; never raises for what is in them.

    `stub` is the text of the handed-out definition: one that equals it counts as not begun.
    """
    try:
        notebook = read_code(tuple(cells))
        return _Cut(notebook, entry, stub).slice()
    except Trouble as trouble:
        return Slice("", (), str(trouble), _cell_with(cells, entry))
    except (RecursionError, MemoryError, ValueError, OverflowError, SystemError) as error:
        said = f"The code cells cannot be read ({type(error).__name__}): look at them by hand."
        return Slice("", (), said, _cell_with(cells, entry))


def _cell_with(cells: Sequence[Cell], entry: str) -> str:
    """Return the last code cell whose text defines the entry, cut off if it is huge; "" if none does."""
    found = [cell.text for cell in cells if counts(cell) and _defines(cell.text, entry)]
    return found[-1][:LARGEST] if found else ""


def _defines(text: str, entry: str) -> bool:
    name = re.escape(entry)
    return bool(re.search(rf"^\ufeff?[ \t]*(?:async +)?(?:def|class) +{name}\b|^{name} *=(?!=)", text, re.M))


# --- which statements are needed ----------------------------------------------------------------------------


class _Cut:
    """The search for what one entry needs."""

    def __init__(self, notebook: Notebook, entry: str, stub: str) -> None:
        self._notebook = notebook
        self._statements = notebook.statements
        self._entry = entry
        self._steps = 0
        self._end = len(notebook.statements)
        self._stub = _definition(stub, entry)
        self._own = self._functions_of_entry()
        self._changing = _Calls(notebook, self._own, self._step)
        self._star_names: dict[int, set[str]] = {}  # what the star import at a place is known to bring
        self._taken: dict[int, set[str]] = {}  # and what the answer takes of it
        self._makers, self._stars = self._all_makers()
        self._anew: dict[str, list[int]] = {}  # of each name's makers: those that bind it anew
        self._calling: dict[str, list[int]] = {}  # and those that hold functions
        self._kept: set[int] = set()
        self._read: set[str] = set()
        self._evaluated = False  # the annotations

    def slice(self) -> Slice:
        """Return the slice, or raise Trouble."""
        if not self._is_defined():
            self._raise_if_broken(self._entry)
            return Slice("", ())
        if self._only_stubs(self._entry):
            self._raise_if_broken(self._entry)
        self._follow()
        if any(LOOKS_AT_HINTS.search(self._statements[place].text) for place in self._kept):
            self._evaluated = True
            self._kept, self._read = set(), set()
            self._follow()
        self._raise_if_magic()
        text, lines = self._written()
        _raise_unless_it_compiles(text)
        return Slice(text, lines)

    def _step(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise Trouble("The statements of the notebook depend on each other in too many ways to be read.")

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
            for name in one.names.binds | self._changed(one, place):
                makers.setdefault(name, []).append(place)
            star = _star(one.node)
            for name in star or ():
                makers.setdefault(name, []).append(place)
            if star:
                self._star_names[place] = star
            elif star is not None:
                stars.append(place)
        return {name: self._without_stubs(name, places) for name, places in makers.items()}, stars

    def _changed(self, one: Statement, place: int) -> set[str]:
        """Return the names whose things the statement at this place changes when it runs."""
        found: set[str] = set()
        for change in one.effects.changes:
            if self._really(change, place):
                own = {change.name} if change.by == "call" else set()  # a function is not changed by a call
                found |= self._origins(change.name, one, place) - own
        for call in one.effects.calls:
            changes = self._changing.by_call(call.function)
            self._step(len(changes))
            found |= {change.name for change in changes if not self._only_uses(change, place)}
            if self._changing.arguments(call.function):
                given = {origin for name in call.args for origin in self._origins(name, one, place)}
                found |= {name for name in given if self._notebook.is_value(name, place)}
        return found

    def _really(self, change: Change, place: int) -> bool:
        """Whether this is a change: `np.sort(x)` and `f.inspect()` are none, `table.fill()` is one."""
        if self._only_uses(change, place):
            return False
        known = change.by in ("store", "item") or change.by in CHANGING
        return known or self._notebook.is_value(change.name, place)

    def _only_uses(self, change: Change, place: int) -> bool:
        """Whether something imported is used or set up: `np.seterr()`, `plt.rcParams["lines.color"] = 3`."""
        return change.by != "store" and self._notebook.is_import(change.name, place)

    def _origins(self, name: str, one: Statement, place: int) -> set[str]:
        """Return the names that share the thing of `name`."""
        found, todo = {name}, [name]
        while todo:
            here = todo.pop()
            for other in {*one.effects.aliases.get(here, ()), *self._notebook.aliases.get(here, ())}:
                self._step()
                if other not in found and self._notebook.is_value(other, place):
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
            return is_stub(one.text, name) or ast.dump(one.node) == self._stub
        return "NotImplementedError" in one.text and is_stub(one.text, name)

    def _only_stubs(self, name: str) -> bool:
        places = [place for place in self._makers[name] if name in self._statements[place].names.full]
        return bool(places) and all(self._is_stub(name, place) for place in places)

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
            makers = self._makers.get(name, [])
            first, stop = self._range(name, moment)
            start = covered.get((name, first), first)
            covered[(name, first)] = max(start, stop)
            uses = [use for n in range(start, stop) for use in self._keep(makers[n], name)]
            if moment < self._end:  # what is a function here may be called at once
                uses += [(lazy, moment) for lazy in self._read_by_calls(name, first, stop)]
            self._step(len(uses))
            new = {*uses} - seen
            seen |= new
            todo += new
            if not todo and self._unresolved():  # a star import of an unknown module may define anything
                todo += {use for place in self._stars for use in self._keep(place)} - seen

    def _range(self, name: str, moment: int) -> tuple[int, int]:
        """Return which makers a use needs: from the last that binds the name anew, up to the moment."""
        makers = self._makers.get(name, [])
        if name not in self._anew:
            self._anew[name] = [n for n, place in enumerate(makers) if self._binds_anew(place, name)]
            self._calling[name] = [n for n, place in enumerate(makers) if self._statements[place].names.lazy]
        stop = bisect_left(makers, moment)
        last = bisect_left(self._anew[name], stop) - 1
        return (self._anew[name][last] if last >= 0 else 0), stop

    def _binds_anew(self, place: int, name: str) -> bool:
        return name in self._statements[place].names.full or name in self._star_names.get(place, ())

    def _read_by_calls(self, name: str, first: int, stop: int) -> Iterator[str]:
        """Yield what functions read that these makers of the name define."""
        calling = self._calling[name]
        for n in calling[bisect_left(calling, first) : bisect_left(calling, stop)]:
            self._step()
            yield from self._statements[self._makers[name][n]].names.lazy

    def _keep(self, place: int, name: str = "") -> list[tuple[str, int]]:
        """Keep a statement for the sake of a name; return what it uses."""
        if name in self._star_names.get(place, ()):
            self._taken.setdefault(place, set()).add(name)
        if place in self._kept:
            return []
        self._kept.add(place)
        names = self._statements[place].names
        eager = names.eager | names.hints if self._evaluated else names.eager
        moment = self._moment_of_constants if _is_compiled(self._statements[place].node) else None
        return [
            *((name, place) for name in eager),
            *((name, self._moment(name, moment)) for name in names.lazy),
        ]

    @functools.cached_property
    def _moment_of_constants(self) -> int | None:
        """The place behind the cell that defines the entry for the last time; None if no statement does."""
        last = max(
            (n for n in self._makers.get(self._entry, ()) if self._entry in self._statements[n].names.full),
            default=None,
        )
        if last is None:
            return None
        cell = self._statements[last].cell
        return next((n for n in range(last, self._end) if self._statements[n].cell != cell), self._end)

    def _moment(self, name: str, moment: int | None) -> int:
        """Return when a function uses a name: at the end, or at that moment if it was a number then."""
        makers = self._makers.get(name, [])
        before = makers[: bisect_left(makers, moment)] if moment is not None else []
        is_number = bool(before) and all(_is_number(self._statements[n].node) for n in makers)
        return moment if is_number else self._end

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
                raise Trouble(said)

    def _raise_if_magic(self) -> None:
        for place in sorted(self._kept):
            one = self._statements[place]
            if "get_ipython" in one.names.eager | one.names.lazy:
                names = ", ".join(sorted(one.names.binds)[:3]) or "the statement"
                raise Trouble(
                    f"{names} in line {one.line} of its cell needs a magic (%) or a shell command (!): "
                    "grading runs plain Python only."
                )
        missing = self._unresolved()
        if missing and self._notebook.magics and not self._stars:
            raise Trouble(
                f"{missing[0]} is defined by no plain Python, perhaps by "
                f"%{min(self._notebook.magics)}: write its definition in a cell."
            )

    def _written(self) -> tuple[str, tuple[int, ...]]:
        futures = [n for n, one in enumerate(self._statements) if _future(one.node)]
        order = [*futures, *sorted(self._kept - set(futures))]
        told = any("annotations" in self._statements[n].text for n in futures)
        texts, lines = ([HINTS_LATER], [0]) if self._hints_are_missing() and not told else ([], [])
        for place in order:
            one = self._statements[place]
            text = self._narrowed(place)
            if place in futures and text in texts:
                continue
            own = range(one.line, one.line + text.count("\n") + 1)
            lines += [*([0] if texts else []), *own]
            texts.append(text)
        return "\n\n".join(texts) + "\n", tuple(lines)

    def _hints_are_missing(self) -> bool:
        """Whether annotations in the slice name more than Python's own types."""
        hints = set().union(*(self._statements[place].names.hints for place in self._kept))
        plain = {name for name in hints if hasattr(builtins, name) and name not in self._makers}
        return not self._evaluated and hints > plain

    def _narrowed(self, place: int) -> str:
        """Return the statement's text; of a star import only the names in use, which rules can read."""
        one, taken = self._statements[place], sorted(self._taken.get(place, ()))
        return f"from {one.node.module} import {', '.join(taken)}" if taken else one.text


class _Calls:
    """What calls of the notebook's functions change; functions of the entry are left out."""

    def __init__(self, notebook: Notebook, left_out: set[str], step: Callable[[int], None]) -> None:
        self._summaries = notebook.summaries
        self._left_out = left_out
        self._step = step
        self._changed: dict[str, set[Change]] = {}
        self._change_arguments = self._all_changing_arguments()

    def by_call(self, function: str) -> set[Change]:
        """Return the changes of global names that calling the function makes."""
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


def _definition(text: str, name: str) -> str:
    """Return the structure of a function's definition, without comments and layout; "" if there is none."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    return ast.dump(found[-1]) if found else ""


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


def _is_compiled(node: ast.stmt) -> bool:
    """Whether this is a function that Numba compiles: @cuda.jit, @njit(…)."""
    for one in getattr(node, "decorator_list", ()):
        function = one.func if isinstance(one, ast.Call) else one
        if (getattr(function, "attr", "") or getattr(function, "id", "")) in ("jit", "njit"):
            return True
    return False


def _is_number(node: ast.stmt) -> bool:
    """Whether a statement gives names numbers, or what is made of numbers: TILE = 16, N = 2 * TILE."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    plain = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.BinOp, ast.Tuple)
    plain += (ast.operator, ast.unaryop, ast.expr_context)
    return value is not None and all(isinstance(one, plain) or _makes_number(one) for one in ast.walk(value))


def _makes_number(node: ast.AST) -> bool:
    """Whether this is a call such as float32(0)."""
    function = node.func if isinstance(node, ast.Call) else None
    return (getattr(function, "attr", "") or getattr(function, "id", "")) in NUMBER_TYPES


def _raise_unless_it_compiles(text: str) -> None:
    """The statements compiled one by one; together they may still be too much, or contradict each other."""
    if len(text) > LARGEST:
        raise Trouble(f"The answer has more than {LARGEST:,} characters: that is too much to be read.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<answer>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise Trouble(f"The statements that the answer needs are no valid Python: {error.msg}.") from None
