"""The project's .venv: whether it is sound (state), how it is made (build), what went wrong (complaints).

Only the standard library: these modules run before anything is installed.
"""
