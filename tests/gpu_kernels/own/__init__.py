"""Kernels written for these tests in the manner of the field, where no published one was at hand."""
