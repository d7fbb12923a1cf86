"""Questions made from facts: for a choice, over many documents, and examples to tune a model with.

Imported by the scripts beside this folder and by `sets`.
"""
