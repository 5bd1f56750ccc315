"""The tasks, one module per chapter."""
