"""What a judged text may mention: attributes and modules that are known to do no harm; and what it may not.

A list of what is forbidden is never complete: behind one module stand a thousand others. So where a rule must
know all that an answer does, an attribute counts as readable only if it is listed here or the answer's own.
"""

from __future__ import annotations

import cmath
import collections
import heapq
import itertools
import math
from types import ModuleType


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def _public(*things: type | ModuleType) -> frozenset[str]:
    return frozenset(name for thing in things for name in dir(thing) if not name.startswith("_"))


#: Of Python's own numbers, texts and containers.
PLAIN = _public(list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, complex, bool, range)
PLAIN |= _public(slice, memoryview, property) | words("add_note args value send throw close")

#: Names with two underscores around them that only stand for an operator or a builtin function.
OPERATORS = words("""
    __abs__ __add__ __and__ __bool__ __call__ __contains__ __delitem__ __divmod__ __doc__ __enter__ __eq__
    __exit__ __float__ __floordiv__ __format__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __imul__ __index__
    __init__ __int__ __invert__ __isub__ __iter__ __itruediv__ __le__ __len__ __lt__ __mod__ __mul__ __ne__
    __neg__ __next__ __or__ __pos__ __pow__ __radd__ __repr__ __reversed__ __rmul__ __round__ __rsub__
    __rtruediv__ __setitem__ __slots__ __str__ __sub__ __truediv__ __xor__ __name__ __post_init__
""")

NUMBER_TYPES = words("""
    bool_ boolean bool8 intp uintp intc uintc int_ uint byte ubyte short ushort long ulong half single double
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 float_ longdouble
    complex64 complex128 csingle cdouble number integer floating inexact signedinteger unsignedinteger generic
""")

_NUMPY = NUMBER_TYPES | words("""
    array asarray asanyarray ascontiguousarray asfortranarray require zeros ones empty full zeros_like
    ones_like empty_like full_like arange linspace logspace eye identity copy copyto meshgrid indices ndindex
    ndenumerate ix_ diag diagonal tril triu fill_diagonal fromiter fromfunction
    ndarray dtype finfo iinfo newaxis nan inf pi e nan_to_num typing NDArray ArrayLike DTypeLike float
    shape ndim size reshape ravel transpose matrix_transpose permute_dims squeeze expand_dims atleast_1d
    atleast_2d concatenate stack vstack hstack dstack column_stack split array_split hsplit vsplit block pad
    tile repeat resize broadcast_to broadcast_arrays broadcast_shapes flip fliplr flipud roll rot90 swapaxes
    moveaxis rollaxis take put choose select where nonzero flatnonzero argwhere searchsorted
    abs absolute fabs sqrt cbrt square exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan
    arctan2 sinh cosh tanh hypot floor ceil trunc rint round around fix sign signbit copysign nextafter
    spacing maximum minimum fmax fmin max min amax amin nanmax nanmin ptp clip negative positive reciprocal
    subtract divide true_divide floor_divide mod remainder fmod divmod power float_power
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift gcd lcm
    isnan isinf isfinite isclose allclose array_equal array_equiv any all argmax argmin argsort sort
    count_nonzero unique diff median result_type promote_types can_cast issubdtype isscalar errstate
    shares_memory may_share_memory iscontiguous
""")
_ARRAY = words("""
    T shape ndim size dtype itemsize nbytes strides flags flat real imag copy fill astype reshape ravel
    flatten transpose swapaxes squeeze tolist item view sort argsort max min argmax argmin any all clip round
    nonzero repeat take put conj conjugate diagonal ptp tobytes mT searchsorted resize
    c_contiguous f_contiguous contiguous forc owndata writeable aligned name kind char type newbyteorder
    eps tiny resolution smallest_normal bits
""")
_NUMBA = NUMBER_TYPES | words("njit jit prange types literal_unroll literally optional void i4 i8 f4 f8")
_TOOLS = words("""
    accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
    filterfalse from_iterable groupby islice pairwise permutations product repeat starmap takewhile tee
    zip_longest reduce partial wraps cache lru_cache add sub mul truediv floordiv neg pos itemgetter getitem
    perf_counter perf_counter_ns monotonic time process_time deque defaultdict Counter namedtuple OrderedDict
    appendleft popleft extendleft rotate maxlen most_common elements default_factory
    Any Callable Iterable Iterator Sequence Optional Union List Tuple Dict Sized Final Protocol
    dataclass field asdict replace annotations
""")

