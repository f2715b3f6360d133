"""What the benchmark trains: data, networks and recipes of all kinds of runs."""
