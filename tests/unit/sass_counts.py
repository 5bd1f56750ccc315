"""How many instructions of a kernel, or of one of its loops, have a name."""

from course_lib.measure.sass import Sass, SassLoop


def count(of: Sass | SassLoop, name: str) -> int:
    """Return how many instructions have this name, with these modifiers if any ("FFMA", "LDS.128")."""
    wanted = name.split(".")
    operations = [one.text.split()[0].split(".") for one in of.instructions]
    return sum(parts[0] == wanted[0] and set(wanted) <= set(parts) for parts in operations)
