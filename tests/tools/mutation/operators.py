"""Operators that make one small fault in one place: each looks at one node and yields wrong text for it.

An operator takes a node and the `Scope` of the function around it and yields source text that may stand in
the node's place: an expression for an expression, statements for a statement. Faults of a result as a whole
and of the inputs are in `whole`. CUDA kernels have some of their own. What the answers' language refuses by
itself (results kept between calls, another compiler) is no fault here: it says nothing of a task's inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from course_lib.grading.vocabulary import words

Texts = Iterator[str]

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
#: sign -> signs that are written for it by mistake
MISTAKEN = {
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("+", "/"),
    "/": ("*", "//"),
    "//": ("/",),
    "%": ("//",),
    "**": ("*",),
}
COMPARISONS = {
    ast.Lt: ("<=", ">", ">=", "=="),
    ast.LtE: ("<", ">", ">="),
    ast.Gt: (">=", "<", "<="),
    ast.GtE: (">", "<", "<="),
    ast.Eq: ("!=", "<=", ">="),
    ast.NotEq: ("==",),
}
#: function -> functions that are taken for it by mistake
FUNCTIONS = {
    "zeros": ("empty", "ones"),
    "zeros_like": ("empty_like", "ones_like"),
    "log": ("log2", "log10", "log1p"),
    "exp": ("exp2", "expm1"),
    "max": ("min", "sum"),
    "min": ("max", "sum"),
    "sum": ("max", "len"),
}
SYMMETRIC = words("max min sum")  # their arguments may come in any order


@dataclass(frozen=True)
class Scope:
    """What the operators know of a function: its node, its names by what they are for, its modules."""

    function: ast.FunctionDef
    modules: frozenset[str] = frozenset()

    def names(self) -> tuple[list[str], list[str], list[str]]:
        """Return the parameters, the names that loops set, and all other local names."""
        parameters = [one.arg for one in self.function.args.args]
        nodes = list(ast.walk(self.function))
        targets = (node.target for node in nodes if isinstance(node, ast.For | ast.comprehension))
        loops = _names(one for target in targets for one in ast.walk(target))
        stored = _names(node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store))
        return parameters, loops, [name for name in stored if name not in (*loops, *parameters)]

    def result(self) -> str | None:
        """Return the text of what the function returns at its end, if that is a name."""
        last = self.function.body[-1]
        named = isinstance(last, ast.Return) and isinstance(last.value, ast.Name)
        return last.value.id if named else None


def text(node: ast.AST) -> str:
    """Return an expression as text that may stand anywhere in a larger one."""
    plain = ast.unparse(node)
    return plain if isinstance(node, ast.Name | ast.Constant | ast.Subscript | ast.Call) else f"({plain})"


# --- loops --------------------------------------------------------------------------------------------------


def bounds(node: ast.AST, scope: Scope) -> Texts:
    """A range that begins or ends one off."""
    for start, stop, step in _range(node):
        yield f"range({start} + 1, {stop}{step})"
        yield f"range({start} - 1, {stop}{step})"
        yield f"range({start}, {stop} - 1{step})"
        yield f"range({start}, {stop} + 1{step})"


def step(node: ast.AST, scope: Scope) -> Texts:
    """A range that leaves numbers out or takes some twice."""
    for start, stop, step in _range(node):
        yield f"range({start}, {stop}{step} + 1)" if step else f"range({start}, {stop}, 2)"
        if step:
            yield f"range({start}, {stop})"


def edge_tile(node: ast.AST, scope: Scope) -> Texts:
    """The last tile is missing: a size is rounded down to whole tiles."""
    for start, stop, step in _range(node):
        for tile in (2, 4):
            yield f"range({start}, {stop} // {tile} * {tile}{step})"
    for items in _items(node, scope):
        for tile in (2, 4):
            yield f"{items}[:len({items}) // {tile} * {tile}]"


def items(node: ast.AST, scope: Scope) -> Texts:
    """The first or the last thing of a loop is missing, or in a list they come the other way round."""
    made = (one for one in ast.walk(scope.function) if isinstance(one, ast.ListComp))
    in_list = any(loop.iter is node for one in made for loop in one.generators)
    for things in _items(node, scope):
        yield from (f"{things}{part}" for part in ("[1:]", "[:-1]", "[::-1]")[: 3 if in_list else 2])


def loop_twice(node: ast.AST, scope: Scope) -> Texts:
    """A loop that runs twice."""
    if isinstance(node, ast.For):
        yield f"{ast.unparse(node)}\n{ast.unparse(node)}"


def early_end(node: ast.AST, scope: Scope) -> Texts:
    """A loop that returns, or ends, after its first pass."""
    if isinstance(node, ast.For):
        name = scope.result()
        for end in ("break", *([f"return {name}"] if name else [])):
            yield f"{ast.unparse(node)}\n    {end}"


# --- numbers, words and names -------------------------------------------------------------------------------


def constant(node: ast.AST, scope: Scope) -> Texts:
    """A number one off or with the other sign, a truth turned round, a word in capitals or empty."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, int | float):
        yield f"({value + 1})"
        yield f"({value - 1})"
        if value:
            yield f"({-value})"
    elif isinstance(value, str):
        yield repr(value.upper())
        yield "''"


