"""A published snapshot opened for reading: scope, tables, index, evidence, SPARQL.

Imports storage, ontology and embeddings; imported by `query`, `answering` and the pipeline.
"""
