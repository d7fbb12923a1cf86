"""What relation wordings mean of each other: the same, less, more, the contrary, something else."""
