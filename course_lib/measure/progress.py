"""A progress bar for work that turns out to take long."""

from __future__ import annotations

import sys
import threading
from typing import Any

PATIENCE_S = 2.0


class Progress:
    """Show a bar on stdout once the work has taken two seconds (`wanted` True: at once, False: never).

    Stdout, because a notebook shows stderr as if something were wrong. The bar is wiped at the end; where
    nothing can be wiped (stdout is a file or a pipe) there is none unless it is `wanted`. What surely takes
    longer has a shorter `patience_s`.
    """

    def __init__(self, wanted: bool | None, patience_s: float = PATIENCE_S) -> None:
        from tqdm import tqdm

        class Quiet(tqdm):
            monitor_interval = 0  # tqdm's watching thread would disturb the measurement

        Quiet.set_lock(threading.RLock())  # one between processes would start another process on macOS
        self._bar = Quiet(
            total=100,
            file=sys.stdout,
            leave=False,
            ncols=72,
            bar_format="{desc} {percentage:3.0f}% |{bar}|",
            mininterval=0.2,
            miniters=0,
            delay=0 if wanted else patience_s,
            disable=_is_kept() if wanted is None else not wanted,
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._bar.close()

    def update(self, share: float, what: str) -> None:
        """Say that `share` of the work (0 to 1) is done and what comes now."""
        self._bar.set_description_str(what if len(what) <= 32 else what[:31] + "…", refresh=False)
        self._bar.update(100 * min(1.0, max(0.0, share)) - self._bar.n)


def _is_kept() -> bool:
    """Whether stdout goes to a file or a pipe; a notebook has put its own in the place of Python's."""
    return sys.stdout is sys.__stdout__ and not sys.stdout.isatty()
