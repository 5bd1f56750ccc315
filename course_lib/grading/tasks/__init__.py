"""The tasks: one file a chapter, or a package of several."""
