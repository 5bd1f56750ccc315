"""Tasks of interlude C: one training on many ranks."""

TASKS: tuple = ()
