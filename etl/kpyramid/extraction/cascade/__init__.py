"""Extraction by a language model: the tasks, their order, and the check of what comes back.

A task is one module: its prompt, the model of its reply and its parser stand together under one
`TASK`, whose version goes up with every change of them. Imported by `kpyramid.pipeline`.
"""
