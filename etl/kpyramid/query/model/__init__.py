"""Decisions by a model: SPARQL, sufficiency, reading; one module per task.

Loaded by `query` where a model is chosen.
"""
