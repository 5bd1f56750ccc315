"""Kernels that others wrote, as they wrote them: each file names repository, path, version, licence and changes."""
