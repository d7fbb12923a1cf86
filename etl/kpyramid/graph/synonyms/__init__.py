"""What two relation wordings mean of each other: the same, more, less, the contrary, another.

Imported by completion, condensation and the pipeline.
"""
