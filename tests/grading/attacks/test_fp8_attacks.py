"""Answers to chapter 10 that let another library or the course itself work, or look at what they must not."""

import pytest

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.program import CLOSED
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.tasks.fp8 import scales, shared

OWN = "course_lib.grading.tasks.fp8"
BOX = f"{shared.TENSOR_CORE}\n\n"
KERNELS = f"{scales.KERNELS}\n\n"

#: Each would be right, or may be; the task and the text of the answer.
ATTACKS = {
    "decode: torch": (
        "10.decode",
        "import torch\ndef decode(code):\n"
        "    return float(torch.tensor([code], dtype=torch.uint8).view(torch.float8_e4m3fn).float()[0])",
    ),
    "decode: the reference": ("10.decode", f"from {OWN}.decode import decode"),
    "decode: a file": (
        "10.decode",
        "import numpy as np\ndef decode(code): return float(np.load('/x')[code])",
    ),
    "encode: torch by builtins": (
        "10.encode",
        "import numpy as np\ndef encode(x):\n    torch = np.ma.core.builtins.__import__('torch')\n"
        "    small = torch.tensor(x).clamp(-448, 448).to(torch.float8_e4m3fn)\n"
        "    return int(small.view(torch.uint8))",
    ),
    "encode: ml_dtypes": (
        "10.encode",
        "from ml_dtypes import float8_e4m3fn as t\ndef encode(x): return t(x).view('u1')",
    ),
    "encode: jax": ("10.encode", "import jax.numpy as np\ndef encode(x): return np.float8_e4m3fn(x)"),
    "encode: the format": (
        "10.encode",
        "def encode(x):\n    from course_lib.fp8.formats import E4M3\n    return int(E4M3.encode(x))",
    ),
    "quantise: the library": (
        "10.quantise",
        "import torch\nfrom course_lib.fp8.quantise import quantise as q\n"
        "def quantise(x): return q(torch.tensor(x))",
    ),
    "quantise: sys": (
        "10.quantise",
        "import numpy as np\ndef quantise(x):\n"
        f"    return np._core._internal.sys.modules['{OWN}.quantise'].quantise(x)",
    ),
    "promotion: the simulator": (
        "10.promotion",
        f"{BOX}def two_level(A, B, every, core):\n    from course_lib.simulators import tensor_core as t\n"
        "    return t.gemm_e4m3(A, B, every, t.TensorCore('', *core))",
    ),
    "promotion: another core": (
        "10.promotion",
        f"{BOX}exponents = lambda x: 0\ndef two_level(A, B, every, core):\n"
        "    return tensor_core(A, B, np.zeros((len(A), len(B))), core)",
    ),
    "parity: the reference": (
        "10.parity",
        f"import {OWN}.parity as p\ndef waits(v, s): return p.waits(v, s)",
    ),
    "swizzle: the library": (
        "10.swizzle",
        "from course_lib.fp8 import swizzle\n"
        "def address(row, column, width): return swizzle.swizzled(row * width + column, width)",
    ),
    "schedule: the library": (
        "10.schedule",
        "import course_lib.fp8.schedule as s\ndef tiles_of(*a): return s.Schedule(*a)",
    ),
    "tiles: the library": (
        "10.tiles",
        "from course_lib.fp8 import choose\ndef tile_for(*a): return choose.choose(*a)",
    ),
    "accumulator: the key": ("10.accumulator", f"{BOX}def widths(core):\n    return core"),
    "accumulator: a default that keeps it": (
        "10.accumulator",
        f"{BOX}def widths(core, seen=[]):\n    seen.append(core)\n    return seen.pop()",
    ),
    "accumulator: a function within": (
        "10.accumulator",
        f"{BOX}def widths(core):\n    def inner():\n        return core\n    return inner()",
    ),
    "accumulator: frames": (
        "10.accumulator",
        f"{BOX}def widths(core):\n    try:\n        tensor_core(1, 2, 3, core)\n    except Exception as e:\n"
        "        return e.__traceback__.tb_next.tb_frame.f_locals['core']",
    ),
    "accumulator: locals": ("10.accumulator", f"{BOX}def widths(core):\n    return locals()['core']"),
    "accumulator: the helper's text": (
        "10.accumulator",
        f"{BOX}def widths(core):\n    return tensor_core.__code__.co_consts",
    ),
    "accumulator: a class with a method": (
        "10.accumulator",
        f"{BOX}class Own:\n    def keep(self, core):\n        return core\n"
        "def widths(core):\n    return Own().keep(core)",
    ),
    "accumulator: max with a key": (
        "10.accumulator",
        f"{BOX}def widths(core):\n    return max([(0, 0, 0)], [1], key=lambda x: core)",
    ),
    "scales: the key": (
        "10.scales",
        f"{KERNELS}def judged(kernel, a, b):\n    return 'right' if kernel[0] else 'wrong'",
    ),
    "scales: the key's truth": (
        "10.scales",
        f"{KERNELS}def judged(kernel, a, b):\n    match kernel:\n        case (0, 0, 0, 0, *_):\n"
        "            return 'right'\n    return 'wrong'",
    ),
    "scales: by names for all": (
        "10.scales",
        f"{KERNELS}def look(**all):\n    return str(all)\n"
        "def judged(kernel, a, b):\n    return look(kernel=kernel)",
    ),
    "scales: printing": (
        "10.scales",
        f"{KERNELS}def judged(kernel, a, b):\n    return 'right' if '16' in f'{{kernel}}' else 'wrong'",
    ),
    "scales: its own product": (
        "10.scales",
        f"{KERNELS}def judged(kernel, a, b):\n    def product(kernel, *a):\n        return kernel\n"
        "    return product(kernel)",
    ),
    "scales: the reference": ("10.scales", f"{KERNELS}from {OWN}.scales import judged"),
}


@pytest.mark.parametrize(("id", "text"), ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("head", ["", CLOSED + "\n"], ids=["in a notebook", "in a class"])
def test_nobody_else_works_for_an_answer(id, text, head):
    task = registry.task(id)
    assert any(rule.judge(head + text, task.entry) for rule in task.rules)


@pytest.mark.parametrize("id", ["10.accumulator", "10.scales"])
def test_the_rules_are_asked_before_an_answer_runs(id):
    task = registry.task(id)
    name = {"10.accumulator": "accumulator: the key", "10.scales": "scales: the key"}[id]
    text = ATTACKS[name][1]
    report = judge(task, InProcess(load(text, task.entry)), text, 9)
    assert report.points == 0
    assert "find out by experiment" in str(report)


def test_every_task_is_attacked():
    assert {id for id, _ in ATTACKS.values()} == {task.id for task in registry.tasks("10")}
