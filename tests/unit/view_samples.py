"""What the views are shown: inputs made up for the tests, and one call of every view that draws.

Everything is imported when it is asked for, so that collecting the tests loads no plotting and no compiler.
"""

from functools import cache
from importlib import import_module
from types import SimpleNamespace

PROFILE = [
    SimpleNamespace(name="aten::addmm", calls=10, self_us=750.0, total_us=800.0, flops=3e6),
    SimpleNamespace(name="aten::bmm", calls=4, self_us=250.0, total_us=250.0, flops=0.0),
]
RACE = "def work():\n    s[0] += 1"
STUCK = """
def forwards():
    with a:
        with b:
            pass

def backwards():
    with b:
        with a:
            pass
"""
AVX512 = """
.LBB0_8:
\tvmovups\t(%r14,%r11,4), %zmm4
\tvfmadd213ps\t(%r15,%r11,4), %zmm0, %zmm4
\tvmovups\t%zmm4, (%r15,%r11,4)
\taddq\t$64, %r11
\tjne\t.LBB0_8
"""
SCALAR = """
.LBB0_3:
\tvmovsd\t(%rdx,%rdi,8), %xmm1
\tvmulsd\t(%rcx), %xmm1, %xmm1
\tvaddsd\t%xmm1, %xmm0, %xmm0
\tjne\t.LBB0_3
"""


def race():
    from course_lib.simulators.interleavings import explore

    return explore(["work", "work"], {"s": [0]}, source=RACE)


def deadlock():
    from course_lib.simulators.interleavings import Lock, explore

    return explore(["forwards", "backwards"], {"a": Lock(), "b": Lock()}, source=STUCK)


def sped_up():
    return course("measure.amdahl").Speedups({1: 1.0, 2: 0.6}, {}, 2, None)


def counted(near_ratio=8.0, at_once=2.0, scatter=0.03):
    """Private counters 8 bytes apart that take `near_ratio` as long as 64 bytes apart."""
    from course_lib.measure.comparison import Comparison, Conditions, TimedRow
    from course_lib.measure.counters import Counting

    def row(name, seconds, ratio, low, high):
        return TimedRow(name, seconds, seconds / 50, 20, None, ratio, low, high, 0.0)

    low, high = (1 - scatter) * near_ratio, (1 + scatter) * near_ratio
    rows = (
        row("8 B apart", 5e-6 * near_ratio, near_ratio, low, high),
        row("64 B apart", 5e-6, 1.0, 1.0, 1.0),
    )
    held = "" if at_once > 1.2 else f"Busy: only {at_once} of 2 threads ran at once."
    how = Conditions((), None, "wall", "", 20, 1e-3, "certain enough", 0.03, 0.02, False, 1.0, (), held=held)
    return Counting(2, (8, 64), 1000, Comparison(rows, "64 B apart", 2, "", (), how), "", at_once)


@cache
def recording():
    """No measurement: figures of a device that does not exist."""
    from course_lib.measure import recordings
    from course_lib.measure.gpu_state import STATES, RecordedGpu
    from course_lib.measure.recordings import HidingPoint, Recording, RungRow

    return Recording(
        when="2020-02-03T04:05:06+00:00",
        commit="0123456789abcdef0123456789abcdef01234567",
        device="NVIDIA Test 9",
        memory_bytes=2**30,
        gpu=RecordedGpu("999.1", "9.9", "13.0", 7, dict.fromkeys(STATES), None, None),
        versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
        method="Made up.",
        rows=(
            RungRow("cuda-naive", (256, 256, 256), 4e-4, 1e-5, 9, 3e-5, 2e-7),
            RungRow("cuda-2d", (256, 256, 256), 4e-5, 1e-6, 9, 3e-5, 2e-7),
            RungRow("torch", (256, 256, 256), 2e-5, 1e-6, 9, 1e-5, 1e-7),
            RungRow("torch", (512, 512, 512), 1e-4, 1e-6, 9, 1e-5, 1e-7),
        ),
        latency_hiding=(HidingPoint(1, 1.0, 2e12), HidingPoint(1, 4.0, 8e12)),
    )


def ladder_result(rung, gflops, n=128, dtype="float64", threads=1, error=3e-16):
    from course_lib.ladder import Result

    when = "2025-01-01T00:00:00"
    return Result(rung, (n, n, n), dtype, threads, 1.0, 0.1, gflops, error, when, "elsewhere")