def word(node: ast.AST, scope: Scope) -> Texts:
    """One word of the function in place of another."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        every = (one.value for one in ast.walk(scope.function) if isinstance(one, ast.Constant))
        texts = dict.fromkeys(one for one in every if isinstance(one, str))
        yield from (repr(one) for one in texts if one != node.value)


def name(node: ast.AST, scope: Scope) -> Texts:
    """One use of a name that should be another of its kind: A for B, i for j, M for N."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for group in scope.names():
            if node.id in group:
                yield from (one for one in group if one not in (node.id, "_"))


def unpacking(node: ast.AST, scope: Scope) -> Texts:
    """Two names of one assignment or loop exchanged: rows taken for columns."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if isinstance(node, ast.Assign | ast.For) and isinstance(target, ast.Tuple):
        for place in range(len(target.elts) - 1):
            swapped = ast.Tuple(_exchanged(target.elts, place), ast.Store())
            yield _with(
                node, **({"targets": [swapped]} if isinstance(node, ast.Assign) else {"target": swapped})
            )


# --- arithmetic, comparisons, calls -------------------------------------------------------------------------


def operator(node: ast.AST, scope: Scope) -> Texts:
    """A wrong operator: + for -, / for *."""
    for left, sign, right in _operation(node):
        yield from (f"{left} {other} {right}" for other in MISTAKEN[sign])


def operands(node: ast.AST, scope: Scope) -> Texts:
    """Operands or arguments the wrong way round, where the order counts."""
    for left, sign, right in _operation(node):
        if sign in ("-", "/", "//", "%", "**"):
            yield f"{right} {sign} {left}"
    if isinstance(node, ast.Call) and _last(node.func) not in SYMMETRIC:
        for place in range(len(node.args) - 1):
            yield _with(node, args=_exchanged(node.args, place))


def operand_missing(node: ast.AST, scope: Scope) -> Texts:
    """Only one of two operands, or an argument forgotten."""
    for left, _, right in _operation(node):
        yield left
        yield right
    if isinstance(node, ast.Call):
        for place in range(len(node.args)):
            yield _with(node, args=[*node.args[:place], *node.args[place + 1 :]])


def comparison(node: ast.AST, scope: Scope) -> Texts:
    """A wrong comparison: <= for <."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = text(node.left), text(node.comparators[0])
        yield from (f"{left} {sign} {right}" for sign in COMPARISONS.get(type(node.ops[0]), ()))


def condition(node: ast.AST, scope: Scope) -> Texts:
    """A branch that is always or never taken, or taken in the opposite case; a recursion without its end."""
    if isinstance(node, ast.If | ast.IfExp):
        for wrong in ("True", "False", f"not {text(node.test)}"):
            yield _with(node, test=ast.parse(wrong, mode="eval").body)


def function(node: ast.AST, scope: Scope) -> Texts:
    """A related function: empty for zeros, log10 for log."""
    if isinstance(node, ast.Attribute | ast.Name) and _last(node) in FUNCTIONS:
        root = f"{ast.unparse(node.value)}." if isinstance(node, ast.Attribute) else ""
        yield from (f"{root}{other}" for other in FUNCTIONS[_last(node)])


# --- indices and matrices -----------------------------------------------------------------------------------


def index(node: ast.AST, scope: Scope) -> Texts:
    """Row and column exchanged, an index or the end of a slice one off."""
    if not isinstance(node, ast.Subscript):
        return
    base, at = ast.unparse(node.value), node.slice
    parts = at.elts if isinstance(at, ast.Tuple) else [at]
    for place in range(len(parts) - 1):
        yield f"{base}[{', '.join(map(ast.unparse, _exchanged(parts, place)))}]"
    if isinstance(node.value, ast.Subscript) and not isinstance(at, ast.Slice):
        yield f"{ast.unparse(node.value.value)}[{ast.unparse(at)}][{ast.unparse(node.value.slice)}]"
    for place, part in enumerate(parts):
        for moved in _moved(part):
            texts = list(map(ast.unparse, parts))
            texts[place] = moved
            yield f"{base}[{', '.join(texts)}]"


