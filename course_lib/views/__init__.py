"""What the chapters show: predictions, step-throughs, listings and figures.

Every view is loaded when it is first used, so importing this package loads no plotting and no widgets. Every
widget has a static twin, `.static()`, drawn by the same code; an exported page shows the twin. (Pages made by
executing a notebook need `--ExecutePreprocessor.store_widget_state=False`, or the page asks for a widget.)
The icicle alone brings a script instead of a widget: it can be zoomed on an exported page, too.
"""

from __future__ import annotations

import importlib
from typing import Any

#: The views of each module.
_VIEWS = {
    "accumulator_bits": "accumulator_figure",
    "amdahl_figure": "amdahl thread_curves",
    "boxes": "memory",
    "cache_animation": "cache_walk",
    "cache_curves": "miss_curves",
    "cheapest_cluster": "cheapest",
    "coherence_figure": "false_sharing line_states",
    "cost_explorer": "costs",
    "five_loops": "kernel_loops",
    "format_explorer": "explore_format format_lines",
    "fp8_under_roofline": "fp8_roofline",
    "gantt_figure": "gantt",
    "gpu_ladder_figure": "gpu_ladder gpu_sizes",
    "hopper_code": "control_bits cuda_source machine_codes",
    "icicle_figure": "icicle",
    "interleaving_steps": "interleaving",
    "interpreter": "bytecode innermost_loop",
    "kernel_code": "gpu_code",
    "kernel_steps": "gpu_steps",
    "ladder_figure": "ladder_plot ladder_table",
    "latency_figure": "latency",
    "listing": "source",
    "log_mel_figure": "log_mel",
    "loop_orders": "strides_table walk",
    "machine_code": "assembly compare_assembly loop_costs",
    "messages_on_network": "messages",
    "nine_circles": "course_map",
    "operators": "profile",
    "operators_on_roofline": "operators_roofline",
    "pipeline_explorer": "pipeline roles",
    "prediction": "claim predict verdict",
    "profiles_beside": "three_profiles",
    "promotion_curves": "promotion_figure",
    "rank_bytes": "rank_bytes",
    "rank_waits": "rank_waits",
    "ring_animation": "ring",
    "sameness": "same",
    "shard_map": "shard_steps shards",
    "speech_widget": "speech_input",
    "speed_explorer": "encoder_speed",
    "stepper": "step_through",
    "strassen_figures": "block_products cancellation crossover crossover_interval error_levels time_ratios",
    "swizzle_tiles": "swizzle_map",
    "tasks_done": "progress",
    "thread_tile": "register_tile",
    "tile_explorer": "tile_choice",
    "time_lanes": "lanes schedule",
    "training_figures": "losses rank_memory",
    "two_whys_figure": "two_whys",
    "warp_figure": "in_flight latency_hiding warps",
}
_HOME = {name: module for module, names in _VIEWS.items() for name in names.split()}
__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
