"""The text of wgmma for one width: an instruction with a register for every number of the accumulator.

`wgmma.mma_async` for m64nNk32 names N/2 registers one by one, and has a form for each N = 8, 16, ... 256.
Templates for all of them are thousands of lines (CUTLASS); the one that a kernel uses is written here.
"""

from __future__ import annotations

WIDTHS = range(8, 257, 8)

TEMPLATE = """\
// d (64, {N}) = [d +] A (64, 32) times B ({N}, 32) transposed, all e4m3, for the 128 threads of a warpgroup.
// A thread holds {count} numbers of d. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
constexpr int WGMMA_WIDTH = {N};

__device__ __forceinline__ void wgmma_k32(float (&d)[{count}], u64 a, u64 b, int add) {{
  asm volatile(
      "{{\\n"
      ".reg .pred p;\\n"
      "setp.ne.b32 p, %{after_b}, 0;\\n"
      "wgmma.mma_async.sync.aligned.m64n{N}k32.f32.e4m3.e4m3 "
      "{{{registers}}}, %{a}, %{b}, p, 1, 1;\\n"
      "}}\\n"
      : {outputs}
      : "l"(a), "l"(b), "r"(add));
}}
"""


def header(N: int) -> str:
    """Return the header for accumulators 64 x N; raises ValueError for a width there is not."""
    if N not in WIDTHS:
        raise ValueError(f"N is {N!r}, but wgmma has the widths 8, 16, ... 256.")
    count = N // 2
    return TEMPLATE.format(
        N=N,
        count=count,
        a=count,
        b=count + 1,
        after_b=count + 2,
        registers=", ".join(f"%{i}" for i in range(count)),
        outputs=", ".join(f'"+f"(d[{i}])' for i in range(count)),
    )
