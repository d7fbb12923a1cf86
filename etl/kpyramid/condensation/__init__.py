"""Condensation (PolyRAG §III-C): merging of equivalent facts, and of broader ones near anchors.

Imports the graph, the ontology and embeddings; imported by the pipeline.
"""
