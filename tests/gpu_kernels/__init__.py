"""Kernels that the GPU tracer is tested against: right ones, faulty ones, and ones whose counts are known."""
