"""What a sandbox says of a launch: taken apart piece by piece, and whatever is no count is refused."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))
from kernel_examples import SCALE, SCALED, TURN, TURNED

from course_lib.grading.judge import judge
from course_lib.grading.launch import MOST_HAZARDS, MOST_ROWS, NoCounts, counts_of, plain_counts
from course_lib.grading.sandbox import process, wire
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sources import load
from course_lib.grading.task import Code

SAFE = Sandbox(limits=AnswerLimits(call_s=4, task_s=60, memory_mb=600, disk_mb=16, processes=16))
HAZARD = ["race", 7, "thread reads", 3, [0, 0, 0]]


def plain(text: str = TURNED.replace("    cuda.syncthreads()\n", "")) -> dict:
    """Return what the tracer counts of a kernel with hazards, as it is shipped."""
    from course_lib.simulators.gpu import trace

    A = np.arange(64, dtype=np.float32).reshape(8, 8)
    return plain_counts(trace(load(text, "turned"), 1, (32, 32), A, np.zeros_like(A)))


def shipped(value):
    frame = wire.frame(value)
    return wire.read_frame(io.BytesIO(frame).read)


def test_counts_come_over_the_wire_as_they_were():
    counts = counts_of(shipped(plain()))
    assert counts == counts_of(plain())
    (load_of_a,) = counts.of("global", kind="load")
    assert (load_of_a.requests, load_of_a.cost, load_of_a.each) == (8, 8, 1.0)
    assert counts.hazards[0].kind == "race"
    assert sum(row.requests for row in counts_of(plain(TURNED)).of("barrier")) == 32


LIES = {
    "no dict": [],
    "nothing": None,
    "a row is missing": {"hazards": None},
    "rows are a tuple": {"hazards": ()},
    "a row too short": {"rows": [["global", 1, 1]]},
    "a row is a text": {"rows": ["01234567"]},
    "a negative count": {"rows": [["global", 1, -1, "A", "load", 0, 0, 0]]},
    "a float": {"rows": [["global", 1, 1.0, "A", "load", 0, 0, 0]]},
    "a truth": {"rows": [["global", 1, True, "A", "load", 0, 0, 0]]},
    "an array": {"rows": [["global", 1, np.ones(3), "A", "load", 0, 0, 0]]},
    "a NumPy number": {"busiest_warp": np.int64(3)},
    "a busy warp that is none": {"busiest_warp": None},
    "a huge number": {"busiest_warp": 10**400},
    "an unknown kind": {"rows": [["global", 1, 1, "A", "peek", 0, 0, 0]]},
    "a name that is none": {"rows": [["global", 1, 1, None, "load", 0, 0, 0]]},
    "a long name": {"rows": [["global", 1, 1, "A" * 700, "load", 0, 0, 0]]},
    "an unknown hazard": {"hazards": [["fine", *HAZARD[1:]]]},
    "a memory that is none": {"rows": [["local", 1, 1, "A", "load", 0, 0, 0]]},
    "shuffles that are none": {"rows": [["shuffle", 3, -1, "", "", 0, 0, 0]]},
    "a hazard nowhere": {"hazards": [[*HAZARD[:4], "(0, 0, 0)"]]},
    "a hazard that says nothing": {"hazards": [["race", 7, None, 3, [0, 0, 0]]]},
    "too many hazards": {"hazards": [HAZARD] * (2 * MOST_HAZARDS + 1)},
    "too many rows": {"rows": [["barrier", 1, 1, "", "", 0, 0, 0]] * (MOST_ROWS + 1)},
    "a foreign value": {"busiest_warp": object()},
}


def test_what_is_no_count_is_refused():
    honest = plain()
    for name, lie in LIES.items():
        with pytest.raises(NoCounts):
            counts_of({**honest, **lie} if isinstance(lie, dict) else lie)
            pytest.fail(name)


class Lying(SandboxedRunner):
    """A runner to whose process somebody else answers."""

    def __init__(self, code: Code, reply: dict) -> None:
        super().__init__(code, SAFE)
        self._reply = reply

    def _started(self):
        said = dict(self._reply)
        self._process = SimpleNamespace(ask=lambda *_: said, kill=lambda: None, seconds=0.0)


def verdict(reply: dict):
    code = Code(SCALED, SCALE.entry)
    runner = Lying(code, reply)
    return judge(SCALE, runner, code.text, 9), runner.incidents


NONE = {"rows": [], "hazards": [], "busiest_warp": 0}
REPLIES = {
    "empty": {},
    "no counts": {"counts": None, "args_after": (1, 2)},
    "counts that are none": {"counts": {**NONE, "busiest_warp": -1}, "args_after": (1, 2)},
    "no arguments": {"counts": NONE, "args_after": None},
    "too few arguments": {"counts": NONE, "args_after": (np.zeros(1, np.float32),)},
    "a fault that is none": {"counts": NONE, "fault": {"kinds": [3]}, "args_after": (1, 2)},
}


def test_a_reply_that_is_none_is_wrong_and_the_teacher_is_told():
    for name, reply in REPLIES.items():
        report, incidents = verdict(reply)
        assert report.points == 0 and "what came back from it is no reply" in report.lines[0], name
        assert incidents and incidents[0].startswith("Garbled"), name
    for after in ((1, 2), ("x", "y"), (None, np.zeros((2, 2))), (np.zeros(1), np.zeros(1))):
        report, _ = verdict({"counts": NONE, "args_after": after})  # of another kind: a wrong answer
        assert report.points == 0, after


# --- the tracer's own files ---------------------------------------------------------------------------------

BYTES = np.zeros(4, np.uint8)


NO_FILES = (
    None,
    [],
    {"/etc/x.nbi": BYTES},
    {"../x.nbi": BYTES},
    {"a/../../x.nbc": BYTES},
    {"x.py": BYTES},
    {"x.nbi": b"bytes"},
    {"x.nbi": np.zeros(4)},
    {"x.nbi": np.zeros(process.MOST_BYTES + 1, np.uint8)},
)


def test_files_that_lie_elsewhere_or_are_none_are_not_handed_on():
    for files in NO_FILES:
        assert not process._sound(files), files


@pytest.mark.needs("bubblewrap")
def test_the_second_process_compiles_nothing(monkeypatch):
    kept: dict = {}
    monkeypatch.setattr(process, "_kept", lambda: kept)
    code = Code(TURNED, TURN.entry)
    made = []
    for _ in range(2):
        with SandboxedRunner(code, SAFE) as runner:
            assert judge(TURN, runner, code.text, 9).passed
        made.append(runner.process_seconds)
    assert any(name.endswith(".nbc") for name in kept)
    assert made[1] < made[0] / 2
