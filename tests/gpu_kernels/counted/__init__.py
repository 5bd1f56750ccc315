"""Kernels whose memory requests can be counted by hand; `# COUNT` ends the lines that are counted."""
