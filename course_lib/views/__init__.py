"""What the chapters show: predictions, step-throughs, listings and figures.

Every view is loaded when it is first used, so importing this package loads no plotting and no widgets. Every
widget has a static twin, `.static()`, drawn by the same code; an exported page shows the twin. (Pages made by
executing a notebook need `--ExecutePreprocessor.store_widget_state=False`, or the page asks for a widget.)
The icicle alone brings a script instead of a widget: it can be zoomed on an exported page, too.
"""

from __future__ import annotations

import importlib
from typing import Any

# A module and its function of one name would fight over the attribute; imported here, the function wins.
from course_lib.views.same import same

_HOME = {
    "Prediction": "prediction",
    "Stepper": "stepper",
    "Walker": "loop_orders",
    "accumulator_figure": "accumulator_bits",
    "amdahl": "amdahl_figure",
    "assembly": "machine_code",
    "block_products": "strassen_figures",
    "bytecode": "interpreter",
    "cache_walk": "cache_animation",
    "cancellation": "strassen_figures",
    "compare_assembly": "machine_code",
    "control_bits": "hopper_code",
    "costs": "cost_explorer",
    "course_map": "nine_circles",
    "crossover": "strassen_figures",
    "crossover_interval": "strassen_figures",
    "cuda_source": "hopper_code",
    "encoder_speed": "speed_explorer",
    "error_levels": "strassen_figures",
    "explore_format": "format_explorer",
    "false_sharing": "coherence_figure",
    "format_lines": "number_line_figure",
    "fp8_roofline": "fp8_under_roofline",
    "gantt": "gantt_figure",
    "gpu_code": "kernel_code",
    "gpu_ladder": "gpu_ladder_figure",
    "gpu_sizes": "gpu_ladder_figure",
    "gpu_steps": "kernel_steps",
    "icicle": "icicle_figure",
    "in_flight": "warp_figure",
    "innermost_loop": "interpreter",
    "interleaving": "interleaving_steps",
    "kernel_loops": "five_loops",
    "ladder_plot": "ladder_figure",
    "latency": "latency_figure",
    "latency_hiding": "warp_figure",
    "line_states": "coherence_figure",
    "log_mel": "log_mel_figure",
    "loop_costs": "machine_code",
    "machine_codes": "hopper_code",
    "memory": "boxes",
    "miss_curves": "cache_curves",
    "operators_roofline": "operators_on_roofline",
    "pipeline": "pipeline_explorer",
    "predict": "prediction",
    "profile": "operators",
    "progress": "tasks_done",
    "promotion_figure": "promotion_curves",
    "ring": "ring_animation",
    "roles": "pipeline_explorer",
    "source": "listing",
    "speech_input": "speech_widget",
    "step_through": "stepper",
    "strides": "loop_orders",
    "strides_of": "loop_orders",
    "strides_table": "loop_orders",
    "swizzle_map": "swizzle_tiles",
    "three_profiles": "profiles_beside",
    "tile_choice": "tile_explorer",
    "tile_sawtooth": "tile_explorer",
    "time_ratios": "strassen_figures",
    "two_whys": "two_whys_figure",
    "verdict": "prediction",
    "walk": "loop_orders",
    "warps": "warp_figure",
}
__all__ = ["same", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
