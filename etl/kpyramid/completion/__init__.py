"""Ontology completion (PolyRAG III-B): what the graph says often and the ontology lacks.

Imports the graph, the ontology and numerics; imported by the pipeline.
"""
