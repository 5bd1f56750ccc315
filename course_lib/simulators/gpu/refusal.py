"""What the tracer cannot run, said in one sentence with the place in the kernel's source."""

from __future__ import annotations


class NotTraceable(Exception):
    """The kernel uses something the tracer does not understand, or does something no GPU could."""

    def __init__(self, sentence: str, file: str = "", line: int = 0) -> None:
        self.sentence, self.file, self.line = sentence, file, line
        super().__init__(f"{file}:{line}: {sentence}" if line else sentence)
