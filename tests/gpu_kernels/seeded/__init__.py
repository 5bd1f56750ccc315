"""Kernels with a fault put in: `# HAZARD` ends the line at fault, `# PARTNER` what it collides with."""