def cache_levels():
    from course_lib.simulators.cache import Level

    return [Level(1024, 2), Level(4096, 4)]


@cache
def misses(nest, sizes=(8, 16, 32)):
    """Return the simulated cache misses of a loop order by size."""
    from course_lib.simulators import traces
    from course_lib.simulators.cache import simulate

    return {n: simulate(traces.loops(nest, n, n, n), cache_levels()) for n in sizes}


def _operator(name, calls, us, flops=0.0, moved=0.0, device_us=0.0, kind="operator"):
    from course_lib.speech.encoder_profile import EncoderOp

    return EncoderOp(name, kind, calls, us, us, device_us, device_us, flops, moved)


def operators(*rows):
    return [_operator(*row) for row in rows]


@cache
def cpu_profile():
    return operators(
        ("aten::addmm", 290, 60_000.0, 6e9, 2e8),  # 100 GFLOP/s at 30 flop/byte
        ("aten::mkldnn_convolution", 90, 20_000.0, 2e9, 4e7),
        ("aten::_slow_conv2d_forward", 22, 4_000.0, 2e8, 1e7),
        ("aten::bmm", 108, 5_000.0, 2e8, 1e7),
        ("aten::silu", 108, 3_000.0, 2e7, 4e7),
        ("aten::copy_", 380, 4_000.0, 0.0, 1e8),  # 25 GB/s
        ("aten::add", 260, 2_000.0, 2e6, 2.4e7),
        ("aten::fill_", 300, 900.0, 0.0, 9e6),  # 3 µs a call
        ("aten::lt", 2, 4.0, 0.0, 100.0),
        ("aten::linear", 308, 600.0),
        ("aten::convolution", 112, 496.0),
    )


@cache
def gpu_profile():
    return operators(
        ("aten::addmm", 580, 6_000.0, 0.0, 0.0, 4_000.0),
        ("aten::cudnn_convolution", 152, 3_000.0, 0.0, 0.0, 1_500.0),
        ("aten::_conv_depthwise2d", 72, 1_000.0, 0.0, 0.0, 500.0),
        ("cudaLaunchKernel", 4000, 9_000.0),
        ("cudaDeviceSynchronize", 4, 777.0),
        ("sm90_sgemm", 580, 0.0, 0.0, 0.0, 4_000.0, "kernel"),
    )


def peaks():
    from course_lib.measure.peaks import Peaks

    flops = {"float32": {"one": 100.0, "all": 200.0}, "float64": {"one": 50.0, "all": 100.0}}
    bandwidth, reads = {"one": 15.0, "all": 20.0}, {"L1": 200.0, "L2": 60.0, "memory": 18.0}
    return Peaks(flops, bandwidth, 2, "2030-01-01T00:00:00+00:00", 2**27, 6.25, 3.125, reads)


@cache
def forward_tree():
    """Three layers of 2, 3 and 4 ms behind a part of 0.9 ms."""
    from course_lib.speech.forward_tree import ForwardTree, Span

    def layer(number, us):
        product = Span("aten::addmm", "operator", 2, 0.6 * us)
        conv = Span("conv", "part", 1, 0.1 * us, (Span("aten::mkldnn_convolution", "operator", 1, 0.2 * us),))
        ff = Span("ff_<1>", "part", 1, 0.05 * us, (product, Span("handing on", "operator", 9, 0.05 * us)))
        return Span(f"layers.{number}", "part", 1, 0.0, (ff, conv))

    parts = (Span("pre", "part", 1, 900.0), layer(0, 2e3), layer(1, 3e3), layer(2, 4e3))
    return ForwardTree(Span("encoder", "part", 1, 100.0, parts), frames=300, runs=5, threads=2)


@cache
def speed_points(device="cpu"):
    """No measurement: made up, so that int8 in a batch of 8 is the fastest."""
    from course_lib.speech.encoder_speed import SpeedPoint, grid

    factor = {"float32": 1.0, "bfloat16": 0.6, "int8": 0.4}
    points = []
    for one in grid(device, threads=4):
        one = one.but(frames={200: 500, 500: 200}.get(one.frames, one.frames))  # sweeps at 5 s: round figures
        seconds = (0.1 + 0.02 * one.audio_s * factor[one.dtype]) * (4 / one.threads if device == "cpu" else 1)
        error = 0.0 if one.dtype == "float32" else 0.02
        points.append(SpeedPoint(one, seconds, 0.001, 5, error, seconds / 2 if device == "cuda" else None))
    return points


