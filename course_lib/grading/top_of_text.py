"""What stands outside of an answer's functions: imports and constants, and what each name there means.

A constant is made of what is written out, of other constants and of the few functions that make numbers; it
is the first half of the walk that `language` makes over a text, and knows nothing of what functions do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from course_lib.grading.program import (
    at,
    bindings,
    functions_in_full,
    has_one_argument,
    home,
    is_written_out,
    made_by,
    names_of,
)
from course_lib.grading.vocabulary import (
    ERRORS,
    INSTEAD_OF,
    LIMITS,
    MODULES,
    NOBODY_WROTE,
    NUMBER_TYPES,
    OF_ONE_NUMBER,
    READING,
    TYPES,
    VALUES,
    words,
)

if TYPE_CHECKING:
    from course_lib.grading.program import Program

UNREADABLE = "code that cannot be read is not accepted"
PARTS_OF_TEXT = "an answer is imports, constants and functions with `def`"
KERNEL_ROLE = "an answer here is imports, numbers and functions with @cuda.jit"
LONGEST_NAME = 100
#: What is not in the language, by the kind of node: its name, and what to write instead.
INSTEAD = {
    "ClassDef": ("a class", "write functions with `def`; a tuple or a dict keeps things together"),
    "AsyncFunctionDef": ("an async function", "write a plain `def`"),
    "Await": ("await", "write a plain `def`"),
    "Yield": ("yield (a generator)", "put the values into a list and return that"),
    "YieldFrom": ("yield (a generator)", "put the values into a list and return that"),
    "Global": ("global", "hand values over as arguments, and return results"),
    "Nonlocal": ("nonlocal", "hand values over as arguments, and return results"),
    "Delete": ("del", "make a new list without it, or use pop"),
    "MatchClass": ("a pattern of a class", "ask isinstance"),
    "MatchMapping": ("a pattern of a dict", "write if and elif"),
    "Lambda": ("a lambda", "write a function with `def`; behind key= and in map a lambda may stand"),
    "GeneratorExp": ("a generator", "write a list: [… for … in …]"),
    "TryStar": ("except*", "write except"),
}
CONSTANT_PARTS = (
    *(ast.Constant, ast.List, ast.Set, ast.Dict, ast.Tuple),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice),
)
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
#: More than one thing, and what makes such.
MANY = ast.List | ast.Tuple | ast.Set | ast.Dict | COMPREHENSIONS
MAKE_MANY = words("range tuple list set frozenset dict sorted bytes frexp modf")
INFOS = words("numpy.finfo numpy.iinfo")
NUMPYS_NUMBERS = INFOS | {f"numpy.{one}" for one in OF_ONE_NUMBER}


class NotInLanguage(Exception):
    """The sentence on what is not in the language."""


@dataclass(frozen=True)
class Meaning:
    """What a name stands for: `what` is the dotted name of something imported.

    A constant cannot change; a table is a list, set or dict of constants; "changing" is all other data.
    """

    kind: str  # module, part (of a module), builtin, function, constant, table, changing, local
    what: str = ""


LOCAL, FUNCTION = Meaning("local"), Meaning("function")
#: Local names that may be called: `add` after add = row.append, and what a helper is given.
METHOD, PARAMETER = Meaning("method"), Meaning("parameter")
NOBODYS = Meaning("nobody's")  # running it says so
#: What a loop outside of functions goes through.
NUMBER, ROW = Meaning("constant"), Meaning("constant", "it may be many")
NUMPY_ROW = Meaning("constant", "it may be many, or a number of NumPy's")
CALLED = (FUNCTION, METHOD, PARAMETER, NOBODYS)
STEADY = ("constant", "table", "changing")  # of constants, the one that is easiest to change last


class TopOfText:
    """The statements outside of functions, read one by one into `top`: what each name means.

    What is inside of an expression the reading of functions looks at: `_visit` and the like.
    """

    def __init__(self, language: Any, program: Program) -> None:  # a Language, which knows this file
        self.language, self.kind, self.program = language, language.kind, program
        self.top: dict[str, Meaning] = {}
        self.values: dict[str, ast.expr] = {}
        self.held: dict[ast.AST, tuple[bool, bool]] = {}
        self.scopes: list[dict[str, Meaning]] = []
        self.given = functions_in_full(language.given)
        self.methods, self.data, self.itself = language.methods, language.data, language.itself

    def refuse(self, node: ast.AST, what: str, why: str = "", verb: str = "uses") -> NoReturn:
        """End the walk with a sentence: what the answer does, where, and why not or what instead."""
        raise NotInLanguage(
            f"Your answer {verb} {what}{at(node, self.program.source)}: {why or self.language.why}."
        )

    def _no_function(self) -> str:
        entry = self.program.entry
        if self.kind == "kernel":
            return f"Your answer has no kernel `{entry}`: write `def {entry}(...)` and @cuda.jit above it."
        return f"{entry} is no function of its own: write it with `def {entry}(…)`, at the top of a cell."

    def _top(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name, meaning in self._imported(statement):
                self._bind(statement, name, meaning)
        elif isinstance(statement, ast.FunctionDef):
            self._bind(statement, statement.name, FUNCTION)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            if isinstance(statement, ast.AnnAssign):
                self._annotation(statement.annotation)
            self._constants(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            what, instead = INSTEAD.get(
                type(statement).__name__, (f"a statement ({type(statement).__name__.lower()})", "")
            )
            role = KERNEL_ROLE if self.kind == "kernel" else instead or PARTS_OF_TEXT
            self.refuse(statement, f"{what} outside of its functions", role, "has")

    def _constants(self, statement: ast.Assign | ast.AnnAssign) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
                self._visit(node)
                self.refuse(node, "something else than a name", PARTS_OF_TEXT, "assigns to")
        for name, value in dict(bindings(statement)).items():
            if name == self.program.entry:
                raise NotInLanguage(self._no_function())
            if value is None:
                self.refuse(
                    statement, f"{name} for a part of a tuple", "write one value beside each name", "has"
                )
            self._bind(statement, name, Meaning(self._constant(value, name)))
            self.values[name] = value
            self._holds(value)

    def _bind(self, node: ast.AST, name: str, meaning: Meaning) -> None:
        """Give a name its only meaning, so that what is read here is what runs."""
        self._name_is_fine(node, name)
        if name in self.given and ast.dump(node) != self.given[name]:
            self._changes(name)
        if self.top.get(name, meaning) != meaning or name in self.values:
            self.refuse(node, f"a second meaning of the name {name}", "give one of them another name", "has")
        self.top[name] = meaning

    def _changes(self, name: str) -> NoReturn:
        raise NotInLanguage(f"Your answer changes {name}, which is given: leave it as it is.")

    def _name_is_fine(self, node: ast.AST, name: str) -> None:
        if name.startswith("__"):
            self.refuse(node, name, UNREADABLE)
        if len(name) > LONGEST_NAME:
            self.refuse(node, f"a name of {len(name)} letters", UNREADABLE)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Meaning]]:
        """Yield (name, meaning) for what an import binds."""
        plain = isinstance(node, ast.Import)
        allowed = frozenset() if plain else self._module_is_allowed(node, home(node))
        for name, dotted in names_of(node):
            last = dotted.rpartition(".")[2]
            if plain or self.language.names(dotted) is not None:
                self._module_is_allowed(node, dotted)
                yield name, Meaning("module", dotted)
            elif last not in allowed:
                self.refuse(node, dotted, self._why(last))
            elif home(node) != "__future__":
                yield name, Meaning("part", dotted)
        for one in node.names if plain else ():
            self._module_is_allowed(node, one.name)

    def _module_is_allowed(self, node: ast.AST, module: str) -> frozenset[str]:
        names = self.language.names(module)
        if names is None and module.partition(".")[0] in self.language.modules:
            self.refuse(node, module, self._why(module.rpartition(".")[2]))
        if names is None:
            allowed = ", ".join(self.language.modules) or "nothing but plain Python"
            self.refuse(node, module, INSTEAD_OF.get(module, f"allowed is {allowed}"), "imports")
        return names

    def _why(self, name: str) -> str:
        if self.language.wire and name in ("empty", "empty_like"):
            return NOBODY_WROTE
        return self.language.own if name in self.itself else INSTEAD_OF.get(name, self.language.why)

    # --- constants ---

    def _constant(self, node: ast.expr, name: str) -> str:
        """Return how steady a value is that is computed while the text is loaded; refuse no constants."""
        if self._is_limit(node):  # np.finfo(np.float32).eps
            return self._constant(node.value.args[0], name)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named_constant(node, name)
        if isinstance(node, ast.Constant):
            self._on_Constant(node)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp) and self.kind != "kernel":
            return self._made_of(node, name)
        if isinstance(node, ast.Call):
            return self._called_constant(node, name)
        if not isinstance(node, CONSTANT_PARTS):
            self._no_constant(node, name)
        parts = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
        worst = max({"constant", *(self._constant(one, name) for one in parts)}, key=STEADY.index)
        if isinstance(node, ast.BinOp | ast.Compare) and self._makes_array(node):
            return "changing"
        if isinstance(node, ast.List | ast.Set | ast.Dict | ast.Tuple):
            steady = "constant" if isinstance(node, ast.Tuple) else "table"
            return steady if worst == "constant" else "changing"
        part = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)
        if part and self._holds(node.value)[1] and not ast.unparse(node.slice).lstrip("-").isdecimal():
            return "changing"  # np.float64(1)[None] is an array
        return "constant" if worst == "table" and (part or isinstance(node, ast.Compare)) else worst

    def _called_constant(self, node: ast.Call, name: str) -> str:
        steady = self._makes(node.func)
        if steady == "changing" and self.kind == "loops":
            given = [*node.args, *(one.value for one in node.keywords if one.arg != "dtype")]
            types = [one.value for one in node.keywords if one.arg == "dtype"]
            small = self._dotted(node.func) == "numpy.array" and len(node.args) == 1
            small = small and all(map(is_written_out, given)) and all(map(self._is_a_type, types))
            steady = "constant" if small else ""
        if not steady:
            self._no_constant(node, name)
        found = [self._items(one, name) for one in (*node.args, *(one.value for one in node.keywords))]
        return "changing" if "changing" in found or self._keeps(node, found) else steady

    def _keeps(self, call: ast.Call, found: list[str]) -> bool:
        """Whether the result can change: a slice keeps a list, a type of numbers makes an array of many."""
        called = self._dotted(self._value(call.func) or call.func)
        if called.rpartition(".")[2] in NUMBER_TYPES:
            return self._makes_array(call)
        if called in NUMPYS_NUMBERS:
            return not has_one_argument(call) or self._makes_array(call)
        chooses = called in ("min", "max") and len(call.args) > 1
        reads = not chooses and ("." in called or called in READING | {"bytes"})
        computes = called in ("pow", "sum") and self._makes_array(call)
        return computes or "table" in found[len(call.args[:1]) if reads else 0 :]

    def _makes_array(self, node: ast.AST) -> bool:
        """Whether NumPy's numbers meet many, as in float64(1) + (2, 3): that is an array."""
        return self._holds(node) == (True, True)

    def _holds(self, node: ast.AST) -> tuple[bool, bool]:
        """Whether there are many things in a value, and NumPy's numbers; each node is looked at once."""
        if node not in self.held:
            last, value = self._dotted(node).rpartition(".")[2], self._value(node)
            many = isinstance(node, MANY) or last in MAKE_MANY | {ROW.what, NUMPY_ROW.what}
            numpy = last in NUMBER_TYPES | {NUMPY_ROW.what}
            numpy |= isinstance(node, ast.Call) and self._dotted(node.func) in NUMPYS_NUMBERS
            inside = map(self._holds, [value] if value else ast.iter_child_nodes(node))
            self.held[node] = tuple(map(any, zip((many, numpy), *inside, strict=True)))
        return self.held[node]

    def _items(self, node: ast.expr, name: str) -> str:
        """The same of what a call or a loop goes through: a generator or a zip ends there."""
        if isinstance(node, ast.GeneratorExp) and self.kind != "kernel":
            return self._made_of(node, name)
        goes = isinstance(node, ast.Call) and not node.keywords
        if goes and self._dotted(node.func) in ("zip", "enumerate", "reversed"):
            return max({"constant", *(self._items(one, name) for one in node.args)}, key=STEADY.index)
        return self._constant(node, name)

    def _made_of(self, node: ast.expr, name: str) -> str:
        """Return how steady a comprehension is: a table if all is constant that it makes."""
        scope: dict[str, Meaning] = {}
        self.scopes.append(scope)
        for part in node.generators:
            changing = self._items(part.iter, name) == "changing"
            row = NUMPY_ROW if self._holds(part.iter)[1] else ROW
            one = NUMBER if isinstance(part.target, ast.Name) and self._are_numbers(part.iter) else row
            scope.update(dict.fromkeys(self._targets(part), Meaning("changing") if changing else one))
            for one in part.ifs:
                self._constant(one, name)
        found = max((self._constant(one, name) for one in made_by(node)), key=STEADY.index)
        self._holds(node)  # while it is known what the names stand for
        self.scopes.pop()
        return "table" if found == "constant" else "changing"

    def _are_numbers(self, node: ast.expr) -> bool:
        """Whether a loop goes through plain numbers, written out or counted."""
        if isinstance(node, ast.List | ast.Tuple):
            signed = (getattr(one, "operand", one) for one in node.elts)  # -1
            return all(isinstance(getattr(one, "value", None), int | float) for one in signed)
        return isinstance(node, ast.Call) and self._dotted(node.func) == "range"

    def _is_a_type(self, node: ast.expr) -> bool:
        """Whether this names one type of numbers: "9999999f8" makes a large array of a small one."""
        value = self._value(node) or node
        named = self._dotted(value) if isinstance(value, ast.Name | ast.Attribute) else ""
        text = value.value if isinstance(value, ast.Constant) else ""
        return named in ("float", "int", "bool") or {named.rpartition(".")[2], text} & NUMBER_TYPES != set()

    def _is_limit(self, node: ast.expr) -> bool:
        is_part = isinstance(node, ast.Attribute) and node.attr in LIMITS and isinstance(node.value, ast.Call)
        is_known = is_part and self._dotted(node.value.func) in INFOS and has_one_argument(node.value)
        return is_known and "finfo" in (self.language.names("numpy") or ())

    def _no_constant(self, node: ast.AST, name: str) -> NoReturn:
        if isinstance(node, ast.Attribute):
            self._on_Attribute(node, called=True)
        if isinstance(node, ast.Lambda):
            self.refuse(node, f"a lambda called {name}", INSTEAD["Lambda"][1], "has")
        wanted = "write numbers, texts, or tuples of them, and compute the rest in a function"
        self.refuse(node, f"`{name} = …` with something else than a constant", wanted, "has")

    def _named_constant(self, node: ast.Name | ast.Attribute, name: str) -> str:
        meaning = self._meaning(node) if isinstance(node, ast.Name) else LOCAL
        if meaning.kind in STEADY:
            return meaning.kind
        plain = meaning.kind == "builtin" and meaning.what in TYPES | ERRORS
        last = self._dotted(node).rpartition(".")[2]
        if last in ("mgrid", "ogrid"):
            return "changing"
        return "constant" if plain or last in VALUES else self._no_constant(node, name)

    def _makes(self, called: ast.expr) -> str:
        """Return how steady the result of a call is that may stand outside of functions; "" if none may."""
        module, _, last = self._dotted(self._value(called) or called).rpartition(".")  # T = np.float32; T(0)
        if not module:
            fixed = last in TYPES or last in ("abs", "min", "max", "round", "len", "sum", "pow")
            return "table" if last in ("list", "set", "dict", "sorted") else "constant" if fixed else ""
        if last in NUMBER_TYPES or (module == "math" and last in MODULES["math"]):
            return "constant"
        if module == "numpy" and last in OF_ONE_NUMBER and last in self.language.names(module):
            return "constant"
        arrays = ("array", "arange", "zeros", "ones", "full", "eye", "linspace")
        return "changing" if module == "numpy" and last in arrays and "numpy" in self.language.modules else ""
