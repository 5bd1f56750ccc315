"""What a process of `launch.run` does around the learner's function.

This file is loaded once, by the server that forks the ranks; so that a rank costs milliseconds, not the
seconds that importing torch takes.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import cloudpickle
import torch
import torch.distributed as dist

LAST_WORDS_S = 0.5  # from the moment a rank writes down where it stands to its end


def enter(folder: str, time_limit_s: float, threads: int) -> None:
    """Join the group, call the function that lies in the folder, and leave its value there."""
    os.setsid()  # what it starts is of its group, and goes with it
    _end_with_parent()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    mine = Path(folder, f"{os.environ['RANK']}-{attempt}")
    mine.with_suffix(".group").write_text(str(os.getpid()))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    time_limit_s -= _since_the_first_start(Path(folder, "begun"))
    if time_limit_s <= 0:
        os.kill(os.getpid(), signal.SIGALRM)
    with mine.with_suffix(".stack").open("w") as stack:
        faulthandler.dump_traceback_later(time_limit_s, file=stack)  # also while it waits inside of gloo
        signal.setitimer(signal.ITIMER_REAL, time_limit_s + LAST_WORDS_S)
        torch.set_num_threads(threads)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        try:
            dist.init_process_group("gloo")
            dist.barrier()  # who returns at once must not hang up while another still connects
            function, arguments = cloudpickle.loads(Path(folder, "call").read_bytes())
            value = function(**arguments)
            mine.with_suffix(".value").write_bytes(_packed(value))
            if dist.is_initialized():
                dist.destroy_process_group()
        except BaseException as problem:
            _tell(problem, mine.with_suffix(".error"))
            if has_lost_partner(str(problem)):
                time.sleep(LAST_WORDS_S)  # the engine is to see first who was lost, not who noticed it
            raise SystemExit(1) from None
        finally:
            faulthandler.cancel_dump_traceback_later()


def has_lost_partner(text: str) -> bool:
    """Whether an error's text is gloo's for a rank at the other end that has gone."""
    return "gloo" in text and any(sign in text for sign in ("reset by peer", "closed by peer", "Broken pipe"))


def _tell(problem: BaseException, path: Path) -> None:
    """Write the error down: kind, text, and the last line that is no library's."""
    *_, last = stack = traceback.extract_tb(problem.__traceback__)
    frames = [one for one in stack if one.filename != __file__]
    own = [one for one in frames if not is_a_librarys(one.filename)] or frames[:1]
    where = "when it had returned" if last.name == _packed.__name__ else "when it was called"
    line = f"in line {own[-1].lineno} of {own[-1].name}" if own else where
    try:
        text = str(problem)
    except Exception:  # the learner's own kind of error
        text = "it cannot be said what"
    part = path.with_suffix(".part")
    part.write_text(json.dumps([os.environ["RANK"], type(problem).__name__, text, line]))
    part.rename(path)


def is_a_librarys(file: str) -> bool:
    """Whether a line of this file is none that a learner has written: an installed library's, or ours."""
    return "site-packages" in file or Path(file).is_relative_to(Path(__file__).parents[1])


def _packed(value: object) -> bytes:
    try:
        return cloudpickle.dumps(value)
    except Exception as problem:
        raise ValueError(f"what the function returned cannot be sent back: {problem}") from None


def _since_the_first_start(begun: Path) -> float:
    """Return how many seconds ago the first rank of the first start came by."""
    try:
        begun.touch(exist_ok=False)
    except FileExistsError:
        return max(0.0, time.time() - begun.stat().st_mtime)
    return 0.0


def _end_with_parent() -> None:
    """Let this process and its own be killed when the notebook's kernel is gone, whatever they wait for.

    The kernel holds the other end of a pipe that multiprocessing gives each child; the server of ranks ends
    when the last rank has.
    """

    def watch() -> None:
        multiprocessing.parent_process().join()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
