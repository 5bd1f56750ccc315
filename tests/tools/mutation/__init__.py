"""Systematic faults: what every task must catch, whoever makes the mistake."""
