"""Running answers apart: what a process sees, the wire into it, and the runner on the safe side of it."""
