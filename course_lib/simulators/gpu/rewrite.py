"""A kernel's text rewritten for lanes in lockstep.

Every local variable becomes a value over all lanes, every statement runs under the mask `m` of the lanes that
take part, and control flow makes smaller masks. What a statement needs to know of its place – its line, what
was counted there last – is bound to names such as `_site4`, made anew for each batch of blocks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from course_lib.simulators.gpu.arrays import ArrayPart, Site, Triple
from course_lib.simulators.gpu.expressions import Expressions, has_slice
from course_lib.simulators.gpu.lanes import UNDEFINED, WhileLoop
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.source import NotTraceable, Source
from course_lib.simulators.gpu.variables import may_leave

# -- statements: each under the mask `m` of who takes part ---------------------------------------------------


class Writer(Expressions):
    """Writes one function."""

    def text(self) -> str:
        """Return the function's text."""
        parameters = [f"v_{name}" for name in self.source.parameters]
        self.lines.append(f"def {self.name}(m, {', '.join(parameters)}):")
        for name in sorted(self.locals - set(self.source.parameters)):
            self.put(f"v_{name} = UNDEFINED")
        self.put("_result, _entered = UNDEFINED, m")
        if not self.is_kernel and self.called_at is None:
            self.put(f"L.file = {self.source.file!r}")
        self.block(self.source.node.body)
        said = f"what {self.source.name}() returns"
        self.put(f"return None if _result is UNDEFINED else L.defined(_entered, _result, {said!r})")
        return "\n".join(self.lines)

    # -- statements ----------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> None:
        """Write a block; what follows a statement that lanes may leave at runs only if some are left."""
        outer, indent = self.region, self.indent
        self.region = self.regions.of(body)
        self.put(f"_h{self.region.number} = m")
        for number, statement in enumerate(body):
            self.statement(statement)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
            if may_leave(statement):
                self.put(f"_h{self.region.number} = m")
                if number + 1 < len(body):
                    self.put("if m:")
                    self.indent += 1
                    self.put("pass")  # as what follows may have no text
        self.region, self.indent = outer, indent

    def statement(self, node: ast.stmt) -> None:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Pass) or is_text:
            return
        method = self.method_for("do", node)
        if self.called_at is None:
            line = node.lineno
            row = self.program.bind("line", lambda machine: machine.tally.line(line))
            self.put(f"L.line = {line}; {row}.warps += m.warps; {row}.threads += m.count")
        method(node)

    def do_Expr(self, node: ast.Expr) -> None:
        self.put(self.expression(node.value))

    def do_Assert(self, node: ast.Assert) -> None:
        """Assertions are left out, as in a kernel compiled without debug=True, which is said."""
        self.put("L.left_out(m, 'assert')")

    def do_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        if node.value is None:
            return
        self.target_name = targets[0].id if isinstance(targets[0], ast.Name) else ""
        value = self.expression(node.value)
        self.target_name = ""
        if len(targets) > 1 or isinstance(targets[0], ast.Tuple | ast.List):
            held = self.fresh("t")
            self.put(f"{held} = {value}")
            value = held
        for target in targets:
            self.assign(target, value)

    do_AnnAssign = do_Assign

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        op = self.operator(node.op)
        if isinstance(node.target, ast.Name):
            value = self.expression(node.value)
            self.assign(node.target, f"{op}(m, {self.name_of(node.target)}, {value})")
        elif isinstance(node.target, ast.Subscript):
            array, index, value = self.fresh("t"), self.fresh("t"), self.fresh("t")
            self.put(f"{array} = {self.expression(node.target.value)}")
            self.put(f"{index} = {self.index(node.target.slice)}")
            load = self.access(node, node.target.value, "load")
            self.put(f"{value} = {op}(m, L.load({load}, m, {array}, {index}), {self.expression(node.value)})")
            store = self.access(node, node.target.value, "store")
            self.put(f"L.store({store}, m, {array}, {index}, {value})")
        else:
            self.refuse(node, "only variables and elements of arrays can be assigned to.")

    def assign(self, target: ast.expr, value: str) -> None:
        """Write the assignment of a value to a variable, an element or several of them."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = self.fresh("t")
            self.put(f"{parts} = L.unpacked({value}, {len(target.elts)})")
            for number, element in enumerate(target.elts):
                self.assign(element, f"{parts}[{number}]")
        elif isinstance(target, ast.Subscript):
            if has_slice(target.slice):
                self.refuse(target, "a slice is assigned to; write a loop over its elements.")
            site = self.access(target, target.value, "store")
            array, index = self.expression(target.value), self.index(target.slice)
            self.put(f"L.store({site}, m, {array}, {index}, {value})")
        else:
            self.refuse(target, "only variables and elements of arrays can be assigned to.")

    def assign_name(self, name: str, value: str) -> None:
        home, is_sure = self.regions.home(name)
        if home is self.region:
            self.put(f"v_{name} = {value}")
            return
        held, everyone = self.fresh("t"), f"_h{home.number}"
        self.put(f"{held} = {value}")
        merged = "merge(m, {0}, {1})" if is_sure else "assigned(m, {0}, {1}, {2})"
        merged = merged.format(held, f"v_{name}", everyone)
        self.put(f"v_{name} = {held} if m is {everyone} else L.{merged}")

    def do_If(self, node: ast.If) -> None:
        branch = self.branch(node)
        before, other, after = self.fresh("m"), self.fresh("m"), self.fresh("m")
        condition = self.expression(node.test)
        self.put(f"{before} = m")
        self.put(f"m, {other} = L.split({branch}, m, {condition})")
        self.inner(node.body)
        if may_leave(node):
            self.put(f"{after} = m")
            self.put(f"m = {other}")
            self.inner(node.orelse)
            self.put(f"m = m.joined({after})")
        else:
            if node.orelse:
                self.put(f"m = {other}")
                self.inner(node.orelse)
            self.put(f"m = {before}")

    def inner(self, body: list[ast.stmt]) -> None:
        """Write a branch: it runs if it has a lane."""
        if not body:
            return
        self.put("if m:")
        self.indent += 1
        self.block(body)
        self.indent -= 1

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node, "for … else is not supported in a traced kernel.")
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "a for loop has one variable in a traced kernel.")
        turns = self.turns(node)
        loop = self.fresh("loop")
        self.put(f"{loop} = {turns}")
        self.loops.append(loop)
        self.put(f"while {loop}.step():")
        self.loop_body(node, loop, node.target.id)
        self.loops.pop()

    def turns(self, node: ast.For) -> str:
        """Return the text that makes the turns of a for loop: over range(…), or over a tuple of numbers."""
        over = node.iter
        if isinstance(over, ast.Call) and self.static(over.func) is range:
            if over.keywords or not 1 <= len(over.args) <= 3:
                self.refuse(node, "range() takes one to three numbers.")
            bounds = ", ".join(self.expression(bound) for bound in over.args)
            return f"L.loop({self.branch(node)}, m, {bounds})"
        if isinstance(over, ast.Tuple | ast.Name | ast.Attribute):
            return f"L.loop_over(m, {self.expression(over)})"
        return self.refuse(node, "a for loop must go over range(…) or a tuple of numbers in a traced kernel.")

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.refuse(node, "while … else is not supported in a traced kernel.")
        loop = self.fresh("loop")
        self.put(f"{loop} = WhileLoop(L, {self.branch(node)}, m)")
        self.loops.append(loop)  # the condition is part of every turn
        self.put(f"while {loop}.test(lambda m: {self.expression(node.test)}):")
        self.loop_body(node, loop)
        self.loops.pop()

    def loop_body(self, node: ast.For | ast.While, loop: str, variable: str = "") -> None:
        self.indent += 1
        self.put(f"m = {loop}.m")
        if variable:  # is assigned in every turn
            outer, self.region = self.region, self.regions.of(node.body)
            self.put(f"_h{self.region.number} = m")
            self.assign_name(variable, f"{loop}.k")
            self.region = outer
        self.block(node.body)
        self.indent -= 1
        self.put(f"m = {loop}.out()")

    def do_Break(self, node: ast.Break) -> None:
        self.put(f"{self.loops[-1]}.drop(m)")
        self.put("m = _nobody")

    def do_Continue(self, node: ast.Continue) -> None:
        self.put("m = _nobody")

    def do_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            if self.is_kernel:
                self.refuse(node, "a kernel returns nothing: store the result into an array.")
            held = self.fresh("t")
            self.put(f"{held} = {self.expression(node.value)}")
            self.put(f"_result = L.assigned(m, {held}, _result, _entered)")
        for loop in self.loops:
            self.put(f"{loop}.end(m)")
        if self.is_kernel:
            self.put("L.leave(m)")
        self.put("m = _nobody")


# -- the whole kernel ----------------------------------------------------------------------------------------


class LockstepProgram:
    """A kernel and its device functions as Python text, with what the names in it stand for."""

    def __init__(self, kernel: Any) -> None:
        self.source = Source(kernel)
        self.makers: dict[str, Callable[[LaneMachine], Any]] = {}
        self.functions: list[str] = []
        self._made: dict[tuple[Callable, int | None], tuple[str, dict[str, set[str]]]] = {}
        self._open: list[Callable] = []
        self.site_count = 0
        self.entry, self.uses = self.add(self.source, self.source.node, is_kernel=True)
        self.text = "\n\n".join(self.functions)
        self.code = compile(self.text, f"<{self.source.name}, in lockstep>", "exec")

    def bind(self, prefix: str, maker: Callable[[LaneMachine], Any]) -> str:
        """Return a new name for what `maker` makes for a machine."""
        name = f"_{prefix}{len(self.makers)}"
        self.makers[name] = maker
        return name

    def site(self, line: int, kind: str, loops: tuple[str, ...] = ()) -> str:
        """Return the name of a new place of access."""
        self.site_count += 1
        number = self.site_count

        def make(machine: LaneMachine) -> Site:
            site = machine.tally.sites.setdefault(number, Site(line, kind, number, loops))
            site.place = None
            return site

        return self.bind("site", make)

    def add(
        self, source: Source, node: ast.AST, is_kernel: bool = False, line: int | None = None
    ) -> tuple[str, dict[str, set[str]]]:
        """Rewrite a function, unless it has been; return its name in the text, and its `uses`.

        line: where the kernel calls a function that stands elsewhere; None for one that stands with it.
        """
        function = source.function  # not its code, which functions made by one factory share
        if function in self._open:
            source.refuse(node, f"{source.name} calls itself; a kernel cannot be recursive.")
        key = function, line
        if key not in self._made:
            self._open.append(function)
            name = f"_f{len(self._made) + len(self._open)}_{source.name}"
            writer = Writer(self, source, name, is_kernel, line)
            self.functions.append(writer.text())
            self._made[key] = name, writer.uses
            self._open.pop()
        return self._made[key]

    def start(self, machine: LaneMachine, arguments: list[Any]) -> None:
        """Run the kernel on a machine's lanes."""
        machine.file = self.source.file
        names: dict[str, Any] = {
            "L": machine,
            "UNDEFINED": UNDEFINED,
            "WhileLoop": WhileLoop,
            "_nobody": machine.nobody,
            **{name: make(machine) for name, make in self.makers.items()},
        }
        exec(self.code, names)
        try:
            names[self.entry](machine.start, *arguments)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as problem:
            raise NotTraceable(_in_a_sentence(problem), machine.file, machine.line) from problem
        machine.finish()


def _in_a_sentence(problem: Exception) -> str:
    """Say what is wrong with a line that the lanes' vectors cannot carry out."""
    said = str(problem)
    if ArrayPart.__name__ in said:
        return "a row of an array is used like a number here: give an index for each of its dimensions."
    if Triple.__name__ in said:
        return "threadIdx, blockIdx, blockDim and gridDim are no numbers: write .x, .y or .z behind them."
    if "truth value of an array" in said:
        return (
            "this line tests or compares several numbers of a thread at once, in a tuple: test them one by "
            "one, with `and` and `or`."
        )
    return f"this line cannot be run in lockstep ({type(problem).__name__}: {problem})."