@cache
def two_whys():
    from course_lib.measure.gpu_published import PUBLISHED
    from course_lib.speech import two_whys
    from course_lib.speech.profiling import talk_profile

    return two_whys.predict(talk_profile(), [300, 500], PUBLISHED["RTX A6000"])


def latency_curve():
    from course_lib.measure import latency
    from course_lib.measure.hardware import CacheLevel

    sizes = tuple(4096 * 2**n for n in range(15))
    steps = ((2**15, 1.0), (2**20, 4.0), (2**40, 100.0))
    ns = tuple(next(ns for limit, ns in steps if size <= limit) for size in sizes)
    return latency.LatencyCurve(
        sizes, ns, (CacheLevel(1, 2**15, 64, 8, 1), CacheLevel(2, 2**20, 64, 16, 1)), "system"
    )


def course(name):
    """Return a module of the course, imported now."""
    return import_module(f"course_lib.{name}")


def _gpu_steps(views):
    import numpy as np

    A = np.ones((64, 64), np.float32)
    return views.gpu_steps(course("circles.cuda_naive").naive, (2, 2), (32, 32), A, A, A.copy())


def _tables():
    strassen = course("circles.strassen")
    return strassen.LEFT, strassen.RIGHT, strassen.INTO


def _offers():
    plan, network = course("distributed.plan"), course("simulators.network")
    slow = plan.Offer("slow", flops=5e11, memory=32e9, price=0.05, network=network.star, counts=(1, 4, 16))
    return slow, plan.Offer("fast", 2e13, 64e9, 4.0, lambda ranks: network.star(ranks, 1e10), (1, 4, 16))


def _overlap():
    overlap = course("training.overlap")
    return {"planned": overlap.planned([0.1, 0.1], [1e6, 1e6], link=1e7, bucket=1e6).rows}


def _rehearsed():
    return course("distributed.wire").rehearse(lambda wire: wire.rank, 2)


def _tree_on_racks():
    network, schedules = course("simulators.network"), course("distributed.schedules")
    return network.racks(8, 2), schedules.tree_all_reduce(8, 1 << 20)


def _plans():
    plan = course("measure.scheduling").plan
    return [plan([5, 3, 3, 2, 2, 1], 3, policy) for policy in ("static", "longest")]


def _errors():
    promotion = course("fp8.promotion")
    return [promotion.PromotionError(kind, K, every, K / 1e5, -K / 1e5, 0.0016)
            for kind in promotion.KINDS for K in (256, 4096) for every in (None, 128)]  # fmt: skip


def _tone():
    import numpy as np

    return (0.25 * np.sin(np.arange(16_000) / 3)).astype(np.float32)


def in_flight():
    """The first was disturbed: two chases made a step in 100 ns."""
    return course("measure.parallel_chase").InFlight((1, 2, 4, 8), (120.0, 50.0, 25.0, 25.0), 2**24)


def warps(name, *arguments, **options):
    return {"fma": getattr(course("simulators.gpu.warp_scheduler"), name)("s = fma s", *arguments, **options)}


