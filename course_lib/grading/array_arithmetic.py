"""A compiler that refuses arithmetic with arrays, for tasks that are to write the loops.

Numba knows the type of all that it compiles, behind every name and in every helper. What multiplies two
arrays does a part of the product for the learner, whatever loops stand around it. One number times a row
leaves the innermost loop to NumPy: that far an answer may go.
"""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder, PassManager
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference
from numba.extending import overload
from numba.np.numpy_support import as_dtype

SUMS = (operator.add, operator.iadd, operator.sub, operator.isub, operator.pos, operator.neg)
SCALING = (operator.mul, operator.imul, operator.truediv, operator.itruediv)
NO_ARITHMETIC = (operator.is_, operator.is_not)
ARITHMETIC = (pow, divmod)  # beside NumPy's functions, of what is called
INSTEAD = "write the loops; one number times a row is as far as a slice may go"


class NotByHand(Exception):
    """A sentence on what is to be written by hand; Numba puts words before it."""

    def __str__(self) -> str:
        return self.args[0].splitlines()[-1]


class Rows(CompilerBase):
    """Numba's compiler, but arrays are only added up, or multiplied by one number."""

    def define_pipelines(self) -> list[PassManager]:
        """Look at the arithmetic once all types are known, and before any of it is put together."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Look, NopythonTypeInference)
        passes.finalize()
        return [passes]


@register_pass(mutates_CFG=False, analysis_only=True)
class _Look(FunctionPass):
    _name = "look_at_the_arithmetic"

    def __init__(self) -> None:  # abstract in Numba's class
        FunctionPass.__init__(self)

    def run_pass(self, state) -> bool:
        """Raise NotByHand for the first thing that is computed with arrays, or cannot be looked at."""
        for block in state.func_ir.blocks.values():
            for one in block.find_exprs():
                kinds = [state.typemap[name.name] for name in one.list_vars()]
                what = _fault(one, kinds)
                if what:
                    code = linecache.getline(one.loc.filename, one.loc.line).strip()
                    raise NotByHand(f"Your answer {what} in `{code}`: {INSTEAD}.")
        return False


def _fault(one, kinds: list) -> str:
    """Return what an expression with variables of these types does and may not do, "" if it may."""
    kinds = [*_inside(kinds)]
    if one.op == "call":
        function, *given = kinds
        helpers = [kind.dispatcher for kind in kinds if isinstance(kind, types.Dispatcher)]
        if not all(issubclass(helper._compiler.pipeline_class, Rows) for helper in helpers):
            return "has a function inside of a function"
        does, arrays = any(map(_computes, kinds)), _arrays(given) or not _computes(function)  # map computes
    else:
        does = one.op in ("binop", "inplace_binop", "unary") and one.fn not in (*NO_ARITHMETIC, *SUMS)
        arrays = _arrays(kinds)
        scales = does and one.fn in SCALING and len(arrays) == 1
        does = does and not (scales and (arrays[0] is kinds[0] or one.fn is operator.mul))
    return "computes with whole arrays" if does and arrays else ""


def _computes(function) -> bool:
    key = getattr(function, "typing_key", None)
    return isinstance(key, np.ufunc) or key in ARITHMETIC


def _inside(kinds: Iterable) -> Iterator:
    """Yield the types, those in tuples (behind a star) and of what may be None by themselves."""
    for one in kinds:
        within = one.types if isinstance(one, types.BaseTuple) else ()
        within = (one.type,) if isinstance(one, types.Optional) else within
        yield from _inside(within) if within else (one,)


def _arrays(kinds: list) -> list:
    return [one for one in kinds if isinstance(one, types.ArrayCompatible | types.Buffer)]


def unwritten(array: np.ndarray) -> np.ndarray:
    """Fill new memory with NaN, or with a number that nobody expects; return it."""
    array[...] = _nobodys(array.dtype)
    return array


def partly(function: Callable, *args: Any, where: Any, **words: Any) -> Any:
    """Call a function; what it leaves unwritten in memory that it makes itself is NaN."""
    made = function(*args, where=where, **words)
    name, of = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name == "clip":
        inputs = 2 if isinstance(of, np.ndarray) else 3
    elif isinstance(function, np.ufunc) or name == "outer":
        inputs = getattr(function, "nin", 2)
    else:  # sums and the like write all of their result
        return made
    out = words.get("out", args[inputs:])
    given = out if isinstance(out, tuple) else (out,)
    for one in made if isinstance(made, tuple) else (made,):
        if isinstance(one, np.ndarray) and one.dtype != object and not any(one is each for each in given):
            one[~np.broadcast_to(where, one.shape)] = _nobodys(one.dtype)
    return made


@overload(unwritten, strict=False)
def _unwritten(array: types.Array) -> Callable:
    number = _nobodys(as_dtype(array.dtype))

    def fill(array):
        array[...] = number
        return array

    return fill


def _nobodys(dtype: np.dtype) -> np.generic:
    return dtype.type(np.nan if dtype.kind in "fc" else 90)
