"""Triples and claims from text: by a dependency parse (OpenIE), or by a model (`cascade`).

Imports documents and llm; imported by graph, population, the pipeline.
"""