PRICES = {"cpu_price": 1.0, "gpu_price": 10.0, "bridge_price": 1e6, "currency": "crowns"}
#: Every view that draws, called once with its package.
CALLS = {
    "accumulator_figure": lambda v: v.accumulator_figure([208, 2.25], [1.75, 1.5]),
    "amdahl": lambda v: v.amdahl(sped_up()),
    "assembly": lambda v: v.assembly(AVX512),
    "block_products": lambda v: v.block_products(*_tables()),
    "bytecode": lambda v: v.bytecode(speed_points.__wrapped__),
    "cache_walk": lambda v: v.cache_walk(),
    "cancellation": lambda v: v.cancellation(*_tables()),
    "compare_assembly": lambda v: v.compare_assembly({"ijk": SCALAR, "ikj": AVX512}),
    "cheapest": lambda v: v.cheapest((4096,) * 3, _offers(), 10),
    "costs": lambda v: v.costs(20, 1000, **PRICES),
    "course_map": lambda v: v.course_map(),
    "cuda_source": lambda v: v.cuda_source("scheduler.cuh"),
    "encoder_speed": lambda v: v.encoder_speed(speed_points(), "recorded on a Test"),
    "error_levels": lambda v: v.error_levels({"normal": {0: 1e-6, 2: 4e-6}}, {"bound": {0: 1e-3, 2: 9e-3}}),
    "explore_format": lambda v: v.explore_format(0.3),
    "false_sharing": lambda v: v.false_sharing(counted()),
    "format_lines": lambda v: v.format_lines(),
    "fp8_roofline": lambda v: v.fp8_roofline(),
    "gantt": lambda v: v.gantt(_plans()),
    "gpu_code": lambda v: v.gpu_code(course("circles.cuda_tiled").tiled),
    "gpu_ladder": lambda v: v.gpu_ladder(recording()),
    "gpu_sizes": lambda v: v.gpu_sizes(recording()),
    "gpu_steps": _gpu_steps,
    "icicle": lambda v: v.icicle(forward_tree()),
    "in_flight": lambda v: v.in_flight(in_flight()),
    "interleaving": lambda v: v.interleaving(race()),
    "kernel_loops": lambda v: v.kernel_loops(),
    "ladder_plot": lambda v: v.ladder_plot([ladder_result("numpy", 50.0), ladder_result("blocked", 6.0)]),
    "lanes": lambda v: v.lanes(_overlap()),
    "latency": lambda v: v.latency(latency_curve()),
    "latency_hiding": lambda v: v.latency_hiding(warps("occupancy_curve", range(1, 9))),
    "line_states": lambda v: v.line_states(course("simulators.coherence").counters(2, 2, 8)),
    "log_mel": lambda v: v.log_mel(_tone()),
    "memory": lambda v: v.memory([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]),
    "miss_curves": lambda v: v.miss_curves({"ikj": misses("ikj"), "jki": misses("jki")}),
    "operators_roofline": lambda v: v.operators_roofline(cpu_profile(), peaks=peaks()),
    "messages": lambda v: v.messages(*_tree_on_racks()),
    "losses": lambda v: v.losses({"one": [1.0, 0.5, 0.4], "two": ([0, 1], [1.0, 0.6])}),
    "rank_memory": lambda v: v.rank_memory({"ZeRO 1": course("training.zero").kept(1e9, 8, 1)}, 80e9),
    "rank_waits": lambda v: v.rank_waits({"alone": _rehearsed()}),
    "pipeline": lambda v: v.pipeline(),
    "predict": lambda v: v.predict("How many?", unit="x"),
    "profile": lambda v: v.profile(
        PROFILE, beside=[SimpleNamespace(name="aten::mm", self_us=1.0, percent=3.0)]
    ),
    "progress": lambda v: v.progress("01"),
    "promotion_figure": lambda v: v.promotion_figure(_errors()),
    "rank_bytes": lambda v: v.rank_bytes({"row": {4: 0.75, 16: 0.94}}, {"row": {4: 0.75}}, {4: 0.4, 16: 0.3}),
    "register_tile": lambda v: v.register_tile(course("circles.cuda_2d").TILES[0]),
    "ring": lambda v: v.ring(2),
    "roles": lambda v: v.roles(),
    "schedule": lambda v: v.schedule(2, 3),
    "shard_steps": lambda views: views.shard_steps(3),
    "shards": lambda v: v.shards(course("distributed.matmul").grid_layout((8, 8, 8), 4), (8, 8, 8), "SUMMA"),
    "source": lambda v: v.source(race),
    "speech_input": lambda v: v.speech_input(),
    "step_through": lambda v: v.step_through([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
    "strides_table": lambda v: v.strides_table(4096, 4),
    "swizzle_map": lambda v: v.swizzle_map(),
    "thread_curves": lambda v: v.thread_curves({"simd": sped_up()}, {"simd": {1: 1.0, 2: 1.9}}),
    "three_profiles": lambda v: v.three_profiles(cpu_profile(), gpu_profile(), forwards=2, gpu_forwards=4),
    "tile_choice": lambda v: v.tile_choice(256, 512, 128),
    "time_ratios": lambda v: v.time_ratios({"explicit": {512: 1.4, 2048: 0.9}}, {}, guess=900),
    "two_whys": lambda v: v.two_whys(two_whys()),
    "verdict": lambda v: v.verdict(3, 12.5, unit="x", what="the loop"),
    "walk": lambda v: v.walk("ikj"),
    "warps": lambda v: v.warps(warps("simulate", 4, cycles=200)),
}
