"""Reading source text: the statements of an answer, whether it was begun at all, where things are.

Nothing is run. `language` and the rules judge what is found here; a text is parsed once for all of them.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Iterator

LONGEST = 200_000  # characters
MOST_NODES = 20_000
#: Fields of "…".format(…) that reach no attribute.
FIELDS = re.compile(r"([^{}]|\{\{|\}\}|\{\w*(:[^{}]*)?\})*")
DEEPEST = 120  # nodes in each other, so that who goes down need not fear for the stack


class Program:
    """The text of an answer: `reached` are the statements at its top, `entry` is the function that counts.

    A text that cannot be read has no statements, and a `problem`: the end of a sentence.
    """

    def __init__(self, source: str, entry: str) -> None:
        self.source, self.entry = source, entry
        self.tree, self.problem = _parsed(source)
        self.reached = self.tree.body
        self.functions = {one.name: one for one in self.reached if isinstance(one, ast.FunctionDef)}

    def function(self) -> ast.FunctionDef | None:
        """Return the entry's last definition, if it is a `def` at the top of the text."""
        return self.functions.get(self.entry)


@functools.lru_cache(maxsize=4)
def read_program(source: str, entry: str) -> Program:
    """Return the Program of a text; all rules in turn ask for the same one, which is read once."""
    return Program(source, entry)


@functools.lru_cache(maxsize=4)  # by itself: each of its functions may be the entry
def _parsed(source: str) -> tuple[ast.Module, str]:
    nothing = ast.Module([], [])
    if len(source) > LONGEST:
        return nothing, f"it has {len(source)} characters"
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return nothing, f"line {error.lineno} is no Python"
    except (RecursionError, MemoryError, ValueError):
        return nothing, "it is nested too deeply, or holds null bytes"
    if size(tree) > MOST_NODES:
        return nothing, "it is too long, or nested too deeply"
    return tree, ""


def size(tree: ast.AST, deepest: int = DEEPEST) -> float:
    """Return the number of syntax nodes, inf if they lie deeper than that in each other."""
    level, nodes = [tree], 0
    for _ in range(deepest):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        nodes += len(level)
    return math.inf if level else nodes


def bound_by(node: ast.AST) -> set[str]:
    """Return the names that this one node binds where it stands; those in its parts not."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {name for name, _ in names_of(node)}
    name = getattr(node, "name", None)
    named = isinstance(name, str) and not isinstance(node, ast.alias)
    return {name} if named else {node.rest} if isinstance(node, ast.MatchMapping) and node.rest else set()


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that an assignment binds with its value, None if only running tells: `a, *b = c`."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Starred):
        yield from _pairs(target.value, None)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        starred = any(isinstance(one, ast.Starred) for one in (*parts, *target.elts))
        one_by_one = len(parts) == len(target.elts) and not starred
        for place, one in enumerate(target.elts):
            yield from _pairs(one, parts[place] if one_by_one else None)


def defaults(function: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    """Return the default values: they are worked out around the function."""
    return [*function.args.defaults, *filter(None, function.args.kw_defaults)]


def is_written_out(node: ast.expr) -> bool:
    """Whether each number of a list stands there: so it is small, and Numba's compiled code has a copy of it.

    Of a large array it has the address, and ascontiguousarray, fill_diagonal or flat write to it.
    """
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(is_written_out, node.elts))
    inside = [*ast.walk(node)]
    texts = any(isinstance(getattr(one, "value", None), str | bytes) for one in inside)
    return not texts and not any(
        isinstance(one, ast.List | ast.Tuple | ast.Name | ast.Call) for one in inside
    )


def is_plain_format(node: ast.Attribute) -> bool:
    """Whether this is the format of a text with fields that reach no attribute: "{} of {}".format."""
    text = node.value.value if isinstance(node.value, ast.Constant) else None
    return node.attr == "format" and isinstance(text, str) and bool(FIELDS.fullmatch(text))


def home(node: ast.ImportFrom) -> str:
    """Return the module that an import takes names from."""
    return "." * node.level + (node.module or "")


def names_of(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield (name, dotted name of what it stands for) for what an import binds."""
    for one in node.names:
        if isinstance(node, ast.ImportFrom):
            yield one.asname or one.name, f"{home(node)}.{one.name}"
        else:
            root = one.name if one.asname else one.name.partition(".")[0]
            yield one.asname or root, root


def at(node: ast.AST, source: str) -> str:
    """Return the words that point at a node: the line of code it stands in."""
    lines = source.splitlines()
    line = lines[node.lineno - 1].strip() if 0 < getattr(node, "lineno", 0) <= len(lines) else ""
    return f" in `{line}`" if line else ""


# --- begun at all? ------------------------------------------------------------------------------------------


def is_stub(source: str, entry: str) -> bool:
    """Whether the entry is still what was handed out: it raises NotImplementedError, or does nothing."""
    function = read_program(source, entry).function()
    if function is None:
        return False
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and _is_text(one.value))]
    return _left_open(body) or all(_does_nothing(one) for one in body)


def returns_something(function: ast.FunctionDef) -> bool:
    """Whether the function has a `return` with a value."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def _left_open(body: list[ast.stmt]) -> bool:
    """Whether these statements always come to `raise NotImplementedError`, not only for some inputs."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return statement.exc is not None and "NotImplementedError" in ast.unparse(statement.exc)
        if isinstance(statement, ast.For | ast.With) and _left_open(statement.body):
            return True
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return False
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr | ast.Return):
        return isinstance(statement.value, ast.Constant) and statement.value.value is ...
    return isinstance(statement, ast.Pass)


def single_value(node: ast.AST) -> ast.expr | None:
    """Return the value to which an assignment gives a single name, None for all else."""
    single = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    return node.value if single else None


def made_by(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> list[ast.expr]:
    """Return what a comprehension makes each time: of a dict the key and the value."""
    return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]


def has_one_argument(node: ast.Call) -> bool:
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


@functools.cache
def functions_in_full(text: str) -> dict[str, str]:
    """Return the functions of a text by name, each in full."""
    return {one.name: ast.dump(one) for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
