"""The language of answers: what may stand in a text that is judged, by name; all else is refused.

One walk over the parsed text. An answer is imports, constants and plain functions; each kind of node, each
attribute, each name that is called, each decorator and each keyword is in the lists of `vocabulary`, or the
walk ends with one sentence: what, where, and what to write instead. So what is read here is what runs: no
name has two meanings, no call calls anything but a function of the text or one that is listed, and nothing
outlives a call.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_lib.grading.program import (
    Program,
    bound_by,
    defaults,
    has_one_argument,
    is_plain_format,
    made_by,
    read_program,
    single_value,
)
from course_lib.grading.top_of_text import (
    CALLED,
    FUNCTION,
    INSTEAD,
    KERNEL_ROLE,
    LOCAL,
    METHOD,
    NOBODYS,
    PARAMETER,
    UNREADABLE,
    Meaning,
    NotInLanguage,
    TopOfText,
)
from course_lib.grading.vocabulary import (
    ARRAY_DATA,
    ARRAY_METHODS,
    BUILTINS,
    CUDA_JIT,
    DATA,
    ERRORS,
    FASTMATH,
    HINTS,
    INSTEAD_OF,
    KERNEL_DATA,
    KERNEL_METHODS,
    KERNEL_MODULES,
    KEYWORDS,
    LOOP_MODULES,
    MAKE_KEYS,
    METHODS,
    MODULES,
    NJIT,
    NOT_ON_A_WIRE,
    NUMBER_TYPES,
    OF_ROWS,
    PRODUCTS,
    READERS,
    READING,
    TAKE_FUNCTIONS,
    TAKE_TEXTS,
    TEXT_KEYWORDS,
    TEXTS,
    TEXTS_ON_A_WIRE,
    TYPES,
    UNWRITTEN,
    USUAL,
    VALUES,
    VALUES_OF,
    WHOLE_ARRAY,
    WHOLE_METHODS,
    WIRE_DATA,
    WIRE_KEYWORDS,
    words,
)

EVERY_CALL = "every call must do all of its work, so make it inside of the function"
A_TUPLE = "make it inside of the function, or write it as a tuple (of tuples), which cannot change"
OF_A_ROW = 'ask isinstance, or whether x is a row with hasattr(x, "__len__")'
BY_NAME = "call functions where they are needed, by their own names"
NO_LAYOUT = "between ranks a text may be printed, raised or compared: use numbers, or True and False"
#: What einsum reads.
SUBSCRIPTS = re.compile(r"[A-Za-z,.\-> ]*")

#: Nodes that need no look of their own: their parts are looked at.
PARTS = words("""
    Expr Return Pass Break Continue If While IfExp BoolOp UnaryOp List Tuple Set Slice Assert Raise With
    withitem alias JoinedStr Import ImportFrom Constant NamedExpr
    Match match_case MatchValue MatchSingleton MatchSequence MatchStar MatchAs MatchOr
