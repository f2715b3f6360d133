"""Commands that write a file or a folder of files to go on with elsewhere, and nothing else."""
