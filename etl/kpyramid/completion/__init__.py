"""Ontology completion (PolyRAG §III-B): frequent relations and kinds that the ontology lacks.

Imports the graph, the ontology and numerics; imported by the pipeline.
"""