""")
NOT_COMPILED = words("Try With Match Import ImportFrom")
NOT_IN_KERNELS = NOT_COMPILED | words(
    "Delete FunctionDef Lambda NamedExpr ListComp SetComp DictComp GeneratorExp"
)
SMALL = ast.expr_context | ast.operator | ast.unaryop | ast.boolop | ast.cmpop
NOTES = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.List, ast.Slice, ast.BinOp),
    *(ast.BitOr, ast.expr_context),
)


@dataclass(frozen=True)
class Language:
    """What answers to one kind of task are written in; it is the first rule of every task.

    `modules` may be imported. `own` says why products (and in loops: sums of whole arrays) are refused: what
    the task is about. `given` is the text of helpers that the assignment hands out: they stay as they are.
    `wire` are the methods that may be called on the wire that the ranks of a collective task are given.
    """

    modules: tuple[str, ...] = ()
    own: str = ""
    kind: str = "python"  # or "loops", compiled by Numba, or "kernel"
    given: str = ""
    wire: tuple[str, ...] = ()

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first thing that is not in the language."""
        program = read_program(source, entry)
        if program.problem:
            return f"Your answer cannot be read: {program.problem}."
        try:
            _Reading(self, program).judge()
        except NotInLanguage as fault:
            return str(fault)
        return None

    def names(self, module: str) -> frozenset[str] | None:
        """Return what may be taken from a module; None if it is not in the language."""
        tables = {"python": MODULES, "loops": LOOP_MODULES, "kernel": KERNEL_MODULES}
        usual = USUAL if self.kind == "python" and "math" in self.modules else ()
        allowed = (
            tables[self.kind].get(module) if module.partition(".")[0] in (*self.modules, *usual) else None
        )
        allowed = allowed - NOT_ON_A_WIRE if self.wire and allowed else allowed
        return HINTS.get(module) if allowed is None else allowed

    @property
    def methods(self) -> frozenset[str]:
        """The methods that may be called on values."""
        if self.kind == "kernel":
            return KERNEL_METHODS | METHODS | WHOLE_METHODS  # of values the tracer says which it knows
        arrays = (ARRAY_METHODS if self.kind == "loops" else WHOLE_METHODS) if "numpy" in self.modules else ()
        locks = ("acquire", "release", "locked") if "threading" in self.modules else ()
        known = METHODS.union(arrays, locks, self.wire)
        return known - TEXTS_ON_A_WIRE if self.wire else known

    @property
    def data(self) -> frozenset[str]:
        """The attributes of values that are no methods."""
        if self.kind == "kernel":
            return KERNEL_DATA
        known = DATA.union(ARRAY_DATA if "numpy" in self.modules else ())
        return known.union(WIRE_DATA) - TEXTS_ON_A_WIRE if self.wire else known

    @property
    def itself(self) -> frozenset[str]:
        """What the task asks for, under the names that libraries have for it."""
        return (PRODUCTS | WHOLE_ARRAY if self.kind == "loops" else PRODUCTS) if self.own else frozenset()

    @property
    def why(self) -> str:
        """The end of a sentence on what is not in the list."""
        if self.kind == "kernel":
            return KERNEL_ROLE
        if self.kind == "loops":
            libraries = ", and of NumPy and Numba what makes arrays, numbers and compiled loops"
        else:
            libraries = ", and of a library what computes with numbers and arrays" if self.modules else ""
        wire = ", and of `wire` only what it has for this task" if self.wire else ""
        return f"it is not in the list of what this task takes of plain Python{libraries}{wire}"


#: Loops that Numba compiles: no BLAS behind the scenes, no whole-array sums.
LOOPS = Language(("numba", "numpy", "math"), "this task is to write the loops yourself", "loops")
KERNEL = Language(("numba", "math", "numpy"), kind="kernel")


