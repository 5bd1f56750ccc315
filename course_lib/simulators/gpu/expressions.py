"""Expressions and calls of a kernel, rewritten for lanes in lockstep."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import functions, intrinsics, numbers
from course_lib.simulators.gpu.arrays import ConstantArray
from course_lib.simulators.gpu.masks import Branch, Mask
from course_lib.simulators.gpu.source import (
    NOTHING,
    Source,
    called_by_name,
    cuda_path,
    dtype_of,
    is_device_function,
    unfit_part,
)
from course_lib.simulators.gpu.variables import ANY, Region, Regions, Roots

#: What is not supported, where its name in `ast` does not say it.
_NAMES = {
    **{
        "Delete": "del",
        "ImportFrom": "import",
        "AsyncFor": "async",
        "JoinedStr": "an f-string",
        "Starred": "*",
    },
    **{"TryStar": "except*", "AsyncWith": "async", "YieldFrom": "yield from", "AsyncFunctionDef": "async"},
    **{"FunctionDef": "a function inside a kernel", "ClassDef": "a class inside a kernel", "NamedExpr": ":="},
    **{"ListComp": "a list comprehension", "SetComp": "a comprehension", "DictComp": "a comprehension"},
    **{"GeneratorExp": "a generator expression", "List": "a list", "Dict": "a dict", "Set": "a set"},
}


_COUNTED = (np.ndarray, np.inexact)


class _Op:
    """An operator at its place: it counts FLOPs, and remembers the last result if that was an index.

    A complex product is 6 FLOPs (4 products, 2 sums), every other complex operation 2 at least.
    """

    __slots__ = ("_a", "_b", "_flops", "_function", "_result", "_signed", "_tally", "_unsigned")

    def __init__(self, name: str, tally: Any) -> None:
        self._function = numbers.BINARY.get(name) or numbers.COMPARE[name]
        self._flops, self._tally = {"f": 1, "c": 6 if name == "Mult" else 2}, tally
        self._a = self._b = self._result = self._unsigned = self._signed = None

    def __call__(self, m: Mask, a: Any, b: Any) -> Any:
        if a is self._a and b is self._b:
            return self._result
        if (
            type(b) is int
            and type(a) is np.ndarray
            and a.dtype == np.uint64
            and self._function is numbers.add
        ):
            a = self._as_signed(a)  # what an unsigned number and a Python integer make
        result = self._function(a, b)
        if isinstance(result, _COUNTED):
            flops = self._flops.get(result.dtype.kind)
            if flops:
                self._tally.flops += m.count * flops
            else:
                self._a, self._b, self._result = a, b, result
        return result

    def _as_signed(self, vector: np.ndarray) -> np.ndarray:
        """Return the same view of the same vector every time: what is known of its elements stays known."""
        if vector is not self._unsigned:
            self._unsigned, self._signed = vector, vector.view(np.int64)
        return self._signed


class Expressions:
    """Writes the expressions of one function."""

    def __init__(
        self, program: Any, source: Source, name: str, is_kernel: bool, called_at: int | None = None
    ) -> None:
        self.program, self.source, self.name, self.is_kernel = program, source, name, is_kernel
        self.refuse = source.refuse
        self.called_at = called_at  # the kernel's line, for a function that stands in another file
        self.regions = Regions(source.node)
        self.locals = self.regions.names
        self.lines: list[str] = []
        self.indent = 1
        self.region: Region = self.regions.root
        self.loops: list[str] = []
        self.count = 0
        self.target_name = ""
        self.uses: dict[str, set[str]] = {name: set() for name in source.parameters}  # and what is done to it
        self.roots = Roots(source.node, self.makes_no_array)

    def line_of(self, node: ast.AST) -> int:
        """Return the line of the kernel's file that this belongs to: what it costs is shown there."""
        return node.lineno if self.called_at is None else self.called_at

    def makes_no_array(self, function: ast.expr) -> bool:
        """Whether a call gives something else than one of the parameters."""
        return not is_device_function(self.static(function))

    def access(self, node: ast.AST, array: ast.expr, kind: str) -> str:
        """Note an access to an array; return the name of its place."""
        self.use(array, {kind})
        loops = tuple(self.loops) if self.is_kernel else ()  # of a function's, who knows which call it was
        return self.program.site(self.line_of(node), kind, loops)

    def use(self, array: ast.expr, kinds: set[str]) -> None:
        """Note what is done to the parameters that an expression may stand for."""
        roots = self.roots.of(array)
        for name in self.uses if ANY in roots else roots:
            self.uses[name] |= kinds

    # -- writing -------------------------------------------------------------------------------------------

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"_{prefix}{self.count}"

    def static(self, node: ast.expr) -> Any:
        """Return what an expression means that is the same for every launch; NOTHING if it is not."""
        if isinstance(node, ast.Name):
            return NOTHING if node.id in self.locals else self.source.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.static(node.value)
            if isinstance(owner, types.ModuleType | type):
                return getattr(owner, node.attr, NOTHING)
        return NOTHING

    def path(self, node: ast.expr) -> str | None:
        """Return the dotted name of something of numba.cuda: 'shared.array', 'threadIdx.x'."""
        if isinstance(node, ast.Name):
            value = self.static(node)
            return None if value is NOTHING else cuda_path(value)
        if isinstance(node, ast.Attribute):
            owner = self.path(node.value)
            if owner is not None:
                return f"{owner}.{node.attr}" if owner else node.attr
            value = self.static(node)
            if isinstance(value, types.ModuleType):
                return cuda_path(value)
        return None

    # -- expressions ---------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        return self.method_for("of", node)(node)

    def method_for(self, prefix: str, node: ast.AST) -> Callable:
        """Return what writes a node of this kind."""
        kind = type(node).__name__
        method = getattr(self, f"{prefix}_{kind}", None)
        if method is None:
            self.refuse(node, f"{_NAMES.get(kind, kind.lower())} is not supported in a traced kernel.")
        return method

    def constant(self, value: Any) -> str:
        return self.program.bind("k", lambda machine: value)

    def branch(self, node: ast.AST) -> str:
        line = self.line_of(node)
        return self.program.bind("branch", lambda machine: Branch(line))

    def operator(self, op: ast.operator | ast.cmpop) -> str:
        name = type(op).__name__
        return self.program.bind("op", lambda machine: _Op(name, machine.tally))

    def of_Constant(self, node: ast.Constant) -> str:
        if isinstance(node.value, bool | int):
            return repr(node.value)
        if isinstance(node.value, float | complex):
            return self.constant(numbers.scalar(node.value))
        return self.refuse(node, f"{node.value!r} is not supported in a traced kernel: it is no number.")

    def name_of(self, node: ast.Name) -> str:
        """Return the text of a local variable that is read."""
        if not self.regions.home(node.id)[1] or node.id not in self.locals:
            return f"L.defined(m, v_{node.id}, {node.id!r})"
        return f"v_{node.id}"

    def of_Name(self, node: ast.Name) -> str:
        if node.id in self.locals:
            return self.name_of(node)
        value = self.source.lookup(node.id)
        if value is NOTHING:
            self.refuse(node, f"{node.id} is not defined.")
        if self.path(node) in intrinsics.TRIPLES:
            return self.program.bind("special", intrinsics.SPECIAL[self.path(node)])
        return self.global_value(node, value, node.id)

    def global_value(self, node: ast.expr, value: Any, name: str) -> str:
        if isinstance(value, bool | int | float | complex | np.number | np.bool_):
            return self.constant(numbers.scalar(value))
        if isinstance(value, tuple):
            return self.constant(tuple(map(numbers.scalar, value)))
        if isinstance(value, np.ndarray):
            return self.program.bind("const", lambda machine: ConstantArray(name, np.array(value)))
        dtype = dtype_of(value)
        if dtype is not None:
            return self.constant(dtype)
        return self.refuse(
            node, f"{name} is a {type(value).__name__}, which a traced kernel cannot use as a value."
        )

    def of_Tuple(self, node: ast.Tuple) -> str:
        return "(" + "".join(f"{self.expression(element)}, " for element in node.elts) + ")"

    def of_BinOp(self, node: ast.BinOp) -> str:
        if type(node.op).__name__ not in numbers.BINARY:
            self.refuse(node, f"the operator {type(node.op).__name__} is not supported in a traced kernel.")
        op = self.operator(node.op)
        return f"{op}(m, {self.expression(node.left)}, {self.expression(node.right)})"

    def of_UnaryOp(self, node: ast.UnaryOp) -> str:
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return f"L.negated({operand})"
        function = numbers.UNARY[type(node.op).__name__]
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return self.constant(function(numbers.scalar(node.operand.value)))
        return f"{self.constant(function)}({operand})"

    def of_Compare(self, node: ast.Compare) -> str:
        if isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            found = f"L.contained(m, {self.expression(node.left)}, {self.expression(node.comparators[0])})"
            return found if isinstance(node.ops[0], ast.In) else f"L.negated({found})"
        for op in node.ops:
            if type(op).__name__ not in numbers.COMPARE:
                self.refuse(node, f"{type(op).__name__} is not supported in a traced kernel.")
        left, ops = self.expression(node.left), list(map(self.operator, node.ops))
        rights = list(map(self.expression, node.comparators))
        if len(ops) == 1:
            return f"{ops[0]}(m, {left}, {rights[0]})"
        links = (f"({op}, lambda m: {right})" for op, right in zip(ops, rights, strict=True))
        return f"L.chained(m, {left}, {', '.join(links)})"

    def of_BoolOp(self, node: ast.BoolOp) -> str:
        first, *others = (self.expression(value) for value in node.values)
        terms = ", ".join(f"lambda m: {other}" for other in others)
        method = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return f"L.{method}(m, {first}, {terms})"

    def of_IfExp(self, node: ast.IfExp) -> str:
        condition, one, other = map(self.expression, (node.test, node.body, node.orelse))
        return f"L.choose({self.branch(node)}, m, {condition}, lambda m: {one}, lambda m: {other})"

    def of_Subscript(self, node: ast.Subscript) -> str:
        array, index = self.expression(node.value), self.index(node.slice)
        if has_slice(node.slice):
            return f"L.sliced(m, {array}, {index})"
        return f"L.load({self.access(node, node.value, 'load')}, m, {array}, {index})"

    def index(self, node: ast.expr) -> str:
        """Return the text of an index as a tuple."""
        if isinstance(node, ast.Tuple):
            return "(" + "".join(f"{self.index_part(part)}, " for part in node.elts) + ")"
        if isinstance(node, ast.Slice):
            return f"({self.index_part(node)},)"
        return f"L.as_index({self.expression(node)})"

    def index_part(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Slice):
            return self.expression(node)
        edges = (self.expression(edge) if edge else "None" for edge in (node.lower, node.upper, node.step))
        return f"slice({', '.join(edges)})"

    def of_Attribute(self, node: ast.Attribute) -> str:
        path = self.path(node)
        if path:
            if path in intrinsics.CUDA or path in intrinsics.ATOMIC:
                self.refuse(
                    node, f"cuda.{path} is handed on as a value; a traced kernel calls it by its name."
                )
            if path not in intrinsics.SPECIAL:
                self.refuse(node, f"cuda.{path} is not supported in a traced kernel.")
            return self.program.bind("special", intrinsics.SPECIAL[path])
        value = self.static(node)
        if value is not NOTHING:
            return self.global_value(node, value, ast.unparse(node))
        return f"L.attribute({self.expression(node.value)}, {node.attr!r})"

    # -- calls --------------------------------------------------------------------------------------------

    def of_Call(self, node: ast.Call) -> str:
        path = self.path(node.func)
        if path:
            return self.cuda_call(node, path)
        target = self.static(node.func)
        if target is NOTHING:
            self.refuse(node, f"{ast.unparse(node.func)}() is not a function that a traced kernel can call.")
        if target is print:
            return "L.left_out(m, 'print')"  # what a traced kernel prints would come block after block
        if is_device_function(target):
            return self.device_call(node, target)
        dtype = dtype_of(target)
        if dtype is not None:
            return self.cast(node, dtype)
        function = _function_of(target)
        if function is None:
            self.refuse(node, self.not_callable(node, target))
        return self.plain_call(node, function)

    def not_callable(self, node: ast.Call, target: Any) -> str:
        name = ast.unparse(node.func)
        if isinstance(target, types.FunctionType) and not target.__module__.startswith("numpy"):
            return (
                f"{name} is a plain Python function: give it @cuda.jit(device=True) to call it in a kernel."
            )
        refused = functions.NUMPY_REFUSED if _is_of_numpy(target) else {}
        instead = refused.get(getattr(target, "__name__", ""))
        if instead:
            return f"Numba does not compile {name}() in a kernel: write {instead} instead."
        return f"{name}() is not supported in a traced kernel."

    def arguments(self, node: ast.Call) -> list[str]:
        return [self.expression(argument) for argument in node.args]

    def plain_call(self, node: ast.Call, function: Callable) -> str:
        if node.keywords:
            self.refuse(node, f"{ast.unparse(node.func)}() takes no arguments by name in a traced kernel.")
        return self.called(function, *self.arguments(node))

    def called(self, function: Callable, *arguments: str) -> str:
        return f"L.call({self.constant(function)}, {', '.join(['m', *arguments])})"

    def cast(self, node: ast.Call, dtype: np.dtype) -> str:
        if len(node.args) != 1 or node.keywords:
            self.refuse(node, f"{ast.unparse(node.func)}() converts one number.")
        return f"{self.constant(numbers.cast)}({self.expression(node.args[0])}, {self.constant(dtype)})"

    def cuda_call(self, node: ast.Call, path: str) -> str:
        if path in ("shared.array", "local.array", "const.array_like"):
            return self.array_call(node, path)
        if path in intrinsics.ATOMIC:
            if not node.args:
                self.refuse(node, f"cuda.{path} needs an array.")
            site = self.access(node, node.args[0], "atomic")
            return self.called(intrinsics.ATOMIC[path], site, *self.arguments(node))
        if path in intrinsics.CUDA:
            return self.plain_call(node, intrinsics.CUDA[path])
        if path.startswith("cg."):
            self.refuse(node, "cooperative groups need all blocks at once, which lockstep does not have.")
        dtype = dtype_of(self.static(node.func))
        if dtype is not None:
            return self.cast(node, dtype)
        return self.refuse(node, f"cuda.{path} is not supported in a traced kernel.")

    def array_call(self, node: ast.Call, path: str) -> str:
        given = _by_name(("shape", "dtype"), node)
        name = self.target_name or path.split(".")[0]
        if path == "const.array_like":
            if len(node.args) != 1:
                self.refuse(node, "cuda.const.array_like takes one array.")
            return self.expression(node.args[0])
        if set(given) - {"alignment"} != {"shape", "dtype"}:
            self.refuse(node, f"cuda.{path} takes a shape and a dtype.")
        unfit = unfit_part(given["shape"], self.source, self.is_kernel, self.static)
        if unfit is not None:
            self.refuse(
                node,
                f"the shape of cuda.{path} has {ast.unparse(unfit)}, but Numba takes only whole numbers "
                "written here and names of Python integers (or tuples of them) set outside of the kernel: "
                f"compute it there, as in WIDTH = {_example(unfit)}, and write WIDTH here.",
            )
        dtype = dtype_of(self.static(given["dtype"]))
        element = f"L.dtype_of({self.expression(given['dtype'])})" if dtype is None else self.constant(dtype)
        place = self.constant((self.source.function, node.lineno, node.col_offset))  # one for all calls
        method = "shared_array(" if path == "shared.array" else "local_array(m, "
        shape = f"L.shape_of({self.expression(given['shape'])})"
        return f"L.{method}{place}, {name!r}, {shape}, {element})"

    def device_call(self, node: ast.Call, target: Any) -> str:
        source = Source(target)
        positional = self.arguments(node)
        named = {keyword.arg: self.expression(keyword.value) for keyword in node.keywords}
        if None in named:
            self.refuse(node, "** is not supported in a traced kernel.")
        values = called_by_name(self.refuse, source, positional, named, node)
        texts = [
            self.constant(numbers.scalar(source.defaults[name])) if value is NOTHING else value
            for name, value in zip(source.parameters, values, strict=True)
        ]
        elsewhere = self.called_at is not None or source.file != self.program.source.file
        name, uses = self.program.add(source, node, line=self.line_of(node) if elsewhere else None)
        for parameter, argument in _by_name(source.parameters, node).items():
            self.use(argument, uses[parameter])
        call = f"{name}({', '.join(['m', *texts])})"
        return call if elsewhere else f"L.back({self.source.file!r}, {node.lineno}, {call})"


def _by_name(parameters: Iterable[str], node: ast.Call) -> dict[str, ast.expr]:
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    return dict(zip(parameters, node.args, strict=False)) | named


def has_slice(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Slice) for part in (node.elts if isinstance(node, ast.Tuple) else [node]))


def _example(part: ast.expr) -> str:
    """Return a number that can be computed outside of a kernel and is like what stands in the shape."""
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    is_plain = isinstance(part, ast.BinOp) and all(name.isupper() for name in names)
    return ast.unparse(part) if is_plain else "16"


def _is_of_numpy(target: Any) -> bool:
    return isinstance(target, np.ufunc) or (getattr(target, "__module__", "") or "").startswith("numpy")


def _function_of(target: Any) -> Callable | None:
    """Return what a function of math, NumPy or Python does to lanes."""
    try:
        if target in functions.BUILTIN:
            return functions.BUILTIN[target]
    except TypeError:  # not hashable
        return None
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", "") == "math":
        return functions.MATH.get(name)
    if _is_of_numpy(target):
        return functions.NUMPY.get(name.replace("arc", "a"))
    return None
