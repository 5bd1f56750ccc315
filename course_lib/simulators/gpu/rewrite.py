"""A kernel's text rewritten for lanes in lockstep.

Every local variable becomes a value over all lanes, every statement runs under the mask `m` of the lanes that
take part, and control flow makes smaller masks. What a statement needs to know of its place – its line, what
was counted there last – is bound to names such as `_site4`, made anew for each batch of blocks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from course_lib.simulators.gpu.arrays import Part
from course_lib.simulators.gpu.lanes import UNDEFINED
from course_lib.simulators.gpu.machine import Machine
from course_lib.simulators.gpu.places import Site
from course_lib.simulators.gpu.refusal import NotTraceable
from course_lib.simulators.gpu.source import Source
from course_lib.simulators.gpu.statements import Writer
from course_lib.simulators.gpu.uses import Uses, of_parameters


class Program:
    """A kernel and its device functions as Python text, with what the names in it stand for."""

    def __init__(self, kernel: Any) -> None:
        self.source = Source(kernel)
        self.makers: dict[str, Callable[[Machine], Any]] = {}
        self.functions: list[str] = []
        self._made: dict[tuple[Callable, int | None], str] = {}
        self._open: list[Callable] = []
        self.site_count = 0
        self._uses: dict[str, Uses] = {}
        self.entry = self.add(self.source, self.source.node, is_kernel=True)
        self.text = "\n\n".join(self.functions)
        self.uses = of_parameters(self._uses, self.entry)
        self.code = compile(self.text, f"<{self.source.name}, in lockstep>", "exec")

    def bind(self, prefix: str, maker: Callable[[Machine], Any]) -> str:
        """Return a new name for what `maker` makes for a machine."""
        name = f"_{prefix}{len(self.makers)}"
        self.makers[name] = maker
        return name

    def site(self, line: int, kind: str, loops: tuple[str, ...] = ()) -> str:
        """Return the name of a new place of access."""
        self.site_count += 1
        number = self.site_count

        def make(machine: Machine) -> Site:
            sites = machine.tally.sites
            sites.extend([None] * (number + 1 - len(sites)))
            if sites[number] is None:
                sites[number] = Site(line, kind, number, loops)
            sites[number].place = None
            return sites[number]

        return self.bind("site", make)

    def add(self, source: Source, node: ast.AST, is_kernel: bool = False, line: int | None = None) -> str:
        """Rewrite a function, unless it has been already; return its name in the text.

        line: where the kernel calls a function that stands elsewhere; None for one that stands with it.
        """
        function = source.function  # not its code, which functions made by one factory share
        if function in self._open:
            source.refuse(node, f"{source.name} calls itself; a kernel cannot be recursive.")
        key = function, line
        if key not in self._made:
            self._open.append(function)
            name = f"_f{len(self._made)}_{source.name}"
            self._made[key] = name
            writer = Writer(self, source, name, is_kernel, line)
            self._uses[name] = writer.uses
            self.functions.append(writer.text())
            self._open.pop()
        return self._made[key]

    def start(self, machine: Machine, arguments: list[Any]) -> None:
        """Run the kernel on a machine's lanes."""
        machine.file = self.source.file
        names: dict[str, Any] = {
            "L": machine,
            "UNDEFINED": UNDEFINED,
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
    if Part.__name__ in said:
        return "a row of an array is used like a number here: give an index for each of its dimensions."
    if "truth value of an array" in said:
        return (
            "this line tests or compares several numbers of a thread at once, in a tuple: test them one by "
            "one, with `and` and `or`."
        )
    return f"this line cannot be run in lockstep ({type(problem).__name__}: {problem})."
