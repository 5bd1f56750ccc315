"""Stands for the package of this name in nbgrader's processes: that one makes 38 grammars on import.

jsonschema does without it, and no notebook's schema asks for the form of an address.
"""

raise ImportError("no grammars here")
