"""Extraction by a language model: the tasks, their order, and the check of what comes back.

Imported by `kpyramid.pipeline`.
"""