#: Everything that may stand behind a dot, and every name that may be imported from a module.
KNOWN = PLAIN | OPERATORS | _NUMPY | _ARRAY | _NUMBA | _public(math) | _TOOLS

#: Whose parts may be imported or reached by name, as far as these are known.
MODULES = words("""
    numpy numba math cmath itertools functools operator time typing collections dataclasses __future__ abc
    numpy.typing collections.abc numba.core.decorators numba.misc.special
""")

_WHOLE_NUMPY = words("""
    lib stride_tricks as_strided sliding_window_view linalg norm solve lstsq inv pinv det svd qr eig eigh
    eigvals eigvalsh cholesky matrix_rank cond polyfit polyval polyder interp std var nanstd nanvar nanmean
    nanmedian nanargmax nanargmin percentile quantile average cov corrcoef histogram bincount digitize
    trapezoid trapz cross cumprod nanprod nancumprod logaddexp logaddexp2 deg2rad rad2deg arcsinh arccosh
    arctanh sinc heaviside at outer reduce accumulate reduceat add multiply apply_along_axis vectorize
    frompyfunc piecewise extract place putmask put_along_axis take_along_axis delete insert append trim_zeros
    union1d intersect1d setdiff1d setxor1d isin in1d lexsort partition argpartition mask_indices
    tril_indices triu_indices diag_indices unravel_index ravel_multi_index packbits unpackbits modf divmod
    frexp ldexp isreal iscomplex isposinf isneginf common_type block tri vander dtypes asarray_chkfinite
    concat astype pow acos asin atan atan2 cumulative_sum cumulative_prod unstack vecdot matvec vecmat
    bitwise_count bitwise_not bitwise_invert array2string array_repr array_str format_float_positional
    multiply prod sum mean trace compress argwhere choose cumsum dot ediff1d nanpercentile nanquantile
""")
_THREADS = words("""
    Thread Timer Lock RLock Semaphore BoundedSemaphore Barrier Condition Event local acquire release locked
    start run is_alive daemon ident native_id wait wait_for notify notify_all is_set current_thread get_ident
    active_count abort parties n_waiting broken cancel
""")

#: What may be mentioned where a library may do the work and only tricks are to be kept out: all that
#: computes with numbers and arrays, and threads with their locks. Nothing here leads to another module.
COMPUTING = KNOWN | _WHOLE_NUMPY | _THREADS | _public(itertools, collections, heapq, cmath)
COMPUTING_MODULES = MODULES | words("numpy.linalg numpy.lib.stride_tricks threading heapq")

#: What may stand in the types that are given to Numba as text: "float64[:, ::1](float64[:, ::1], int64)".
TYPE_WORDS = NUMBER_TYPES | words("""
    void none f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 c16 Array UniTuple Tuple optional C F A
""")
#: Settings of Numba's compilers that change how fast or how strict, not what is run.
COMPILER_SETTINGS = words("""
    nopython fastmath cache parallel nogil error_model boundscheck inline looplift debug signature_or_function
""")

#: Ways to run code that the source does not show, to look into running code, or to reach files.
DODGES = words("""
    eval exec compile __import__ globals locals vars import_module __dict__ __getattribute__ __builtins__
    modules ctypes cffi subprocess objmode methodcaller attrgetter __globals__ __code__ settrace setprofile
    f_locals f_globals f_builtins f_back f_code f_trace f_lineno tb_frame tb_next tb_lasti
    gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code ag_await cell_contents mro
    __traceback__ __subclasses__ __base__ __bases__ __mro__ __closure__ __defaults__ __kwdefaults__
    open input breakpoint help license copyright credits setattr delattr __loader__ __spec__ __build_class__
    sys _sys os _os builtins importlib meta_path path_hooks find_spec load_module exec_module
""")
#: Modules that lead out of what the source shows.
DODGE_MODULES = words("ctypes cffi subprocess importlib sys builtins inspect gc traceback os io pickle")
#: Builtin functions that may only be called where they stand: passed on, they do what no reader sees.
ONLY_CALLED = words("getattr type njit jit")
#: Names with two underscores around them that may be read or given a value.
NAMES = OPERATORS | words("__name__ __debug__ __future__")
#: Types whose patterns `case int(x)` read no attribute.
MATCHED = words("bool bytearray bytes dict float frozenset int list set str tuple")
