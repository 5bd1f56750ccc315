"""What a judged text may name: modules and what is taken from them, builtins, methods, keywords, words.

A list of what is forbidden is never complete: behind one module stand a thousand others. So `language` takes
what is listed here and refuses the rest; what is missing for honest answers is added here.
"""

from __future__ import annotations

import cmath
import heapq
import itertools
import math
from types import ModuleType


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def _public(*things: type | ModuleType) -> frozenset[str]:
    return frozenset(name for thing in things for name in dir(thing) if not name.startswith("_"))


# --- Python's own -------------------------------------------------------------------------------------------

TYPES = words("bool bytes complex dict float frozenset int list set str tuple range slice")
ERRORS = words("""
    ArithmeticError AssertionError Exception FloatingPointError IndexError KeyError LookupError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError
""")
BUILTINS = (
    TYPES
    | ERRORS
    | words("""
    abs all any bin chr divmod enumerate filter format hasattr hex isinstance iter len map max min next oct
    ord pow print repr reversed round sorted sum type zip
""")
)
#: Builtins and methods that take a function as their first argument.
TAKE_FUNCTIONS = words("""
    map filter reduce defaultdict starmap takewhile dropwhile filterfalse accumulate groupby fromfunction
    apply_along_axis
""")
#: Ways to read a table of constants that give nobody the table itself.
READERS = words("get items keys values index count copy")
READING = words("""
    len enumerate zip range sum min max sorted reversed tuple list set frozenset dict map filter any all iter
    isinstance print array bisect bisect_left bisect_right
""")

#: Of lists, dicts, sets, texts and numbers; of deques and counters; of exceptions.
METHODS = words("""
    append extend insert pop popitem remove reverse sort clear copy count index get items keys values
    setdefault update fromkeys add discard union intersection difference symmetric_difference issubset
    issuperset isdisjoint difference_update intersection_update join split rsplit splitlines partition
    rpartition strip lstrip rstrip startswith endswith removeprefix removesuffix replace upper lower zfill
    ljust rjust center find rfind isdigit isalpha isspace title capitalize is_integer bit_length bit_count
    conjugate as_integer_ratio hex fromhex from_bytes to_bytes appendleft popleft extendleft rotate
    most_common elements subtract total move_to_end from_iterable limit_denominator
""")
DATA = words("real imag numerator denominator args start stop step maxlen")

# --- arrays -------------------------------------------------------------------------------------------------

NUMBER_TYPES = words("""
    bool_ boolean bool8 intp uintp intc uintc int_ uint byte ubyte short ushort long ulong half single double
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 float_ longdouble
    complex64 complex128 csingle cdouble number integer floating inexact signedinteger unsignedinteger generic
""")
#: Values, which may be used without calling them.
VALUES = NUMBER_TYPES | words("bool nan inf pi e tau newaxis euler_gamma mgrid ogrid s_ index_exp")
NUMPY = VALUES | words("""
    ndarray array asarray ascontiguousarray asfortranarray zeros ones empty full zeros_like
    ones_like empty_like full_like arange linspace logspace eye identity copy copyto meshgrid indices ndindex
    ndenumerate ix_ diag diagonal tril triu fill_diagonal fromiter dtype finfo iinfo nan_to_num
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
    shares_memory may_share_memory
""")
#: Attributes of arrays, of their types and flags, which are no methods.
ARRAY_DATA = words("""
    T mT shape ndim size dtype itemsize nbytes strides flags flat name kind char c_contiguous f_contiguous
    contiguous forc owndata writeable aligned eps tiny resolution smallest_normal bits
    max min
""")
ARRAY_METHODS = words("""
    copy fill astype reshape ravel flatten transpose swapaxes squeeze tolist item view sort argsort max min
    argmax argmin any all clip round nonzero repeat take put conj conjugate diagonal ptp searchsorted resize
    type
""")
#: What makes a number of one number, and of what np.finfo and np.iinfo say: constants, as np.pi is one.
OF_ONE_NUMBER = words("sqrt cbrt exp exp2 log log2 log10 floor ceil abs")
LIMITS = words("eps max min tiny resolution smallest_normal bits")
#: Library functions that are a matrix product, or do its sums.
PRODUCTS = words("""
    dot matmul inner outer einsum tensordot vdot vecdot matvec vecmat kron multi_dot matrix_power correlate
    convolve gemm dgemm sgemm bmm mm addmm sumprod
""")
#: Whole-array operations that hide the loops.
WHOLE_ARRAY = words("""
    sum nansum multiply add reduce accumulate reduceat cumsum nancumsum prod mean average trace
    apply_along_axis apply_over_axes vectorize frompyfunc guvectorize
""")
#: What else computes with arrays, where a library may do the work.
WHOLE_NUMPY = NUMPY | words("""
    dot matmul inner outer einsum tensordot vdot vecdot matvec vecmat kron correlate convolve
    sum nansum multiply add cumsum nancumsum prod nanprod mean average trace nanmean nanmedian
    interp std var nanstd nanvar nanargmax nanargmin percentile quantile cov corrcoef histogram bincount
    digitize polyfit polyval polyder roots trapezoid cross cumprod logaddexp logaddexp2 deg2rad rad2deg
    radians degrees arcsinh arccosh arctanh sinc heaviside modf frexp ldexp isreal iscomplex isposinf isneginf
    extract place putmask put_along_axis take_along_axis delete insert append trim_zeros union1d intersect1d
    setdiff1d setxor1d isin in1d lexsort partition argpartition mask_indices tril_indices triu_indices
    diag_indices unravel_index ravel_multi_index packbits unpackbits tri vander concat astype pow acos asin
    atan atan2 cumulative_sum cumulative_prod unstack bitwise_count bitwise_not bitwise_invert compress
    ediff1d real imag conj
    fromfunction apply_along_axis mgrid ogrid
""")
WHOLE_METHODS = ARRAY_METHODS | words("""
    dot sum prod cumsum cumprod mean std var trace reduce accumulate reduceat outer at compress choose
    partition argpartition normal random integers uniform choice standard_normal permutation shuffle permuted
    rvs
""")

