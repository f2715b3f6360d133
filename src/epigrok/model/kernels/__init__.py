"""GPU kernels of a training step in bfloat16. None adds up in an order that may change."""