def dtype(node: ast.AST, scope: Scope) -> Texts:
    """A fixed dtype in place of that of the input."""
    if isinstance(node, ast.Attribute) and node.attr == "dtype" and "np" in scope.modules:
        yield from (f"np.{name}" for name in ("float32", "float64", "float16"))


def one_list(node: ast.AST, scope: Scope) -> Texts:
    """One list several times in place of several lists."""
    if not isinstance(node, ast.ListComp) or len(node.generators) > 1:
        return
    (loop,) = node.generators
    used = {one.id for one in ast.walk(node.elt) if isinstance(one, ast.Name)}
    if isinstance(loop.target, ast.Name) and loop.target.id not in used:
        yield f"[{ast.unparse(node.elt)}] * len({ast.unparse(loop.iter)})"


# --- statements ---------------------------------------------------------------------------------------------


def accumulate(node: ast.AST, scope: Scope) -> Texts:
    """A sum that is replaced, taken away, multiplied or counted twice."""
    if isinstance(node, ast.AugAssign):
        target, value = ast.unparse(node.target), ast.unparse(node.value)
        yield from (f"{target} {sign} {value}" for sign in ("=", "-=", "+=", "*="))
        yield f"{ast.unparse(node)}\n{ast.unparse(node)}"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Subscript):
        yield f"{ast.unparse(node.targets[0])} += {ast.unparse(node.value)}"


def precision(node: ast.AST, scope: Scope) -> Texts:
    """A sum that is kept, or fed, with fewer digits: float32, float16, rounded, or without its sign."""
    if not isinstance(node, ast.AugAssign) or isinstance(node.value, ast.List):
        return
    target, value = ast.unparse(node.target), ast.unparse(node.value)
    sign = SIGNS[type(node.op)]
    for short in (*_shorter(scope), "abs({})"):
        yield f"{target} {sign}= {short.format(value)}"
        yield f"{target} = {short.format(f'{target} {sign} ({value})')}"
    yield f"{target} {sign}= int({value})"


def skip_zeros(node: ast.AST, scope: Scope) -> Texts:
    """A product left out where a factor is 0, which loses 0 * inf, or where it is not finite."""
    if isinstance(node, ast.AugAssign):
        for factor in _factors(node.value):
            yield f"if {factor} != 0:\n    {ast.unparse(node)}"
            yield f"if {factor} - {factor} == 0:\n    {ast.unparse(node)}"


def deleted(node: ast.AST, scope: Scope) -> Texts:
    """A statement that is not there."""
    if isinstance(node, ast.stmt) and node is not scope.function and not isinstance(node, ast.Pass):
        yield ""


Operators = dict[str, Callable[[ast.AST, Scope], Texts]]


def _by_name(*operators: Callable[[ast.AST, Scope], Texts]) -> Operators:
    """Return the operators by what their faults are called."""
    return {one.__name__.replace("_", " "): one for one in operators}


OPERATORS = _by_name(
    *(bounds, step, edge_tile, items, loop_twice, early_end),
    *(constant, word, name, unpacking),
    *(operator, operands, operand_missing, comparison, condition, function),
    *(index, dtype, one_list),
    *(accumulate, precision, skip_zeros, deleted),
)


# --- CUDA kernels -------------------------------------------------------------------------------------------

#: What a kernel cannot even say: lists, texts, dtypes of NumPy.
NOT_IN_KERNELS = words("items word dtype precision") | {"one list"}
OTHER_AXES = {"x": ("y",), "y": ("x", "z"), "z": ("y",)}
OTHER_INDICES = {
    "threadIdx": ("blockIdx",),
    "blockIdx": ("threadIdx",),
    "blockDim": ("gridDim",),
    "gridDim": ("blockDim",),
}


def barrier(node: ast.AST, scope: Scope) -> Texts:
    """A barrier for the warp alone, or one that only some threads come to."""
    if isinstance(node, ast.Expr) and _path(node.value) == "cuda.syncthreads":
        yield "cuda.syncwarp()"
        yield "if cuda.threadIdx.x > 0:\n    cuda.syncthreads()"