#: module -> what may be taken from it. A module inside another is listed on its own.
MODULES: dict[str, frozenset[str]] = {
    "math": _public(math) - {"sumprod"},
    "cmath": _public(cmath),
    "itertools": _public(itertools),
    "heapq": _public(heapq),
    "collections": words("deque defaultdict Counter OrderedDict"),
    "bisect": words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "functools": words("reduce"),
    "fractions": words("Fraction"),
    "operator": words("add sub mul truediv floordiv mod pow neg and_ or_ xor lt le eq ne ge gt itemgetter"),
    "threading": words("Lock RLock Semaphore"),
    "numpy": WHOLE_NUMPY,
    "numpy.lib": frozenset(),
    "numpy.lib.stride_tricks": words("as_strided sliding_window_view"),
    "numpy.linalg": words("norm solve lstsq inv pinv det svd qr eig eigh eigvals eigvalsh cholesky cond"),
    "numpy.random": words("default_rng"),
    "numba": words("njit jit float32 float64 int32 int64 uint8 uint32 uint64 boolean"),
}
#: Python's own that may be imported wherever `math` may.
USUAL = words("itertools collections heapq bisect functools operator fractions")
#: What comes naturally and is not in the language: what to write instead.
INSTEAD_OF = {
    **dict.fromkeys(
        ("cache", "lru_cache"),
        "no result outlives a call, so leave it away or keep a dict of results inside of the function",
    ),
    **dict.fromkeys(
        ("namedtuple", "dataclasses", "NamedTuple"),
        "take tuples apart instead, as in `name, calls = row`, or use a dict",
    ),
    **dict.fromkeys(
        ("__getitem__", "__mul__", "__add__"),
        "write the operator, or a lambda with it, as in `lambda i: costs[i]` or `lambda a, b: a * b`",
    ),
    "partial": "write a small function with `def`, or a lambda",
    "prange": "write range, as answers are judged on one thread, where races do not show",
    "r_": "write np.concatenate or np.vstack",
    "c_": "write np.column_stack or np.hstack",
    **dict.fromkeys(("polynomial", "poly1d"), "write np.polyfit and np.polyval"),
    "seterr": "write with np.errstate(…): around what it is about, or nothing, as warnings cost no points",
    "object": "write A.dtype, int64 or float64; whole numbers beyond those stay in a list of Python",
}
#: For annotations, wherever they are.
HINTS: dict[str, frozenset[str]] = {
    "__future__": words("annotations"),
    "typing": words("Any Callable Iterable Iterator List Tuple Dict Set Sequence Optional Union Final"),
    "collections.abc": words("Callable Iterable Iterator Sequence Mapping"),
    "numpy.typing": words("NDArray ArrayLike DTypeLike"),
}
#: The same where the loops are to be written: nothing that does a product or a sum.
LOOP_MODULES = {
    "math": MODULES["math"],
    "numpy": NUMPY,
    "numba": MODULES["numba"],
}

# --- kernels ------------------------------------------------------------------------------------------------

