"""Makes the course's Python environment, .venv, when it is missing or out of date; every `make` runs it.

    python course_lib/bootstrap.py [--asked-for]    make .venv if need be; --asked-for: with this very Python
    python course_lib/bootstrap.py --fits           does this Python fit? prints its path if so

This file runs before anything is installed and must read as Python 2.7 as well, so that an old Python gives
a sentence instead of a syntax error. What it does from there is in course_lib/environment/.
"""

import os
import sys

#: The Pythons the course runs on, first and last; pyproject.toml says the same (a test compares them).
OLDEST, NEWEST = (3, 11), (3, 13)


def unfit():
    """Return the sentence for a Python that is too old, or newer than the course was tried on."""
    return (
        "Set-up stopped: this is Python %d.%d.%d (%s), but the course needs Python %d.%d to %d.%d; install "
        "one (python.org, or your system's packages) and try again, or name it: "
        "make lab PYTHON=/path/to/python3.12."
    ) % (tuple(sys.version_info[:3]) + (sys.executable,) + OLDEST + NEWEST)


def main(arguments):
    """Do what the module's docstring says and return the exit code."""
    if not OLDEST <= tuple(sys.version_info[:2]) <= NEWEST:
        sys.stderr.write(unfit() + "\n")
        return 1
    if "--fits" in arguments:
        print(sys.executable)
        return 0
    here = os.path.dirname(os.path.abspath(__file__))
    project = os.path.dirname(here)
    # Python puts a script's folder first; from there the course's modules would look like top-level ones.
    sys.path[:] = [project] + [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    from course_lib.environment.build import make_ready

    return make_ready(project, asked_for="--asked-for" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