def axis(node: ast.AST, scope: Scope) -> Texts:
    """threadIdx.y for threadIdx.x, and the like."""
    if isinstance(node, ast.Attribute) and _path(node.value).removeprefix("cuda.") in OTHER_INDICES:
        yield from (f"{ast.unparse(node.value)}.{other}" for other in OTHER_AXES.get(node.attr, ()))


def coordinate(node: ast.AST, scope: Scope) -> Texts:
    """The block's index for the thread's, the size of the grid for that of the block."""
    if isinstance(node, ast.Attribute) and node.attr in OTHER_INDICES and _path(node).startswith("cuda."):
        yield from (f"cuda.{other}" for other in OTHER_INDICES[node.attr])


def bound(node: ast.AST, scope: Scope) -> Texts:
    """A test of a bound that is one off, or one of several tests forgotten."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE):
        left, right = text(node.left), text(node.comparators[0])
        sign = "<" if isinstance(node.ops[0], ast.Lt) else "<="
        yield f"{left} {sign} {right} - 1"
        yield f"{left} {sign} {right} + 1"
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for place in range(len(node.values)):
            yield word.join(text(one) for n, one in enumerate(node.values) if n != place)


def atomic(node: ast.AST, scope: Scope) -> Texts:
    """A plain update where an atomic one is needed."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and _path(call) == "cuda.atomic.add" and len(call.args) == 3:
        array, index, value = map(ast.unparse, call.args)
        yield f"{array}[{index}] += {value}"


KERNEL_OPERATORS = {
    **{name: one for name, one in OPERATORS.items() if name not in NOT_IN_KERNELS},
    **_by_name(barrier, axis, coordinate, bound, atomic),
}


# --- reading nodes ------------------------------------------------------------------------------------------


def _range(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield start, stop and ", step" (or nothing) of a range."""
    if isinstance(node, ast.Call) and _last(node.func) == "range" and 1 <= len(node.args) <= 3:
        given = [text(one) for one in node.args]
        start, stop = (given[0], given[1]) if len(given) > 1 else ("0", given[0])
        yield start, stop, f", {given[2]}" if len(given) == 3 else ""


def _items(node: ast.AST, scope: Scope) -> Texts:
    """Yield, as a list, what a plain loop runs over if that is no range."""
    loops = (one for one in ast.walk(scope.function) if isinstance(one, ast.For | ast.comprehension))
    if any(one.iter is node for one in loops) and not any(_range(node)):
        yield f"list({ast.unparse(node)})"


def _operation(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield text(node.left), SIGNS[type(node.op)], text(node.right)


def _moved(part: ast.expr) -> Texts:
    """Yield the index one further and one less far; of a slice, each end so."""
    if not isinstance(part, ast.Slice):
        yield from (f"{text(part)} + 1", f"{text(part)} - 1")
        return
    ends = [ast.unparse(one) if one else "" for one in (part.lower, part.upper)]
    for place in (0, 1):
        for move in (" + 1", " - 1") if ends[place] else ():
            yield ":".join(end + (move if n == place else "") for n, end in enumerate(ends))


def _shorter(scope: Scope) -> Texts:
    """Yield what takes digits from a number: float32 has 7 of them, float16 has 3."""
    if "np" in scope.modules:
        yield from ("np.float32({})", "np.float16({})")
    else:
        yield from ("float('%.7g' % ({}))", "float('%.3g' % ({}))", "round({}, 6)")


def _factors(value: ast.expr) -> Texts:
    """Yield the names and elements that are multiplied in a term."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            yield from (ast.unparse(one) for one in (node.left, node.right) if not isinstance(one, ast.BinOp))


def _with(node: ast.AST, **fields) -> str:
    """Return the text of the node with other fields."""
    old = {name: getattr(node, name) for name in fields}
    try:
        for name, value in fields.items():
            setattr(node, name, value)
        return ast.unparse(node)
    finally:
        for name, value in old.items():
            setattr(node, name, value)


def _exchanged(nodes: list, place: int) -> list:
    """Return the list with the one at `place` and the next exchanged."""
    return [*nodes[:place], nodes[place + 1], nodes[place], *nodes[place + 2 :]]


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names among the nodes, each once."""
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def _path(node: ast.AST) -> str:
    """Return the dotted name of what is called or named here: "cuda.atomic.add"; "" for all else."""
    inner = node.func if isinstance(node, ast.Call) else node
    named = isinstance(inner, ast.Attribute | ast.Name)
    return ast.unparse(inner) if named else ""
