"""Comparison of relation wordings: equivalent, narrower, broader, contrary or different.

Imported by completion, condensation and the pipeline.
"""
