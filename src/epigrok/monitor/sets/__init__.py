"""The sets that a monitor looks at: which inputs were taken, and which predictions are read."""
