"""Condensation (PolyRAG III-C): facts that say the same become one, around ontology anchors.

Imports the graph, the ontology and embeddings; imported by the pipeline.
"""