class _Reading(TopOfText):
    """One walk over the statements of an answer."""

    def __init__(self, language: Language, program: Program) -> None:
        super().__init__(language, program)
        self.read: set[tuple[str, ast.expr]] = set()  # texts, and by what
        self.said: set[ast.expr] = set()  # texts that become no part of a value

    def judge(self) -> None:
        """Raise NotInLanguage for the first thing that is not in the language."""
        imports = (ast.Import, ast.ImportFrom)
        for statement in sorted(self.program.reached, key=lambda one: not isinstance(one, imports)):
            self._top(statement)
        if self.program.function() is None:
            raise NotInLanguage(self._no_function())
        for statement in self.program.reached:
            if isinstance(statement, ast.FunctionDef) and statement.name not in self.given:
                self._decorators(statement)
                self._function(statement)

    # --- decorators ---

    def _decorators(self, function: ast.FunctionDef) -> None:
        jits = ("numba.cuda.jit",) if self.kind == "kernel" else ("numba.njit", "numba.jit")
        found = function.decorator_list
        if not found and self.kind == "loops":
            raise NotInLanguage(
                f"{function.name} is not compiled: put @njit in front of its `def` (from numba import njit)."
            )
        if not found and self.kind == "kernel":
            plain = f"the plain function {function.name}, without @cuda.jit before its `def`"
            self.refuse(function, plain, verb="has")
        for number, decorator in enumerate(found):
            jit = decorator.func if isinstance(decorator, ast.Call) else decorator
            if number or self._dotted(jit) not in jits:
                only = {"loops": "@njit alone", "kernel": "@cuda.jit alone"}.get(self.kind, "nothing")
                what = f"the decorator @{ast.unparse(jit)[:60]}"
                instead = INSTEAD_OF.get(getattr(jit, "attr", ""), f"write {only} above the `def`")
                self.refuse(decorator, what, instead, "has")
            if isinstance(decorator, ast.Call):
                self._settings(function, decorator)

    def _settings(self, function: ast.FunctionDef, decorator: ast.Call) -> None:
        jit = ast.unparse(decorator.func)
        if decorator.args:
            types = f"types for {jit}, which compiles for what it is called with"
            self.refuse(decorator, types, "leave them away", "has")
        kernel = self.kind == "kernel"
        for one in decorator.keywords:
            value = one.value.value if isinstance(one.value, ast.Constant) else None
            if one.arg is None:
                self.refuse(decorator, "**", "write compiler options out in full")
            if one.arg == "fastmath" and not kernel:
                if not self._keeps_nan(one.value):
                    raise NotInLanguage(
                        f"fastmath={ast.unparse(one.value)[:60]} lets the compiler assume that NaN and "
                        'inf never occur, so they may get lost: use fastmath={"contract", "reassoc"}.'
                    )
            elif one.arg not in (CUDA_JIT if kernel else NJIT) or not isinstance(one.value, ast.Constant):
                self.refuse(decorator, f"{one.arg}= for {jit}", "leave it away", "has")
            elif (one.arg, value) == ("nopython", False):
                self.refuse(decorator, "nopython=False", "leave it away", "has")
            elif (one.arg, value) == ("device", True) and function.name == self.program.entry:
                raise NotInLanguage(
                    f"`{function.name}` is a device function (device=True), which only a kernel can call: it "
                    "is launched itself, so leave device=True away."
                )

    def _keeps_nan(self, value: ast.expr) -> bool:
        value = self._value(value) or value
        if isinstance(value, ast.Call) and len(value.args) == 1 and self._makes(value.func):
            value = value.args[0]
        if isinstance(value, ast.Set | ast.List | ast.Tuple):
            return all(isinstance(one, ast.Constant) and one.value in FASTMATH for one in value.elts)
        return isinstance(value, ast.Constant) and value.value is False

    # --- functions and their names ---

    def _function(self, function: ast.FunctionDef | ast.Lambda) -> None:
        given, worked_out = function.args, defaults(function)
        stars = [one for one in (given.vararg, given.kwarg) if one]
        if self.kind == "kernel" and worked_out:
            self.refuse(function, "a parameter with a default", "hand all arguments over", "has")
        if given.kwarg or (self.kind == "kernel" and (stars or given.kwonlyargs or given.posonlyargs)):
            self.refuse(function, "parameters that are not plain names", "name each parameter", "has")
        for one in worked_out:
            if self.scopes:  # it ends with the call
                self._visit(one)
            elif self._constant(one, "default") != "constant":
                self.refuse(one, "a default value that can change", EVERY_CALL)
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]
        for note in [one.annotation for one in arguments] + [getattr(function, "returns", None)]:
            if note is not None:
                self._annotation(note)
        if getattr(function, "type_params", None):
            self.refuse(function, "type parameters", "leave them away", "has")
        body = function.body if isinstance(function.body, list) else [function.body]
        entry = self.program.function() is function or self.kind != "python"
        names = dict.fromkeys((one.arg for one in arguments), LOCAL if entry else PARAMETER)
        self.scopes.append(self._scope(function, names, body))
        for node in body:
            self._visit(node)
        self.scopes.pop()

    def _scope(self, node: ast.AST, names: dict[str, Meaning], body: list[ast.AST]) -> dict[str, Meaning]:
        """Return the meanings of the names that a function binds, its parameters among them."""
        scope = dict(names)
        for name, meaning in self._bound_in(body):
            scope[name] = meaning if scope.get(name, meaning) == meaning else LOCAL
        for name in scope:
            self._name_is_fine(node, name)
            if name in self.given:
                self._changes(name)
        return scope

    def _bound_in(self, body: list[ast.AST]) -> Iterator[tuple[str, Meaning]]:
        """Yield (name, meaning) for what is bound in a function's own scope, not in those inside of it."""
        todo = list(body)
        while todo:
            node = todo.pop()
            named = single_value(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._imported(node)
            elif isinstance(node, ast.FunctionDef):
                yield node.name, FUNCTION
                todo += defaults(node)  # := binds a name around the function
            elif isinstance(node, ast.comprehension):  # only `:=` binds a name around it
                todo += [node.iter, *node.ifs]
            elif isinstance(named, ast.Lambda):
                yield node.targets[0].id, FUNCTION
                todo.append(named)
            elif isinstance(named, ast.Attribute):
                yield node.targets[0].id, METHOD
                todo.append(named)
            elif isinstance(node, ast.Lambda):
                todo += defaults(node)
            else:
                yield from ((name, LOCAL) for name in bound_by(node))
                todo += ast.iter_child_nodes(node)

    def _meaning(self, node: ast.Name) -> Meaning:
        for scope in reversed(self.scopes):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.top:
            return self.top[node.id]
        self._name_is_fine(node, node.id)
        if self.language.wire and node.id in TEXTS_ON_A_WIRE:
            self.refuse(node, node.id, NO_LAYOUT)
        if node.id in BUILTINS - (self.itself if self.kind == "loops" else frozenset()):
            return Meaning("builtin", node.id)
        if hasattr(builtins, node.id):
            self.refuse(node, node.id, self._why(node.id))
        return NOBODYS

    def _module(self, node: ast.AST) -> str:
        """Return the dotted name of a module that is in the language, "" for anything else."""
        if isinstance(node, ast.Name):
            meaning = self._meaning(node)
            return meaning.what if meaning.kind == "module" else ""
        if isinstance(node, ast.Attribute):
            inside = self._module(node.value)
            dotted = f"{inside}.{node.attr}"
            return dotted if inside and self.language.names(dotted) is not None else ""
        return ""

    def _value(self, node: ast.AST) -> ast.expr | None:
        """Return what a constant stands for, None for all else."""
        is_its = isinstance(node, ast.Name) and not any(node.id in scope for scope in self.scopes)
        return self.values.get(node.id) if is_its else None

    def _dotted(self, node: ast.AST) -> str:
        """Return the dotted name of what is imported, "" for anything else."""
        if isinstance(node, ast.Name):
            return self._meaning(node).what
        module = self._module(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{module}.{node.attr}" if module else ""

    def _annotation(self, note: ast.expr) -> None:
        for node in ast.walk(note):
            hidden = str(getattr(node, "id", getattr(node, "attr", ""))).startswith("_")
            if hidden or not isinstance(node, NOTES):
                why = "name a type, or leave it away"
                self.refuse(note, "an annotation that would run as Python", why, "has")

    # --- the walk ---

    def _visit(self, node: ast.AST) -> None:
        kind = type(node).__name__
        out = {"kernel": NOT_IN_KERNELS, "loops": NOT_COMPILED}.get(self.kind, frozenset())
        look = getattr(self, f"_on_{kind}", None)
        if isinstance(node, SMALL):
            return
        if kind in out or not (look or kind in PARTS):
            what, instead = INSTEAD.get(kind, (f"`{kind.lower()}`", ""))
            self.refuse(node, what, instead)
        elif look:
            look(node)
        else:
            self._parts(node)

    def _parts(self, node: ast.AST) -> None:
        for part in ast.iter_child_nodes(node):
            self._visit(part)

    def _reads(self, node: ast.AST) -> None:
        for part in ast.iter_child_nodes(node):
            self._read(part)

    _on_Starred = _on_FormattedValue = _on_For = _reads

    def _on_Delete(self, node: ast.Delete) -> None:
        for one in node.targets:
            if isinstance(one, ast.Subscript) and self.kind == "python":  # a write to what holds it
                self._visit(one)
            elif not (isinstance(one, ast.Name) and self.scopes and self.scopes[-1].get(one.id) == LOCAL):
                self.refuse(node, *INSTEAD["Delete"])

    def _on_Compare(self, node: ast.Compare) -> None:
        self._say(node.left, *node.comparators)
        self._reads(node)

    def _on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._visit(node.value)

    def _on_Raise(self, node: ast.Raise) -> None:
        self._say(*(node.exc.args if isinstance(node.exc, ast.Call) else ()))
        self._parts(node)

    def _on_Assert(self, node: ast.Assert) -> None:
        self._say(node.msg)
        self._parts(node)

    def _on_Constant(self, node: ast.Constant) -> None:
        if self.language.wire and isinstance(node.value, str) and node not in self.said:
            self.refuse(node, f"the text {node.value[:40]!r}", NO_LAYOUT)

    def _on_MatchValue(self, node: ast.MatchValue) -> None:
        self._say(node.value)
        self._parts(node)

    def _on_JoinedStr(self, node: ast.JoinedStr) -> None:
        if self.language.wire and node not in self.said:
            self.refuse(node, "a text that is put together", NO_LAYOUT)
        self._say(*node.values, *(getattr(one, "format_spec", None) for one in node.values))
        self._parts(node)

    def _say(self, *nodes: ast.AST | None) -> None:
        """Note texts that become no part of a value: NumPy would read them as a layout in memory."""
        for node in nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr):
                self.said.add(node)
            elif isinstance(node, ast.BinOp):  # "rank %d" % rank
                self._say(node.left, node.right)

    def _read(self, node: ast.AST) -> None:
        """Look at an expression of which only the parts are read: it may be a table of constants."""
        if isinstance(node, ast.Name) and self._meaning(node).kind == "table":
            return
        if self._dotted(node) == "numpy.ndarray":  # is it one? asks `is`, asks isinstance
            return
        if isinstance(node, ast.GeneratorExp):  # it ends where it stands
            self._on_comprehension(node)
        elif isinstance(node, ast.Call) and self._is_type_of(node.func) and has_one_argument(node):
            self._visit(node.args[0])
        else:
            self._visit(node)

    def _on_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            return  # its scope has seen it
        meaning = self._meaning(node)
        if meaning.kind in ("table", "changing"):
            self.refuse(node, f"{node.id}, which outlives the call", A_TUPLE)
        plain = node.id in TYPES | ERRORS if meaning.kind == "builtin" else self._is_value(meaning.what)
        if meaning.kind in ("builtin", "part", "function", "module") and not plain:
            self.refuse(node, f"{node.id} without calling it", BY_NAME)

    def _is_value(self, dotted: str) -> bool:
        last = dotted.rpartition(".")[2]
        return last in VALUES or (self.kind == "kernel" and dotted.startswith("numba.cuda."))

    def _on_Attribute(self, node: ast.Attribute, called: bool = False) -> None:
        """Look at an attribute; `called`: it stands where a function may, or a part of one."""
        if not isinstance(node.ctx, ast.Load):
            self.refuse(
                node,
                f"the attribute {node.attr} a value",
                "this task needs none, and what is given must stay as it is",
                "gives",
            )
        if node.attr.startswith("_"):
            self.refuse(node, node.attr, INSTEAD_OF.get(node.attr, UNREADABLE))
        module = self._module(node.value)
        if module:
            dotted = f"{module}.{node.attr}"
            if node.attr not in self.language.names(module):
                self.refuse(node, dotted, self._why(node.attr))
            if not called and not self._is_value(dotted):
                self.refuse(node, f"{dotted} without calling it", BY_NAME)
            return
        if node.attr not in self.data | self.methods and not is_plain_format(node):
            if isinstance(node.value, ast.Name) and self._meaning(node.value) is NOBODYS:
                self.refuse(node, f"{node.value.id}, which no cell of yours imports", "import it in a cell")
            self.refuse(node, f".{node.attr}", self._why(node.attr))
        if isinstance(node.value, ast.Name):
            meaning = self._meaning(node.value)
            if meaning.kind == "table" and called and node.attr in READERS:
                return
            if meaning.kind in ("table", "changing") and node.attr in self.methods:
                what = f"{node.value.id}.{node.attr} on something outside the function"
                self.refuse(node, what, EVERY_CALL)
            if meaning.kind == "part":
                return
        if node.attr in self.methods - self.data and not called:
            self.refuse(node, f".{node.attr} without calling it", BY_NAME)
        if isinstance(node.value, ast.Attribute) and self._module(node.value.value):
            self._on_Attribute(node.value, called=True)  # np.add.reduce
        else:
            self._visit(node.value)

    def _on_Call(self, node: ast.Call) -> None:
        own, library = False, False
        if isinstance(node.func, ast.Name):
            meaning = self._meaning(node.func)
            own = meaning in CALLED or self._is_type(node.func)
            library = meaning.kind == "part"
            if not own and meaning.kind not in ("builtin", "part"):
                self.refuse(node, f"a call of {node.func.id}, which is no function of yours", BY_NAME, "has")
        elif isinstance(node.func, ast.Attribute):
            self._on_Attribute(node.func, called=True)
            library = bool(self._module(node.func.value)) or node.func.attr in WHOLE_METHODS - METHODS
        else:
            self.refuse(node, "a call of what is computed", BY_NAME, "has")
        name = self._dotted(node.func) or getattr(node.func, "attr", "its own")  # insort as len is insort
        name = name.rpartition(".")[2]
        given = [one.func for one in node.args if library and isinstance(one, ast.Call)]  # np.max(type(x))
        if any(map(self._is_type_of, [node.func, *given])):
            why = "compare the type of one thing with `is`, or ask isinstance"
            self.refuse(node, "type to make something", why)
        if name in TAKE_TEXTS:
            self._say(*node.args[TAKE_TEXTS[name] :][:1])
        if name == "print" and not library:
            self._say(*node.args)
        if name == "hasattr" and not own:
            if len(node.args) != 2 or getattr(node.args[1], "value", None) not in OF_ROWS:
                self.refuse(node, "hasattr for anything but __len__ and __iter__", OF_A_ROW)
            self._say(node.args[1])
        self._say(*(one.value for one in node.keywords if one.arg in TEXT_KEYWORDS and not own))
        for place, one in enumerate(node.args):
            self._argument(node, name, one, place, own)
        for one in node.keywords:
            self._keyword(node, name, one, own)
        values = VALUES_OF.get(name, 0) if self.kind == "python" and not self.language.wire else 0
        for one in [*node.args[values:], *(one.value for one in node.keywords)] if library else ():
            self._texts(one, name)
        if library and name == "pad":
            self._pads_by(node)

    def _pads_by(self, call: ast.Call) -> None:
        """See to it that a mode is written out: "empty" pads with memory that nobody wrote."""
        modes = [*call.args[2:], *(one.value for one in call.keywords if one.arg == "mode")]
        stars = [one for one in call.args if isinstance(one, ast.Starred)]
        for one in (*stars, *modes):
            if not isinstance(self._value(one) or one, ast.Constant):
                self.refuse(one, "a mode for pad that is not written out", "write it there", "has")

    def _is_type_of(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self._meaning(node) == Meaning("builtin", "type")

    def _is_type(self, node: ast.Name) -> bool:
        """Whether this is a constant that stands for a type of numbers: T = np.float32."""
        value = self.values.get(node.id) if self._meaning(node).kind == "constant" else None
        named = isinstance(value, ast.Name | ast.Attribute)
        return named and self._dotted(value).rpartition(".")[2] in NUMBER_TYPES

    def _argument(self, call: ast.Call, name: str, one: ast.expr, place: int, own: bool) -> None:
        anywhere = name in ("zip", "map", "filter", "print", "product", "chain")
        first = place == 0 and (name not in ("min", "max") or len(call.args) == 1)
        mine = isinstance(one, ast.Lambda) or (isinstance(one, ast.Name) and self._meaning(one) == FUNCTION)
        takes = name in TAKE_FUNCTIONS and self._dotted(call.func)  # np.add.reduce takes none
        if isinstance(one, ast.GeneratorExp):
            self._on_comprehension(one)
        elif (place < 2 and takes and not own) or (own and mine):
            self._passed(one)
        elif name == "isinstance" and not own:
            for kind in one.elts if isinstance(one, ast.Tuple) else [one]:
                self._read(kind)
        elif self._dotted(call.func).startswith("numpy.") and not self._is_list(one):
            self._visit(one)
        elif not own and (anywhere or first) and name in READING | {"product", "chain"}:
            self._read(one)
        else:
            self._visit(one)

    def _is_list(self, node: ast.expr) -> bool:
        """Whether this is surely a list if it is a table: NumPy hands a dict back as it is, np.max(T)."""
        value = self.values.get(getattr(node, "id", ""), node)
        called = isinstance(value, ast.Call) and self._dotted(value.func) in ("list", "sorted")
        joined = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mult)
        return called or joined or isinstance(value, ast.List | ast.ListComp | ast.Subscript)

    def _keyword(self, call: ast.Call, name: str, one: ast.keyword, own: bool) -> None:
        if one.arg is None:
            self.refuse(call, "**", "write the arguments out in full")
        if self.language.wire and name in MAKE_KEYS and not own:
            self.refuse(call, f"the text {one.arg!r}", NO_LAYOUT)
        known = KEYWORDS | WIRE_KEYWORDS if name in self.language.wire else KEYWORDS
        if self.language.wire and one.arg == "where":
            self.refuse(call, f"where= for {name}", "it leaves numbers unwritten: write np.where instead")
        if not own and name not in ("dict", "Counter") and one.arg not in known:
            self.refuse(call, f"{one.arg}= for {name}")
        if one.arg in ("key", "func") and not own:  # accumulate(costs, func=max)
            self._passed(one.value)
        else:
            self._visit(one.value)

    def _passed(self, node: ast.expr) -> None:
        """Look at what is handed to sorted, max or map to be called: a function may stand here."""
        if isinstance(node, ast.Lambda) and self.kind != "kernel":
            self._function(node)
        elif isinstance(node, ast.Attribute) and node.attr == "__getitem__":  # what lambda i: costs[i] does
            self._visit(ast.copy_location(ast.Subscript(node.value, ast.Constant(0), ast.Load()), node))
        elif isinstance(node, ast.Attribute):
            self._on_Attribute(node, called=True)
        elif not isinstance(node, ast.Name) or self._meaning(node).kind in ("changing", "module"):
            self._visit(node)
        elif self._is_type_of(node):
            self.refuse(node, "type without calling it", UNREADABLE)
        last = self._dotted(node).rpartition(".")[2]
        if last in UNWRITTEN | {"hasattr"}:
            self.refuse(node, f"{last} without calling it", BY_NAME)

    def _texts(self, node: ast.expr, name: str) -> None:
        """Look at texts that a library reads: types of numbers, layouts and the like, written out."""
        if isinstance(node, ast.Name) and self._meaning(node).kind == "constant":
            node = self.values.get(node.id, node)
            if (name, node) in self.read:
                return
            self.read.add((name, node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            known = TEXTS - NOT_ON_A_WIRE if self.language.wire else TEXTS
            if node.value not in known and not (name == "einsum" and SUBSCRIPTS.fullmatch(node.value)):
                self.refuse(
                    node,
                    f"the text {node.value[:40]!r} for {name}",
                    "name a type of numbers, or leave it away",
                )
        elif isinstance(node, ast.JoinedStr):
            self.refuse(node, f"a text that is put together for {name}", "write it out")
        elif isinstance(node, ast.BinOp | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.IfExp | ast.BoolOp):
            for part in ast.iter_child_nodes(node):
                self._texts(part, name)

    def _on_Subscript(self, node: ast.Subscript) -> None:
        root = node.value
        if isinstance(root, ast.Name) and self._meaning(root).kind in ("table", "changing", "constant"):
            if not isinstance(node.ctx, ast.Load):
                self.refuse(node, f"a write to {root.id} outside the function", EVERY_CALL)
            self._read(root)
        else:
            self._visit(root)
        self._visit(node.slice)

    def _on_BinOp(self, node: ast.BinOp | ast.AugAssign) -> None:
        if isinstance(node.op, ast.MatMult) and self.language.own:
            self.refuse(node, "the operator @", "this task is to write what @ does")
        self._reads(node)

    _on_AugAssign = _on_BinOp

    def _on_Dict(self, node: ast.Dict) -> None:
        if None in node.keys:
            self.refuse(node, "**", "write the pairs out, or use update")
        self._parts(node)

    def _on_Assign(self, node: ast.Assign) -> None:
        value, named = node.value, single_value(node)
        if isinstance(value, ast.Name) and self._meaning(value).kind in ("table", "changing"):
            name = ast.unparse(node.targets[0])[:60]
            self.refuse(node, f"another name ({name}) for {value.id}, which outlives the call", A_TUPLE)
        for one in node.targets:
            self._visit(one)
        if isinstance(named, ast.Attribute) and not self._module(named.value):
            self._on_Attribute(named, called=True)  # add = row.append
        elif isinstance(named, ast.Lambda) and self.kind == "python":
            self._function(named)
        elif isinstance(value, ast.GeneratorExp) and isinstance(node.targets[0], ast.Tuple):
            self._read(value)
        else:
            self._visit(value)

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not node.simple and node.value is None:  # `(name): int` binds nothing, as name: int does
            self.refuse(node, "an annotation of what is no plain name", "leave it away", "has")
        self._annotation(node.annotation)
        self._visit(node.target)
        if node.value is not None:
            self._visit(node.value)

    def _on_comprehension(self, node: ast.expr) -> None:
        first = node.generators[0]
        self._read(first.iter)
        names = (name for part in node.generators for name in self._targets(part))
        self.scopes.append(self._scope(node, dict.fromkeys(names, LOCAL), []))
        for part in node.generators:
            if part.is_async:
                self.refuse(node, "async", "write a plain loop")
            if part is not first:
                self._read(part.iter)
            for one in (part.target, *part.ifs):
                self._visit(one)
        for one in made_by(node):
            self._visit(one)
        self.scopes.pop()

    _on_ListComp = _on_SetComp = _on_DictComp = _on_comprehension

    def _targets(self, part: ast.comprehension) -> list[str]:
        """Return the names behind `for`; `for row[0] in …` binds none, and writes."""
        for one in ast.walk(part.target):
            if isinstance(one, ast.Attribute | ast.Subscript):
                self.refuse(one, "something else than a name", "write names behind `for`", "assigns to")
        return [one.id for one in ast.walk(part.target) if isinstance(one, ast.Name)]

    def _on_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.refuse(node.decorator_list[0], "a decorator inside of a function", "leave it away", "has")
        self._function(node)

    def _on_Try(self, node: ast.Try) -> None:
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            if any(not isinstance(one, ast.Name) or one.id not in ERRORS for one in kinds):
                self.refuse(
                    handler, "except without the error that it is for", "name it: except ValueError", "has"
                )
        for body in (node.body, *(one.body for one in node.handlers), node.orelse, node.finalbody):
            for one in body:
                self._visit(one)