FROM_CUDA = words("""
    jit grid gridsize threadIdx blockIdx blockDim gridDim laneid warpsize shared local const atomic
    syncthreads syncthreads_count syncthreads_and syncthreads_or syncwarp fma selp popc ffs clz brev cbrt
    threadfence threadfence_block threadfence_system activemask lanemask_lt
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync ballot_sync any_sync all_sync eq_sync match_any_sync
    match_all_sync
""")
#: Of modules whose parts are no modules, which a kernel names all the same: cuda.shared.array.
KERNEL_MODULES = {
    "numba": NUMBER_TYPES | words("cuda types void"),
    "numba.types": NUMBER_TYPES | words("void"),
    "numba.cuda": FROM_CUDA,
    "math": MODULES["math"],
    "numpy": VALUES,
}
#: No cas, inc and dec: without what they give back, which no answer may use, they leave what luck decides.
KERNEL_METHODS = words("array add sub max min exch and_ or_ xor nanmax nanmin")
KERNEL_DATA = words("shape ndim size dtype strides x y z real imag")

# --- arguments ----------------------------------------------------------------------------------------------

#: Keywords of functions that are not the answer's own.
KEYWORDS = words("""
    axis axes keepdims dtype order copy out where initial key default reverse start stop step strict sep end
    n k M N shape fill_value casting side sorter kind mode constant_values axis1 axis2 offset indexing sparse
    rtol atol equal_nan return_index return_inverse return_counts prepend append num endpoint base retstep
    repeats reps pad_width array_like window_shape strides writeable divide invalid over under all bins range
    weights minlength deg ddof ord full_matrices rcond decimals a_min a_max min max count maxlen repeat
    subscripts x y base byteorder signed fillvalue blocking timeout low high size replace p loc scale seed
    iterable func optimize full w cov reshape ndmin density method flush nan posinf
    neginf assume_unique bias rowvar rel_tol abs_tol lo hi last ndigits r exp mod maxsplit length shift
    indices_or_sections source destination indices values v dims new_shape arrays condlist choicelist xp fp
    left right period dx q kth invert increasing stable bitorder correction returned compute_uv hermitian
""")
#: Words that a library reads: types of numbers, layouts, ways to round or to pad.
TEXTS = NUMBER_TYPES | words("""
    bool int float complex f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 c16 f d i l q e B H I L Q b h ?
    <f2 <f4 <f8 <i1 <i2 <i4 <i8 <u1 <u2 <u4 <u8 =f4 =f8 >f4 >f8
    C F A K constant edge reflect symmetric wrap linear_ramp maximum minimum mean ij xy left right
    raise clip ignore warn same_kind unsafe safe no equiv quicksort mergesort heapsort stable
    linear lower higher nearest midpoint fro nuc full same valid reduced complete big little
""")
#: What hasattr may ask for: a number has none of them, whether it counts or not.
OF_ROWS = words("__len__ __iter__")
#: How many of the first arguments of these are values: np.where(fast, "loads", "FMAs").
VALUES_OF = {
    "where": 3,
    "select": 3,
    "array": 1,
    "asarray": 1,
    "heappush": 2,
    "heappushpop": 2,
    "heapreplace": 2,
}
#: What may give memory that nobody wrote. A guarded run sees it where these are called by their names.
UNWRITTEN = words("empty empty_like ndarray pad")
#: Of a wire between ranks: what a task lets one call, its attributes, and the keywords of its calls.
WIRE_DATA = words("rank size")
WIRE_KEYWORDS = words("to source like")
#: Ways into memory that no rank has written itself: what another one let go of tells without a message.
NOT_ON_A_WIRE = words("empty empty_like ndarray as_strided unpackbits dtype longdouble")
NOBODY_WROTE = "write np.zeros, since memory that nobody wrote may hold what is another rank's"
#: What makes texts. A layout that is put together of them has gaps that nobody writes.
TEXTS_ON_A_WIRE = words("str chr repr hex oct format args name kind char")
MAKE_KEYS = words("dict Counter OrderedDict defaultdict update subtract")
#: At which place these calls, and by which keyword all, take a text that stays none of the answer's values.
TAKE_TEXTS = {
    **dict.fromkeys(("einsum", "astype", "view", "flatten", "ravel"), 0),
    **dict.fromkeys(("array", "asarray", "zeros", "ones", "zeros_like", "ones_like"), 1),
    **dict.fromkeys(("full", "full_like"), 2),
}
TEXT_KEYWORDS = words("dtype order casting mode side kind optimize all divide over under invalid sep end")
#: Settings of compilers that change how fast or how strict a function is, not what runs, with their values.
NJIT = words("nopython fastmath cache parallel nogil error_model boundscheck inline looplift")
CUDA_JIT = words("device fastmath lineinfo max_registers opt inline")
FASTMATH = words("contract reassoc nsz arcp afn")  # of these settings no NaN or inf gets lost
