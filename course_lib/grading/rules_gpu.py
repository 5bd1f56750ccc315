"""The rule for answers that are CUDA kernels: nothing in them runs as Python.

A kernel's body is rewritten and run by our tracer, which does what its text says and counts what it does.
What stands around the kernel does run: so it may only be what can change nothing, and every form that is not
listed here is refused. Then what the sandbox reports comes from the tracer alone.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator

from course_lib.grading.program import Program, at, read_program
from course_lib.grading.vocabulary import NUMBER_TYPES, words

ROLE = "an answer here is imports, numbers and functions with @cuda.jit"
#: What may be imported, and from where.
MODULES = words("numba numba.cuda math numpy")
FROM_NUMBA = NUMBER_TYPES | words("cuda types void")
FROM_CUDA = words("""
    jit grid gridsize threadIdx blockIdx blockDim gridDim laneid warpsize shared local const atomic
    syncthreads syncthreads_count syncthreads_and syncthreads_or syncwarp fma selp popc ffs clz brev cbrt
    threadfence threadfence_block threadfence_system activemask lanemask_lt
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync ballot_sync any_sync all_sync eq_sync match_any_sync
    match_all_sync
""")
FROM_MATH = frozenset(name for name in dir(math) if not name.startswith("_"))
NUMBERS = words("pi e tau inf nan")  # of math and numpy
FROM_NUMPY = NUMBER_TYPES | NUMBERS
IMPORTED = {
    "numba": FROM_NUMBA,
    "numba.types": NUMBER_TYPES | words("void"),
    "numba.cuda": FROM_CUDA,
    "math": FROM_MATH,
    "numpy": FROM_NUMPY,
}
#: Settings of cuda.jit that change how fast or how exact a kernel is, not what runs.
SETTINGS = words("device fastmath lineinfo max_registers opt inline")
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
JIT = "numba.cuda.jit"
LONGEST_NAME = 100
INSIDE = {
    ast.FunctionDef: "a function inside of another",
    ast.AsyncFunctionDef: "a function inside of another",
    ast.ClassDef: "a class",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "`:=`",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Import: "an import inside of a function",
    ast.ImportFrom: "an import inside of a function",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator",
}


class KernelOnly:
    """The answer consists of imports, numbers and functions with @cuda.jit; nothing else may run."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first thing that is something else, or is not to be trusted."""
        program = read_program(source, entry)
        reading = _Reading(program)
        for statement in sorted(program.reached, key=lambda one: one.lineno):
            for node, what in reading.faults(statement):
                return f"Your answer has {what}{at(node, source)}: {ROLE}."
        return reading.entry_fault(entry)


Found = Iterator[tuple[ast.AST, str]]


