"""What a process of `launch.run` does around the learner's function.

This file is loaded once, by the server that forks the ranks; so that a rank costs milliseconds, not the
seconds that importing torch takes.
"""

from __future__ import annotations

import faulthandler
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
    _end_with_parent()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    mine = Path(folder, f"{os.environ['RANK']}-{attempt}")
    with mine.with_suffix(".stack").open("w") as stack:
        faulthandler.dump_traceback_later(time_limit_s, file=stack)  # also while it waits inside of gloo
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, time_limit_s + LAST_WORDS_S)
        torch.set_num_threads(threads)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        try:
            dist.init_process_group("gloo")
            dist.barrier()  # who returns at once must not hang up while another still connects
            function, arguments = cloudpickle.loads(Path(folder, "call").read_bytes())
            value = function(**arguments)
            mine.with_suffix(".value").write_bytes(cloudpickle.dumps(value))
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
    """Write the error down: kind, text, and the line of the function that it came from."""
    frames = traceback.extract_tb(problem.__traceback__)[1:]  # the first is `enter`
    line = f"line {frames[0].lineno} of {frames[0].name}" if frames else ""
    part = path.with_suffix(".part")
    part.write_text("\0".join([os.environ["RANK"], type(problem).__name__, str(problem), line]))
    part.rename(path)


def _end_with_parent() -> None:
    """Let this process be killed when the notebook's kernel is gone, whatever it is waiting for.

    The kernel holds the other end of a pipe that multiprocessing gives each child; the server of ranks ends
    when the last rank has.
    """

    def watch() -> None:
        multiprocessing.parent_process().join()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
