"""Grading a class: taking submissions in, reading them, judging many at once, and publishing the grades."""
