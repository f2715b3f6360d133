"""Where the runs of a sweep are executed: subprocesses of this machine, SLURM, Ray.

Every engine starts the same worker, `epigrok run RUN_DIR`, and believes nothing but the run
directory; so any of them can be killed, mixed and started again.
"""
