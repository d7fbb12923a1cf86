"""Decisions by a model: PolyRAG's queries, reading, and the prompts of walks.

Loaded by `query` where a model is chosen.
"""
