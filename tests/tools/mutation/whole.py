"""Operators on a function as a whole: its result and its inputs.

Which of them make sense depends on what the function takes and gives, so they are shown one example.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

Changed = Iterator[tuple[str, str]]  # name of the fault, source text

#: What is done to a result by mistake, by its kind.
MATRIX = {  # a list of lists
    "transposed": "[list(row) for row in zip(*result)]",
    "a tuple of tuples": "tuple(tuple(row) for row in result)",
    "rows are tuples": "[tuple(row) for row in result]",
    "flat": "[c for row in result for c in row]",
    "wrapped": "[result]",
    "one row for all": "[result[0]] * len(result) if result else result",
    "first row missing": "result[1:]",
    "last row missing": "result[:-1]",
    "first column missing": "[row[1:] for row in result]",
    "last column missing": "[row[:-1] for row in result]",
    "a row more": "result + [[0.0] * len(row) for row in result[:1]]",
    "a column more": "[row + [0.0] for row in result]",
    "rows reversed": "result[::-1]",
    "columns reversed": "[row[::-1] for row in result]",
    "rows sorted": "sorted(result)",
    "sign": "[[-c for c in row] for row in result]",
    "no sign": "[[abs(c) for c in row] for row in result]",
    "rounded": "[[round(c, 6) for c in row] for row in result]",
    "whole numbers": "[[int(c) for c in row] for row in result]",
    "float32": "[[float('%.7g' % c) for c in row] for row in result]",
    "text": "[[str(c) for c in row] for row in result]",
    "NaN is 0": "[[c if c == c else 0.0 for c in row] for row in result]",
    "None": "None",
}
ARRAY = {
    "transposed": "result.T",
    "transposed copy": "result.T.copy()",
    "float32": "result.astype(np.float32)",
    "float64": "result.astype(np.float64)",
    "through float32": "result.astype(np.float32).astype(result.dtype)",
    "whole numbers": "result.astype(np.int64)",
    "flat": "result.ravel()",
    "wrapped": "(result,)",
    "first row missing": "result[1:]",
    "last row missing": "result[:-1]",
    "first column missing": "result[:, 1:]",
    "last column missing": "result[:, :-1]",
    "rows reversed": "result[::-1]",
    "columns reversed": "result[:, ::-1]",
    "sign": "-result",
    "no sign": "np.abs(result)",
    "rounded": "np.rint(result * 1000) / 1000",
    "NaN is 0": "np.where(np.isnan(result), 0 * np.ones_like(result), result)",
    "inf is NaN": "np.where(np.isinf(result), np.nan * np.ones_like(result), result)",
    "None": "None",
}
NUMBER = {
    "sign": "-result",
    "no sign": "abs(result)",
    "rounded": "round(result, 6)",
    "whole number": "int(result)",
    "float32": "float('%.7g' % result)",
    "text": "str(result)",
    "wrapped": "[result]",
    "NaN is 0": "result if result == result else 0.0",
    "None": "None",
}
PAIR = {
    "reversed": "result[::-1]",
    "last missing": "result[:-1]",
    "one more": "tuple(result) + (0,)",
    "wrapped": "[result]",
    "None": "None",
}
#: What is done to one entry of a tuple by mistake; the float ones only to floats.
ENTRY = {"sign": "-{}", "one more": "{} + 1", "text": "str({})", "None": "None"}
FLOAT_ENTRY = {"rounded": "round({}, 3)", "whole number": "int({})", "float32": "float('%.7g' % {})"}


def whole_faults(tree: ast.Module, entry: str, args: tuple, value: Any) -> Changed:
    """Yield the faults of the function `entry` as a whole; `args` and `value` are one example of its use."""
    yield from _of_result(tree, entry, value)
    yield from _of_inputs(tree, entry, args, value)


def _of_result(tree: ast.Module, entry: str, value: Any) -> Changed:
    for name, wrong in _wrong_results(value):
        yield f"result: {name}", _returning(tree, entry, [f"return {wrong}"])
    if isinstance(value, list):
        turned = "import numpy\n" + _returning(tree, entry, ["return numpy.array(result)"])
        yield "result: an array", turned


def _wrong_results(value: Any) -> Changed:
    if isinstance(value, tuple):
        yield from PAIR.items()
        for place, one in enumerate(value):
            for name, wrong in _wrong_entries(one):
                left = "".join(f"result[{n}], " for n in range(place))
                right = "".join(f", result[{n}]" for n in range(place + 1, len(value)))
                yield f"entry {place}: {name}", f"({left}{wrong.format(f'result[{place}]')}{right})"
    elif isinstance(value, np.ndarray):
        yield from ARRAY.items()
    else:
        yield from (MATRIX if isinstance(value, list) else NUMBER).items()


def _wrong_entries(one: Any) -> Changed:
    if isinstance(one, str):
        yield "None", "None"
        yield "longer", "{} + ' '"
        return
    yield from ENTRY.items()
    if isinstance(one, float):
        yield from FLOAT_ENTRY.items()


def _of_inputs(tree: ast.Module, entry: str, args: tuple, value: Any) -> Changed:
    function = _function(tree, entry)
    for parameter, given in zip(function.args.args, args, strict=False):
        name = parameter.arg
        for how, line in _changes(name, given):
            yield f"input: {name} {how}", _returning(tree, entry, [line, "return result"])
        if isinstance(given, list | np.ndarray) and type(given) is type(value):
            yield f"input: {name} returned", _returning(tree, entry, [f"return {name}"])
            size = f"np.shape({name}) == np.shape(result)"
            if isinstance(given, list):
                size = f"len({name}) == len(result)"
            into = [f"if {size}:", f"    {name}[:] = result", f"    return {name}", "return result"]
            yield f"input: {name} takes the result", _returning(tree, entry, into)


def _changes(name: str, given: Any) -> Changed:
    """Yield statements that change an argument."""
    if isinstance(given, list):
        yield "longer", f"{name}.extend({name}[:1])"
        yield "emptied", f"{name}.clear()"
        yield "reversed", f"{name}.reverse()"
        yield "sorted", f"{name}.sort()"
        if given and isinstance(given[0], list):
            yield "with rows reversed", f"[row.reverse() for row in {name}]"
            yield "with a row longer", f"[row.append(0.0) for row in {name}[-1:]]"
    elif isinstance(given, np.ndarray):
        yield "doubled", f"{name} *= 2"
        yield "zeroed", f"{name}[:] = 0"
        yield "with its last row zeroed", f"{name}[-1:] = 0"
        yield "with its first column negated", f"{name}[:, :1] *= -1"


def _returning(tree: ast.Module, entry: str, lines: list[str]) -> str:
    """Return the text with `result = …` and these lines in place of every return of the entry."""
    text = "\n".join(lines)

    class Returns(ast.NodeTransformer):
        def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
            found = ast.unparse(node.value) if node.value else "None"
            return ast.parse(f"result = {found}\n{text}").body

    copy = ast.parse(ast.unparse(tree))
    Returns().visit(_function(copy, entry))
    return ast.unparse(copy)


def _function(tree: ast.Module, entry: str) -> ast.FunctionDef:
    """Return the last definition of a function at the top level."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry][-1]
