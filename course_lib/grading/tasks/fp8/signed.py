"""Comparing numbers of which zero has a sign, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from course_lib.grading.compare import Mismatch, exact


@dataclass(frozen=True)
class Signed:
    """Compares exactly; beyond that, -0.0 is another number than 0.0."""

    def compare(self, got: Any, want: float, args: tuple) -> Mismatch | None:
        """Return None if `got` is the number wanted, with its sign."""
        found = exact().compare(got, want, args)
        if found is None and want == 0 and math.copysign(1, got) != math.copysign(1, want):
            said = f"Yours is {float(got)}, expected is {want}: the sign of zero counts, too."
            return Mismatch((said,), wrong=1, total=1)
        return found


SIGNED = Signed()
