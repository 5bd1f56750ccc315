"""The tasks, one package per chapter, one module per task."""
