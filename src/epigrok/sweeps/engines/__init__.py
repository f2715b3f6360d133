"""Engines that run a sweep: on this machine, on SLURM, on Ray.

Every engine starts the same worker, `epigrok run RUN_DIR`, and trusts only the run directory. So
engines can be killed, mixed and started again.
"""
