"""The course's command line, a module a command: ``add_arguments(parser)`` and ``run(args) -> exit code``."""