class _Reading:
    """One pass over the statements of an answer, in order: what each name means so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._meaning: dict[
            str, str
        ] = {}  # name -> dotted name of what was imported, "a number", "a function"
        self._kernels: dict[str, bool] = {}  # function -> whether it is a device function

    def faults(self, statement: ast.stmt) -> Found:
        """Yield (node, words) for what one statement at the top of the text must not be or have."""
        yield from _hidden_names(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from self._import(statement)
        elif isinstance(statement, ast.FunctionDef):
            yield from self._function(statement)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from self._constant(statement, target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from self._annotation(statement.annotation)
            yield from self._constant(statement, statement.target, statement.value)
        elif not _is_text(statement):
            yield statement, f"{_called(statement)} that would run as Python"

    def entry_fault(self, entry: str) -> str | None:
        """Return a sentence if the entry is no kernel."""
        if entry not in self._kernels:
            return f"Your answer has no kernel `{entry}`: write `def {entry}(...)` and @cuda.jit above it."
        if self._kernels[entry]:
            return (
                f"`{entry}` is a device function (device=True), which only a kernel can call: it is launched "
                "itself, so leave device=True away."
            )
        return None

    # --- imports and numbers ---

    def _import(self, statement: ast.Import | ast.ImportFrom) -> Found:
        if isinstance(statement, ast.Import):
            for one in statement.names:
                if one.name not in MODULES:
                    yield statement, f"an import of {one.name}"
                else:
                    bound = one.asname or one.name.split(".")[0]
                    meaning = one.name if one.asname else one.name.split(".")[0]
                    yield from self._bind(statement, bound, meaning)
            return
        module = statement.module or "."
        if (module, [one.name for one in statement.names]) == ("__future__", ["annotations"]):
            return
        if statement.level or module not in IMPORTED:
            yield statement, f"an import from {'.' * statement.level}{statement.module or ''}"
            return
        for one in statement.names:
            if one.name not in IMPORTED[module]:
                yield statement, f"an import of {one.name} from {module}"
            yield from self._bind(statement, one.asname or one.name, f"{module}.{one.name}")

    def _constant(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> Found:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(values) != len(target.elts):
                yield statement, "names for a tuple that is not written beside them, number by number"
            for one, its_value in zip(target.elts, values, strict=False):
                yield from self._constant(statement, one, its_value)
        elif not isinstance(target, ast.Name):
            yield statement, "an assignment to something else than a name"
        elif self._is_type(value):
            yield from self._bind(statement, target.id, self._dotted(value), again=False)
        elif not self._is_number(value):
            yield statement, f"`{target.id} = …` with something else than a number"
        else:
            yield from self._bind(statement, target.id, "a number")

    def _is_number(self, node: ast.expr) -> bool:
        """Whether this is a number, a tuple of numbers, or arithmetic of numbers and names of numbers; also
        math.inf and the like, float("inf"), and float32(0): one of Numba's or NumPy's types, or float, called
        on a number."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool | int | float)
        if isinstance(node, ast.Name | ast.Attribute):
            module, _, name = self._dotted(node).rpartition(".")
            known = name in NUMBERS and module in ("math", "numpy")
            return known or (isinstance(node, ast.Name) and self._meaning.get(node.id) == "a number")
        if isinstance(node, ast.Call):
            one = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if one is None or not (self._is_type(node.func) or self._is_builtin_float(node.func)):
                return False
            return self._is_one_number(one) or _is_word_for_a_number(one)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.UAdd | ast.USub) and self._is_number(node.operand)
        if isinstance(node, ast.BinOp):
            return (
                isinstance(node.op, ARITHMETIC) and self._is_number(node.left) and self._is_number(node.right)
            )
        return isinstance(node, ast.Tuple) and all(map(self._is_number, node.elts))

    def _is_one_number(self, node: ast.expr) -> bool:
        return not isinstance(node, ast.Tuple) and self._is_number(node)

    def _is_builtin_float(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == "float" and "float" not in self._meaning

    def _is_type(self, node: ast.expr) -> bool:
        module, _, name = self._dotted(node).rpartition(".")
        return name in NUMBER_TYPES and module in ("numba", "numpy", "numba.types", "numba.cuda")

    def _bind(self, node: ast.AST, name: str, meaning: str, again: bool = True) -> Found:
        """Give a name its meaning; a name that has one keeps it, so that what is read here is what runs."""
        if name in self._meaning and not (again and self._meaning[name] == meaning):
            yield node, f"a second meaning of the name {name}"
        self._meaning[name] = meaning

    def _dotted(self, node: ast.AST) -> str:
        """Return what a name or attribute means by the imports above it; "" if it is no import."""
        if isinstance(node, ast.Name):
            found = self._meaning.get(node.id, "")
            return "" if found in ("a number", "a function") else found
        root = self._dotted(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{root}.{node.attr}" if root else ""

    # --- functions ---

    def _function(self, function: ast.FunctionDef) -> Found:
        if not function.decorator_list:
            yield function, f"the plain function {function.name}, without @cuda.jit before its `def`"
        for number, decorator in enumerate(function.decorator_list):
            settings = decorator.keywords if isinstance(decorator, ast.Call) else []
            jit = decorator.func if isinstance(decorator, ast.Call) else decorator
            if number or self._dotted(jit) != JIT:
                yield decorator, "a decorator that is not cuda.jit"
                return
            yield from self._settings(decorator)
            self._kernels[function.name] = any(
                one.arg == "device" and getattr(one.value, "value", None) is True for one in settings
            )
        yield from self._bind(function, function.name, "a function", again=False)
        yield from self._parameters(function)
        for statement in function.body:
            for node in ast.walk(statement):
                if type(node) in INSIDE:
                    yield node, INSIDE[type(node)]
                if isinstance(node, ast.AnnAssign):
                    yield from self._annotation(node.annotation)

    def _settings(self, decorator: ast.expr) -> Found:
        if not isinstance(decorator, ast.Call):
            return
        if decorator.args:
            yield (
                decorator,
                "types for cuda.jit, which compiles for what it is launched with (leave them away)",
            )
        for one in decorator.keywords:
            if one.arg not in SETTINGS or not isinstance(one.value, ast.Constant):
                yield decorator, f"{one.arg or '**'}{'=' if one.arg else ''} for cuda.jit"

    def _parameters(self, function: ast.FunctionDef) -> Found:
        given = function.args
        if given.defaults or given.kw_defaults:
            yield function, "a parameter with a default"
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            yield function, "parameters that are not plain names"
        if getattr(function, "type_params", None):
            yield function, "type parameters"
        for note in [one.annotation for one in given.args] + [function.returns]:
            if note is not None:
                yield from self._annotation(note)

    def _annotation(self, note: ast.expr) -> Found:
        kinds = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.Slice, ast.expr_context)
        if any(not isinstance(node, kinds) for node in ast.walk(note)):
            yield note, "an annotation that would run as Python"


def _hidden_names(statement: ast.stmt) -> Found:
    """Yield every name with two leading underscores (what is behind them is Python's own) or without end."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        for name in _names(node):
            if name.startswith("__"):
                yield node, f"the name {name}"
            if len(name) > LONGEST_NAME:
                yield node, f"a name of {len(name)} letters"


def _names(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.alias):
        return [part for name in (node.name, node.asname or "") for part in name.split(".")]
    found = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
    return [name for name in found if isinstance(name, str)]


def _is_word_for_a_number(node: ast.expr) -> bool:
    word = node.value if isinstance(node, ast.Constant) else None
    return isinstance(word, str) and word.strip().lower().lstrip("+-") in ("inf", "infinity", "nan")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _called(statement: ast.stmt) -> str:
    kinds = {
        ast.Expr: "an expression",
        ast.ClassDef: "a class",
        ast.AugAssign: "a change of a name",
        ast.AsyncFunctionDef: "an async function",
    }
    return kinds.get(type(statement), f"a statement ({type(statement).__name__.lower()})")
