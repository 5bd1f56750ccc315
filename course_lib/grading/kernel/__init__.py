"""Running answers apart: the sandbox, the wire into it, and the runner on the safe side of it."""
