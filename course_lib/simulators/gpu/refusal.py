"""What the tracer cannot run, said in one sentence with the place in the kernel's source."""

from __future__ import annotations


class NotTraceable(Exception):
    """The kernel uses something the tracer does not understand, or does something no GPU could."""

    def __init__(self, sentence: str, file: str = "", line: int = 0) -> None:
        self.sentence, self.file, self.line = sentence, file, line
        is_cell = "ipykernel_" in file or file.startswith("<")  # a notebook's cell has no file to look into
        place = f"line {line}: " if is_cell else f"{file}:{line}: "
        super().__init__(f"{place}{sentence}" if line else sentence)
