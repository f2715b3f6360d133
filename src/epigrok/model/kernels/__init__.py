"""GPU kernels of a training step in bfloat16. Every sum has a fixed order."""
