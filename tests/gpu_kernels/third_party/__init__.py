"""Kernels that others wrote, unmodified: each file names repository, path, version, licence and changes."""
