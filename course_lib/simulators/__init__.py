"""Models of hardware that run anywhere: what a machine would do, counted event by event."""
